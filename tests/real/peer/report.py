# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Says what a run of the comparison found."""

from __future__ import annotations

import reprlib
import typing as t

import cases
from differences import DIFFERENCES, Difference
from model import Case

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 2000
_SHORT.maxlist = _SHORT.maxdict = _SHORT.maxtuple = 50
# So many cases that disagree are shown whole.
_SHOWN = 10


def never_met(outcomes: t.Sequence[t.Any]) -> list[Difference]:
    """Return the documented differences that no case has met."""
    met = set().union(*(outcome.documented for outcome in outcomes))
    return [difference for difference in DIFFERENCES if difference.name not in met]


def show(seed: int, outcomes: t.Sequence[t.Any], seconds: float, everything: bool) -> int:
    """Print everything and return the exit status; `everything`: each documented difference has to be met."""
    outcomes = sorted(outcomes, key=lambda outcome: outcome.name)
    wrong = [outcome for outcome in outcomes if outcome.others]
    for outcome in wrong[:_SHOWN]:
        print(f"\n{outcome.name} disagrees; to repeat it: ./run peer --seed {seed} --case {outcome.name}")
        for one in outcome.others[:4]:
            print(f"  {one.text()}")
    print(f"\nSeed {seed}, {len(outcomes)} cases in {seconds:.0f} s\n")
    print("| category | cases | commands | the same | with a documented difference | other |")
    print("| --- | --- | --- | --- | --- | --- |")
    for category in cases.CATEGORIES:
        _row(category, [outcome for outcome in outcomes if outcome.name.startswith(category + "/")])
    _row("all", outcomes)
    _show_differences(outcomes)
    if wrong:
        print(f"\n{len(wrong)} of {len(outcomes)} cases disagree: {' '.join(outcome.name for outcome in wrong)}")
    unmet = never_met(outcomes) if everything else []
    for difference in unmet:
        print(f"\nNo case has met the documented difference {difference.name!r}: it is gone, or not generated any more")
    return 1 if wrong or unmet else 0


def _row(name: str, outcomes: t.Sequence[t.Any]) -> None:
    other = sum(bool(outcome.others) for outcome in outcomes)
    documented = sum(bool(outcome.documented and not outcome.others) for outcome in outcomes)
    commands = sum(outcome.commands for outcome in outcomes)
    if outcomes:
        same = len(outcomes) - other - documented
        print(f"| {name} | {len(outcomes)} | {commands} | {same} | {documented} | {other} |")


def _show_differences(outcomes: t.Sequence[t.Any]) -> None:
    print("\nDocumented differences (docs/libcni.md), and in how many cases they were met:\n")
    print("| difference | cases |")
    print("| --- | --- |")
    for name in dict.fromkeys(difference.name for difference in DIFFERENCES):
        count = sum(name in outcome.documented for outcome in outcomes)
        if count:
            print(f"| {name} | {count} |")


def show_case(case: Case) -> None:
    """Print what a case is made of."""
    print(f"{case.name}: plugins {' '.join(case.plugins)}")
    for name, content in case.files.items():
        print(f"  {name}: {_SHORT.repr(content)}")
    for name, answers in case.script.items():
        print(f"  {name} answers {_SHORT.repr(answers)}")
    for step in case.steps:
        print(f"  $ {' '.join(map(repr, step.argv))}")
        environment = {**case.env, **step.env}
        print(f"    with {environment} and on stdin {_SHORT.repr(step.stdin)}")
        for name, content in step.files.items():
            print(f"    after writing {name}: {_SHORT.repr(content)}")
