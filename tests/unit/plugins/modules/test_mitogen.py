# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What Mitogen needs of a module."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
# Mitogen 0.3.54, NewStylePlanner.marker: without it, it runs the file as a script that cannot import from its package.
MARKER = re.compile(rb"from ansible(_collections|\.module_utils)\.")


@pytest.mark.parametrize("path", sorted(ROOT.glob("plugins/modules/cni_*.py")), ids=lambda path: path.stem)
def test_mitogen_takes_every_module_for_one(path):
    # The whole of cni_report runs on the controller.
    assert MARKER.search(path.read_bytes()) or path.stem == "cni_report"
