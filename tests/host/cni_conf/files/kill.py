# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Kills the module at random moments while it writes: the file has to be the old or the new one, whole, every time.

It is a program, which forks, because a Python of its own for each of the rounds would take a minute.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time

from ansible.module_utils.testing import patch_module_args

from ansible_collections.podwire.cni.plugins.modules import cni_conf
from ansible_collections.podwire.cni.tests.tools import sample

MANIFEST = "/var/lib/podwire/state/manifest.json"
ROUNDS = sample.number("ROUNDS", 100, 25)


def render(mtu):
    """Return the text of the network `loop` with that MTU; a large one, so that a torn file is likely to be seen."""
    plugins = [{"type": "loopback", "mtu": mtu, "padding": "x" * 300000, "end": mtu}]
    return json.dumps({"cniVersion": "1.0.0", "name": "loop", "plugins": plugins}, indent=2) + "\n"


def start(conf_dir, **network):
    """Start the module in a child process and return its process id."""
    pid = os.fork()
    if pid:
        return pid
    arguments = {"conf_dir": conf_dir, "validate": [], "networks": [dict({"name": "loop"}, **network)]}
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null), patch_module_args(arguments):
        try:
            cni_conf.main()
        except SystemExit as ended:
            os._exit(ended.code or 0)
        finally:
            sys.stderr.flush()
            os._exit(70)


def succeed(conf_dir, **network):
    """Run the module to its end, which has to be a good one."""
    _pid, status = os.waitpid(start(conf_dir, **network), 0)
    if status != 0:
        sys.exit("the module ended with status %d" % status)


def intent():
    """Return what changes when the module has recorded what it is about to write."""
    try:
        return os.stat(MANIFEST).st_ino
    except FileNotFoundError:
        return None


def wait_for_intent(pid, before):
    """Return once the module begins to write, or has ended."""
    while intent() == before:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return


def measure(conf_dir):
    """Return how long the module takes from its intent to its end, in seconds."""
    before = intent()
    pid = start(conf_dir, content=render(1))
    wait_for_intent(pid, before)
    begun = time.monotonic()
    os.waitpid(pid, 0)
    return time.monotonic() - begun


def pause(seconds):
    """Wait more exactly than sleep does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def main():
    conf_dir = sys.argv[1]
    path = os.path.join(conf_dir, "10-loop.conflist")
    succeed(conf_dir, content=render(0))
    duration = measure(conf_dir)
    found = {"old": 0, "new": 0, "temp": 0}
    before = render(1)
    for mtu in range(2, ROUNDS):
        after, recorded = render(mtu), intent()
        pid = start(conf_dir, content=after)
        wait_for_intent(pid, recorded)
        # Most of that time is after the write, so the early moments are chosen more often.
        pause(duration * random.random() ** 4)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with open(path) as stream:
            text = stream.read()
        if text not in (before, after):
            sys.exit("round %d: the file is neither old nor new: %d characters" % (mtu, len(text)))
        found["new" if text == after else "old"] += 1
        names = [name for name in os.listdir(conf_dir) if name != "10-loop.conflist"]
        if any(name.endswith((".conf", ".conflist", ".json")) for name in names):
            sys.exit("round %d: left where runtimes read it: %s" % (mtu, names))
        found["temp"] += len(names)
        before = text
    succeed(conf_dir, content=render(ROUNDS))
    if os.listdir(conf_dir) != ["10-loop.conflist"]:
        sys.exit("not cleaned up: %s" % os.listdir(conf_dir))
    succeed(conf_dir, state="absent")
    if os.listdir(conf_dir):
        sys.exit("not taken for our own after so many crashes: %s" % os.listdir(conf_dir))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
