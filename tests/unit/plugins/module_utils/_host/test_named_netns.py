# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import sys
import types

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import named_netns
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.lock import run_locked
from ansible_collections.podwire.cni.plugins.module_utils._host.netns import Seen
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.explained import explained, reasons


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A directory in which a file with the text "namespace" plays a namespace, and a pyroute2 that makes such files."""
    path = tmp_path / "netns"
    path.mkdir()

    def look(wanted):
        return {
            name: Seen({"inode": 1} if os.path.isfile(name) and open(name).read() == "namespace" else None)
            for name in wanted
        }

    def create(name):
        # In bytes, because pyroute2 encodes a text as ASCII.
        assert isinstance(name, bytes)
        with open(name, "x") as stream:
            stream.write("namespace")

    fake = types.ModuleType("pyroute2")
    fake.netns = types.ModuleType("pyroute2.netns")
    fake.netns.create = create
    fake.netns.remove = os.unlink
    monkeypatch.setitem(sys.modules, "pyroute2", fake)
    monkeypatch.setitem(sys.modules, "pyroute2.netns", fake.netns)
    monkeypatch.setattr(named_netns, "NETNS_DIR", str(path))
    monkeypatch.setattr(named_netns, "look", look)
    return path


def apply(folder, names, present=True):
    lock = str(folder.parent / "lock" / "lock")
    return explained(run_locked(lambda: named_netns.plan_netns(names, present), "test", 5, False, path=lock))


def actions(plan):
    return [row["action"] for row in plan.rows]


def test_made_once_and_removed_once(folder):
    plan = apply(folder, ["web", "db"])
    assert actions(plan) == ["created", "created"]
    assert reasons(plan) == ["does not exist"] * 2
    assert plan.rows[0] == {"name": "web", "path": str(folder / "web"), "action": "created"}
    plan = apply(folder, ["db", "web"])
    assert (actions(plan), plan.changed) == (["none", "none"], False)
    plan = apply(folder, ["db", "web"], present=False)
    assert actions(plan) == ["removed", "removed"]
    assert {step.step_class for step in plan.steps} == {"disruptive"}
    assert reasons(plan) == ["state is absent"] * 2
    assert os.listdir(folder) == []
    assert not apply(folder, ["db"], present=False).changed


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_a_dead_namespace_left_is_replaced_or_removed(folder, kind):
    def leave():
        if kind == "file":
            (folder / "web").write_text("")
        else:
            (folder / "web").symlink_to("/proc/0/ns/net")

    leave()
    plan = apply(folder, ["web"])
    assert actions(plan) == ["created"]
    assert plan.diff()[0]["before"] == {"is": "leftover"}
    assert plan.diff()[0]["after"] == {"is": "namespace"}
    assert reasons(plan) == ["the file is there, but its namespace is gone"]
    (folder / "web").unlink()
    leave()
    plan = apply(folder, ["web"], present=False)
    assert [(step.kind, step.step_class) for step in plan.steps] == [("remove", "safe")]
    assert os.listdir(folder) == []


def test_of_a_link_to_a_namespace_only_the_link_goes(folder):
    (folder / "real").write_text("namespace")
    (folder / "link").symlink_to(folder / "real")
    assert actions(apply(folder, ["link"])) == ["none"]
    assert actions(apply(folder, ["link"], present=False)) == ["removed"]
    assert os.listdir(folder) == ["real"]


def test_anything_else_is_left_alone(folder):
    (folder / "web").mkdir()
    for present in (True, False):
        with pytest.raises(HostError) as caught:
            apply(folder, ["web"], present)
        assert caught.value.code == "not_a_namespace"


def test_bad_and_double_names_are_refused_before_anything_is_made(folder):
    for names, code in ((["web", "../x"], "bad_netns"), (["web", "web"], "duplicate_netns")):
        with pytest.raises(HostError) as caught:
            apply(folder, names)
        assert caught.value.code == code
        assert "names[1]" in caught.value.msg
    assert os.listdir(folder) == []


def test_what_the_library_raises_becomes_one_sentence(folder, monkeypatch):
    def create(name):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys.modules["pyroute2.netns"], "create", create)
    with pytest.raises(HostError) as caught:
        apply(folder, ["web"])
    assert caught.value.code == "create_failed"
    assert caught.value.msg.endswith("No space left on device")
