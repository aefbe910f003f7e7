# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What tests/host/cni_netns cannot bring about."""

from __future__ import annotations

import sys
import types

from ansible_collections.podwire.cni.plugins.module_utils._host import named_netns
from ansible_collections.podwire.cni.plugins.module_utils._host.lock import run_locked
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with, raising


def test_what_the_library_raises_becomes_one_sentence(tmp_path, monkeypatch):
    fake = types.ModuleType("pyroute2")
    fake.netns = types.ModuleType("pyroute2.netns")
    fake.netns.create = raising(OSError(28, "No space left on device"))
    monkeypatch.setitem(sys.modules, "pyroute2", fake)
    monkeypatch.setitem(sys.modules, "pyroute2.netns", fake.netns)
    monkeypatch.setattr(named_netns, "NETNS_DIR", str(tmp_path))
    lock = str(tmp_path / "lock" / "lock")
    with fails_with("create_failed") as caught:
        run_locked(lambda: named_netns.plan_netns(["web"], True), "test", 5, False, path=lock)
    assert caught.value.msg.endswith("No space left on device")
