# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The other side of the comparison: the same plugin calls by a plain loop, without this collection.

plain.py VERB WORKERS PLUGIN_DIR CONFLIST STATE_DIR CONTAINER...

VERB is `add` (ADD, then CHECK, as cni_attach does), `check` or `del`. A container is named like its network namespace.
STATE_DIR holds the results for the calls that come later, in files like those in libcni's cache. Prints the seconds
that the loop took.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

INTERFACE = "eth0"


def call(verb: str, directory: str, plugin: dict, container: str) -> dict:
    """Run one plugin and return what it printed."""
    environment = {
        "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
        "CNI_COMMAND": verb,
        "CNI_CONTAINERID": container,
        "CNI_NETNS": f"/run/netns/{container}",
        "CNI_IFNAME": INTERFACE,
        "CNI_PATH": directory,
    }
    path = os.path.join(directory, plugin["type"])
    output = subprocess.run(
        [path], input=json.dumps(plugin).encode(), env=environment, stdout=subprocess.PIPE, check=True
    ).stdout
    return json.loads(output) if output else {}


def run(verb: str, directory: str, network: dict, state: str, container: str) -> None:
    """Call all plugins of the network for one container."""
    common = {"cniVersion": network["cniVersion"], "name": network["name"]}
    plugins = [{**plugin, **common} for plugin in network["plugins"]]
    memory = os.path.join(state, f"{network['name']}-{container}-{INTERFACE}")
    if verb == "add":
        result: dict = {}
        for plugin in plugins:
            result = call("ADD", directory, {**plugin, "prevResult": result} if result else plugin, container)
        with open(memory, "w", encoding="utf-8") as stream:
            json.dump({"result": result}, stream)
        run("check", directory, network, state, container)
        return
    with open(memory, encoding="utf-8") as stream:
        result = json.load(stream)["result"]
    for plugin in plugins if verb == "check" else reversed(plugins):
        call(verb.upper(), directory, {**plugin, "prevResult": result}, container)


def main() -> None:
    verb, workers, directory, conflist, state, *containers = sys.argv[1:]
    with open(conflist, encoding="utf-8") as stream:
        network = json.load(stream)
    os.makedirs(state, exist_ok=True)
    begun = time.monotonic()
    with ThreadPoolExecutor(int(workers)) as pool:
        for _done in pool.map(lambda container: run(verb, directory, network, state, container), containers):
            pass
    print(time.monotonic() - begun)


if __name__ == "__main__":
    main()
