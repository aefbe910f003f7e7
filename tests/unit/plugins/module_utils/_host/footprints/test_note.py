# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Footprints on disk: what was written is read, and what is damaged is never believed."""

from __future__ import annotations

import json
import os
import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints import note
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.note import (
    FOLDER,
    Footprint,
    Notes,
    Recorded,
    forget,
)

KEY = ("demo", "web", "eth0")
IDENTITY = {"boot_id": "b", "dev": 4, "inode": 5, "cookie": None, "processes": 1}
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.lists(st.text(max_size=5) | st.integers(), min_size=1, max_size=4).map(tuple)
OBJECTS = st.dictionaries(
    KEYS,
    st.builds(
        Recorded, VALUES, st.binary(max_size=20), st.integers(0, 99), st.tuples(st.integers(0, 9), st.booleans())
    ),
)


def footprint():
    link = Recorded({"mtu": 1500}, b"\0\1", 3, (2, True))
    return Footprint({("link", "veth1"): link}, {("link", "eth0"): link, ("sysctl", "x"): Recorded("1")}, IDENTITY)


def same(one, other):
    return (one.host, one.inside, one.identity, one.config) == (other.host, other.inside, other.identity, other.config)


@settings(max_examples=50)
@given(OBJECTS, OBJECTS)
def test_what_is_written_is_read(tmp_path_factory, host, inside):
    notes = Notes(str(tmp_path_factory.mktemp("cache")))
    notes.write_attachment(KEY, Footprint(host, inside, IDENTITY))
    assert same(notes.attachment(KEY), Footprint(host, inside, IDENTITY))
    assert notes.damaged == {}


def test_shared_footprints_and_the_order_are_read(tmp_path):
    notes = Notes(str(tmp_path))
    assert (notes.attachment(KEY), notes.network("demo"), notes.host(), notes.order()) == (None, None, None, {})
    notes.write_network("demo", Footprint({("a",): Recorded(1)}, config="digest"))
    notes.write_host(Footprint({("b",): Recorded(2)}))
    notes.write_order({("chain", "x"): ["one", "two"]})
    assert notes.network("demo").config == "digest"
    assert notes.host().host == {("b",): Recorded(2)}
    assert notes.order() == {("chain", "x"): ["one", "two"]}
    assert {oct(path.stat().st_mode & 0o777) for path in tmp_path.rglob("*") if path.is_file()} == {"0o600"}


def paths(folder):
    return sorted(str(path.relative_to(folder / FOLDER)) for path in (folder / FOLDER).rglob("*"))


@pytest.fixture(autouse=True)
def past(tmp_path_factory, monkeypatch):
    """The directory of what was shared before."""
    folder = tmp_path_factory.mktemp("past")
    monkeypatch.setattr(note, "LOCK_PATH", str(folder / "lock"))
    return folder


def test_the_last_attachment_takes_what_was_shared_with_it(tmp_path):
    notes = Notes(str(tmp_path))
    other, third = ("demo", "db", "eth0"), ("more", "db", "eth1")
    for key in (KEY, other, third):
        notes.write_attachment(key, footprint())
    for name in ("demo", "more"):
        notes.write_network(name, Footprint())
    notes.write_host(Footprint())
    notes.write_order({("chain", "x"): ["one"]})
    assert notes.networks() == {"demo", "more"}
    forget(str(tmp_path), KEY)
    forget(str(tmp_path), KEY)
    assert notes.attachment(KEY) is None
    assert notes.network("demo") is not None
    forget(str(tmp_path), other)
    assert notes.network("demo") is None
    assert notes.host() is not None
    forget(str(tmp_path), third)
    assert paths(tmp_path) == ["networks"]
    assert notes.networks() == set()


def test_what_was_shared_is_known_to_the_next_add(tmp_path, past):
    notes, later = Notes(str(tmp_path)), Notes(str(tmp_path), past=True)
    notes.write_attachment(KEY, footprint())
    notes.write_network("demo", Footprint({("a",): Recorded(1)}))
    notes.write_host(Footprint())
    notes.write_order({("chain", "x"): ["one"]})
    forget(str(tmp_path), KEY)
    assert later.network("demo").host == {("a",): Recorded(1)}
    assert later.host() is not None and later.order() == {("chain", "x"): ["one"]}
    assert Notes(str(tmp_path / "other"), past=True).network("demo") is None
    notes.write_network("demo", Footprint({("b",): Recorded(2)}))
    assert later.network("demo").host == {("b",): Recorded(2)}
    assert {oct(path.stat().st_mode & 0o777) for path in past.rglob("*") if path.is_file()} == {"0o600"}


def test_what_was_shared_may_be_lost(tmp_path, past):
    (past / "footprints").write_text("no folder")
    notes = Notes(str(tmp_path))
    notes.write_attachment(KEY, footprint())
    notes.write_network("demo", Footprint())
    forget(str(tmp_path), KEY)
    assert notes.network("demo") is None
    assert Notes(str(tmp_path), past=True).network("demo") is None


def test_nothing_is_forgotten_where_nothing_was_recorded(tmp_path):
    forget(str(tmp_path), KEY)
    assert list(tmp_path.iterdir()) == []


def test_another_boot(tmp_path, monkeypatch):
    Notes(str(tmp_path)).write_attachment(KEY, footprint())
    monkeypatch.setattr(note, "boot_id", lambda: "another")
    notes = Notes(str(tmp_path))
    assert notes.attachment(KEY) is None
    assert notes.damaged == {}


def file(folder):
    return folder / FOLDER / "attachments" / "demo" / "web-eth0"


def rewrite(folder, change):
    data = json.loads(zlib.decompress(file(folder).read_bytes()))
    change(data)
    file(folder).write_bytes(zlib.compress(json.dumps(data).encode()))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(version=2),
        lambda data: data.update(path="attachments/demo/db-eth0"),
        lambda data: data.pop("host"),
        lambda data: data.update(host=3),
        lambda data: data.update(host=[[[], 1, "", 0, [0, False]]]),
        lambda data: data.update(host=[[["a", {}], 1, "", 0, [0, False]]]),
        lambda data: data.update(host=[[["a"], 1, "!", 0, [0, False]]]),
        lambda data: data.update(host=[[["a"], 1, "", "x", [0, False]]]),
        lambda data: data.update(host=[[["a"], 1, "", 0, []]]),
        lambda data: data.update(identity="x"),
        lambda data: data.update(config=None),
    ],
)
def test_a_damaged_footprint_is_a_problem_and_no_error(tmp_path, change):
    notes = Notes(str(tmp_path))
    notes.write_attachment(KEY, footprint())
    rewrite(tmp_path, change)
    assert notes.attachment(KEY) is None
    assert "is damaged" in notes.damaged[KEY]


def test_no_mutation_is_an_error(tmp_path):
    notes = Notes(str(tmp_path))
    notes.write_attachment(KEY, footprint())
    good, chance = file(tmp_path).read_bytes(), random.Random(3)
    text = zlib.decompress(good)
    for number in range(400):
        raw = bytearray(good if number % 2 else text)
        for _change in range(chance.randrange(1, 4)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        cut = bytes(raw[: chance.randrange(len(raw) + 1)]) if number % 5 == 0 else bytes(raw)
        file(tmp_path).write_bytes(cut if number % 2 else zlib.compress(cut))
        notes.attachment(KEY)


def test_a_bomb_is_refused(tmp_path):
    notes = Notes(str(tmp_path))
    notes.write_attachment(KEY, footprint())
    file(tmp_path).write_bytes(zlib.compress(bytes(64 * 1024 * 1024)))
    assert notes.attachment(KEY) is None
    assert "is damaged" in notes.damaged[KEY]


def test_links_are_not_followed(tmp_path):
    notes = Notes(str(tmp_path))
    notes.write_attachment(KEY, footprint())
    file(tmp_path).rename(tmp_path / "elsewhere")
    file(tmp_path).symlink_to(tmp_path / "elsewhere")
    assert notes.attachment(KEY) is None
    assert "cannot read" in notes.damaged[KEY]


def test_names_cannot_leave_the_directory(tmp_path):
    notes = Notes(str(tmp_path))
    key = ("..", "../../x", "/etc")
    notes.write_attachment(key, footprint())
    assert same(notes.attachment(key), footprint())
    assert {path.name for path in tmp_path.iterdir()} == {FOLDER}


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / FOLDER).write_text("")
    with pytest.raises(HostError, match="cannot write") as caught:
        Notes(str(tmp_path)).write_attachment(KEY, footprint())
    assert caught.value.code == "record_unwritable"


def test_a_killed_write_leaves_the_old_footprint(tmp_path, monkeypatch):
    notes = Notes(str(tmp_path))
    notes.write_attachment(KEY, footprint())

    def die(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", die)
    with pytest.raises(HostError, match="No space left"):
        notes.write_attachment(KEY, Footprint())
    assert same(notes.attachment(KEY), footprint())


def test_the_owners_of_damaged_files_are_told(tmp_path):
    """Whatever is in their place."""
    notes = Notes(str(tmp_path))
    root = tmp_path / FOLDER
    notes.write_attachment(KEY, footprint())
    notes.write_network("demo", footprint())
    notes.write_order({("chain", "x"): ["one"]})
    paths = [root / "order", root / "networks" / "demo", root / "attachments" / "demo" / "web-eth0"]
    for path in paths:
        path.unlink()
    paths[0].mkdir()
    paths[1].symlink_to(tmp_path / "victim")
    os.mkfifo(paths[2])
    assert notes.attachment(KEY) is notes.network("demo") is None
    assert notes.order() == {}
    assert list(notes.damaged) == [KEY, ("demo",), ()]
    assert not (tmp_path / "victim").exists()
