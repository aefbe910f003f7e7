# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import processes as processes_of_root
from ansible_collections.podwire.cni.plugins.module_utils._host.processes import Process
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import (
    MAIN,
    META,
    actions,
    codes,
    kinds,
    web,
)

ISTIO = {"type": "istio-cni", "log_level": "info"}
LEFT = [
    {
        "kind": "leave",
        "target": "demo/web/eth0",
        "class": "foreign",
        "reason": "Istio, which is running, changed the network",
    }
]


@pytest.fixture(autouse=True)
def processes(attach_host, monkeypatch):
    found = {"install-cni": 7}

    def processes(*_names, **_options):
        return [Process(pid, name=name) for name, pid in found.items()]

    monkeypatch.setattr(processes_of_root, "processes", processes)
    open(f"{attach_host.bin_dir}/istio-cni", "w").close()
    attach_host.run(web())
    return found


def test_an_attachment_of_before_is_left(attach_host):
    attach_host.network(plugins=[MAIN, META, ISTIO])
    predicted = attach_host.check(web())
    plan = attach_host.run(web(), on_drift="repair")
    assert plan.actions() == predicted.actions() == LEFT
    assert not (plan.changed or predicted.changed)
    assert actions(plan) == ["none"]
    outcome = plan.outcomes[0].row()
    assert (outcome["reason"], outcome["ips"]) == ("injected", ["10.1.0.2/24"])
    assert codes(plan) == ["foreign_owner"]
    assert all(
        word in next(iter(plan.warnings))[1] for word in ("Istio", "istio-cni", "install-cni, process 7", "force")
    )
    before, after = (plan.diff()[0][side] for side in ("before", "after"))
    assert [len(side["config"]["plugins"]) for side in (before, after)] == [2, 3]
    assert dict(before, config=None) == dict(after, config=None)
    # It is checked as it was made.
    assert attach_host.verbs("CHECK") == ["main", "meta"]
    assert attach_host.verbs("ADD") == attach_host.verbs("DEL") == []


@pytest.mark.parametrize("injected", [[dict(ISTIO, log_level="debug")], []])
def test_so_is_one_whose_plugin_was_changed_or_taken_away(attach_host, injected):
    attach_host.network(plugins=[MAIN, META, ISTIO])
    attach_host.run(web(), force=True)
    assert attach_host.check(web()).actions() == []
    attach_host.network(plugins=[MAIN, META, *injected])
    assert attach_host.check(web()).actions() == LEFT


def test_what_else_differs_is_a_change(attach_host):
    attach_host.network(plugins=[dict(MAIN, mtu=1400), META, ISTIO])
    plan = attach_host.check(web())
    assert kinds(plan) == [("repair", "demo/web/eth0")]
    assert plan.outcomes[0].reason == "config"
    attach_host.network(plugins=[MAIN, META, ISTIO])
    assert attach_host.check(web(args={"K": "v"})).outcomes[0].reason == "args"


def test_without_the_daemon_it_is_a_change(attach_host, processes):
    processes.clear()
    attach_host.network(plugins=[MAIN, META, ISTIO])
    assert attach_host.check(web()).outcomes[0].reason == "config"


def test_what_nobody_injects_is_a_change(attach_host):
    attach_host.network(plugins=[MAIN, META, {"type": "meta"}])
    assert attach_host.check(web()).outcomes[0].reason == "config"


def test_force_makes_it_anew_once(attach_host):
    attach_host.network(plugins=[MAIN, META, ISTIO])
    plan = attach_host.run(web(), force=True)
    assert actions(plan) == ["repaired"]
    assert attach_host.verbs("DEL") == ["meta", "main"]
    assert attach_host.verbs("ADD") == ["main", "meta", "istio-cni"]
    assert attach_host.run(web(), force=True).actions() == []


def test_drift_is_repaired_with_the_network_as_it_is(attach_host):
    attach_host.network(plugins=[MAIN, META, ISTIO])
    attach_host.broken[("CHECK", "meta")] = "the rules are gone"
    plan = attach_host.check(web())
    assert (actions(plan), codes(plan), plan.actions()) == (["drifted"], ["drifted", "foreign_owner"], LEFT)
    assert plan.outcomes[0].reason == "check"
    assert kinds(attach_host.check(web(), on_drift="repair")) == [("repair", "demo/web/eth0")]
