# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from chromium import browser, write
from fleet import fleet


@pytest.fixture(scope="module")
def started():
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The report of a fleet; a file of tests may have one of its own."""
    return write(tmp_path_factory.mktemp("report") / "report.html", fleet(50))
