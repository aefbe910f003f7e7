# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import (
    MAIN,
    META,
    actions,
    codes,
    kinds,
    web,
)

# ---- present


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"args": {"K": "v"}}, "args"),
        ({"capability_args": {"portMappings": []}}, "capability_args"),
        # To Python, True and 1 are equal.
        ({"capability_args": {"x": True}}, "capability_args"),
    ],
)
def test_other_arguments_detach_with_the_old_ones_and_attach(attach_host, changed, reason):
    attach_host.run(web(capability_args={"x": 1}))
    assert actions(attach_host.run(web(capability_args={"x": 1}))) == ["none"]
    plan = attach_host.run(web(**changed))
    assert actions(plan) == ["repaired"]
    assert plan.outcomes[0].reason == reason
    assert kinds(plan) == [("repair", "demo/web/eth0")]
    assert {step.step_class for step in plan.steps} == {"disruptive"}
    assert attach_host.verbs("DEL") == ["meta", "main"]


def test_a_namespace_that_was_made_anew_is_not_touched_by_the_del(attach_host):
    attach_host.run(web())
    attach_host.namespace("web", inode=2)
    plan = attach_host.run(web())
    assert actions(plan) == ["repaired"]
    assert plan.outcomes[0].reason == "netns"
    assert ("DEL", "main", "web", "") in attach_host.calls
    assert ("ADD", "main", "web", "/run/netns/web") in attach_host.calls
    assert actions(attach_host.run(web())) == ["none"]


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


def test_a_foreign_interface_of_that_name_is_left_alone(attach_host):
    attach_host.namespace("web", links=("lo", "eth0"))
    plan = attach_host.run(web())
    assert actions(plan) == ["failed"]
    assert plan.outcomes[0].error["code"] == "ifname_in_use"
    assert attach_host.calls == []
    # A check predicts the run, unless an earlier task may detach the other one.
    assert attach_host.check(web()).outcomes[0].error["code"] == "ifname_in_use"
    assert actions(attach_host.run(web(), force=True)) == ["added"]
    attach_host.network("other")
    other = web(network="other")
    assert codes(attach_host.check(other)) == ["ifname_in_use"]
    assert actions(attach_host.check(other)) == ["added"]
    assert attach_host.run(other).outcomes[0].error["code"] == "ifname_in_use"
    attach_host.run(web(state="absent"))
    assert actions(attach_host.run(other)) == ["added"]


# ---- CHECK


def test_a_check_that_never_passed_is_no_drift(attach_host):
    attach_host.broken["CHECK", "meta"] = "never works"
    plan = attach_host.run(web())
    assert (actions(plan), codes(plan)) == (["added"], ["check_unusable"])
    plan = attach_host.run(web())
    assert (actions(plan), codes(plan), plan.changed) == (["none"], ["check_unusable"], False)
    attach_host.broken["CHECK", "main"] = "never works"
    plan = attach_host.run(web())
    assert (actions(plan), codes(plan)) == (["drifted"], ["drifted"])


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
        assert "crashed" in plan.warnings[0][1]
    # What the kernel has lost is seen all the same.
    attach_host.addresses["/run/netns/web"] = []
    assert actions(attach_host.run(web())) == ["drifted"]


def test_drift_is_reported_repaired_or_an_error(attach_host):
    attach_host.run(web())
    attach_host.broken["CHECK", "main"] = "address is gone"
    plan = attach_host.run(web())
    assert (actions(plan), plan.changed, plan.steps) == (["drifted"], False, [])
    assert "plugin main: address is gone" in plan.warnings[0][1]
    assert plan.outcomes[0].result is not None

    plan = attach_host.run(web(), on_drift="fail")
    assert actions(plan) == ["failed"]
    assert (plan.outcomes[0].error["code"], plan.outcomes[0].error["plugin"]) == ("drifted", "main")

    plan = attach_host.check(web(), on_drift="repair")
    assert (actions(plan), kinds(plan)) == (["repaired"], [("repair", "demo/web/eth0")])
    assert attach_host.verbs("DEL") == []
    del attach_host.broken["CHECK", "main"]
    assert actions(attach_host.run(web(), on_drift="repair")) == ["none"]


def test_addresses_that_are_not_to_be_had_again_are_given_up(attach_host):
    attach_host.network(plugins=[dict(MAIN, capabilities={"ips": True})])
    attach_host.run(web())
    attach_host.namespaces["/run/netns/web"][1].discard("eth0")
    original = attach_host.exec_plugin

    def taken(path, stdin, env, timeout=None):
        if env["CNI_COMMAND"] == "ADD" and b"10.1.0.2" in stdin:
            raise PluginError(999, "10.1.0.2 is taken", plugin="main")
        return original(path, stdin, env, timeout)

    attach_host.exec_plugin = taken
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
