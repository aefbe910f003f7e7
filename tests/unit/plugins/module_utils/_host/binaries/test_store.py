# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries import store as plugin_store
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.store import FoundPlugin, Store
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest, identity, is_settled

SECOND = 10**9


@pytest.fixture
def bin_dir(tmp_path):
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin"


@pytest.fixture
def manifest(tmp_path):
    return Manifest(str(tmp_path / "state"))


@pytest.fixture
def reads(monkeypatch):
    """The number of times that a file was read to hash it."""
    counted = []
    real = plugin_store.digest_of
    monkeypatch.setattr(plugin_store, "digest_of", lambda stream: counted.append(1) or real(stream))
    return counted


def test_everything_that_can_stand_there_is_told_apart(bin_dir, manifest):
    (bin_dir / "file").write_bytes(b"x")
    (bin_dir / "file").chmod(0o750)
    (bin_dir / "link").symlink_to("file")
    (bin_dir / "folder").mkdir()
    store = Store(str(bin_dir), manifest)
    found = store.find("file")
    assert (found.kind, found.mode, found.uid) == ("file", 0o750, os.getuid())
    assert store.find("link")[0] == "link" and store.find("link").link == "file"
    assert store.find("folder").kind == "other"
    assert store.find("none").kind == "missing"
    assert store.names() == ["file"]
    assert Store(str(bin_dir / "none"), manifest).names() == []


def test_a_remembered_file_is_not_read_again_until_it_changes(bin_dir, manifest, reads, monkeypatch):
    path = bin_dir / "bridge"
    path.write_bytes(b"old!")
    now = plugin_store.time.time_ns()
    monkeypatch.setattr(plugin_store.time, "time_ns", lambda: now + 10 * SECOND)
    store = Store(str(bin_dir), manifest)
    digest = store.find("bridge").sha256
    store.learn("bridge", digest, ["1.0.0"])
    manifest.versions.update(store.learned)
    assert len(reads) == 1
    again = Store(str(bin_dir), manifest)
    assert again.find("bridge").sha256 == digest
    assert again.cni_versions("bridge", again.find("bridge")) == ["1.0.0"]
    assert len(reads) == 1 and again.learned == {}
    path.write_bytes(b"new!")
    assert Store(str(bin_dir), manifest).find("bridge").sha256 != digest
    assert len(reads) == 2


def test_a_file_that_changed_just_now_is_not_remembered(bin_dir, manifest, monkeypatch):
    path = bin_dir / "bridge"
    path.write_bytes(b"x")
    monkeypatch.setattr(plugin_store.time, "time_ns", lambda: os.stat(str(path)).st_ctime_ns + 1)
    store = Store(str(bin_dir), manifest)
    store.learn("bridge", store.find("bridge").sha256, ["1.0.0"])
    assert store.learned == {}


class Times:
    def __init__(self, mtime, ctime):
        self.st_mtime_ns, self.st_ctime_ns = mtime, ctime
        self.st_ino = self.st_size = 1


@pytest.mark.parametrize(
    "mtime, ctime, now, settled",
    [
        (5, 5, 5 + 20 * 10**6, False),
        (5, 5, 6 + 20 * 10**6, True),
        (9 * SECOND + 1, 5, 8 * SECOND, False),
        (SECOND, SECOND, 2 * SECOND, False),
        (SECOND, SECOND, 3 * SECOND + 1, True),
    ],
)
def test_a_time_tells_later_changes_only_some_time_after(mtime, ctime, now, settled):
    assert is_settled(Times(mtime, ctime), now) is settled
    assert identity(Times(mtime, ctime)) != identity(Times(mtime, ctime + 1))


def test_what_is_ours_is_told_by_content():
    kept = {"sha256": "old", "mode": 0o755, "uid": 0, "gid": 0}
    foreign = {"sha256": "distro", "mode": 0o755, "uid": 0, "gid": 0}
    entry = {"sha256": "new", "history": [{"origin": "original", **foreign}, {"origin": "managed", **kept}]}
    assert FoundPlugin("file", "new").is_managed(entry)
    assert FoundPlugin("file", "old").is_managed(entry)
    assert not FoundPlugin("file", "distro").is_managed(entry)
    assert not FoundPlugin("file", "distro").is_managed(dict(entry, history=entry["history"][:1]))
    assert not FoundPlugin("link", link="x").is_managed(entry)
    assert not FoundPlugin("missing").is_managed(entry) and not FoundPlugin("file", "new").is_managed(None)


def test_what_is_exactly_there_includes_mode_and_owner():
    kept = {"sha256": "old", "mode": 0o755, "uid": 0, "gid": 0}
    assert FoundPlugin("file", "old", 0o755, 0, 0).is_exactly(kept)
    assert not FoundPlugin("file", "old", 0o700, 0, 0).is_exactly(kept)
    assert FoundPlugin("file", "old", 0o700, 0, 0).is_kept(kept)
    assert FoundPlugin("link", uid=5, link="a").is_exactly({"link": "a"})
    assert not FoundPlugin("link", link="b").is_kept({"link": "a"})
    assert FoundPlugin("missing").is_exactly(None) and not FoundPlugin("missing").is_kept(kept)
