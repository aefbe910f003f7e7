# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

from hypothesis import configuration


def pytest_configure():
    """Put the files of Hypothesis where they end with the namespaces of tests/private.sh.

    It is done here because ansible-test passes neither arguments nor environment variables to pytest.
    """
    if os.uname().nodename == "podwire-private":
        configuration.set_hypothesis_home_dir("/run/home/hypothesis")
