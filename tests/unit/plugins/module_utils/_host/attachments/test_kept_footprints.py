# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Footprints on disk: what was written is read, and what is damaged is never believed."""

from __future__ import annotations

import json
import os
import random

import pytest
from hypothesis import HealthCheck, given as hypothesis_given, settings, strategies as st

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import store
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import ATTACHED, AttachmentStore
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.footprint import Footprint, SharedFootprints
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.objects import KernelObject
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.test_store import (
    IDENTITY,
    KEY,
    given,
    put,
    record_of,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.lists(st.text(max_size=5) | st.integers(), min_size=1, max_size=4).map(tuple)
PEERS = st.tuples(st.integers(0, 9), st.booleans())
OBJECTS = st.dictionaries(
    KEYS, st.builds(KernelObject, VALUES, st.binary(max_size=20), st.integers(0, 99), PEERS, st.just(False))
)


@pytest.fixture(autouse=True)
def run(tmp_path_factory, monkeypatch):
    """The directory of what attachments share."""
    folder = tmp_path_factory.mktemp("run")
    monkeypatch.setattr(store, "LOCK_PATH", str(folder / "lock"))
    monkeypatch.setattr(store, "boot_id", lambda: "b")
    return folder


def footprint():
    link = KernelObject({"mtu": 1500}, b"\0\1", 3, (2, True))
    return Footprint({("link", "veth1"): link}, {("link", "eth0"): link, ("sysctl", "x"): KernelObject("1")}, IDENTITY)


def with_footprint(one, **members):
    attached = given(identity=IDENTITY, **members)
    attached.footprint = one
    return attached


def content(one):
    return None if one is None else (one.host, one.inside, one.identity, one.config)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@hypothesis_given(OBJECTS, OBJECTS)
def test_what_is_written_is_read(tmp_path_factory, host, inside):
    cache_dir = str(tmp_path_factory.mktemp("cache"))
    AttachmentStore(cache_dir).write(with_footprint(Footprint(host, inside, IDENTITY)))
    attached = AttachmentStore(cache_dir).read(KEY).attached
    assert content(attached.footprint) == (host, inside, IDENTITY, "")
    assert attached.changed(netns="").damage == ""


def test_the_footprint_of_another_boot_is_not_known(tmp_path, monkeypatch):
    AttachmentStore(str(tmp_path)).write(with_footprint(footprint()))
    monkeypatch.setattr(store, "boot_id", lambda: "another")
    attached = AttachmentStore(str(tmp_path)).read(KEY).attached
    assert (attached.footprint, attached.damage, attached.identity) == (None, "", IDENTITY)


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["footprint"].update(text="{}"),
        lambda record: record["footprint"].update(digest=3),
        lambda record: record["footprint"].pop("digest"),
        lambda record: record["footprint"].update(text=None),
        lambda record: record["identity"].update(inode=8),
        lambda record: record.update(footprint=[]),
        lambda record: record.update(footprint=None),
    ],
)
def test_a_damaged_footprint_is_told_and_the_rest_is_known(tmp_path, change):
    AttachmentStore(str(tmp_path)).write(with_footprint(footprint()))
    record = json.loads(record_of(tmp_path).read_text())
    change(record)
    record_of(tmp_path).write_text(json.dumps(record))
    attached = AttachmentStore(str(tmp_path)).read(KEY).attached
    assert (attached.footprint, attached.state) == (None, ATTACHED)
    assert attached.damage == f"the footprint in {record_of(tmp_path)} is damaged"


def test_no_mutation_is_an_error(tmp_path):
    AttachmentStore(str(tmp_path)).write(with_footprint(footprint()))
    good, chance = record_of(tmp_path).read_bytes(), random.Random(3)
    for number in range(400):
        raw = bytearray(good)
        for _change in range(chance.randrange(1, 4)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        record_of(tmp_path).write_bytes(raw if number % 5 else raw[: chance.randrange(len(raw) + 1)])
        attached = AttachmentStore(str(tmp_path)).read(KEY).attached
        assert attached is None or content(attached.footprint) in (None, content(footprint()))


def shared_footprints():
    shared = SharedFootprints()
    shared.footprints[("demo",)] = Footprint({("a",): KernelObject(1)}, config="digest")
    shared.footprints[()] = Footprint({("b",): KernelObject(2)})
    shared.order = {("chain", "x"): ["one", "two"]}
    return shared


def test_what_attachments_share_outlives_them(tmp_path, run, monkeypatch):
    one = AttachmentStore(str(tmp_path))
    assert one.read_shared().to_data() == SharedFootprints().to_data()
    one.write(given())
    one.write_shared(shared_footprints())
    one.remove(KEY)
    assert one.read_shared().to_data() == shared_footprints().to_data()
    assert AttachmentStore(str(tmp_path / "other")).read_shared().footprints == {}
    assert {oct(path.stat().st_mode & 0o777) for path in run.rglob("*") if path.is_file()} == {"0o600"}
    monkeypatch.setattr(store, "boot_id", lambda: "another")
    assert (one.read_shared().footprints, one.read_shared().damage) == ({}, "")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"boot_id": "b", "digest": "", "text": "{}"}'])
def test_what_attachments_share_may_be_damaged(tmp_path, content):
    one = AttachmentStore(str(tmp_path))
    one.write_shared(shared_footprints())
    with open(one.shared_path, "wb") as stream:
        stream.write(content)
    shared = one.read_shared()
    assert (shared.footprints, shared.order) == ({}, {})
    assert shared.damage == f"the footprints in {one.shared_path} are damaged"


def test_a_link_in_place_of_what_attachments_share_is_not_followed(tmp_path):
    one = AttachmentStore(str(tmp_path))
    one.write_shared(shared_footprints())
    os.rename(one.shared_path, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", one.shared_path)
    assert "cannot read" in one.read_shared().damage


def test_what_attachments_share_cannot_be_written(tmp_path, run):
    (run / "footprints").write_text("no folder")
    with fails_with("record_unwritable", "cannot write"):
        AttachmentStore(str(tmp_path)).write_shared(SharedFootprints())


def test_which_networks_are_in_use(tmp_path):
    one = AttachmentStore(str(tmp_path))
    assert one.in_use(["demo"]) == set()
    one.write(given(Key("demo-b", "web", "eth0")))
    assert one.in_use(["demo", "demo-b"]) == {(), ("demo-b",)}
    put(tmp_path, "demo-cut-eth0", b"{", "podwire")
    assert one.in_use(["demo"]) == {(), ("demo",)}
