# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

from ansible_collections.podwire.cni.plugins.module_utils._host.garbage.candidate import (
    FirstSeen,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with


def test_the_memory_survives_nonsense(tmp_path):
    path = tmp_path / "seen"
    for text in ("", "[]", '{"a": "x"}', '{"a": 1e30}', "{"):
        path.write_text(text)
        assert FirstSeen(str(path)).age("a") == 0
    FirstSeen(str(path)).note(["a", "b"])
    assert sorted(json.loads(path.read_text())) == ["a", "b"]
    FirstSeen(str(path)).note(["b"])
    assert sorted(json.loads(path.read_text())) == ["b"]


def test_what_is_seen_again_is_not_written_again(tmp_path):
    path = tmp_path / "run" / "seen"
    FirstSeen(str(path)).note(["a"])
    inode = path.stat().st_ino
    again = FirstSeen(str(path))
    again.note(["a"])
    assert path.stat().st_ino == inode
    again.note(["a", "b"])
    assert path.stat().st_ino != inode
    assert os.listdir(path.parent) == ["seen"]
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_what_cannot_be_remembered(tmp_path):
    (tmp_path / "file").write_text("")
    with fails_with("seen_not_written", r"cannot write .*/seen: "):
        FirstSeen(str(tmp_path / "file" / "seen")).note(["a"])
