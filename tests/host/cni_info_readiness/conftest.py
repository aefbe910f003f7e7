# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A node with a real containerd, which tests break."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.cri import cri_status
from ansible_collections.podwire.cni.tests.host.cni_info_readiness import broken
from ansible_collections.podwire.cni.tests.host.host import sh, wait_until


@pytest.fixture(scope="module")
def node(host, runtimes, newer, generations):
    """The node: ``explain`` returns cni_info's readiness of containerd, ``runtimes`` controls it."""
    fake = Path("/run/home/readiness-fake")
    shutil.copy("/bin/bash", fake)
    script = Path("/run/home/readiness.bash")
    shutil.copy(Path(__file__).parent / "plugin.bash", script)

    name = "containerd-2.1" if newer else "containerd-1.6"

    def readiness():
        return host.run("cni_info", gather=["readiness"], environment={"BASH_ENV": str(script)})["readiness"]

    def explain():
        found = readiness()
        [row] = [one for one in found["runtimes"] if one["runtime"] == name]
        own = [one for one in found["obstacles"] if one["runtime"] == name]
        return SimpleNamespace(row=row, obstacles=own, errors=[one for one in own if one["level"] == "error"])

    new, old = generations["new"], generations["old"]
    return SimpleNamespace(
        explain=explain, readiness=readiness, runtimes=runtimes, new=new, old=old, fake=fake, host=host
    )


@pytest.fixture(autouse=True)
def _sound(node, request):
    """A network that works, and all plugins of a test's generation (the old one if it has none), before each test."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    plugins = node.new if parameters.get("generation") == "new" else node.old
    shutil.copytree(plugins, broken.BIN_DIR, dirs_exist_ok=True, copy_function=shutil.copy)
    forward = Path("/proc/sys/net/ipv4/ip_forward").read_text()
    broken.sound()
    # Readiness would try the network each time.
    wait_until(lambda: cri_status("/run/containerd/containerd.sock", 10).chains == [[broken.bridge()]], 20)
    yield
    Path("/proc/sys/net/ipv4/ip_forward").write_text(forward)
    sh(
        f"""
        ip link delete pwup 2>/dev/null || true
        umount /var/lib/cni 2>/dev/null || true
        umount {broken.BIN_DIR} $(readlink -f $(command -v iptables)) 2>/dev/null || true
        rm -rf /var/lib/podwire /var/lib/cni/* {broken.BIN_DIR}/*
        find {broken.CONF_DIR} -mindepth 1 -delete
        """
    )
