# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.usable import Binaries
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import discover, profiles
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.effective import Effective
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.runtime import Runtime

LOOPBACK = ["containerd-1.6", "containerd-1.7", "containerd-2.0", "containerd-2.1", "k3s", "rke2", "microk8s", "k0s"]
LOOPBACK += ["dockershim", "dockershim-1.9", "cri-dockerd", "buildkit"]
POD = ("loopback", "bridge", "host-local")
PLUGINS = {"kubenet": POD, "nomad-bridge": (*POD, "firewall", "portmap"), **dict.fromkeys(LOOPBACK, POD[:1])}


@pytest.mark.parametrize("name", profiles.PROFILES)
def test_who_needs_which_plugins(name):
    own = Runtime(name).built_in
    assert (own and own.plugins) == PLUGINS.get(name)


@pytest.mark.parametrize("version, needed", [("1.6.20", True), ("1.7.24", True), ("2.0.0", False), ("2.1.9", False)])
def test_containerd_1_ignores_the_setting_of_its_internal_loopback(version, needed):
    runtime = Runtime(profiles.containerd_profile(version), version)
    runtime.internal_loopback = True
    assert (runtime.built_in is not None) == needed


def test_a_runtime_that_uses_no_network_needs_nothing():
    runtime = Runtime("containerd-1.7")
    runtime.reads = False
    assert runtime.built_in is None


def test_a_plugin_has_to_be_there_and_to_support_the_version(tmp_path, monkeypatch):
    def ask(_binaries, plugin):
        if plugin == "bridge":
            raise HostError("it is not there", code="missing_plugin")
        return plugin, ["1.0.0"] if plugin == "portmap" else ["0.3.1", "0.4.0"]

    monkeypatch.setattr(Binaries, "ask", ask)
    effective = Effective([], str(tmp_path), ["/opt/cni/bin"], [], HostView())
    rows = {row["plugin"]: row for row in effective.requirements_of(Runtime("nomad-bridge"))}
    assert rows["loopback"] == {"plugin": "loopback", "code": "", "problem": ""}
    assert (rows["bridge"]["code"], rows["bridge"]["problem"]) == ("missing_plugin", "it is not there")
    assert rows["portmap"]["code"] == "unsupported_by_plugin"
    assert rows["portmap"]["problem"].startswith("the plugin portmap supports 1.0.0, but not 0.4.0")


@pytest.fixture
def users(tmp_path, monkeypatch):
    """Return a function that returns the users of a directory, given the runtimes of the host."""
    (tmp_path / "net.d").mkdir()

    def ask(*runtimes, bin_dir="/opt/cni/bin"):
        monkeypatch.setattr(discover, "runtimes_on_host", lambda conf_dir, view: list(runtimes))
        return discover.built_in_users(HostView(), bin_dir)

    return ask


def test_a_runtime_with_a_network_uses_the_plugins_of_its_own(users, tmp_path):
    containerd = Runtime("containerd-1.7", "1.7.24", "a process", str(tmp_path / "net.d"))
    assert users(containerd) == []
    (tmp_path / "net.d" / "10-a.conflist").write_text("{")
    text = "containerd-1.7 for every pod (its built-in network 'cni-loopback')"
    assert users(containerd) == [(text, "0.3.1", [{"type": "loopback"}])]
    assert users(containerd, bin_dir="/usr/lib/cni") == []
    containerd.internal_loopback, containerd.version = True, "2.1.9"
    assert users(containerd) == []


def test_nomads_bridge_mode_needs_no_file(users):
    [(text, version, plugins)] = users(Runtime("nomad-bridge"))
    assert "every job in bridge mode" in text
    assert version == "0.4.0"
    assert {"type": "firewall"} in plugins
