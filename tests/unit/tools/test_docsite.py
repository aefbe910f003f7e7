# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""tests/tools/docsite.py: what a page loads from elsewhere. Sphinx says which links and contents are wrong."""

from __future__ import annotations

import docsite
import pytest


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
