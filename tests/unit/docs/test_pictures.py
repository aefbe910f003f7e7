# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of a terminal load nothing and name no path of a machine. Each picture is on a page, described in words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
IMAGES = ROOT / "docs" / "images"
PAGES = [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"))]
LOADS = re.compile(r"@import|@font-face|<(?:image|script|foreignObject)\b|url\((?!#)[^)]*|href=[\"'](?!#)[^\"']*")
# /home/ops is the directory of the examples.
PATHS = re.compile(r"/(?:root|tmp|var/tmp|work|srv|home(?!/ops/))/[\w./-]+")


def unwanted(svg):
    return [*LOADS.findall(svg), *PATHS.findall(svg)]


@pytest.mark.parametrize("picture", sorted(IMAGES.glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_of_a_terminal_loads_nothing_and_names_no_machine(picture):
    assert unwanted(picture.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("picture", sorted(IMAGES.iterdir()), ids=lambda path: path.name)
def test_a_picture_is_on_a_page_and_described(picture):
    assert any(re.search(rf"!\[[^]]+\]\([./]*images/{re.escape(picture.name)}\)", page) for page in PAGES)


@pytest.mark.parametrize(
    ("svg", "expected"),
    [
        ('<g clip-path="url(#line-1)"><use href="#a"/>/home/ops/cni-report/report.html /opt/cni/bin', []),
        ('@font-face { src: url("https://example.com/a.woff") }', ["@font-face", 'url("https://example.com/a.woff"']),
        ('<image href="a.png"/>', ["<image", 'href="a.png']),
        ("/tmp/podwire-1/fleet/inventory.yml in /home/me/x", ["/tmp/podwire-1/fleet/inventory.yml", "/home/me/x"]),
    ],
)
def test_what_is_unwanted(svg, expected):
    assert unwanted(svg) == expected
