# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The titles of tasks and plays: short, and what happens to the host."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
FILES = sorted([*ROOT.glob("playbooks/*.yml"), *ROOT.glob("playbooks/tasks/*.yml"), *ROOT.glob("roles/*/tasks/*.yml")])
LONGEST = 60
# Not what a task does, or words of nobody else.
REFUSED = ("Have", "Refuse", "Note", "Look", "Let", "Tell")


def titles(entries):
    for entry in entries or []:
        yield entry["name"]
        for part in ("tasks", "pre_tasks", "block", "rescue", "always"):
            yield from titles(entry.get(part))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_titles_are_short_and_begin_with_a_verb(path):
    for title in titles(yaml.safe_load(path.read_text(encoding="utf-8"))):
        assert len(title) <= LONGEST and title[0].isupper(), title
        assert title.split()[0] not in REFUSED, title
