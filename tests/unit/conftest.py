# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest
from hypothesis import configuration


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Put files of the tests where they end with the namespaces of tests/private.sh.

    It is done here because ansible-test passes neither arguments nor environment variables to pytest.
    """
    if os.uname().nodename == "podwire-private":
        config.option.basetemp = config.option.basetemp or "/run/home/pytest"
        configuration.set_hypothesis_home_dir("/run/home/hypothesis")
