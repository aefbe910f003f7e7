# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Pod sandboxes with three networks by podwire-multinet: run, killed in mid-ADD, and removed by CRI in a containerd."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import playbook
from cri import CriError

HEAD = (
    *("containerd", "pod", "interfaces", "default route", "gateways that answer"),
    *("files left after its end", "sandboxes left"),
)
NETWORKS = "k8s.v1.cni.cncf.io/networks"
NADS = Path("/etc/cni/multinet/nads/default")
STUCK = Path("/run/podwire-stuck")
# Its ADD tells the numbers of the process that has started it and of its own, and ends when it is killed.
SCRIPT = f"""#!/bin/sh
[ "$CNI_COMMAND" != ADD ] || {{ echo $PPID $$ >{STUCK}.new; mv {STUCK}.new {STUCK}; exec sleep 1000; }}
"""
PODS = {
    "two": "storage,wire",
    "route": '[{"name": "storage", "default-route": ["10.94.0.1"]}, {"name": "wire", "interface": "wire"}]',
    "killed": "storage,wire,stuck",
}


def _bridge(name, subnet):
    ipam = {"type": "host-local", "ranges": [[{"subnet": subnet}]]}
    return {"type": "bridge", "bridge": name, "isGateway": True, "ipam": ipam}


def _prepare(conf_dir):
    """Let cni_plugins install the plugin, and cni_conf write the runtime's network."""
    playbook.module("podwire.cni.cni_plugins", {"src": "builtin", "plugins": ["podwire-multinet"]})
    Path("/opt/cni/bin/stuck").write_text(SCRIPT)
    os.chmod("/opt/cni/bin/stuck", 0o755)
    ipam = {"type": "host-local", "ranges": [[{"subnet": "10.95.0.0/24", "rangeStart": "10.95.0.10"}]]}
    definitions = {
        "storage": _bridge("pwr-storage", "10.94.0.0/24"),
        "wire": {"type": "macvlan", "master": "pwr-wire", "ipam": ipam},
        "stuck": {"type": "stuck"},
    }
    NADS.mkdir(parents=True, exist_ok=True)
    for name, plugin in definitions.items():
        spec = {"config": {"cniVersion": "1.0.0", **plugin}}
        nad = {"kind": "NetworkAttachmentDefinition", "metadata": {"name": name}, "spec": spec}
        (NADS / f"{name}.json").write_text(json.dumps(nad))
    script = "ip link add pwr-wire type veth peer name pwr-end; ip link set pwr-wire up; ip link set pwr-end up"
    subprocess.run(["sh", "-ec", f"{script}; ip address add 10.95.0.1/24 dev pwr-end"], check=True)
    pods = _bridge("pwr-multi", "10.93.0.0/24")
    pods["ipam"]["routes"] = [{"dst": "0.0.0.0/0"}]
    plugin = {"type": "podwire-multinet", "capabilities": {"io.kubernetes.cri.pod-annotations": True}}
    plugin["delegates"] = [{"cniVersion": "1.0.0", "name": "multipods", **pods}]
    network = {"name": "multipods", "conflist": {"cniVersion": "1.0.0", "plugins": [plugin]}}
    playbook.module("podwire.cni.cni_conf", {"conf_dir": conf_dir, "networks": [network], "exclusive": True})


def _files():
    """Return the leases, and what the plugin has written down, of all pods."""
    found = glob.glob("/var/lib/cni/networks/*/10.9[345].*") + glob.glob("/var/lib/cni/multinet/*/*")
    return sorted(found)


def _inside(netns, *words):
    done = subprocess.run(["nsenter", f"--net={netns}", *words], stdout=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode()


def _kill_it():
    """Kill the plugin, once its last network has begun, and then what it has started."""
    while not STUCK.exists():
        time.sleep(0.01)
    for number in STUCK.read_text().split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(number), signal.SIGKILL)
        time.sleep(0.5)
    STUCK.unlink()


def _one(containerd, name, state):
    """Return the row of a pod, and what is wrong in it."""
    cri = containerd.cri
    annotations = {NETWORKS: PODS[name]}
    links, route, answers, failed = "", "", 0, ""
    killer = threading.Thread(target=_kill_it, daemon=True)
    if name == "killed":
        killer.start()
    try:
        sandbox = cri.run_pod("multi-" + name, state + "/logs", annotations=annotations)
    except CriError as error:
        failed = str(error)
    if name == "killed":
        killer.join(60)
    elif not failed:
        netns = cri.pod(sandbox)[1]["Interfaces"]["eth0"]["Sandbox"]
        links = " ".join(re.findall(r"^(\w+)@", _inside(netns, "ip", "-brief", "link")[1], re.MULTILINE))
        route = " ".join(_inside(netns, "ip", "route", "show", "default")[1].split()[:5])
        gateways = ("10.93.0.1", "10.94.0.1", "10.95.0.1")
        answers = [_inside(netns, "ping", "-q", "-c", "1", "-W", "5", address)[0] for address in gateways].count(0)
    for left in cri.pods():
        cri.stop_pod(left)
        cri.remove_pod(left)
    files, pods = _files(), cri.pods()
    row = (containerd.version, f"`{PODS[name]}`", links or "failed", route, answers, len(files), len(pods))
    expected = {
        "two": ("eth0 net1 net2", "default via 10.93.0.1 dev eth0", 3),
        "route": ("eth0 net1 wire", "default via 10.94.0.1 dev net1", 3),
        "killed": ("", "", 0),
    }
    good = (links, route, answers) == expected[name] and bool(failed) == (name == "killed") and not files and not pods
    return row, [] if good else [f"containerd {containerd.version}, multinet: {list(row)} {files} {failed}"]


def run(containerds, conf_dir, state):
    """Run the PODS in each containerd; return the rows, and what is wrong in them."""
    rows, wrong = [], []
    _prepare(conf_dir)
    subprocess.run(["mount", "-t", "cgroup2", "podwire-containerd", "/sys/fs/cgroup"], check=True)
    for containerd in containerds:
        containerd.import_image(state + "/image.tar")
        deadline = time.monotonic() + 10
        while [loaded for loaded, _source in containerd.cri.status()[0]] != ["multipods"]:
            if time.monotonic() > deadline:
                return rows, [f"containerd {containerd.version} has not loaded multipods: {containerd.cri.status()}"]
            time.sleep(0.05)
        for name in PODS:
            row, problems = _one(containerd, name, state)
            rows.append(row)
            wrong += problems
    subprocess.run(["umount", "/sys/fs/cgroup"], check=True)
    absent = {"name": "multipods", "state": "absent"}
    playbook.module("podwire.cni.cni_conf", {"conf_dir": conf_dir, "networks": [absent]})
    return rows, wrong
