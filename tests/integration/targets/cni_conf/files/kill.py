# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kills the module at random moments while it writes: the file has to be the old or the new one, whole, every time."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time

from direct import render, start, succeed

ROUNDS = 150


def main():
    conf_dir = sys.argv[1]
    path = os.path.join(conf_dir, "10-loop.conflist")
    succeed(conf_dir, content=render(0))
    begun = time.monotonic()
    succeed(conf_dir, content=render(1))
    duration = time.monotonic() - begun
    found = {"old": 0, "new": 0, "temp": 0}
    before = render(1)
    for mtu in range(2, ROUNDS):
        after = render(mtu)
        pid = start(conf_dir, content=after)
        time.sleep(random.uniform(0, duration))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with open(path) as stream:
            text = stream.read()
        if text not in (before, after):
            sys.exit("round %d: the file is neither old nor new: %r ..." % (mtu, text[:80]))
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
