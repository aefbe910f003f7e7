# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A host on which runtimes are found."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.runtimes.fake_host import FakeHost


@pytest.fixture
def fake_host(tmp_path, monkeypatch):
    return FakeHost(tmp_path, monkeypatch)
