# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A repair never leaves a container with less than it had."""

from __future__ import annotations

import errno
import itertools
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import store, verbs
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.remains import Dropped
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import (
    MAIN,
    META,
    actions,
    codes,
    kinds,
    web,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import raising

WEB = "/run/netns/web"


def attached(attach_host):
    return "eth0" in attach_host.namespaces[WEB][1]


def fail(attach_host, verb, plugin, when, times, error=None):
    """Let *plugin* fail at *verb*, *when* ("before" or "after") it does its work, so many *times*."""
    original, left = attach_host.exec_plugin, [times]
    error = error or PluginError(999, "Chain 'CNI-x' does not exist", plugin=plugin)

    def failing(path, stdin, env, timeout=None):
        hit = left[0] and (env["CNI_COMMAND"], os.path.basename(path)) == (verb, plugin)
        answer = None if hit and when == "before" else original(path, stdin, env, timeout)
        if hit:
            left[0] -= 1
            raise error
        return answer

    attach_host.exec_plugin = failing
    return lambda: setattr(attach_host, "exec_plugin", original)


def drift(attach_host, reason):
    if reason == "config":
        attach_host.network(plugins=[dict(MAIN, x=1), META])
    else:
        attach_host.addresses.clear()


def test_failed_del_is_retried_and_add_runs(attach_host):
    attach_host.run(web())
    attach_host.addresses.clear()
    fail(attach_host, "DEL", "main", "after", 1)
    plan = attach_host.run(web(), on_drift="repair")
    assert (actions(plan), codes(plan)) == (["repaired"], ["drifted"])
    assert attach_host.verbs("DEL") == ["meta", "main", "meta", "main"]
    assert attached(attach_host)
    assert kinds(attach_host.check(web(), on_drift="repair")) == []


def test_a_del_that_fails_twice_and_took_the_interface_is_followed_by_add(attach_host):
    attach_host.run(web())
    attach_host.addresses.clear()
    fail(attach_host, "DEL", "main", "after", 2)
    plan = attach_host.run(web(), on_drift="repair")
    assert (actions(plan), codes(plan)) == (["repaired"], ["drifted", "del_incomplete"])
    assert [step.state for step in plan.steps] == ["done"]
    assert attached(attach_host)
    assert kinds(attach_host.run(web(), on_drift="repair")) == []


@pytest.mark.parametrize("reason", ["config", "kernel"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_repair_never_ends_with_less(attach_host, reason, when):
    """Whatever fails once or twice in a row, the container keeps an interface, and the next run has nothing to do."""
    for verb, plugin, times in itertools.product(("DEL", "ADD"), ("main", "meta"), (1, 2)):
        if (verb, times, reason) == ("ADD", 2, "kernel"):
            # Nothing is left to try.
            continue
        attach_host.network()
        attach_host.run(web(), force=True)
        drift(attach_host, reason)
        end = fail(attach_host, verb, plugin, when, times if verb == "DEL" else 1)
        plan = attach_host.run(web(), on_drift="repair")
        end()
        assert attached(attach_host), (verb, plugin, times, actions(plan))
        attach_host.run(web(), on_drift="repair")
        assert attached(attach_host)
        assert kinds(attach_host.check(web(), on_drift="repair")) == []


@pytest.fixture
def fixed(attach_host):
    """A host whose network takes addresses from the arguments."""
    attach_host.network(plugins=[dict(MAIN, capabilities={"ips": True}), META])
    return attach_host


def test_addresses_of_the_request_come_before_those_that_the_container_had(fixed):
    wanted = web(capability_args={"ips": ["10.1.0.9/24"]})
    fixed.run(wanted)
    fixed.namespace("web", inode=2)
    plan = fixed.check(wanted)
    assert (plan.outcomes[0].reason, plan.outcomes[0].arguments) == ("netns", wanted["capability_args"])
    assert fixed.run(wanted).outcomes[0].row()["ips"] == ["10.1.0.9/24"]


def test_a_del_that_cannot_be_run_is_no_del_that_took_the_interface(attach_host):
    attach_host.run(web())
    attach_host.addresses.clear()
    fail(attach_host, "DEL", "main", "after", 9, HostError("the plugin is not safe", code="bad_binary"))
    plan = attach_host.run(web(), on_drift="repair")
    assert not attached(attach_host)
    assert (actions(plan), plan.outcomes[0].error["code"]) == (["failed"], "bad_binary")
    assert attach_host.verbs("ADD") == []


def test_a_change_whose_add_fails_is_attached_as_before(attach_host):
    attach_host.run(web())
    attach_host.network(plugins=[dict(MAIN, master="eth7"), META])
    error = PluginError(999, "Link not found", plugin="main")
    attach_host.fail_if(lambda verb, _path, conf, _env: verb == "ADD" and conf.get("master"), error)
    plan = attach_host.run(web())
    error = plan.outcomes[0].error
    assert (actions(plan), error["code"]) == (["failed"], "add_failed")
    assert "Link not found" in error["message"]
    assert error["message"].endswith("; it is attached as before")
    assert attached(attach_host)
    assert kinds(attach_host.check(web())) == [("repair", "demo/web/eth0")]
    attach_host.network()
    assert actions(attach_host.run(web())) == ["none"]


def test_both_failures_are_told_if_it_cannot_be_attached_as_before(attach_host):
    attach_host.run(web())
    attach_host.network(plugins=[MAIN])
    attach_host.broken["ADD", "main"] = "no space left"
    error = attach_host.run(web()).outcomes[0].error
    assert error["message"].count("no space left") == 2
    attach_host.broken.clear()
    assert actions(attach_host.run(web())) == ["added"]


def test_nothing_is_detached_where_nothing_can_be_written(attach_host, monkeypatch):
    attach_host.run(web())
    attach_host.addresses.clear()

    monkeypatch.setattr(store, "stage_unsynced", raising(OSError(errno.EROFS, "Read-only file system")))
    plan = attach_host.run(web(), on_drift="repair")
    assert plan.outcomes[0].error["code"] == "record_unwritable"
    assert attach_host.verbs("DEL") == []
    assert attached(attach_host)


def test_nothing_is_detached_where_no_lease_can_be_written(attach_host, tmp_path, monkeypatch):
    for name in ("demo", "other"):
        (tmp_path / "leases" / name).mkdir(parents=True)
    attach_host.network(plugins=[dict(MAIN, ipam={"type": "host-local", "dataDir": str(tmp_path / "leases")}), META])
    attach_host.run(web())
    attach_host.addresses.clear()
    locked = str(tmp_path / "leases" / "demo")
    whole = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != locked and whole(path, mode))
    plan = attach_host.run(web(), on_drift="repair")
    assert plan.outcomes[0].error["code"] == "leases_unwritable"
    assert locked in plan.outcomes[0].error["message"]
    assert attach_host.verbs("DEL") == []
    locked = str(tmp_path / "leases" / "other")
    assert actions(attach_host.run(web(), on_drift="repair")) == ["repaired"]


# ---- plugins that get in each other's way

RACES = [
    # What iptables-nft, iptables-legacy, nft, host-local and bridge say.
    "running [iptables -N CNI-ADMIN --wait]: exit status 4: CHAIN_ADD failed (File exists): chain CNI-ADMIN\n",
    "running [/usr/sbin/ip6tables -t nat -A POSTROUTING]: exit status 4: RULE_APPEND failed (Device or resource busy)",
    "running [/usr/sbin/iptables -t nat -S]: exit status 4: Another app is currently holding the xtables lock.",
    "running [iptables -N CNI-HOSTPORT-DNAT --wait]: exit status 1: iptables: Chain already exists.\n",
    "iptables: Resource temporarily unavailable.",
    "failed to run nft: /dev/stdin:1:1-22: Error: Could not process rule: File exists",
    "failed to acquire lock on /var/lib/cni/networks/demo/lock",
    'could not add IP address to "cni0": file exists',
]
OTHERS = [
    "running [iptables -t nat -D POSTROUTING]: exit status 2: Chain 'CNI-x' does not exist",
    "running [iptables -N X]: exit status 40",
    'container veth name ("eth0") peer provided already exists',
    "failed to allocate for range 0: no IP addresses available in range set: 10.1.0.2-10.1.0.254",
    "exit status 4",
    'failed to lock up "eth0": no such device',
]


@pytest.fixture
def pauses(monkeypatch):
    made = []
    monkeypatch.setattr(verbs.time, "sleep", made.append)
    return made


def fail_saying(attach_host, text, times, code=999):
    """Let the ADD of the plugin meta fail so many times."""
    fail(attach_host, "ADD", "meta", "after", times, PluginError(code, text, plugin="meta"))


@pytest.mark.parametrize("text", RACES)
def test_an_add_that_lost_a_race_is_tried_again_after_a_del(attach_host, pauses, text):
    for times in range(1, 5):
        fail_saying(attach_host, text, times)
        plan = attach_host.run(web())
        assert (actions(plan), codes(plan)) == (["added"], [])
        assert [call[:2] for call in attach_host.calls if call[0] != "CHECK"] == [
            *[("ADD", "main"), ("ADD", "meta"), ("DEL", "meta"), ("DEL", "main")] * times,
            *[("ADD", "main"), ("ADD", "meta")],
        ]
        attach_host.run(web(state="absent"))
    assert len(pauses) == 1 + 2 + 3 + 4
    assert max(pauses) < 2


@pytest.mark.parametrize("text", RACES[:1])
def test_lost_races_are_bounded(attach_host, pauses, text):
    fail_saying(attach_host, text, 100)
    plan = attach_host.run(web())
    assert plan.outcomes[0].error["code"] == "add_failed"
    assert attach_host.verbs("ADD") == ["main", "meta"] * 5
    assert attach_host.cached() == attach_host.records() == []
    assert not attached(attach_host)


@pytest.mark.parametrize("text", OTHERS)
def test_other_failures_are_no_races(attach_host, pauses, text):
    fail_saying(attach_host, text, 100)
    assert actions(attach_host.run(web())) == ["failed"]
    assert (attach_host.verbs("ADD"), pauses) == (["main", "meta"], [])


def test_a_plugin_that_says_try_again_later_is_asked_again(attach_host, pauses):
    fail_saying(attach_host, "busy", 1, code=11)
    assert actions(attach_host.run(web())) == ["added"]
    assert len(pauses) == 1


# ---- commands that plugins need

BRIDGE = {"type": "bridge", "ipMasq": True, "ipam": {"type": "host-local"}}


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("exit 0", ""),
        ("echo 'table `nat is incompatible, use nft tool' >&2; exit 1", ""),
        ("echo 'no such module' >&2; exit 3", "exit status 3: no such module"),
        ("kill -9 $$", "signal: killed"),
    ],
)
def test_a_repair_does_not_begin_with_a_firewall_command_that_fails(attach_host, tmp_path, monkeypatch, script, says):
    attach_host.network(plugins=[dict(BRIDGE, ipam={"type": "ipam"})])
    for name in ("bridge", "iptables"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n" + script + "\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", attach_host.bin_dir)
    original = attach_host.exec_plugin
    attach_host.exec_plugin = lambda path, *rest: original(path.replace("/bridge", "/main"), *rest)
    monkeypatch.setattr(verbs, "drop_remains", lambda departed, cache_dir: Dropped({}, []))
    attach_host.run(web())
    attach_host.addresses.clear()
    plan = attach_host.run(web(), on_drift="repair")
    if says:
        assert (plan.outcomes[0].error["code"], attach_host.verbs("DEL")) == ("tool_failed", [])
        assert f"{tmp_path}/bin/iptables, which fails ({says})" in plan.outcomes[0].error["message"]
    else:
        assert actions(plan) == ["repaired"]
    assert attached(attach_host)
