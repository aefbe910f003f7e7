# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.explained import reasons
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.networks.conf_host import (
    actions,
    steps,
    text,
    unset,
    want,
)


def made_by(kind, name="pods"):
    return json.dumps({"cniVersion": "1.0.0", "name": name, "plugins": [{"type": kind}]}).encode()


def with_plugin(data, **plugin):
    parsed = json.loads(data)
    parsed["plugins"].append(plugin)
    return json.dumps(parsed).encode()


def types(conf_host, name):
    return [plugin["type"] for plugin in json.loads(conf_host.read(name))["plugins"]]


# ---- files of daemons


def test_the_file_of_a_running_daemon_is_not_set_aside(conf_host):
    conf_host.put("10-calico.conflist", made_by("calico"))
    conf_host.processes["calico-node"] = 7
    for options in ({}, {"force": True}):
        assert conf_host.refused(want("a"), exclusive=True, **options) == [("foreign_owner", "10-calico.conflist")]
    conf_host.processes.clear()
    assert steps(conf_host.run(want("a"), exclusive=True))[-1][:2] == ("set_aside", "10-calico.conflist")


def test_the_file_of_a_running_daemon_is_not_adopted(conf_host):
    conf_host.put("10-calico.conflist", made_by("calico"))
    conf_host.processes["calico-node"] = 7
    assert conf_host.refused(want("pods", file="10-calico.conflist")) == [("foreign_owner", "10-calico.conflist")]
    conf_host.processes.clear()
    assert actions(conf_host.run(want("pods", file="10-calico.conflist"))) == ["adopted"]


def test_beside_a_running_daemon_networks_can_be_written(conf_host):
    conf_host.put("10-calico.conflist", made_by("calico"))
    conf_host.processes["calico-node"] = 7
    assert actions(conf_host.run(want("a", priority=20))) == ["created"]


def test_what_was_set_aside_comes_back_whoever_runs(conf_host):
    conf_host.put("10-calico.conflist", made_by("calico"))
    conf_host.run(want("a"), exclusive=True)
    conf_host.processes["calico-node"] = 7
    assert actions(conf_host.run(unset("pods"))) == ["restored"]


# ---- Cilium


def test_what_cilium_has_renamed_is_left_so(conf_host):
    conf_host.run(want("a"))
    taken = conf_host.conf_dir / "10-a.conflist.cilium_bak"
    (conf_host.conf_dir / "10-a.conflist").rename(taken)
    conf_host.processes["cilium-agent"] = 7
    for options in ({}, {"exclusive": True}):
        plan = conf_host.plan(want("a", mtu=1), want("b"), **options)
        assert steps(plan) == [("leave", "10-a.conflist", "foreign"), ("create", "10-b.conflist", "safe")]
        assert actions(plan) == ["foreign", "created"]
        assert (plan.steps[0].before, plan.steps[0].reason) == ({"path": str(taken)}, "Cilium has renamed it")
        problem, other = [entry for entry in plan.problems if entry.code == "foreign_owner"]
        assert (problem.level, other.file) == ("warning", str(conf_host.conf_dir / "10-b.conflist"))
    plan = conf_host.plan(want("a"))
    assert not plan.changed
    assert steps(conf_host.run(want("a"), force=True)) == [("create", "10-a.conflist", "safe")]


def test_what_is_new_may_be_renamed_by_cilium_too(conf_host):
    conf_host.put("10-b.conflist.cilium_bak", text("b"))
    conf_host.processes["cilium-agent"] = 7
    plan = conf_host.run(want("a"))
    (problem,) = plan.problems
    assert (problem.level, problem.code) == ("warning", "foreign_owner")
    assert problem.file == str(conf_host.conf_dir / "10-a.conflist")
    assert all(word in problem.message for word in ("10-b.conflist.cilium_bak", "process 7", "cni.exclusive=false"))
    assert conf_host.plan(want("a", mtu=5)).problems == []
    assert conf_host.plan(want("c", bridge="b1"), force=True).problems == []
    conf_host.processes.clear()
    assert conf_host.plan(want("c", bridge="b1")).problems == []


# ---- plugins that others put into our lists


def test_a_plugin_that_a_running_daemon_has_put_in_stays(conf_host):
    conf_host.run(want("a"))
    conf_host.put("10-a.conflist", with_plugin(text("a"), type="istio-cni", log_level="info"))
    conf_host.processes["install-cni"] = 7
    plan = conf_host.plan(want("a"))
    assert not plan.changed
    assert (steps(plan), actions(plan)) == ([("leave", "10-a.conflist", "foreign")], ["none"])
    assert reasons(plan) == ["a running program has added istio-cni"]
    (entry,) = plan.diff()
    injected = {"type": "istio-cni", "log_level": "info"}
    assert json.loads(entry["before"]) == {"plugins": ["...", injected]}
    assert json.loads(entry["after"]) == {"plugins": ["..."]}
    (problem,) = plan.problems
    assert (problem.level, problem.code) == ("warning", "foreign_owner")
    assert all(word in problem.message for word in ("Istio", "istio-cni", "process 7", "chained: false"))


def test_a_change_keeps_what_was_put_in(conf_host):
    conf_host.run(want("a"))
    conf_host.put("10-a.conflist", with_plugin(text("a"), type="linkerd-cni", note="é"))
    conf_host.processes["install-cni.sh"] = 7
    plan = conf_host.run(want("a", mtu=1400))
    assert [step[:2] for step in steps(plan)] == [("leave", "10-a.conflist"), ("write", "10-a.conflist")]
    data = json.loads(conf_host.read("10-a.conflist"))
    assert data["plugins"][0]["mtu"] == 1400
    assert data["plugins"][1] == {"type": "linkerd-cni", "note": "é"}


def test_a_plugin_of_a_daemon_that_is_gone_goes(conf_host):
    conf_host.run(want("a"))
    conf_host.put("10-a.conflist", with_plugin(text("a"), type="istio-cni"))
    assert steps(conf_host.run(want("a"))) == [("write", "10-a.conflist", "disruptive")]
    assert types(conf_host, "10-a.conflist") == ["bridge"]


def test_force_removes_what_was_put_in(conf_host):
    conf_host.run(want("a"))
    conf_host.put("10-a.conflist", with_plugin(text("a"), type="istio-cni"))
    conf_host.processes["install-cni"] = 7
    conf_host.run(want("a"), force=True)
    assert types(conf_host, "10-a.conflist") == ["bridge"]


def test_any_other_plugin_that_was_put_in_goes(conf_host):
    conf_host.run(want("a"))
    conf_host.put("10-a.conflist", with_plugin(text("a"), type="tuning"))
    conf_host.processes["install-cni"] = 7
    assert steps(conf_host.run(want("a"))) == [("write", "10-a.conflist", "safe")]


def test_what_we_are_asked_for_is_nobodys_injection(conf_host):
    wanted = want("a")
    wanted.text = with_plugin(text("a"), type="istio-cni")
    conf_host.run(wanted)
    conf_host.put("10-a.conflist", with_plugin(text("a"), type="istio-cni", changed=True))
    conf_host.processes["install-cni"] = 7
    assert steps(conf_host.run(wanted)) == [("write", "10-a.conflist", "disruptive")]
