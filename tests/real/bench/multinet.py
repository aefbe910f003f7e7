# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Measures what podwire-multinet costs a pod with three networks: multinet.py DIRECTORY_OF_PLUGINS OUTPUT

One turn is an ADD of the pod through the plugin, and the three ADDs by libcni one after another, in changing order.
Writes the medians as JSON, in milliseconds: `plugin` and `chains` by the clock, `more` of the differences of each turn,
and `processor`, the same in processor time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import typing as t
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "plugins" / "module_utils"))

import libcni  # noqa: E402
from libcni import bundle  # noqa: E402

TURNS = 21
NETNS = "bench-multinet"
CONTAINER = "bench"


def networks() -> list[dict[str, t.Any]]:
    """Return three networks: two bridges and a macvlan."""

    def addresses(number: int) -> dict[str, t.Any]:
        return {"type": "host-local", "ranges": [[{"subnet": f"10.{60 + number}.0.0/24"}]]}

    plugins: list[dict[str, t.Any]] = [
        {"type": "bridge", "bridge": "benchm0", "isDefaultGateway": True, "ipam": addresses(0)},
        {"type": "bridge", "bridge": "benchm1", "isGateway": True, "ipam": addresses(1)},
        {"type": "macvlan", "master": "benchp0", "ipam": addresses(2)},
    ]
    return [
        {"cniVersion": "1.1.0", "name": f"bench{number}", "plugins": [plugin]} for number, plugin in enumerate(plugins)
    ]


def loaded(conf: dict[str, t.Any]) -> libcni.NetworkConfigList:
    return libcni.network_conf_from_bytes(json.dumps(conf).encode())


def took(
    cni: libcni.CNIConfig, attachments: list[tuple[libcni.NetworkConfigList, libcni.RuntimeConf]]
) -> tuple[float, float]:
    """Return the milliseconds of these ADDs by the clock, and in processor time with their plugins."""

    def used() -> float:
        times = os.times()
        return times.user + times.system + times.children_user + times.children_system

    before, begun = used(), time.perf_counter()
    for one in attachments:
        cni.add_network_list(*one)
    return (time.perf_counter() - begun) * 1000, (used() - before) * 1000


def measure(cni: libcni.CNIConfig, records: str) -> dict[str, float]:
    """Return the medians of alternating turns; the plugin keeps its records in a directory."""
    delegates = networks()
    plugin = {"type": "podwire-multinet", "cniDir": records, "delegates": delegates}
    pod = [(loaded({"cniVersion": "1.1.0", "name": "pods", "plugins": [plugin]}), "eth0")]
    chains = [(loaded(conf), ifname) for conf, ifname in zip(delegates, ("eth0", "net1", "net2"))]
    seen: dict[str, list[tuple[float, float]]] = {"plugin": [], "chains": []}
    sides = [("plugin", pod), ("chains", chains)]
    for _turn in range(TURNS):
        sides.reverse()
        for name, wanted in sides:
            attachments = [
                (network, libcni.RuntimeConf(CONTAINER, f"/run/netns/{NETNS}", ifname)) for network, ifname in wanted
            ]
            seen[name].append(took(cni, attachments))
            for one in reversed(attachments):
                cni.del_network_list(*one)
    # The first turn fills caches.
    plugin_times, chains_times = (seen[name][1:] for name in ("plugin", "chains"))
    pairs = list(zip(plugin_times, chains_times))
    return {
        "plugin": median(clock for clock, _processor in plugin_times),
        "chains": median(clock for clock, _processor in chains_times),
        "more": median(ours[0] - theirs[0] for ours, theirs in pairs),
        "processor": median(ours[1] - theirs[1] for ours, theirs in pairs),
    }


def main() -> None:
    plugins, output = sys.argv[1:]
    subprocess.run(["ip", "netns", "add", NETNS], check=True)
    subprocess.run(["ip", "link", "add", "benchp0", "type", "veth", "peer", "name", "benchp1"], check=True)
    subprocess.run(["ip", "link", "set", "benchp0", "up"], check=True)
    # Records are durable, so they belong on a disk.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        path = f"{directory}/bin"
        shutil.copytree(plugins, path)
        source = ROOT / "plugins" / "module_utils" / "_plugins" / "multinet.py"
        bundle.write(bundle.bundle(str(source)), f"{path}/podwire-multinet")
        found = measure(libcni.CNIConfig([path], f"{directory}/cache", timeout=60), f"{directory}/records")
    subprocess.run(["ip", "netns", "delete", NETNS], check=True)
    for name in ("benchm0", "benchm1", "benchp0"):
        subprocess.run(["ip", "link", "delete", name], check=True)
    Path(output).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
