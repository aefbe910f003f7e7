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
def processes(host, monkeypatch):
    found = {"install-cni": 7}

    def processes(*_names, **_options):
        return [Process(pid, name=name) for name, pid in found.items()]

    monkeypatch.setattr(processes_of_root, "processes", processes)
    open(f"{host.bin_dir}/istio-cni", "w").close()
    host.run(web())
    return found


def test_an_attachment_of_before_is_left(host):
    host.network(plugins=[MAIN, META, ISTIO])
    predicted = host.check(web())
    plan = host.run(web(), on_drift="repair")
    assert plan.actions() == predicted.actions() == LEFT
    assert not (plan.changed or predicted.changed)
    assert actions(plan) == ["none"]
    outcome = plan.outcomes[0].row()
    assert (outcome["reason"], outcome["ips"]) == ("injected", ["10.1.0.2/24"])
    assert codes(plan) == ["foreign_owner"]
    assert all(word in plan.warnings[0][1] for word in ("Istio", "istio-cni", "install-cni, process 7", "force"))
    before, after = (plan.diff()[0][side] for side in ("before", "after"))
    assert [len(side["config"]["plugins"]) for side in (before, after)] == [2, 3]
    assert dict(before, config=None) == dict(after, config=None)
    # It is checked as it was made.
    assert host.verbs("CHECK") == ["main", "meta"]
    assert host.verbs("ADD") == host.verbs("DEL") == []


@pytest.mark.parametrize("injected", [[dict(ISTIO, log_level="debug")], []])
def test_so_is_one_whose_plugin_was_changed_or_taken_away(host, injected):
    host.network(plugins=[MAIN, META, ISTIO])
    host.run(web(), force=True)
    assert host.check(web()).actions() == []
    host.network(plugins=[MAIN, META, *injected])
    assert host.check(web()).actions() == LEFT


def test_what_else_differs_is_a_change(host):
    host.network(plugins=[dict(MAIN, mtu=1400), META, ISTIO])
    plan = host.check(web())
    assert kinds(plan) == [("repair", "demo/web/eth0")]
    assert plan.outcomes[0].reason == "config"
    host.network(plugins=[MAIN, META, ISTIO])
    assert host.check(web(args={"K": "v"})).outcomes[0].reason == "args"


def test_without_the_daemon_it_is_a_change(host, processes):
    processes.clear()
    host.network(plugins=[MAIN, META, ISTIO])
    assert host.check(web()).outcomes[0].reason == "config"


def test_what_nobody_injects_is_a_change(host):
    host.network(plugins=[MAIN, META, {"type": "meta"}])
    assert host.check(web()).outcomes[0].reason == "config"


def test_force_makes_it_anew_once(host):
    host.network(plugins=[MAIN, META, ISTIO])
    plan = host.run(web(), force=True)
    assert actions(plan) == ["repaired"]
    assert host.verbs("DEL") == ["meta", "main"]
    assert host.verbs("ADD") == ["main", "meta", "istio-cni"]
    assert host.run(web(), force=True).actions() == []


def test_drift_is_repaired_with_the_network_as_it_is(host):
    host.network(plugins=[MAIN, META, ISTIO])
    host.broken[("CHECK", "meta")] = "the rules are gone"
    plan = host.check(web())
    assert (actions(plan), codes(plan), plan.actions()) == (["drifted"], ["drifted", "foreign_owner"], LEFT)
    assert plan.outcomes[0].reason == "check"
    assert kinds(host.check(web(), on_drift="repair")) == [("repair", "demo/web/eth0")]
