# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.plan import SAFE
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import (
    MAIN,
    META,
    actions,
    codes,
    web,
)

# ---- present


def test_an_interface_that_was_never_there_is_not_missed(attach_host):
    attach_host.network(plugins=[META])
    attach_host.run(web())
    assert actions(attach_host.run(web())) == ["none"]


def test_the_same_namespace_under_another_path_is_no_change(attach_host):
    attach_host.run(web())
    attach_host.namespaces["/proc/7/ns/net"] = attach_host.namespaces["/run/netns/web"]
    assert actions(attach_host.run(web(netns="/proc/7/ns/net"))) == ["none"]
    del attach_host.namespaces["/run/netns/web"]
    plan = attach_host.run(web(netns="/proc/7/ns/net"))
    assert actions(plan) == ["none"]
    assert attach_host.verbs("CHECK") == []
    attach_host.run(web(netns="/proc/7/ns/net", state="absent"))
    assert ("DEL", "main", "web", "/proc/7/ns/net") in attach_host.calls


def test_what_is_left_keeps_its_addresses_and_the_rest_of_its_container_waits(attach_host):
    attach_host.run(web())
    plan = attach_host.check(web(args={"K": "v"}), web(ifname="eth1"))
    plan.restrict([SAFE])
    assert actions(plan) == ["left", "left"]
    assert [outcome.row()["ips"] for outcome in plan.outcomes] == [["10.1.0.2/24"], []]


# ---- CHECK


@pytest.mark.parametrize("on_drift", ["report", "repair", "fail"])
def test_a_check_that_fails_in_other_words_each_time_is_no_drift(attach_host, on_drift):
    attach_host.check_fails(999)
    assert codes(attach_host.run(web(), on_drift=on_drift)) == ["check_unusable"]
    for _time in range(3):
        plan = attach_host.run(web(), on_drift=on_drift)
        assert (actions(plan), codes(plan), plan.changed) == (["none"], ["check_unusable"], False)
    attach_host.check_fails(11)
    plan = attach_host.run(web(), on_drift=on_drift)
    assert actions(plan) == [{"report": "drifted", "repair": "repaired", "fail": "failed"}[on_drift]]


@pytest.mark.parametrize("on_drift", ["report", "repair", "fail"])
@pytest.mark.parametrize("before", [None, 0, 999])
def test_a_check_that_crashes_proves_nothing_about_the_container(attach_host, before, on_drift):
    if before is not None:
        attach_host.check_fails(before)
    attach_host.run(web())
    attach_host.check_fails(0)
    for _time in range(3):
        plan = attach_host.run(web(), on_drift=on_drift)
        assert (actions(plan), codes(plan), plan.changed) == (["none"], ["check_unusable"], False)
        assert "crashed" in next(iter(plan.warnings))[1]
    # What the kernel has lost is seen all the same.
    attach_host.addresses["/run/netns/web"] = []
    assert actions(attach_host.run(web())) == ["drifted"]


def test_addresses_that_are_not_to_be_had_again_are_given_up(attach_host):
    attach_host.network(plugins=[dict(MAIN, capabilities={"ips": True})])
    attach_host.run(web())
    attach_host.namespaces["/run/netns/web"][1].discard("eth0")
    taken = PluginError(999, "10.1.0.2 is taken", plugin="main")
    attach_host.fail_if(lambda verb, _path, conf, _env: verb == "ADD" and "10.1.0.2" in str(conf), taken)
    plan = attach_host.run(web())
    assert actions(plan) == ["repaired"]
    assert codes(plan) == ["addresses_changed"]
    assert plan.outcomes[0].row()["ips"] == ["10.1.0.3/24"]


def test_dhcp_is_not_asked_in_check_mode(attach_host):
    attach_host.network(plugins=[{"type": "main", "ipam": {"type": "dhcp"}}])
    attach_host.run(web())
    assert actions(attach_host.check(web())) == ["none"]
    assert attach_host.verbs("CHECK") == []
    attach_host.run(web())
    assert attach_host.verbs("CHECK") == ["main"]


@pytest.fixture
def drifted(attach_host):
    """Return a host whose container has lost its address."""
    attach_host.run(web())
    attach_host.addresses.clear()
    return attach_host


def test_check_is_not_asked_for_what_is_seen(drifted):
    drifted.broken["CHECK", "main"] = "the address is gone"
    plan = drifted.run(web())
    assert (plan.outcomes[0].reason, len(plan.warnings)) == ("kernel", 1)
    assert drifted.verbs("CHECK") == []


def test_a_check_of_another_plugin_than_the_one_that_never_works_is_drift(attach_host):
    attach_host.broken["CHECK", "meta"] = "never"
    attach_host.run(web())
    attach_host.broken["CHECK", "main"] = "never"
    plan = attach_host.run(web())
    assert (actions(plan), plan.outcomes[0].reason, codes(plan)) == (["drifted"], "check", ["drifted"])


def test_a_plugin_that_check_lacks_is_a_warning_in_check_mode_and_an_error_in_a_run(attach_host):
    attach_host.run(web())
    os.unlink(os.path.join(attach_host.bin_dir, "main"))
    plan = attach_host.check(web())
    assert (actions(plan), codes(plan)) == (["none"], ["missing_plugin"])
    assert attach_host.run(web()).outcomes[0].error["code"] == "missing_plugin"
