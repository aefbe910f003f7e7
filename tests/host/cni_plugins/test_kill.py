# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import itertools
import json
import os
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.modules import cni_plugins
from ansible_collections.podwire.cni.tests.host.killed import ends
from ansible_collections.podwire.cni.tests.tools import sample

NAMES = ["bandwidth", "loopback", "portmap"]
STATE = Path("/var/lib/podwire/state")


@pytest.fixture
def start(bin_dir):
    return lambda kill_at=0, **options: ends(cni_plugins.main, {"bin_dir": str(bin_dir), **options}, kill_at)


@pytest.fixture
def succeed(start):
    def run(**options):
        assert start(**options)

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
    bandwidth = bin_dir / "bandwidth"
    bin_dir.mkdir(parents=True)
    bandwidth.write_bytes(b"of somebody else")
    succeed(**present(old))
    before, after = old, new
    for number in itertools.count(1, 5 * sample.STEP):
        ended = start(kill_at=number, **present(after))
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
        if ended:
            break
    # Each plugin is at least written, renamed and recorded.
    assert number > 3 * len(NAMES)

    succeed(state="restored", force=True)
    assert os.listdir(bin_dir) == ["bandwidth"], "not known as managed after so many kills"
    assert bandwidth.read_bytes() == b"of somebody else"
    assert set(os.listdir(STATE / "objects")) - kept() == set()
