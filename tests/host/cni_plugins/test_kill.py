# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import time
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.podwire.cni.plugins.modules import cni_plugins

NAMES = ["bandwidth", "loopback", "portmap", "ptp", "tuning"]
ROUNDS = 40
STATE = Path("/var/lib/podwire/state")


def run_module(arguments):
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null), patch_module_args(arguments):
        cni_plugins.main()


@pytest.fixture
def start(bin_dir):
    """Return a function that starts the module in a copy of this process.

    A Python of its own would need more time to start than the module to install, so that most kills would be too early.
    """

    def fork(**options):
        arguments = {"bin_dir": str(bin_dir), **options}
        process = multiprocessing.get_context("fork").Process(target=run_module, args=[arguments])
        process.start()
        return process

    return fork


@pytest.fixture
def succeed(start):
    def run(**options):
        process = start(**options)
        process.join()
        assert process.exitcode == 0

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
    slots = [entry[slot] for entry in binaries for slot in ("replaced", "original", "displaced")]
    return {slot["sha256"] for slot in slots if slot}


def test_a_killed_run_leaves_whole_plugins_and_the_next_run_completes(start, succeed, bin_dir, old, new):
    wanted = {source: {name: digests(source)[name] for name in NAMES} for source in (old, new)}
    succeed(**present(old))
    begun = time.monotonic()
    succeed(**present(new))
    duration = time.monotonic() - begun
    untouched = interrupted = 0
    before, after = new, old
    for number in range(ROUNDS):
        process = start(**present(after))
        # The moments of the rounds are spread over the time that a run takes.
        time.sleep(duration * number / ROUNDS)
        process.kill()
        process.join()
        found = digests(bin_dir)
        for name in NAMES:
            assert found.get(name) in (wanted[before][name], wanted[after][name]), f"round {number}: {name} is torn"
        untouched += found == wanted[before]
        interrupted += any(map(is_temporary, found))
        # Every other round continues where the killed run stopped, the others go back. Going back may be no change, and
        # only a run that changes something removes temporary files.
        if number % 2:
            before, after = after, before
        succeed(**present(before))
        found = digests(bin_dir)
        if number % 2 == 0:
            found = {name: found[name] for name in found if not is_temporary(name)}
        assert found == wanted[before], f"round {number}"
    # Runs were killed before and while they changed something.
    assert untouched > 0
    assert interrupted > 0

    succeed(state="restored", force=True)
    assert os.listdir(bin_dir) == [], "not known as managed after so many kills"
    assert set(os.listdir(STATE / "objects")) - kept() == set()
