# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Plugins in the folder of a network: all four states of each change, and what ``cni_info`` says of them."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.tests.host.networks import network

TUNING = {"type": "tuning", "sysctl": {"net.core.somaxconn": "500"}}
MORE = {"type": "tuning", "sysctl": {"net.core.somaxconn": "900"}}


def drop(file, plugin):
    return {"file": file, "plugin": plugin}


@pytest.fixture
def shown(host, conf_dir):
    """Return a function that gives the drop-ins of network ``drop``, and the managed ones of them, by cni_info."""

    def look():
        (row,) = host.run("cni_info")["conf"]
        prefix = f"{conf_dir}/drop/"
        assert all(path.startswith(prefix) for path in row["drop_ins"])
        return [[path[len(prefix) :] for path in row[key]] for key in ("drop_ins", "managed_drop_ins")]

    return look


def test_drop_ins_are_created_changed_and_removed_beside_one_by_hand(conf_dir, change, shown):
    change([network("drop")], ["create"], ["created"])
    folder = conf_dir / "drop"
    folder.mkdir()
    (folder / "15-hand.conf").write_text('{"type": "portmap"}\n')
    by_hand = (folder / "15-hand.conf").stat()

    both = [drop("10-tune.conf", TUNING), drop("20-last.conf", {"type": "portmap"})]
    made = change([network("drop", drop_ins=both)], ["create", "create", "write"], ["updated"])
    assert {step["class"] for step in made.run["actions"]} == {"safe"}
    assert json.loads((folder / "10-tune.conf").read_text()) == TUNING
    assert shown() == [["10-tune.conf", "15-hand.conf", "20-last.conf"], ["10-tune.conf", "20-last.conf"]]

    changed = change([network("drop", drop_ins=[drop("10-tune.conf", MORE), both[1]])], ["write"] * 2, ["updated"])
    assert "900" in changed.run["diff"][0]["after"]
    assert "500" in changed.run["diff"][0]["before"]

    # Without the option they stay; with an empty list, those that are managed go.
    kept = change([network("drop", version="0.4.0")], ["write"], ["updated"])
    unmanaged = [entry["file"] for entry in kept.run["problems"] if entry["code"] == "drop_in"]
    assert unmanaged == [f"{folder}/15-hand.conf"]
    assert shown()[1] == ["10-tune.conf", "20-last.conf"]
    change([network("drop", version="0.4.0", drop_ins=[])], ["remove", "remove", "write"], ["updated"])
    assert shown() == [["15-hand.conf"], []]

    change([network("drop", version="0.4.0", drop_ins=both)], ["create", "create", "write"], ["updated"])
    change([{"name": "drop", "state": "absent"}], ["remove"] * 3, ["removed"])
    assert sorted(path.name for path in folder.iterdir()) == ["15-hand.conf"]
    now = (folder / "15-hand.conf").stat()
    assert (now.st_ino, now.st_mtime_ns) == (by_hand.st_ino, by_hand.st_mtime_ns)
