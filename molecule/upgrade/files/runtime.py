# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A runtime that attaches a container and detaches it again until it is told to end: runtime.py CONFLIST BIN_DIR

It forgives nothing: a plugin that cannot be started, or says that it has failed, is an error. For each turn it prints
a line: which file the first plugin was, and "ok" or what was wrong.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

NETNS = "busy"


class Failed(Exception):
    """A plugin was not started, or has failed."""


def call(verb, plugin, network, bin_dir, previous):
    """Call a plugin as the specification has it; return its result, None for a DEL."""
    config = {**plugin, "cniVersion": network["cniVersion"], "name": network["name"]}
    if "capabilities" in plugin:
        config["runtimeConfig"] = {"portMappings": [{"hostPort": 9090, "containerPort": 80, "protocol": "tcp"}]}
    if previous is not None:
        config["prevResult"] = previous
    environment = {
        "CNI_COMMAND": verb,
        "CNI_CONTAINERID": NETNS,
        "CNI_NETNS": "/run/netns/" + NETNS,
        "CNI_IFNAME": "eth0",
        "CNI_PATH": bin_dir,
        "PATH": os.environ["PATH"],
    }
    try:
        done = subprocess.run(
            [os.path.join(bin_dir, plugin["type"])],
            input=json.dumps(config).encode(),
            env=environment,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise Failed("%s %s: %s" % (verb, plugin["type"], error)) from error
    if done.returncode != 0:
        raise Failed("%s %s: %s" % (verb, plugin["type"], (done.stdout + done.stderr).decode(errors="replace")))
    return json.loads(done.stdout) if verb == "ADD" else None


def turn(network, bin_dir):
    """Attach the container and detach it."""
    result = None
    try:
        for plugin in network["plugins"]:
            result = call("ADD", plugin, network, bin_dir, result)
    finally:
        for plugin in reversed(network["plugins"]):
            call("DEL", plugin, network, bin_dir, result)


def main():
    path, bin_dir = sys.argv[1:]
    told = []
    signal.signal(signal.SIGTERM, lambda *arguments: told.append(True))
    with open(path, encoding="utf-8") as stream:
        network = json.load(stream)
    subprocess.run(["ip", "netns", "add", NETNS], check=True)
    while not told:
        begun = time.monotonic()
        plugin = os.stat(os.path.join(bin_dir, network["plugins"][0]["type"]))
        try:
            turn(network, bin_dir)
            said = "ok"
        except Failed as error:
            said = " ".join(str(error).split())
        # The number of an inode alone may be that of a file that was removed.
        print("%d.%d" % (plugin.st_ino, plugin.st_mtime_ns), said, flush=True)
        # Half of the machine's only processor is for what replaces the plugins.
        time.sleep(time.monotonic() - begun)
    subprocess.run(["ip", "netns", "delete", NETNS], check=True)


main()
