# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import multiprocessing
import os
import signal
import sys
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.podwire.cni.plugins.modules import cni_plugins

NAMES = ["bandwidth", "loopback", "portmap"]
CHANGES = (
    "os.chmod",
    "os.chown",
    "os.link",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.symlink",
    "os.truncate",
)
STATE = Path("/var/lib/podwire/state")


def die_at(number):
    """Kill this process when it is about to change the file system for the time of that number."""
    changes = 0

    def count(event, arguments):
        nonlocal changes
        if event in CHANGES or (event == "open" and arguments[2] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR)):
            changes += 1
            if changes == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def run_module(arguments, kill_at=0):
    if kill_at:
        die_at(kill_at)
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null), patch_module_args(arguments):
        cni_plugins.main()


@pytest.fixture
def start(bin_dir):
    """Return a function that runs the module in a copy of this process, and returns how it ended."""

    def fork(kill_at=0, **options):
        arguments = {"bin_dir": str(bin_dir), **options}
        process = multiprocessing.get_context("fork").Process(target=run_module, args=[arguments, kill_at])
        process.start()
        process.join()
        return process.exitcode

    return fork


@pytest.fixture
def succeed(start):
    def run(**options):
        assert start(**options) == 0

    return run


def present(source):
    told = {"where": source, "only_ask": False, "last": False, "checksum": ""}
    return {"src": source, "remote_src": True, "plugins": NAMES, "_source": told}


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in Path(folder).iterdir()}


def is_temporary(name):
    return name.endswith(".podwire-tmp")


def kept():
    """Return the digests of the files that the manifest refers to."""
    binaries = json.loads((STATE / "manifest.json").read_text())["binaries"].values()
    return {record["sha256"] for entry in binaries for record in entry["history"]}


def test_a_run_killed_at_a_change_leaves_whole_plugins_and_the_next_run_completes(start, succeed, bin_dir, old, new):
    wanted = {source: {name: digests(source)[name] for name in NAMES} for source in (old, new)}
    succeed(**present(old))
    before, after = old, new
    for number in itertools.count(1, 5):
        ended = start(kill_at=number, **present(after))
        assert ended in (0, -signal.SIGKILL)
        found = digests(bin_dir)
        for name in NAMES:
            assert found.get(name) in (wanted[before][name], wanted[after][name]), f"change {number}: {name} is torn"
        # Every other round continues where the killed run stopped, the others go back. Going back may be no change, and
        # only a run that changes something removes temporary files.
        if number % 2:
            before, after = after, before
        succeed(**present(before))
        found = digests(bin_dir)
        if number % 2 == 0:
            found = {name: found[name] for name in found if not is_temporary(name)}
        assert found == wanted[before], f"change {number}"
        if ended == 0:
            break
    # Each plugin is at least written, renamed and recorded.
    assert number > 3 * len(NAMES)

    succeed(state="restored", force=True)
    assert os.listdir(bin_dir) == [], "not known as managed after so many kills"
    assert set(os.listdir(STATE / "objects")) - kept() == set()
