# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""tests/tools/docsite.py: the source of the site, without Sphinx; the session docsite builds it."""

from __future__ import annotations

import re
import sys
import zlib
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


def test_every_module_page_leads_to_its_options():
    for module in (docsite.ROOT / "plugins" / "modules").glob("cni_*.py"):
        assert f"({docsite.COLLECTION}/{module.stem}_module.rst)" in SITE.text(DOCS / f"{module.stem}.md")


def test_the_source_has_every_page_once(tmp_path):
    SITE.write(tmp_path)
    made = {path.relative_to(tmp_path).with_suffix("").as_posix() for path in tmp_path.rglob("*.md")}
    assert made == set(SITE.pages.values())


def test_the_inventory(tmp_path):
    docsite.write_inventory(tmp_path / "inv", "# a comment\nlabel a/b.html#c\n")
    head, body = (tmp_path / "inv").read_bytes().split(b"zlib.\n")
    assert head.startswith(b"# Sphinx inventory version 2\n")
    assert zlib.decompress(body) == b"label std:label -1 a/b.html#c label\n"


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


def test_the_labels_are_written_once():
    labels = re.findall(r"^(\S+) \S+$", (docsite.DOCSITE / "ansible-labels.txt").read_text(), re.MULTILINE)
    assert labels == sorted(set(labels))


def test_a_generated_page_has_no_list_of_its_headings(tmp_path):
    page = tmp_path / "cni_conf_module.rst"
    page.write_text("Title\n=====\n\n.. contents::\n   :local:\n   :depth: 1\n\nSynopsis\n--------\n\n- text\n")
    docsite.without_contents(tmp_path)
    assert page.read_text() == "Title\n=====\n\n\nSynopsis\n--------\n\n- text\n"
