# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever makes a real ADD or a real packet fail makes the experiment fail, and nothing else does."""

from __future__ import annotations

import zlib

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.trials.experiment import Subject, try_networks
from ansible_collections.podwire.cni.tests.host.experiments.breaks import BIN_DIR, NETWORK, breaks, on_a_new_host
from ansible_collections.podwire.cni.tests.host.experiments.truth import what_happens
from ansible_collections.podwire.cni.tests.tools.sample import number

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


def told(ways):
    """Return what fails in words: the ADD, ways of packets, or what else is said."""
    return "ADD" if ways is None else ways if isinstance(ways, str) else f"packets: {sorted(ways)}"


@pytest.mark.parametrize("case", CHOSEN, ids=[case.name for case in CHOSEN])
def test_an_experiment_shows_what_happens(case, generations):
    generation = generations[("old", "new")[zlib.crc32(case.name.encode()) % 2]]
    both = on_a_new_host(
        generation, case.script, lambda: f"{told(shown(case.chain))}; {told(what_happens(case.chain))}"
    )
    experiment, separator, truth = both.partition("; ")
    assert separator
    assert experiment == truth
