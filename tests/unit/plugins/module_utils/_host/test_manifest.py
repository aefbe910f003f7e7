# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.planner import known_archive
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.store import FoundPlugin, Store
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.info import conf
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with


@pytest.fixture
def state(tmp_path):
    return str(tmp_path / "state")


def test_what_is_saved_is_read_again_and_private(state):
    manifest = Manifest(state)
    manifest.networks["/etc/cni/net.d/10-a.conflist"] = {"network": "a", "sha256": "x", "original": None}
    manifest.save()
    assert Manifest(state).networks == manifest.networks
    assert stat.S_IMODE(os.stat(state).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(os.path.join(state, "manifest.json")).st_mode) == 0o600


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"[]", b'{"version": 1}', b'{"version": 1, "networks": 3}'),
        *(b"[" * 100000, b"\xff", b"null", b"1e999", b"9" * 5000),
    ],
)
def test_a_damaged_manifest_is_not_overwritten_but_named(state, text):
    os.mkdir(state, 0o700)
    path = os.path.join(state, "manifest.json")
    Path(path).write_bytes(text)
    error = Manifest(state).error
    assert error.code == "manifest_damaged"
    assert path in error.msg


@pytest.mark.parametrize(
    "text", ['{"version": 2, "networks": {}, "binaries": {}, "archives": {}}', '{"version": 1e999}']
)
def test_a_manifest_of_a_later_release_is_refused(state, text):
    os.mkdir(state, 0o700)
    Path(state, "manifest.json").write_text(text)
    assert Manifest(state).error.code == "manifest_version"


def test_a_state_directory_open_to_others_is_refused(state):
    os.mkdir(state)
    os.chmod(state, 0o755)
    manifest = Manifest(state)
    with fails_with("unsafe_permissions") as caught:
        manifest.save()
    assert f"chmod 0700 {state}" in caught.value.msg
    # To change the mode of what a link leads to would make it worse.
    os.rename(state, f"{state}.moved")
    os.symlink(f"{state}.moved", state)
    for words in ("it is a link; move the directory that it leads to here", "it is a file; move it away"):
        with pytest.raises(HostError, match=words) as caught:
            manifest.save()
        assert (caught.value.code, "chmod" in caught.value.msg) == ("unsafe_permissions", False)
        os.unlink(state)
        with open(state, "w"):
            pass


def test_a_kept_file_comes_back_whole_and_goes_when_nobody_refers_to_it(state, tmp_path):
    original = tmp_path / "bridge"
    original.write_bytes(b"\x7fELF old")
    original.chmod(0o755)
    manifest = Manifest(state)
    kept = manifest.keep(str(original))
    manifest.binaries["/opt/cni/bin/bridge"] = {
        "sha256": "new",
        "archive": "a",
        "history": [{"origin": "original", **kept}],
    }
    manifest.archives.update({"a": {"bridge": "new"}, "b": {}})
    manifest.prune()
    original.unlink()
    assert kept["mode"] == 0o755
    with manifest.kept(kept["sha256"]) as stream:
        assert stream.read() == b"\x7fELF old"
    assert list(manifest.archives) == ["a"]
    manifest.binaries.clear()
    manifest.prune()
    with fails_with("not_kept"):
        manifest.kept(kept["sha256"])


def test_a_link_is_not_followed_into_the_store(state, tmp_path):
    (tmp_path / "secret").write_text("x")
    os.symlink(str(tmp_path / "secret"), str(tmp_path / "link"))
    with pytest.raises((HostError, OSError)):
        Manifest(state).keep(str(tmp_path / "link"))


def test_the_directory_above_the_state_is_private_too(tmp_path):
    Manifest(str(tmp_path / "podwire" / "state")).save()
    assert stat.S_IMODE(os.stat(str(tmp_path / "podwire")).st_mode) == 0o700


def shapes(value):
    """Yield copies of a JSON value in each of which one part has another type, or is half of a surrogate pair."""
    for key in value:
        for other in (None, True, 7, "\ud800", "a\0b", [], ["\ud800"], {}, [1], {"a": 1}):
            yield key, dict(value, **{key: other})
        if isinstance(value[key], dict):
            for place, inner in shapes(value[key]):
                yield f"{key}/{place}", dict(value, **{key: inner})


def test_a_manifest_of_the_right_json_and_the_wrong_shape_is_damaged_or_can_be_used(state, tmp_path):
    """Whatever is in the place of one value: it is said to be damaged, or what works with it finds what it needs."""
    plain = {"sha256": "0" * 64, "mode": 420, "uid": 0, "gid": 0}
    kept = {**plain, "archive": None, "cni_versions": ["1.0.0"]}
    path = str(tmp_path / "a.conflist")
    sound = {
        "version": 1,
        "networks": {
            path: {"network": "a", "sha256": "1" * 64, "original": {**plain, "path": path}, "yields": "2" * 64}
        },
        "binaries": {
            "/b/x": {
                "sha256": "1" * 64,
                "archive": "3" * 64,
                "cni_versions": ["1.0.0"],
                "gone": False,
                "history": [{"origin": "original", "link": "y"}, {"origin": "managed", **kept}],
            }
        },
        "archives": {"3" * 64: {"sha512": "4" * 128, "plugins": {"x": "1" * 64}}},
        "aside": {path + ".aside": {"path": path, "network": "a", "managed": {"network": "a", "sha256": "5" * 64}}},
        "versions": {"/b/x": {"identity": "1:2", "cni_versions": ["1.0.0"], "sha256": "1" * 64, "release": "1"}},
    }
    os.makedirs(state, 0o700)
    os.makedirs(os.path.join(state, "objects"), 0o700)
    damaged = 0
    for place, value in [("", sound), *shapes(sound)]:
        Path(state, "manifest.json").write_text(json.dumps(value))
        manifest = Manifest(state)
        if manifest.error is not None:
            assert manifest.error.code in ("manifest_damaged", "manifest_version") and place, place
            manifest.error.msg.encode("utf-8")
            damaged += 1
            continue
        store = Store("/b", manifest)
        for kind in (FoundPlugin("file", "1" * 64, 420), FoundPlugin("link", link="y")):
            entry = store.entry("x")
            kind.is_managed(entry)
            store.cni_versions("x", kind)
            for record in (entry or {}).get("history", ()):
                kind.is_exactly(record)
        known_archive(manifest, "sha512", "4" * 128)
        manifest.network_file(path, b"text")
        conf.aside(str(tmp_path), manifest)
        manifest.save()
        manifest.prune()
    assert damaged > 200


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_a_manifest_that_is_no_file_is_unreadable(state, make):
    os.makedirs(state, 0o700)
    make(os.path.join(state, "manifest.json"))
    assert Manifest(state).error.code == "manifest_unreadable"


def test_a_kept_file_that_is_gone(state):
    manifest = Manifest(state)
    manifest.save()
    with fails_with("not_kept", r"the kept file .* is gone: No such file"):
        manifest.kept("0" * 64)
    assert not manifest.has_kept("0" * 64)


def test_what_cannot_be_kept(state, tmp_path):
    manifest = Manifest(state)
    with fails_with("unreadable", r"cannot read .*/none to keep it"):
        manifest.keep(str(tmp_path / "none"))
    os.mkfifo(tmp_path / "pipe")
    with fails_with("not_regular", "is not a regular file, so it cannot be kept"):
        manifest.keep(str(tmp_path / "pipe"))


def test_what_an_interrupted_write_left_is_removed(state, tmp_path):
    manifest = Manifest(state)
    # Nothing is there yet.
    manifest.remove_stale_temps()
    (tmp_path / "file").write_text("x")
    digest = manifest.keep(str(tmp_path / "file"))["sha256"]
    for folder in (state, os.path.join(state, "objects")):
        with open(os.path.join(folder, ".x.podwire-tmp"), "w"):
            pass
    manifest.remove_stale_temps()
    assert os.listdir(os.path.join(state, "objects")) == [digest]
    assert ".x.podwire-tmp" not in os.listdir(state)
    assert manifest.has_kept(digest)
