# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The host of the planner's tests."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.networks.conf_host import Host


@pytest.fixture
def conf_host(tmp_path, monkeypatch):
    return Host(tmp_path, monkeypatch)
