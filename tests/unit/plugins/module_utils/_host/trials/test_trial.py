# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import kinds
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import remains, verbs
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Networks
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.lock import run_locked
from ansible_collections.podwire.cni.plugins.module_utils._host.trials import (
    planner,
    trial as smoke_ping,
    trial as smoke_trial,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.trial import SmokeSettings
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with, raising

NETNS = "/run/netns/smoke"


class Container(smoke_trial.Container):
    """One whose interfaces nobody has to look for."""

    def note(self, attached):
        assert attached.result["ips"]
        self.attached, self.added = attached, True

    def left_inside(self):
        return []


class Smoke:
    """The host in memory of the tests of cni_attach, with the namespaces in which everything is tried."""

    def __init__(self, attach_host, monkeypatch):
        self.host = attach_host
        self.answers = True
        self.pinged = []
        monkeypatch.setattr(smoke_trial, "Verbs", lambda *a: verbs.Verbs(*a, executor=attach_host))
        monkeypatch.setattr(smoke_trial, "empty_netns", self.netns)
        monkeypatch.setattr(smoke_trial, "Container", Container)
        monkeypatch.setattr(Container, "_look_inside", lambda self: {})
        for name in ("main", "meta", "ipam"):
            monkeypatch.setitem(kinds.KINDS, name, kinds.PluginKind({}))
        monkeypatch.setattr(smoke_ping, "targets", lambda result: {"10.1.0.1": "10.1.0.2"})
        monkeypatch.setattr(smoke_ping, "gateways_on_host", list)
        monkeypatch.setattr(smoke_ping, "answers", self.ping)

    @contextlib.contextmanager
    def netns(self):
        self.host.namespace("smoke", inode=9)
        yield NETNS
        del self.host.namespaces[NETNS]

    def ping(self, container, gateway, _attempt, source):
        self.pinged.append((container.path, gateway, source))
        return self.answers

    def plan(self, check_mode=False, networks=None, ping=True, packets=False):
        host = self.host
        places = host.conf_dir, [host.bin_dir], host.cache_dir
        settings = SmokeSettings(*places, networks, ping, packets, 5.0, check_mode)
        host.calls.clear()
        return run_locked(lambda: planner.SmokePlanner(settings).make(), "test", 5, check_mode, 1, host.lock)

    def rows(self, **keywords):
        return [trial.row() for trial in self.plan(**keywords).trials]

    def files(self):
        return [os.path.join(folder, name) for folder, _dirs, names in os.walk(self.host.cache_dir) for name in names]


@pytest.fixture
def tried(attach_host, monkeypatch):
    return Smoke(attach_host, monkeypatch)


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
        self.asked += [(one.key, list(one.ips)) for one in departed if one.may_have_rules and not one.shares]
        rows = {one.key: self.rows.get(one.key.network, []) for one in departed}
        return remains.Dropped(rows, self.problems)


@pytest.fixture
def left(monkeypatch, tried):
    return Remains(monkeypatch, tried)


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


@pytest.mark.parametrize("code", ["missing_plugin", "missing_tool"])
def test_what_is_missing_is_an_error_in_a_run_and_a_warning_in_check_mode(tried, monkeypatch, code):
    def missing(*_arguments):
        raise HostError("there is no plugin", code=code)

    with fails_with("missing_network", "nobody"):
        tried.plan(networks=["nobody"])
    assert [code for code, _text in tried.plan(True, networks=["nobody"]).warnings] == ["missing_network"]
    if code == "missing_plugin":
        monkeypatch.setattr(Networks, "test_plugins", missing)
    else:
        monkeypatch.setattr(planner, "tool_obstacles", missing)
    assert tried.rows()[0]["error"]["code"] == code
    plan = tried.plan(True)
    assert (plan.trials[0].status, next(iter(plan.warnings))[0]) == ("planned", code)
    tried.host.conf_dir += "/nowhere"
    plan = tried.plan()
    assert (plan.trials, next(iter(plan.warnings))[0]) == ([], "missing_conf_dir")


def test_a_kernel_that_makes_no_namespace(tried, monkeypatch):
    monkeypatch.setattr(smoke_trial, "empty_netns", raising(OSError(1, "Operation not permitted")))
    assert tried.rows()[0]["error"]["code"] == "no_netns"
