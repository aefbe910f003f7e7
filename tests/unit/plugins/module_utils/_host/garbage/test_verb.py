# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""GC of the plugins."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage import verb as gc_verb
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage.candidate import GcSettings
from ansible_collections.podwire.cni.plugins.module_utils.libcni.cache import Entry, write_entry
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.invoke import Executor


def conflist(version="1.1.0", **more):
    plugins = [{"type": "bridge", "password": "s3cr3t-word"}]
    return json.dumps(dict({"cniVersion": version, "name": "demo", "plugins": plugins}, **more)).encode()


class Plugins(Executor):
    """Plugins that note what they get, or fail."""

    def __init__(self):
        super().__init__()
        self.calls = []
        self.errors = []

    def find_in_path(self, plugin, paths):
        return f"/bin/{plugin}"

    def exec_plugin(self, path, stdin, env, timeout=None):
        self.calls.append((env["CNI_COMMAND"], path, json.loads(stdin)["cni.dev/valid-attachments"], timeout))
        for error in self.errors:
            raise error
        return b""


@pytest.fixture
def plugins(monkeypatch):
    made = Plugins()
    monkeypatch.setattr(gc_verb, "SafeExecutor", lambda: made)
    return made


def cached(tmp_path, container_id, network="demo"):
    write_entry(str(tmp_path), Entry(container_id, conflist(), "eth0", network, "/run/netns/x"))


def verb(tmp_path, valid=(), reason=""):
    settings = GcSettings("/net.d", ["/bin"], str(tmp_path), timeout=7)
    return gc_verb.GcVerb(network_conf_from_bytes(conflist()), settings, set(valid), reason)


def test_gc_gets_all_that_is_valid(tmp_path, plugins):
    cached(tmp_path, "cached")
    cached(tmp_path, "elsewhere", "other")
    gc = verb(tmp_path, [("live", "eth1"), ("live", "eth0")])
    gc.run()
    valid = [("cached", "eth0"), ("live", "eth0"), ("live", "eth1")]
    expected = [{"containerID": container_id, "ifname": ifname} for container_id, ifname in valid]
    assert plugins.calls == [("GC", "/bin/bridge", expected, 7)]
    assert gc.row() == {"network": "demo", "action": "sent", "reason": "", "error": None}


def test_gc_that_is_not_sent(tmp_path):
    gc = verb(tmp_path, reason="why not")
    assert gc.send is False
    assert gc.row() == {"network": "demo", "action": "left", "reason": "why not", "error": None}


def test_gc_that_fails(tmp_path, plugins):
    plugins.errors = [PluginError(5, "no\nuse for s3cr3t-word", plugin="bridge", stderr="it was s3cr3t-word")]
    gc = verb(tmp_path)
    gc.run()
    row = gc.row()
    assert (row["action"], row["error"]["code"]) == ("failed", "gc_failed")
    assert row["error"]["message"].startswith("GC of demo failed: ")
    assert "no" in row["error"]["message"]
    assert "\n" not in row["error"]["message"]
    assert row["error"]["stderr"].startswith("it was ")
    assert "s3cr3t-word" not in json.dumps(row)


def test_gc_that_cannot_be_run(tmp_path, plugins):
    plugins.errors = [HostError("it is not safe")]
    gc = verb(tmp_path)
    gc.run()
    assert gc.row()["error"]["stderr"] == ""
    assert "it is not safe" in gc.row()["error"]["message"]


def live(pairs=(), owners=(), why=""):
    return SimpleNamespace(
        pairs=lambda: set(pairs), owner=lambda name: "podman" * (name in owners), why=why, evidence={}, answers=[]
    )


def verbs(config, leased=(), alive=None, **options):
    settings = GcSettings("/net.d", ["/bin"], "/cache", **options)
    return gc_verb.gc_verbs([network_conf_from_bytes(config)], alive or live(), leased, settings)


def test_gc_is_for_the_networks_of_the_request():
    assert [one.network for one in verbs(conflist())] == ["demo"]
    assert verbs(conflist(), networks=["other"]) == []
    assert verbs(conflist("1.0.0")) == []


def test_attachments_that_are_valid():
    alive = live([("pair", "eth0")], ["pod"])
    leased = [("pod", "eth1"), ("pod", ""), ("dead", "eth0")]
    (one,) = verbs(conflist(), leased, alive, keep={"kept": None, "partly": ["eth5"]})
    assert one.valid == {("pair", "eth0"), ("pod", "eth1"), ("kept", "eth0")}
