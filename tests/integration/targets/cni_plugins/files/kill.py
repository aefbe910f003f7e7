# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kills the module at random moments while it installs: kill.py DIRECTORY OLD NEW

Each binary has to be the old or the new one, whole, every time, and the next run completes. Calls the module in child
processes, without the time that Ansible takes around it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import sys
import time

from ansible.module_utils.testing import patch_module_args

from ansible_collections.podwire.cni.plugins.modules import cni_plugins

NAMES = ["bandwidth", "loopback", "portmap", "ptp", "tuning"]
ROUNDS = 40
STATE = "/var/lib/podwire/state"


def start(bin_dir, **options):
    """Start the module in a child process and return its process id."""
    pid = os.fork()
    if pid:
        return pid
    arguments = {"bin_dir": bin_dir, **options}
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null), patch_module_args(arguments):
        try:
            cni_plugins.main()
        except SystemExit as ended:
            os._exit(ended.code or 0)
        finally:
            sys.stderr.flush()
            os._exit(70)


def present(source):
    told = {"where": source, "only_ask": False, "last": False, "checksum": ""}
    return {"src": source, "remote_src": True, "plugins": NAMES, "_source": told}


def succeed(bin_dir, **options):
    _pid, status = os.waitpid(start(bin_dir, **options), 0)
    if status != 0:
        sys.exit("the module ended with status %d" % status)


def digests(folder):
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as stream:
            found[name] = hashlib.sha256(stream.read()).hexdigest()
    return found


def kept():
    """Yield the digests of the files that the manifest refers to."""
    with open(STATE + "/manifest.json") as stream:
        for entry in json.load(stream)["binaries"].values():
            for slot in ("replaced", "original", "displaced"):
                yield (entry[slot] or {}).get("sha256")


def main():
    bin_dir, old, new = sys.argv[1:]
    wanted = {source: {name: digests(source)[name] for name in NAMES} for source in (old, new)}
    begun = time.monotonic()
    succeed(bin_dir, **present(old))
    duration = time.monotonic() - begun
    seen = {"old": 0, "new": 0, "mixed": 0, "temp": 0}
    before, after = old, new
    for number in range(ROUNDS):
        pid = start(bin_dir, **present(after))
        time.sleep(random.uniform(0, duration))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        found = digests(bin_dir)
        temps = [name for name in found if name.endswith(".podwire-tmp")]
        states = set()
        for name in NAMES:
            if found.get(name) not in (wanted[before][name], wanted[after][name]):
                sys.exit("round %d: %s is neither old nor new" % (number, name))
            states.add("old" if found[name] == wanted[before][name] else "new")
        seen["mixed" if len(states) == 2 else states.pop()] += 1
        seen["temp"] += len(temps)
        # Every other round goes on where the killed one stopped, the others turn round there.
        if number % 2:
            succeed(bin_dir, **present(after))
            if digests(bin_dir) != wanted[after]:
                sys.exit("round %d: the next run has not completed: %s" % (number, sorted(digests(bin_dir))))
        before, after = after, before
        if not number % 2:
            succeed(bin_dir, **present(before))
    succeed(bin_dir, state="restored", force=True)
    if os.listdir(bin_dir):
        sys.exit("not taken for our own after so many crashes: %s" % os.listdir(bin_dir))
    unreferenced = set(os.listdir(STATE + "/objects")) - set(kept())
    if unreferenced:
        sys.exit("kept files that nothing refers to: %s" % sorted(unreferenced))
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
