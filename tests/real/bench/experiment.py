# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Measures how long a network is tried in a copy of the host: experiment.py DIRECTORY_OF_PLUGINS OUTPUT

Writes the median seconds as JSON: `one` network, `ten` networks, and `again`, ten that are remembered.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[3] / "plugins"))

from module_utils._host.trials.experiment import Subject, try_networks

TURNS = 5
MEMORY = "/run/podwire-cni/experiments"


def subject(number: int, plugins: str) -> Subject:
    ranges = [[{"subnet": f"10.70.{number}.0/24"}]]
    ipam = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": f"benche{number}", "isGateway": True, "ipMasq": True, "ipam": ipam}
    chain = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}, {"type": "firewall"}]
    return Subject(f"bench{number}", "1.0.0", chain, [plugins])


def seconds(subjects: list[Subject]) -> float:
    begin = time.monotonic()
    for seen in try_networks(subjects):
        if seen.unknown or seen.failed or seen.lost or seen.left:
            sys.exit(f"the network does not work here: {seen}")
    return time.monotonic() - begin


def main(plugins: str, output: str) -> None:
    for command in (
        "ip netns add bench-outside",
        "ip link add benche type veth peer name benchf netns bench-outside",
        "ip link set benche up",
        "ip -n bench-outside link set benchf up",
        "ip address add 192.0.2.7/24 dev benche",
        "ip route add default via 192.0.2.1",
        "sysctl -qw net.ipv4.ip_forward=1",
    ):
        subprocess.run(command.split(), check=True)
    every = [subject(number, plugins) for number in range(10)]
    found: dict[str, list[float]] = {"one": [], "ten": [], "again": []}
    for _turn in range(TURNS):
        shutil.rmtree(MEMORY, ignore_errors=True)
        found["one"].append(seconds(every[:1]))
        shutil.rmtree(MEMORY, ignore_errors=True)
        found["ten"].append(seconds(every))
        found["again"].append(seconds(every))
    subprocess.run(["ip", "netns", "delete", "bench-outside"], check=True)
    Path(output).write_text(json.dumps({name: median(values) for name, values in found.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
