# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Every link from a page of the collection to another file, or to a heading, leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PLACES = ("*.md", "conformance/*.md", "docs/**/*.md", "examples/**/*.md", "roles/**/README.md")
PAGES = sorted(page for place in PLACES for page in ROOT.glob(place))


def without_code(text):
    return re.sub(r"^[ \t]*```.*?^[ \t]*```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text):
    """Return the anchors that GitHub makes of the headings."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", without_code(text), re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        number = 0
        while f"{anchor}-{number}" in found or (not number and anchor in found):
            number += 1
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


def broken(page, text):
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", without_code(text)))
    for link in links:
        path, _hash, anchor = link.partition("#")
        if "://" in link:
            continue
        target = page.parent / path
        if not target.exists():
            yield f"{link}: there is no such file"
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8") if path else text):
            yield f"{link}: there is no such heading"


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links(page):
    assert list(broken(page, page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One `two` *three*\n\n[x](#one-two-three)", 0),
        ("## Same\n\n## Same\n\n[x](#same) [y](#same-1)", 0),
        ("[x](README.md) and [y](docs/errors.md#error-codes)", 0),
        ("[x](https://example.com/gone)", 0),
        ("`[x](gone.md)`\n\n```\n[x](gone.md)\n```", 0),
        ("[x](gone.md)", 1),
        ("[x](#gone)", 1),
        ("[x](docs/errors.md#gone)", 1),
        ("```\n# In code\n```\n\n[x](#in-code)", 1),
    ],
)
def test_what_is_broken(text, expected):
    assert len(list(broken(ROOT / "a page.md", text))) == expected
