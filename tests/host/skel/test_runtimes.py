# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A real containerd and a real podman run a chain that has the example plugins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import bundle
from ansible_collections.podwire.cni.tests.host.host import COLLECTION, sh
from ansible_collections.podwire.cni.tests.host.networks import bridge, conflist

EXAMPLES = COLLECTION / "examples" / "plugins"
LOG = Path("/run/pwskrun/debug.log")
HOOK = Path("/opt/cni/hook")
NETWORK = conflist(
    bridge("pwskrun0", "10.86.0.0/24"),
    {"type": "podwire-route", "addroutes": [{"dst": "10.85.0.0/16", "gw": "10.86.0.1"}]},
    {"type": "podwire-hooks", "add": [{"command": [str(HOOK)]}], "delete": [{"command": [str(HOOK)]}]},
    {"type": "podwire-debug", "file": str(LOG)},
    version="0.4.0",
    name="pwskrun",
)


@pytest.fixture(scope="module")
def network(runtimes):
    for example in EXAMPLES.glob("*.py"):
        bundle.write(bundle.bundle(str(example)), f"/opt/cni/bin/{example.stem}")
    HOOK.write_text("#!/bin/sh\necho $CNI_COMMAND >> /run/pwskrun-hooks\n")
    HOOK.chmod(0o755)
    Path("/etc/cni/net.d/10-pwskrun.conflist").write_text(json.dumps(NETWORK))
    yield
    runtimes("uninstall")
    sh("ip link delete pwskrun0; rm -rf /run/pwskrun /run/pwskrun-hooks")


@pytest.fixture(autouse=True)
def _fresh(network):
    LOG.unlink(missing_ok=True)
    Path("/run/pwskrun-hooks").unlink(missing_ok=True)


def calls():
    return [json.loads(line) for line in LOG.read_text().splitlines()]


def inside(line):
    """The routes in the namespace of a call, and the address that its result has."""
    routes = sh(f"nsenter --net={line['netns']} ip route")
    return routes, line["result"]["ips"][0]["address"]


def leftovers():
    return sh("find /var/lib/cni/networks -name '10.86.*'; ip -brief link show master pwskrun0")


def test_containerd(runtimes):
    pod = runtimes("pod", "web")
    added = calls()[0]
    routes, address = inside(added)
    assert (added["command"], added["containerID"], address.partition(".")[0]) == ("ADD", pod, "10")
    assert "10.85.0.0/16 via 10.86.0.1 dev eth0" in routes
    assert "K8S_POD_NAME" in added["environment"]["CNI_ARGS"]
    runtimes("remove-pod", pod)
    commands = [line["command"] for line in calls()]
    assert (commands[0], set(commands[1:])) == ("ADD", {"DEL"})
    assert Path("/run/pwskrun-hooks").read_text().split() == commands
    assert not leftovers()


def test_podman():
    sh("podman run --detach --network pwskrun --name web localhost/podwire:1")
    added = calls()[0]
    routes, address = inside(added)
    assert address.startswith("10.86.0.")
    assert "10.85.0.0/16 via 10.86.0.1 dev eth0" in routes
    sh("podman rm --force --time 0 web")
    assert [line["command"] for line in calls()] == ["ADD", "DEL"]
    assert not leftovers()
