# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever makes a real ADD or a real packet fail makes the experiment fail, and nothing else does."""

from __future__ import annotations

import os
import sys
import zlib

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.trials.experiment import Subject, try_networks
from ansible_collections.podwire.cni.plugins.module_utils.libcni.kernel import unshare
from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.tools.sample import number

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from breaks import BIN_DIR, NETWORK, breaks, make_host
from truth import what_happens

ALL = breaks()
# Each run of the gate takes the same ones, spread over all kinds.
CHOSEN = ALL[:: max(1, len(ALL) // number("BREAKS", len(ALL), 4))]


def shown(plugins):
    """Return what an experiment says, in the form of what_happens."""
    [seen] = try_networks([Subject(NETWORK, "1.0.0", plugins, [str(BIN_DIR)])])
    if seen.unknown:
        return f"unknown: {seen.unknown}"
    if seen.failed is not None and seen.failed.verb == "ADD":
        return None
    return {f"{lost.way} {lost.family}" for lost in seen.lost if lost.way != "gateway"}


def on_a_new_host(generation, case):
    """Return what the experiment shows and what really happens, in a namespace that only this case has."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            unshare()
            sh("ip link set lo up")
            make_host(generation)
            if case.script:
                sh(case.script)
            os.write(writer, repr((shown(case.chain), what_happens(case.chain))).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    sh("for name in $(ls /run/netns); do ip netns delete $name; done")
    sh("rm -rf /run/home/pwx-* /etc/cni/tuning; rmdir /etc/cni 2>/dev/null || true")
    return eval(text)  # It is our own.


@pytest.mark.parametrize("case", CHOSEN, ids=[case.name for case in CHOSEN])
def test_an_experiment_shows_what_happens(case, generations):
    generation = generations[("old", "new")[zlib.crc32(case.name.encode()) % 2]]
    experiment, truth = on_a_new_host(generation, case)
    assert experiment == truth
