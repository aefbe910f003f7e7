# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The host of the planner's tests."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.binaries.plugin_host import Host


@pytest.fixture
def plugin_host(tmp_path, monkeypatch):
    made = Host(tmp_path)
    made.patch(monkeypatch)
    return made
