# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The error codes of the collection, each with cause and remedy: codes.py CODE... explains some.

The table is in ``codes.toml``, a line for codes with a common meaning; the tables of the documentation are generated
from it. It is for the controller; managed hosts do not get it. Nothing here needs Ansible.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tomllib

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "codes.toml")


class Entry(NamedTuple):
    """Codes with a common meaning in one section. *level* is a remark, such as ``warning``."""

    codes: tuple[str, ...]
    cause: str
    remedy: str
    level: str = ""


class Section(NamedTuple):
    """A section of the codes: ``heading`` of ``page`` has them as a table. ``title`` is for a terminal."""

    page: str
    heading: str
    title: str
    entries: tuple[Entry, ...]


def sections() -> Iterator[Section]:
    """Read the table."""
    with open(TABLE, "rb") as stream:
        data = tomllib.load(stream)
    for section in data["sections"]:
        entries = tuple(Entry(tuple(names.split()), *row) for names, row in section["codes"].items())
        yield Section(section["page"], section["heading"], section.get("title", section["heading"]), entries)


def explained(code: str) -> str:
    """Return the text for a terminal about *code*. Raises KeyError if there is no such code."""
    entries = [(section, entry) for section in sections() for entry in section.entries if code in entry.codes]
    if not entries:
        raise KeyError(code)
    parts = []
    for section, entry in entries:
        parts.append(f"{code} ({section.title}{', ' + entry.level if entry.level else ''})")
        for label, text in (("cause", entry.cause), ("remedy", entry.remedy)):
            # A word in brackets, such as "(how)", says nothing without the page that it leads to.
            paths = re.sub(r"\(\[[^]]*\]\(([^)#]*)[^)]*\)\)", r"(docs/\1)", text)
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", paths)
            parts.append(textwrap.fill(f"{label + ':':8}{plain}", 100, initial_indent="  ", subsequent_indent=" " * 10))
    return "\n".join(parts)


def main(words: Sequence[str]) -> int:
    known = sorted({code for section in sections() for entry in section.entries for code in entry.codes})
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
