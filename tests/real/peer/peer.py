# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Runs generated cases through Go's libcni and this collection's, and compares: peer.py DRIVER RECORDER [options].

Prints the agreement by category, the documented differences that were met, and every other difference with the command
that repeats its case. The exit status is 1 if there was one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
import typing as t
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
# mutants.py tries others.
sys.path.insert(
    0, os.environ.get("PEER_MODULE_UTILS") or os.path.join(HERE, "..", "..", "..", "plugins", "module_utils")
)

import cases  # noqa: E402
import report  # noqa: E402
from compare import Disagreement, disagreements  # noqa: E402
from differences import DIFFERENCES, expect, explain  # noqa: E402
from sides import go_side, turns  # noqa: E402


@dataclass
class Outcome:
    """What came of a case: the names of documented differences, and what else was different."""

    name: str
    commands: int
    documented: set[str] = field(default_factory=set)
    others: list[Disagreement] = field(default_factory=list)


def run_case(args: argparse.Namespace, name: str, root: str) -> Outcome:
    """Run one case on both sides, one after the other in the same place, so that no path differs."""
    case = cases.make(args.seed, name)
    outcome = Outcome(name, len(case.steps))
    for number, turn in enumerate(turns(case, go_side(args.driver), root, args.recorder)):
        expected, documented = expect(turn)
        outcome.documented |= documented
        for one in disagreements(number, expected, turn.python):
            reason = explain(one)
            if reason:
                outcome.documented |= reason
            else:
                outcome.others.append(one)
    return outcome


# So many cases of a category are run at most, and at once, to meet a difference.
_PATIENCE = 320
_BATCH = 16

_settings: t.Any = None


def _start_worker(args: argparse.Namespace, directory: str) -> None:
    global _settings
    _settings = args, os.path.join(directory, str(os.getpid()), "case")


def _work(name: str) -> Outcome:
    args, root = _settings
    return run_case(args, name, root)


def _run_all(args: argparse.Namespace, names: list[str], directory: str) -> list[Outcome]:
    outcomes: list[Outcome] = []
    with multiprocessing.get_context("fork").Pool(os.cpu_count(), _start_worker, (args, directory)) as pool:
        for outcome in pool.imap_unordered(_work, names):
            outcomes.append(outcome)
            if args.stop and outcome.others:
                break
    return outcomes


def _run_until_met(args: argparse.Namespace, directory: str, outcomes: list[Outcome]) -> None:
    """Run more cases of those categories in which a documented difference is met that has not been met so far.

    So a short run tests every difference, too, and one that is never met is found.
    """
    number = -(-args.cases // len(cases.CATEGORIES))
    for first in range(number, number + _PATIENCE, _BATCH):
        categories = dict.fromkeys(difference.category for difference in report.never_met(outcomes))
        names = [f"{category}/{index}" for category in categories for index in range(first, first + _BATCH)]
        outcomes += _run_all(args, names, directory)


def _test_documentation() -> None:
    with open(os.path.join(HERE, "..", "..", "..", "docs", "libcni.md"), encoding="utf-8") as file:
        text = " ".join(file.read().split())
    missing = [difference.name for difference in DIFFERENCES if difference.name not in text]
    if missing:
        raise SystemExit(f"docs/libcni.md does not name the differences: {', '.join(missing)}")


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(prog="./run peer", allow_abbrev=False)
    parser.add_argument("driver")
    parser.add_argument("recorder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--category", choices=list(cases.CATEGORIES), action="append")
    parser.add_argument("--case", metavar="CATEGORY/N", help="run this one and show what it is")
    parser.add_argument("--stop", action="store_true", help="stop at the first case that disagrees")
    args = parser.parse_args()
    _test_documentation()
    names = [args.case] if args.case else cases.names(args.cases, args.category or list(cases.CATEGORIES))
    if args.case:
        report.show_case(cases.make(args.seed, args.case))
    begun = time.monotonic()
    # In memory: Go's libcni does not wait for the disk, ours does, and neither is what is compared.
    with tempfile.TemporaryDirectory(prefix="podwire-peer.", dir="/dev/shm") as directory:
        outcomes = _run_all(args, names, directory)
        everything = not (args.case or args.category)
        if everything:
            _run_until_met(args, directory, outcomes)
    return report.show(args.seed, outcomes, time.monotonic() - begun, everything)


if __name__ == "__main__":
    sys.exit(main())
