# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.usable import Binaries
from ansible_collections.podwire.cni.plugins.module_utils._host.checks.multus import multus_obstacles
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView

PODS = {"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "ipam": {"type": "host-local"}}]}


@pytest.fixture
def codes(tmp_path):
    """Return a function that returns the codes of the obstacles in a configuration; @ is a directory of the host."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "there").write_text("")
    (tmp_path / "multus.sock").write_text("")
    for name in ("bridge", "host-local"):
        (tmp_path / "bin" / name).write_text("")

    def run(**keys):
        texts = {key: value for key, value in keys.items() if isinstance(value, str)}
        keys.update({key: text.replace("@", str(tmp_path)) for key, text in texts.items()})
        binaries = Binaries([str(tmp_path / "bin")], HostView())
        return [one.code for one in multus_obstacles({"type": "multus", **keys}, binaries)]

    return run


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ({"delegates": [PODS], "readinessindicatorfile": "@/there"}, []),
        ({"delegates": [PODS], "readinessindicatorfile": "@/gone"}, ["no_readiness_file"]),
        ({"delegates": [{**PODS, "plugins": [{"type": "nosuch"}]}]}, ["missing_plugin"]),
        ({"delegates": [{"name": "pods", "type": "nosuch", "ipam": {"type": "host-local"}}]}, ["missing_plugin"]),
        ({"delegates": [{"name": "pods", "type": "bin/bridge"}]}, ["bad_type"]),
        ({"clusterNetwork": "@/there", "kubeconfig": "/k"}, []),
        ({"clusterNetwork": "@/gone", "kubeconfig": "/k"}, ["no_cluster_network"]),
        ({"clusterNetwork": "pods"}, ["no_kubeconfig"]),
        ({"type": "multus-shim", "clusterNetwork": "pods", "daemonSocketDir": "@"}, []),
        ({"type": "multus-shim", "clusterNetwork": "pods", "daemonSocketDir": "@/gone"}, ["no_multus_daemon"]),
        # Its daemon sees other paths.
        ({"type": "multus-shim", "clusterNetwork": "/host/etc/cni/net.d/10-pods.conflist", "daemonSocketDir": "@"}, []),
        ({"type": "multus-shim", "readinessindicatorfile": "/host/gone", "daemonSocketDir": "@"}, []),
    ],
)
def test_what_multus_waits_for(codes, keys, found):
    assert codes(**keys) == found


# ---- what its daemon sees


class Daemon:
    """A host with a directory of plugins, and a program in a mount namespace and root of its own, which has it."""

    def __init__(self, root):
        self.top = root
        self.bins, self.real, self.sockets, self.root = (root / name for name in ("bin", "real", "run", "root"))
        for folder in (
            self.bins,
            self.real,
            self.sockets,
            *map(self.inside, ("opt/cni/bin", "host/run", "host/net.d")),
        ):
            folder.mkdir(parents=True)
        (self.sockets / "multus.sock").write_text("")
        self.process = None

    def inside(self, path):
        return self.root / path

    def start(self, config=None, **mounts):
        sleep = shutil.which("sleep")
        shutil.copy(sleep, self.inside("multus-daemon"))
        for library in re.findall(r"/\S+", subprocess.check_output(["ldd", sleep], text=True)):
            path = self.inside(library[1:])
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, path)
        if config is not None:
            path = self.inside("etc/cni/net.d/multus.d/daemon-config.json")
            path.parent.mkdir(parents=True)
            path.write_text(config if isinstance(config, str) else json.dumps(config))
        places = {"opt/cni/bin": self.bins, "host/run": self.sockets, **mounts}
        inside = {f"{self.root}/{at}": what for at, what in places.items()}
        binds = "".join(f"mkdir -p {at}; mount --rbind {what} {at}; " for at, what in inside.items())
        script = f"{binds} exec chroot {self.root} /multus-daemon 600"
        self.process = subprocess.Popen(["unshare", "--mount", "bash", "-ec", script])
        deadline = time.monotonic() + 30
        while os.path.basename(os.readlink(f"/proc/{self.process.pid}/exe")) != "multus-daemon":
            assert time.monotonic() < deadline and self.process.poll() is None
            time.sleep(0.01)

    def obstacles(self, **keys):
        plugin = {"type": "multus-shim", "daemonSocketDir": str(self.sockets), **keys}
        return list(multus_obstacles(plugin, Binaries([str(self.bins)], HostView())))


@pytest.fixture
def daemon(tmp_path):
    host = Daemon(tmp_path)
    for name in ("bridge", "host-local", "macvlan"):
        (host.real / name).write_text("")
    (host.bins / "bridge").symlink_to(host.real / "bridge")
    (host.bins / "macvlan").symlink_to("../real/macvlan")
    shutil.copy(host.real / "host-local", host.bins)
    # For nobody.
    (host.bins / "gone").symlink_to("/nowhere/gone")
    yield host
    if host.process:
        host.process.kill()
        host.process.wait()


NETWORK = {"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "macvlan", "ipam": {"type": "host-local"}}]}


def test_links_that_lead_nowhere_for_the_daemon(daemon):
    daemon.start({"cniConfigDir": "/host/net.d"})
    [finding] = daemon.obstacles(clusterNetwork="pods")
    assert (finding.code, finding.level) == ("no_plugin_for_multus", "warning")
    assert "bridge, macvlan:" in finding.what and "gone" not in finding.what and "host-local" not in finding.what
    assert f"/opt/cni/bin/bridge is a link to {daemon.real}/bridge" in finding.evidence
    assert str(daemon.bins) in finding.remedy and "/etc/cni/net.d/multus.d/daemon-config.json" in finding.remedy


def test_a_plugin_that_every_pod_needs_is_an_error(daemon):
    (daemon.inside("host/net.d") / "10-pods.conflist").write_text(json.dumps(NETWORK))
    daemon.start({})
    [finding] = daemon.obstacles(clusterNetwork="/host/net.d/10-pods.conflist")
    assert finding.level == "error" and "macvlan, bridge:" in finding.what
    [finding] = daemon.obstacles(delegates=[NETWORK])
    assert finding.level == "error"
    # That file leads to nothing there, as on the host.
    [finding] = daemon.obstacles(clusterNetwork="/host/net.d/20-pods.conflist")
    assert finding.level == "warning"


def test_the_same_directory_mounted_there_is_enough(daemon):
    daemon.start({}, **{f"{daemon.real}"[1:]: daemon.real, "opt/cni/real": daemon.real})
    assert daemon.obstacles() == []


def test_its_chroot_is_where_it_runs_plugins(daemon):
    # As the files of Multus have it: the root of the host.
    daemon.start({"chrootDir": "/hostroot", "binDir": str(daemon.bins)}, hostroot="/")
    assert os.path.lexists(f"/proc/{daemon.process.pid}/root/hostroot{daemon.bins}/bridge")
    assert daemon.obstacles() == []


def test_files_instead_of_links_are_there(daemon):
    for name in ("bridge", "macvlan"):
        (daemon.bins / name).unlink()
        (daemon.bins / name).write_text("")
    daemon.start({})
    assert daemon.obstacles() == []


@pytest.mark.parametrize("config", [None, "{", "[]", {"binDir": "/nowhere"}, {"chrootDir": "/nowhere"}])
def test_what_cannot_be_known_is_not_judged(daemon, config):
    daemon.start(config)
    assert daemon.obstacles() == []


def test_another_daemon_does_not_count(daemon):
    daemon.start({}, **{"host/run": daemon.real})
    assert daemon.obstacles() == []
