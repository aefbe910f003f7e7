# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Put temporary files where they end with the namespaces of tests/private.sh.

    It is done here because ansible-test passes no arguments to pytest.
    """
    if os.uname().nodename == "podwire-private" and not config.option.basetemp:
        config.option.basetemp = "/run/home/pytest"
