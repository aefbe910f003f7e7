# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The tables of Go's cases in the documentation name tests that exist, and count right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGES = Path(__file__).parents[6] / "docs" / "contributing" / "libcni_go_tests"
OVERVIEW = (PAGES / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"\| (?P<case>[^|].*) \| (?:`(?P<file>[\w/]+\.py)::(?P<test>\w+)`(?: \(.+\))?|does not apply: .+) \|")


def sections(pages="*.md"):
    """The file that a heading names, the number there, and the lines of the table below it."""
    for page in sorted(PAGES.glob(pages)):
        for part in page.read_text(encoding="utf-8").split("\n## ")[1:]:
            heading, _blank, _names, _line, *rows = part.strip().split("\n")
            name, number = heading.rsplit(": ", 1)
            yield name, int(number), rows


@pytest.mark.parametrize(
    ("name", "number", "rows"), list(sections()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_case_has_a_test_or_a_reason(name, number, rows):
    assert len(rows) == number
    for row in rows:
        match = ROW.fullmatch(row)
        assert match, row
        if match["file"]:
            source = (TESTS / match["file"]).read_text(encoding="utf-8")
            assert re.search(rf"^def {match['test']}\(", source, re.MULTILINE), row


def test_totals():
    rows = [row for _name, _number, found in sections() for row in found]
    covered = sum(bool(ROW.fullmatch(row)["file"]) for row in rows)
    assert f"{len(rows)} cases, of which {covered} are covered and {len(rows) - covered} do not apply" in OVERVIEW


def test_the_overview_counts_the_cases_of_every_page():
    listed = dict(re.findall(r"^\| \[.+\]\((.+)\) \| .+ \| (\d+) \|$", OVERVIEW, re.MULTILINE))
    pages = {page.name for page in PAGES.glob("*.md")} - {"README.md"}
    assert listed == {page: str(sum(number for _name, number, _rows in sections(page))) for page in pages}
