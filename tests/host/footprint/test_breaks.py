# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Every object of a footprint is broken, one at a time, found by enumeration of the footprint, and repaired in place.

All breaks take half an hour, so by default each kind is broken once. ``PODWIRE_BREAKS=all`` breaks everything;
``PODWIRE_BREAKS=NUMBER`` chooses other ones.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections import Counter

import pytest

from ansible_collections.podwire.cni.tests.host.footprint import damage, pictures
from ansible_collections.podwire.cni.tests.host.footprint.chains import BOTH, CHAINS
from ansible_collections.podwire.cni.tests.host.footprint.site import OUTSIDE, SILENCE, links
from ansible_collections.podwire.cni.tests.host.host import with_iptables
from ansible_collections.podwire.cni.tests.tools import sample

WANTED = os.environ.get("PODWIRE_BREAKS", "0")
ALL = WANTED == "all"
# These have rules of iptables, which may be legacy ones.
LEGACY = ("portmap", "portmap-dual", "firewall", "ptp-masq", "full")
# In a sample, one chain may not take all kinds that many have.
LEAST_OF_A_SAMPLE, MOST_OF_A_SAMPLE = 2, sample.number("KINDS", 8, 4)
# Each costs a new site.
MOST_PROBLEMS = 12
MOST_LINES = 6
PUT_BACK = [{"kind": "put_back"}]


def cases():
    choice = random.Random(WANTED)
    found = []
    for chain in CHAINS.values():
        possible = [(generation, "nft") for generation in chain.generations]
        if chain.name in LEGACY:
            possible += [(generation, "legacy") for generation in chain.generations]
        found += [(chain.name, *one) for one in (possible if ALL else [choice.choice(possible)])]
    if not ALL:
        choice.shuffle(found)
    return [
        pytest.param(*case, id="-".join(case), marks=pytest.mark.xdist_group(f"breaks-{generation}"))
        for generation in BOTH
        for case in found
        if case[1] == generation
    ]


@pytest.fixture(scope="session")
def done():
    """The kinds of breaks that were tried, to break each of them once."""
    return set()


@pytest.fixture
def environment(work):
    """The environment of a host whose command iptables is of a kind."""

    def make(kind):
        return {"PATH": with_iptables(kind, work / f"path-{kind}")}

    return make


class Trial:
    """One chain of one generation: the site, and what was counted."""

    def __init__(self, new_site, chain, generation, environment):
        self._make = lambda: new_site(chain, generation, environment)
        self.counted = Counter()
        self.problems = []
        self.renew()

    def renew(self):
        """Make the site, with a container that is attached."""
        self.site = self._make()
        self.container = self.site.add_container("ctr")
        self.site.attach()
        self.site.connect()
        untouched = self.site.run(check_mode=True)
        assert quiet(untouched), json.dumps(untouched, indent=1)
        self.breaks = damage.breaks(self.container)
        self.picture = self.site.picture()
        self.others = self._others()

    def _others(self):
        outer = {name: index for name, index in links().items() if name.startswith("pwf-")}
        return self.site.other_rules(), outer, links(OUTSIDE)

    def run(self, number):
        """Break one object and repair it. Returns whether the site is as before."""
        one = self.breaks[number]
        problems = self._problems(one)
        if problems:
            text = "\n    ".join([one.what[:300], *problems])
            print(text, flush=True)
            self.problems.append(text)
        return not problems and one.in_place

    def _problems(self, one):
        time.sleep(SILENCE)
        try:
            one.do()
        except (OSError, AssertionError, subprocess.CalledProcessError) as error:
            return [f"cannot be broken: {error}"]
        self.counted["breaks"] += 1
        try:
            return self._repair(one)
        except AssertionError as error:
            # A module has printed something else than its result, such as a traceback.
            return [f"crashed: {error}"]

    def _repair(self, one):
        seen = self.site.call(check_mode=True)
        problems = []
        if drifted(seen):
            self.counted["seen"] += 1
        else:
            problems.append(f"not seen: {brief(seen)}")
        repaired = self.site.call(on_drift="repair")
        problems += traceback_in(seen, repaired)
        if not one.in_place:
            # What was made by a program or hardware comes back by DEL and ADD, or not at all, which is said.
            if repaired.get("failed"):
                return (
                    problems
                    if self.site.chain.name == "host-device"
                    else [*problems, f"not repaired: {brief(repaired)}"]
                )
            after = self.site.call(check_mode=True)
            return problems if quiet(after) else [*problems, f"drift is left: {brief(after)}"]
        if repaired.get("failed") or any(step["parts"] != PUT_BACK for step in repaired["actions"]):
            problems.append(f"not repaired in place: {brief(repaired)}")
        after = self.site.call(check_mode=True)
        if not quiet(after):
            problems.append(f"drift is left: {brief(after)}")
        if one.others:
            self.site.put_other_rules()
        changed = pictures.differences(self.picture, self.site.picture())
        if changed:
            more = [f"and {len(changed) - MOST_LINES} more"] if len(changed) > MOST_LINES else []
            problems.append("not as before: " + "; ".join([*changed[:MOST_LINES], *more]))
        if not problems:
            self.counted["repaired"] += 1
        dead = self.site.dead()
        self.counted["alive"] += not dead
        others = self._others()
        if others != self.others:
            problems.append(f"others changed: {self.others} {others}")
        return problems + [f"connection {text}" for text in dead]


def quiet(result):
    """Tell whether nothing was reported."""
    rows = result.get("attachments", [])
    drift = [text for text in result.get("warnings", []) if "drifted" in text]
    return not (result.get("failed") or result["changed"] or result["actions"] or drift) and {
        row["action"] for row in rows
    } == {"none"}


def drifted(result):
    """Tell whether drift was reported, and nothing failed.

    An attachment whose interface is gone is not reported but attached again, or put back in place.
    """
    warned = any("drifted" in text for text in result.get("warnings", []))
    gone = any(row["reason"] == "interface" for row in result.get("attachments", []))
    return not result.get("failed") and (warned or gone)


def traceback_in(*results):
    return ["a traceback"] if "Traceback" in json.dumps(results) else []


def brief(result):
    rows = [(row["action"], row["reason"], row["error"]) for row in result.get("attachments", [])]
    return json.dumps([result.get("msg"), rows, result.get("actions"), result.get("warnings")])[:1500]


@pytest.mark.parametrize(("chain", "generation", "backend"), cases())
def test_what_breaks_is_seen_and_repaired_in_place(
    new_site, chain, generation, backend, environment, done, record_property
):
    trial = Trial(new_site, chain, generation, environment(backend))
    chosen = choose(trial.breaks, done)
    for place, number in enumerate(chosen):
        before = len(trial.breaks)
        if trial.run(number):
            continue
        if len(trial.problems) > MOST_PROBLEMS:
            trial.problems.append(f"given up, with {len(chosen) - place - 1} breaks not tried")
            break
        if place + 1 < len(chosen):
            trial.renew()
            assert len(trial.breaks) == before, "the footprint is another one than at first"
    count = trial.counted
    record_property(
        "breaks",
        (
            generation if backend == "nft" else f"{generation}, {backend}",
            chain,
            damage.objects(trial.container) if not trial.problems else "?",
            count["breaks"],
            count["seen"],
            count["repaired"],
            len(trial.site.connections),
            count["alive"],
        ),
    )
    if trial.problems:
        pytest.fail("\n".join(trial.problems), pytrace=False)


def choose(breaks, done):
    """Return the numbers of the breaks to try: kinds that were not tried yet, and at least some."""
    if ALL:
        return list(range(len(breaks)))
    choice = random.Random(WANTED)
    new = {}
    for number, one in enumerate(breaks):
        if one.kind not in done:
            new.setdefault(one.kind, number)
    numbers = set(choice.sample(sorted(new.values()), min(len(new), MOST_OF_A_SAMPLE)))
    if len(numbers) < LEAST_OF_A_SAMPLE:
        numbers.update(choice.sample(range(len(breaks)), min(len(breaks), LEAST_OF_A_SAMPLE)))
    done.update(breaks[number].kind for number in numbers)
    return sorted(numbers)
