# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Pod sandboxes on networks that cni_conf has rendered: run, stopped and removed by CRI in a real containerd."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import playbook

from ansible_collections.podwire.cni.plugins.module_utils.libcni import bundle
from ansible_collections.podwire.cni.tests.host.host import COLLECTION

HEAD = (
    *("containerd", "network", "addresses after RunPodSandbox", "reserved by host-local"),
    *("reserved after StopPodSandbox", "sandboxes after RemovePodSandbox"),
)
LEASES = "/var/lib/cni/networks/"
# For each network its subnets.
NETWORKS = {"pods": ["10.97.0.0/24"], "dual": ["10.98.0.0/24", "fd00:98::/64"], "python": ["10.99.0.0/24"]}
LOG = "/run/podwire-debug/debug.log"
# The collection's plugins, which are chained to that of the network "python".
OWN = {
    "debug": {"file": LOG},
    "route": {"addroutes": [{"dst": "192.0.2.0/24"}]},
    "hooks": {"add": [{"command": ["/bin/true"]}]},
}


def _render(name, conf_dir):
    """Let cni_conf write the network, and remove the others."""
    bridge = {"type": "bridge", "bridge": "pwr-" + name, "isGateway": True}
    bridge["ipam"] = {"type": "host-local", "ranges": [[{"subnet": subnet}] for subnet in NETWORKS[name]]}
    networks = [{"name": other, "state": "absent"} for other in NETWORKS if other != name]
    own = [{"type": "podwire-" + kind, **more} for kind, more in OWN.items()] if name == "python" else []
    networks.append({"name": name, "conflist": {"cniVersion": "1.0.0", "plugins": [bridge, *own]}})
    playbook.module("podwire.cni.cni_conf", {"conf_dir": conf_dir, "networks": networks})


def _wait_for(containerd, name):
    deadline = time.monotonic() + 2
    while [loaded for loaded, _source in containerd.cri.status()[0]] != [name]:
        if time.monotonic() > deadline:
            sys.exit("containerd %s has not loaded %s: %s" % (containerd.version, name, containerd.cri.status()))
        time.sleep(0.01)


def _leases(name):
    """Return the addresses that are reserved, as host-local's directory has them."""
    found = []
    for entry in os.listdir(LEASES + name) if os.path.isdir(LEASES + name) else []:
        if entry != "lock" and not entry.startswith("last_reserved_ip"):
            found.append(entry)
    return sorted(found)


def _install():
    """Install the collection's plugins."""
    for kind in OWN:
        source = COLLECTION / "examples" / "plugins" / f"podwire-{kind}.py"
        bundle.write(bundle.bundle(str(source)), "/opt/cni/bin/podwire-" + kind)


def _called():
    """Return the commands that podwire-debug was called with, VERSION left out."""
    lines = Path(LOG).read_text().splitlines() if os.path.exists(LOG) else []
    return list(dict.fromkeys(json.loads(line)["command"] for line in lines))


def _one(containerd, name, state):
    """Return the row of a sandbox, and what is wrong in it."""
    cri = containerd.cri
    Path(LOG).unlink(missing_ok=True)
    sandbox = cri.run_pod("pod-" + name, state + "/logs")
    addresses, result = cri.pod(sandbox)
    reserved = _leases(name)
    cri.stop_pod(sandbox)
    left = _leases(name)
    cri.remove_pod(sandbox)
    pods = cri.pods()
    row = (containerd.version, "`%s`, %s" % (name, " and ".join(NETWORKS[name])), ", ".join(addresses))
    row += (", ".join(reserved), len(left), len(pods))

    subnets = [ipaddress.ip_network(subnet) for subnet in NETWORKS[name]]
    by_plugins = [entry["IP"] for entry in result["Interfaces"]["eth0"]["IPConfigs"]]
    as_rendered = len(addresses) == len(subnets) and all(
        ipaddress.ip_address(address) in subnet for address, subnet in zip(addresses, subnets)
    )
    ours = name != "python" or _called() == ["ADD", "DEL"]
    if as_rendered and ours and sorted(addresses) == sorted(by_plugins) == reserved and not left and not pods:
        return row, []
    return row, ["containerd %s, sandbox: %s, result %s" % (containerd.version, list(row), result)]


def run(containerds, names, conf_dir, state):
    """Run a sandbox on each of these NETWORKS in each containerd; return the rows, and what is wrong in them."""
    rows, wrong = [], []
    if "python" in names:
        _install()
    # crun wants to see some control groups there.
    subprocess.run(["mount", "-t", "cgroup2", "podwire-containerd", "/sys/fs/cgroup"], check=True)
    for containerd in containerds:
        containerd.import_image(state + "/image.tar")
        try:
            for name in names:
                _render(name, conf_dir)
                _wait_for(containerd, name)
                row, problems = _one(containerd, name, state)
                rows.append(row)
                wrong += problems
        finally:
            for sandbox in containerd.cri.pods():
                containerd.cri.stop_pod(sandbox)
                containerd.cri.remove_pod(sandbox)
    subprocess.run(["umount", "/sys/fs/cgroup"], check=True)
    return rows, wrong
