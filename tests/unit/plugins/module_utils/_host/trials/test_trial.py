# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import kinds
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import remains, verbs
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.networks import Networks
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.interrupt import Interrupted
from ansible_collections.podwire.cni.plugins.module_utils._host.lock import run_locked
from ansible_collections.podwire.cni.plugins.module_utils._host.trials import planner
from ansible_collections.podwire.cni.plugins.module_utils._host.trials import trial as smoke_ping
from ansible_collections.podwire.cni.plugins.module_utils._host.trials import trial as smoke_trial
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.trial import SmokeSettings

NETNS = "/run/netns/smoke"
TRIED = [{"kind": "try", "target": "demo", "class": "safe", "reason": "its test does no harm"}]


class Smoke:
    """The host in memory of the tests of cni_attach, with the one namespace in which everything is tried."""

    def __init__(self, attach_host, monkeypatch):
        self.host = attach_host
        self.pings = ""
        self.pinged = []
        self.bridges_looked_at = []
        monkeypatch.setattr(planner, "Verbs", lambda *a: verbs.Verbs(*a, executor=attach_host))
        monkeypatch.setattr(smoke_trial, "EmptyNetns", self.netns)
        self.made = {}
        monkeypatch.setattr(smoke_trial, "Interfaces", lambda netns: self)
        for name in ("main", "meta", "ipam"):
            monkeypatch.setitem(kinds.KINDS, name, kinds.PluginKind({}))
        monkeypatch.setattr(smoke_ping, "find_ping", lambda: "/bin/ping")
        monkeypatch.setattr(smoke_ping, "targets", lambda result: [smoke_ping.Target("10.1.0.1", "10.1.0.2")])
        monkeypatch.setattr(smoke_ping, "gateways_on_host", lambda targets: targets)
        monkeypatch.setattr(smoke_ping, "ping", self.ping)

    @contextlib.contextmanager
    def netns(self):
        self.host.namespace("smoke", inode=9)
        yield NETNS
        del self.host.namespaces[NETNS]

    # What is left of interfaces.
    def note(self, result):
        assert result["ips"]

    def left_inside(self):
        links = sorted(self.host.namespaces[NETNS][1] - {"lo"})
        return [{"kind": "link", "id": name, "message": f"{name} is left", "removed": True} for name in links]

    def remove_new_bridges(self, config):
        self.bridges_looked_at.append(config.name)

    def ping(self, program, container, target):
        self.pinged.append((program, container.path, target.gateway))
        return self.pings

    def plan(self, check_mode=False, networks=None, ping=True):
        host = self.host
        settings = SmokeSettings(host.conf_dir, [host.bin_dir], host.cache_dir, networks, ping, 5.0, check_mode)
        host.calls.clear()
        return run_locked(lambda: planner.SmokePlanner(settings).make(), "test", 5, check_mode, 1, host.lock)

    def rows(self, **keywords):
        return [trial.row() for trial in self.plan(**keywords).trials]

    def files(self):
        return [os.path.join(folder, name) for folder, _dirs, names in os.walk(self.host.cache_dir) for name in names]


@pytest.fixture
def tried(attach_host, monkeypatch):
    return Smoke(attach_host, monkeypatch)


def test_a_network_that_works(tried):
    plan = tried.plan()
    (row,) = [trial.row() for trial in plan.trials]
    assert (row["status"], row["add"], row["check"], row["ping"], row["del"]) == ("passed",) * 5
    assert row["ips"] == ["10.1.0.2/24"] and row["error"] is None and row["leaks"] == []
    assert [verb for verb, *_rest in tried.host.calls] == ["ADD"] * 2 + ["CHECK"] * 2 + ["DEL"] * 2
    assert {call[2][:14] for call in tried.host.calls} == {"podwire-smoke-"}
    assert tried.pinged == [("/bin/ping", NETNS, "10.1.0.1")]
    assert tried.bridges_looked_at == ["demo"]
    assert not plan.changed and plan.actions() == TRIED
    assert not os.path.exists(os.path.join(tried.host.cache_dir, "smoke"))


def test_check_mode_runs_nothing_and_says_what_would_be_tried(tried):
    plan = tried.plan(check_mode=True)
    assert [trial.status for trial in plan.trials] == ["planned"]
    assert not plan.changed and plan.actions() == TRIED
    assert tried.host.calls == [] and tried.files() == []


def test_one_that_fails_is_taken_back_and_the_next_is_tried(tried):
    tried.host.network("extra")
    tried.host.broken["ADD", "meta"] = "no room"
    first, second = tried.rows()
    assert (first["status"], first["add"], first["check"], first["del"]) == ("failed", "failed", None, "passed")
    assert first["error"]["code"] == "add_failed" and "no room" in first["error"]["message"]
    assert (second["network"], second["add"]) == ("extra", "failed")
    assert tried.files() == []


def test_a_check_that_never_passes_is_a_note(tried):
    tried.host.broken["CHECK", "meta"] = "cannot"
    plan = tried.plan()
    row = plan.trials[0].row()
    assert (row["status"], row["check"]) == ("passed", "unusable")
    assert [note["code"] for note in row["notes"]] == ["check_unusable"] == [code for code, _text in plan.warnings]


def test_a_network_without_check(tried):
    tried.host.network(cniVersion="0.3.1")
    assert tried.rows()[0]["check"] is None


def test_a_gateway_that_does_not_answer(tried):
    tried.pings = "100% packet loss"
    row = tried.rows()[0]
    assert (row["status"], row["ping"], row["del"]) == ("failed", "failed", "passed")
    assert row["error"]["code"] == "ping_failed" and "100% packet loss" in row["error"]["message"]


def test_what_there_is_nothing_to_ping_with_or_at(tried, monkeypatch):
    assert tried.rows(ping=False)[0]["ping"] is None
    monkeypatch.setattr(smoke_ping, "find_ping", lambda: None)
    plan = tried.plan()
    assert [code for code, _text in plan.warnings] == ["no_ping"]
    monkeypatch.setattr(smoke_ping, "gateways_on_host", lambda targets: [])
    row = tried.rows()[0]
    assert (row["status"], row["ping"]) == ("passed", None)
    assert row["notes"] == [
        {"code": "no_gateway", "message": "no gateway to ping: 10.1.0.1 is not an address of this host"}
    ]


def test_a_failed_del_is_taken_back_by_the_next_run(tried):
    tried.host.broken["DEL", "meta"] = "not now"
    row = tried.rows()[0]
    assert (row["status"], row["del"], row["error"]["code"]) == ("failed", "failed", "del_failed")
    assert [leak["kind"] for leak in row["leaks"]] == ["link"]
    tried.host.broken.clear()
    predicted = tried.plan(check_mode=True)
    plan = tried.plan()
    assert predicted.actions() == plan.actions()
    assert [step.kind for step in plan.steps] == ["take_back", "try"]
    assert plan.changed and tried.files() == []
    # Its namespace is gone, so none is passed on.
    assert [call[3] for call in tried.host.calls[:2]] == ["", ""]
    assert not tried.plan().changed


class Remains:
    """What the DELs of networks leave, by network; ``asked`` are the attachments for whose rules somebody looks."""

    def __init__(self, monkeypatch, tried):
        self.rows = {}
        self.problems = []
        self.asked = []
        self.cache_dir = tried.host.cache_dir
        monkeypatch.setattr(smoke_trial, "drop_remains", self.drop)

    def drop(self, departed, cache_dir):
        assert cache_dir == self.cache_dir
        (one,) = departed
        if one.has_rules:
            self.asked.append((one.key, list(one.ips)))
        rows = self.rows.get(one.key.network)
        return remains.Dropped({one.key: rows} if rows else {}, self.problems)


@pytest.fixture
def left(monkeypatch, tried):
    return Remains(monkeypatch, tried)


def test_a_del_that_leaves_something(tried, left):
    lease = {"kind": "lease", "id": "10.1.0.2", "message": "still reserved", "removed": True}
    left.rows["demo"] = [lease]
    row = tried.rows()[0]
    assert (row["status"], row["del"], row["error"]["code"]) == ("failed", "passed", "leaked")
    assert row["leaks"] == [lease] and "still reserved" in row["error"]["message"]


def test_rules_are_looked_for_where_a_network_may_have_some(tried, left):
    main = {"type": "main", "ipMasq": True, "ipam": {"type": "ipam"}}
    tried.host.network("one", plugins=[main])
    tried.host.network("two", plugins=[main])
    left.rows["two"], left.problems = [{"kind": "rule", "message": "a rule"}], ["cannot read nftables"]
    plan = tried.plan()
    assert [(key.network, ips) for key, ips in left.asked] == [("one", ["10.1.0.3/24"]), ("two", ["10.1.0.4/24"])]
    assert [(trial.network, trial.status) for trial in plan.trials] == [
        ("demo", "passed"),
        ("one", "passed"),
        ("two", "failed"),
    ]
    assert {code for code, _text in plan.warnings} == {"rules_unreadable"}


def test_rules_of_what_is_taken_back_are_looked_for_too(tried, left):
    tried.host.network(plugins=[{"type": "main", "ipMasq": True, "ipam": {"type": "ipam"}}])
    tried.host.broken["DEL", "main"] = "not now"
    tried.plan()
    tried.host.broken.clear()
    tried.plan()
    first, again, now = (key for key, _ips in left.asked)
    assert again == first != now


@pytest.mark.parametrize("verb", ["ADD", "CHECK"])
def test_a_process_that_is_told_to_end_takes_back_what_it_had_begun(tried, monkeypatch, verb):
    execute = tried.host.exec_plugin

    def interrupted(path, stdin, env, timeout=None):
        if (env["CNI_COMMAND"], os.path.basename(path)) == (verb, "meta"):
            raise Interrupted("SIGTERM")
        return execute(path, stdin, env, timeout)

    monkeypatch.setattr(tried.host, "exec_plugin", interrupted)
    with pytest.raises(Interrupted):
        tried.plan()
    assert tried.host.verbs("DEL") == ["meta", "main"]
    assert tried.files() == []


def test_others_are_left_out_unless_they_are_named(tried):
    tried.host.network("vendor", plugins=[{"type": "vendor"}])
    assert [(row["network"], row["status"], row["reason"]) for row in tried.rows()] == [
        ("demo", "passed", ""),
        ("vendor", "skipped", "third_party"),
    ]
    # There is none of that name on the host, so it was tried.
    assert [(row["network"], row["status"], row["add"]) for row in tried.rows(networks=["vendor"])] == [
        ("vendor", "failed", "failed")
    ]


@pytest.mark.parametrize("code", ["missing_plugin", "missing_tool"])
def test_what_is_missing_is_an_error_in_a_run_and_a_warning_in_check_mode(tried, monkeypatch, code):
    def missing(*_arguments):
        raise HostError("there is no plugin", code=code)

    with pytest.raises(HostError, match="nobody") as caught:
        tried.plan(networks=["nobody"])
    assert caught.value.code == "missing_network"
    assert [code for code, _text in tried.plan(True, networks=["nobody"]).warnings] == ["missing_network"]
    if code == "missing_plugin":
        monkeypatch.setattr(Networks, "test_plugins", missing)
    else:
        monkeypatch.setattr(planner, "require_tools", missing)
    assert tried.rows()[0]["error"]["code"] == code
    plan = tried.plan(True)
    assert (plan.trials[0].status, plan.warnings[0][0]) == ("planned", code)
    tried.host.conf_dir += "/nowhere"
    plan = tried.plan()
    assert (plan.trials, plan.warnings[0][0]) == ([], "missing_conf_dir")


def test_a_kernel_that_makes_no_namespace(tried, monkeypatch):
    def impossible():
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(smoke_trial, "EmptyNetns", impossible)
    assert tried.rows()[0]["error"]["code"] == "no_netns"
