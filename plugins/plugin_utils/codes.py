# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The error codes of the collection, each with cause, evidence and remedy: codes.py CODE... explains some.

The table is in the files of ``_codes``, one for each section of the documentation, which is generated from them. It is
for the controller; managed hosts do not get it. Nothing here needs Ansible.
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

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_codes")
# In the order of the documentation.
FILES = (
    *("options", "host", "binaries", "conflists", "manifests", "runtimes", "namespaces", "attachments", "trials"),
    *("garbage", "syntax", "schema", "access", "plugins", "directory", "readiness"),
)


class Entry(NamedTuple):
    """Codes with a common meaning in one section. *level* is a remark, such as ``warning``."""

    codes: tuple[str, ...]
    level: str
    cause: str
    evidence: str
    remedy: str


class Section(NamedTuple):
    """A section of the codes: ``heading`` of ``page`` has them as a table, docs/errors/``name``.md in full."""

    name: str
    page: str
    heading: str
    title: str
    entries: tuple[Entry, ...]


def sections() -> Iterator[Section]:
    """Read the table."""
    for name in FILES:
        with open(os.path.join(FOLDER, f"{name}.toml"), "rb") as stream:
            data = tomllib.load(stream)
        entries = tuple(
            Entry(tuple(row["codes"]), row.get("level", ""), row["cause"], row["evidence"], row["remedy"])
            for row in data["entries"]
        )
        yield Section(name, data["page"], data["heading"], data["title"], entries)


def explained(code: str) -> str:
    """Return the text for a terminal about *code*. Raises KeyError if there is no such code."""
    found = [(section, entry) for section in sections() for entry in section.entries if code in entry.codes]
    if not found:
        raise KeyError(code)
    parts = []
    for section, entry in found:
        parts.append(f"{code} ({section.title}{', ' + entry.level if entry.level else ''})")
        for label, text in (("cause", entry.cause), ("evidence", entry.evidence), ("remedy", entry.remedy)):
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
            parts.append(
                textwrap.fill(f"{label + ':':10}{plain}", 100, initial_indent="  ", subsequent_indent=" " * 12)
            )
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
