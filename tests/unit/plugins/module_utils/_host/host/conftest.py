# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.host.whole_host import WholeHost


@pytest.fixture
def whole(tmp_path, monkeypatch):
    """An empty host."""
    return WholeHost(tmp_path, monkeypatch)
