# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import caches
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.live import Answer, LiveSet
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.namespaces import Namespaces
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage.candidate import (
    LEASE,
    Candidate,
    FirstSeen,
    GcSettings,
    Judge,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.garbage.gc_host import Host, alive


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
    with pytest.raises(HostError, match=r"cannot write .*/seen: ") as caught:
        FirstSeen(str(tmp_path / "file" / "seen")).note(["a"])
    assert caught.value.code == "seen_not_written"


def test_a_judge_needs_every_reason(tmp_path):
    live = LiveSet([Answer("podman", {"live": None})], {}, Namespaces([]))
    judge = Judge(GcSettings("/c", ["/b"], "/cache"), live, frozenset(), {}, FirstSeen(str(tmp_path / "seen")))
    candidate = Candidate(LEASE, "demo", "x", lambda: None, container_id="dead", since=0.0)
    judge.decide(candidate)
    assert candidate.action == "deleted"


def test_an_address_in_use_is_named_without_its_prefix(tmp_path, monkeypatch):
    gc_host = Host(tmp_path, monkeypatch)
    gc_host.namespaces.append(alive(["10.1.0.5"]))
    live = gc_host._find([caches.CacheContents([])], (), None, None)
    judge = Judge(GcSettings("/c", ["/b"], "/cache"), live, frozenset(), {}, FirstSeen(str(tmp_path / "seen")))
    candidate = Candidate(LEASE, "demo", "x", lambda: None, addresses=["10.1.0.5/24"], since=0.0)
    judge.decide(candidate)
    assert candidate.reason == "address_live"
    assert candidate.evidence == [f"10.1.0.5 is in use in {gc_host.namespaces[-1].name}"]
