# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import configuration

# Tests of tests/tools import them by their names, as they do each other.
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))


def pytest_configure():
    """Put the files of Hypothesis where they end with the namespaces of tests/private.sh.

    It is done here because ansible-test passes neither arguments nor environment variables to pytest.
    """
    if os.uname().nodename == "podwire-private":
        configuration.set_hypothesis_home_dir("/run/home/hypothesis")
