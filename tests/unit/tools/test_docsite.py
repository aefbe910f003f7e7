# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""tests/tools/docsite.py: the source of the site, without Sphinx; the session docsite builds it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "tools"))

import docsite

SITE = docsite.Site()
DOCS = docsite.ROOT / "docs"


@pytest.mark.parametrize(
    ("page", "target", "expected"),
    [
        ("docs/drift.md", "cni_host.md#errors", "cni_host.md#errors"),
        ("docs/drift.md", "../roles/host/README.md", "roles/host.md"),
        ("docs/drift.md", "README.md", "contents.md"),
        ("docs/drift.md", "images/report-1.png", "images/report-1.png"),
        ("docs/drift.md", "#status", "#status"),
        ("docs/drift.md", "https://example.com/a.md", "https://example.com/a.md"),
        ("docs/howto/loopback.md", "../cni_netns.md", "../cni_netns.md"),
        ("docs/howto/pods.md", "../errors.md#host", "../errors.md#host"),
        ("docs/howto/loopback.md", "secrets.md", "secrets.md"),
        ("docs/drift.md", "contributing/style.md", docsite.REPOSITORY + "docs/contributing/style.md"),
        ("docs/drift.md", "../CONTRIBUTING.md#tests", docsite.REPOSITORY + "CONTRIBUTING.md#tests"),
        ("roles/host/README.md", "../networks/README.md", "networks.md"),
        ("roles/host/README.md", "../../docs/drift.md#status", "../drift.md#status"),
        ("docs/docsite/index.md", "../images/report-50.png", "images/report-50.png"),
    ],
)
def test_links(page, target, expected):
    assert SITE.link(docsite.ROOT / page, target) == expected


def test_links_in_code_stay():
    page = DOCS / "drift.md"
    text = "[a](README.md) `[a](README.md)`\n\n```text\n[a](README.md)\n```\n"
    assert SITE._with_links(page, text) == text.replace("[a](README.md) ", "[a](contents.md) ", 1)


def test_the_contents_are_those_of_the_pages():
    """A page that the table of contents does not link would have no place in the navigation."""
    sections = dict(SITE.sections())
    assert list(sections) == ["Tutorial", "How-to guides", "Reference", "Explanation"]
    listed = [name for links in sections.values() for name in links]
    children = {name for name in SITE.pages.values() if name.rpartition("/")[0] in SITE.pages.values()}
    assert sorted(listed) == sorted(set(listed))
    assert {*listed, *children, "index", "contents"} == set(SITE.pages.values())


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<script src="_static/a.js"></script><link rel="stylesheet" href="a.css"><a href="https://example.com">', 0),
        ('<script src="https://example.com/a.js"></script>', 1),
        ('<link rel="stylesheet" href="//example.com/a.css">', 1),
        ('<img src="http://example.com/a.png">', 1),
        ('<link rel="canonical" href="https://example.com/">', 0),
    ],
)
def test_what_a_page_loads_from_elsewhere(tmp_path, html, found):
    (tmp_path / "a.html").write_text(html)
    assert len(docsite.foreign(tmp_path)) == found
