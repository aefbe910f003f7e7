# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The error codes of the collection, each with cause and remedy, from the tables of the documentation.

codes.py CODE... explains some; it prints all without one.
"""

from __future__ import annotations

import difflib
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("errors.md", "errors-attachments.md", "validation.md", "node-not-ready.md")


class Entry(NamedTuple):
    """A row of a table: codes with a common meaning. *level* is a remark, such as ``warning``."""

    page: str
    heading: str
    codes: tuple[str, ...]
    level: str
    cause: str
    remedy: str


def entries() -> Iterator[Entry]:
    """Yield the rows of all tables whose first column is the code."""
    for page in PAGES:
        heading, is_table = "", False
        for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
            heading = line.lstrip("# ") if line.startswith("#") else heading
            cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else []
            is_table = bool(cells) and (is_table or cells[0] == "code")
            if is_table and cells[0].startswith("`"):
                names, cause, remedy = cells
                codes, _space, level = names.partition(" (")
                yield Entry(page, heading, tuple(re.findall("`([^`]*)`", codes)), level.rstrip(")"), cause, remedy)


def explained(code: str) -> str:
    """Return the text for a terminal about *code*, "" if there is no such code."""
    parts = []
    for entry in entries():
        if code in entry.codes:
            parts.append(f"{code} (docs/{entry.page}, {entry.heading}{', ' + entry.level if entry.level else ''})")
            for label, text in (("cause", entry.cause), ("remedy", entry.remedy)):
                # A word in brackets, such as "(how)", says nothing without the page that it leads to.
                paths = re.sub(r"\(\[[^]]*\]\(([^)#]*)[^)]*\)\)", r"(docs/\1)", text)
                plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", paths)
                line = f"{label + ':':8}{plain}"
                parts.append(textwrap.fill(line, 100, initial_indent="  ", subsequent_indent=" " * 10))
    return "\n".join(parts)


def main(words: Sequence[str]) -> int:
    known = sorted({code for entry in entries() for code in entry.codes})
    if not words:
        print(*known, sep="\n")
        return 0
    status = 0
    for word in words:
        # As a message has it.
        code = word.strip("[]")
        if code in known:
            print(explained(code))
            continue
        near = difflib.get_close_matches(code, known, 1)
        text = f"there is no code {code!r}; " + (
            f"did you mean {near[0]}?" if near else "without a code, all are listed"
        )
        print(text, file=sys.stderr)
        status = 2
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
