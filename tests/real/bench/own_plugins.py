# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Measures the example plugins: own_plugins.py GO_PLUGINS OUTPUT

Writes medians as JSON, in milliseconds: `bare` of a Python that does nothing, and each call of a plugin that has
nothing to do; ADD and DEL of a chain of a bridge and three plugins that have nothing to do, `python` and `go`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[3] / "plugins" / "module_utils"))

from libcni import api, bundle, conf

ROOT = Path(__file__).parents[3]
ROUNDS = 31
NETNS = "/run/netns/own-plugins"
BRIDGE = {"type": "bridge", "bridge": "own0", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.98.0.0/24"}]]}}
CHAINS = {
    "python": [BRIDGE, {"type": "podwire-hooks"}, {"type": "podwire-route"}, {"type": "podwire-hooks"}],
    "go": [BRIDGE, {"type": "tuning"}, {"type": "tuning"}, {"type": "tuning"}],
}
IDLE = (("podwire-hooks", "ADD"), ("podwire-hooks", "DEL"), ("podwire-route", "ADD"))


def install(go_plugins: str, directory: str) -> None:
    for name in ("bridge", "host-local", "tuning"):
        shutil.copy(f"{go_plugins}/{name}", directory)
    for name in ("hooks", "route"):
        bundle.write(
            bundle.bundle(str(ROOT / "examples" / "plugins" / f"podwire-{name}.py")), f"{directory}/podwire-{name}"
        )


def chains(directory: str) -> dict[str, Callable[[], None]]:
    """Return for each chain what attaches and detaches a container."""
    cni = api.CNIConfig([directory], f"{directory}/cache", timeout=60)
    attachment = api.RuntimeConf("own", NETNS, "eth0")

    def both(network: conf.NetworkConfigList) -> None:
        cni.add_network_list(network, attachment)
        cni.del_network_list(network, attachment)

    found = {}
    for name, plugins in CHAINS.items():
        data = json.dumps({"cniVersion": "1.0.0", "name": name, "plugins": plugins}).encode()
        found[name] = partial(both, conf.network_conf_from_bytes(data))
    return found


def calls(directory: str) -> dict[str, Callable[[], None]]:
    """Return each call of one process."""

    def run(command: list[str], environment: dict[str, str], stdin: bytes) -> None:
        subprocess.run(command, input=stdin, env=environment, stdout=subprocess.DEVNULL, check=True)

    found = {"bare": partial(run, [sys.executable, "-I", "-S", "-c", "pass"], {}, b"")}
    result = {"cniVersion": "1.0.0", "interfaces": [{"name": "eth0", "sandbox": NETNS}]}
    for plugin, verb in IDLE:
        data = {"cniVersion": "1.0.0", "name": "own", "type": plugin, "prevResult": result}
        environment = {"CNI_COMMAND": verb, "CNI_CONTAINERID": "own", "CNI_NETNS": NETNS, "CNI_IFNAME": "eth0"}
        environment["CNI_PATH"] = directory
        stdin = json.dumps(data).encode()
        found[f"{plugin}: {verb}"] = partial(run, [f"{directory}/{plugin}"], environment, stdin)
    return found


def main() -> None:
    go_plugins, output = sys.argv[1:]
    subprocess.run(["ip", "netns", "add", os.path.basename(NETNS)], check=True)
    try:
        with tempfile.TemporaryDirectory() as directory:
            install(go_plugins, directory)
            work = {**calls(directory), **chains(directory)}
            took: dict[str, list[float]] = {name: [] for name in work}
            for _round in range(ROUNDS):
                for name, call in work.items():
                    begun = time.perf_counter()
                    call()
                    took[name].append((time.perf_counter() - begun) * 1000)
    finally:
        subprocess.run(["ip", "netns", "del", os.path.basename(NETNS)], check=True)
    Path(output).write_text(json.dumps({name: median(times) for name, times in took.items()}))


if __name__ == "__main__":
    main()
