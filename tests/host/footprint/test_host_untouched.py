# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a host had before the first ADD is the same after any sequence of attach, break, repair, audit, remediate,
detach and gc. No step fails, unless a plugin cannot do on that host what it is told.

PODWIRE_HOSTS is how many hosts are made up, PODWIRE_FIRST_HOST the seed of the first.
"""

from __future__ import annotations

from collections import Counter

import pytest

from ansible_collections.podwire.cni.tests.host.footprint.facts import read_facts
from ansible_collections.podwire.cni.tests.host.footprint.hosts import SET_BY_ADDS, GeneratedHost
from ansible_collections.podwire.cni.tests.tools import sample

VERBS = ("attach", "renew", "break", "administrate", "repair", "remediate", "audit", "service", "detach", "gc")
FIRST, COUNT = sample.number("FIRST_HOST", 1, 1), sample.number("HOSTS", 20, 5)


@pytest.fixture(scope="module")
def done():
    """What was really done to all hosts: how many steps, by verbs."""
    return Counter()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_what_the_host_had_is_untouched(host, tmp_path, generations, done, seed):
    made = GeneratedHost(seed, host, tmp_path, generations, done)
    try:
        made.make()
        owned = read_facts()
        for step in made.steps():
            made.log.append(f"# {step.__name__}")
            changed = step()
            if changed:
                owned = owned.changed_by(*changed)
            present = read_facts()
            lost = owned.missing_in(present, SET_BY_ADDS)
            story = "\n".join(made.log)
            assert lost == [], (
                f"seed {seed}, {made.generation}, {made.backend}:\n{story}\nlost by {step.__name__}: {lost}"
            )
    finally:
        made.remove()


@pytest.mark.skipif(COUNT < 20, reason="a few hosts need not see everything")
def test_every_verb_did_something(done):
    print(dict(done))
    assert [verb for verb in VERBS if not done[verb]] == []
