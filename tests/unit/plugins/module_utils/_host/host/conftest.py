# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.host.whole_host import WholeHost


@pytest.fixture
def whole(tmp_path, monkeypatch):
    """An empty host."""
    return WholeHost(tmp_path, monkeypatch)
