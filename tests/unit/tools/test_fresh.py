# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""tests/tools/fresh.py: its arguments, commands and sums, without a new system."""

from __future__ import annotations

import json
import os

import fresh
import machine
import pytest
from fresh import Outcome

ALL = ("bookworm", "trixie", "forky")


@pytest.fixture(autouse=True)
def as_root(monkeypatch):
    """Whoever runs the tests, commands have no sudo, and the environment has no proxy."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in fresh._PROXIES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("command", "output", "status", "expected"),
    [
        ("test", "skipped: peer: no Go\n7 passed, 0 failed, 1 skipped", 0, (7, 0, ["trixie: peer: no Go"])),
        ("test", "7 passed, 2 failed, 0 skipped", 1, (7, 2, [])),
        # What comes before the last line is the output of a test.
        ("test", "9 passed, 0 failed, 0 skipped\nKilled", 137, (0, 1, [])),
        ("test", "7 passed, 0 failed, 0 skipped", 1, (7, 1, [])),
        ("test", "", 0, (0, 1, [])),
        ("demo", "  [ok] one\n  [ok] two\n\nAll checks passed.", 0, (2, 0, [])),
        ("demo", "  [ok] one\n  [FAILED] two", 1, (1, 1, [])),
        ("demo", "  [ok] one\nfatal", 1, (1, 1, [])),
        ("demo", "All checks passed.", 0, (0, 1, [])),
    ],
)
def test_what_a_command_printed_is_counted(command, output, status, expected):
    outcome = Outcome("trixie", "root", command)
    fresh.count(outcome, output.splitlines(), status)
    assert (outcome.passed, outcome.failed, outcome.skipped) == expected


def run_main(tmp_path, monkeypatch, capsys, words, tried):
    """Call main, which gets these outcomes instead of running commands; return its status, output and counts."""
    monkeypatch.setattr(fresh, "try_suite", tried)
    status = fresh.main(tmp_path / "results", words)
    return status, capsys.readouterr(), json.loads((tmp_path / "results").read_text())


def test_the_outcomes_of_all_systems_are_added(tmp_path, monkeypatch, capsys):
    def tried(suite, user, commands):
        return [Outcome(suite, user, command, 10, int(suite == "forky"), [f"{suite}: x"]) for command in commands]

    status, printed, counts = run_main(tmp_path, monkeypatch, capsys, ["demo", "test"], tried)
    assert (status, counts) == (
        1,
        {"passed": 60, "failed": 2, "skipped": [f"{suite}: x" for suite in ALL for dummy in range(2)]},
    )
    assert printed.out.count("| 10, 1 failed |") == 2 and printed.out.count("| 10 |") == 4


def test_a_system_that_cannot_be_made_fails_and_the_others_are_tried(tmp_path, monkeypatch, capsys):
    def tried(suite, user, commands):
        if suite == "bookworm":
            raise machine.Unavailable("no mirror")
        yield Outcome(suite, user, "demo", 3)

    status, printed, counts = run_main(tmp_path, monkeypatch, capsys, [], tried)
    assert (status, counts) == (1, {"passed": 6, "failed": 1, "skipped": []})
    assert printed.err == "no mirror\n"
