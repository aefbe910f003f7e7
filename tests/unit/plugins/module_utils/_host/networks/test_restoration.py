# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import stat

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.networks.conf_host import (
    actions,
    dying_hosts,
    steps,
    text,
    unset,
    unwant,
    want,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

ASIDE = ".podwire-aside"


def test_network_and_file_together_mean_both(conf_host):
    conf_host.put("87-b.conflist", text("b"))
    conf_host.run(want("a"), exclusive=True)
    assert actions(conf_host.run(unset("c", "87-b.conflist"), unset("b", "88-b.conflist"))) == ["none", "none"]
    assert actions(conf_host.run(unset("b", "87-b.conflist"))) == ["restored"]


def test_a_managed_file_goes_when_its_network_is_in_an_unmanaged_one(conf_host):
    conf_host.run(want("b"))
    conf_host.put("87-b.conflist", text("b"))
    plan = conf_host.run(unset("b"))
    assert (steps(plan), actions(plan)) == ([("remove", "10-b.conflist", "safe")], ["removed"])
    assert conf_host.files() == ["87-b.conflist"]


def test_all_that_exclusive_set_aside_and_more_in_one_run(conf_host):
    conf_host.run(want("a"), want("b"))
    conf_host.put("87-c.conflist", text("c"))
    conf_host.run(want("a"), exclusive=True)
    plan = conf_host.run(want("a"), unset("c"), unset("b"), exclusive=True)
    assert steps(plan) == [("restore", "87-c.conflist", "safe"), ("restore", "10-b.conflist", "safe")]
    assert conf_host.files() == ["10-a.conflist", "10-b.conflist", "87-c.conflist"]
    assert sorted(conf_host.manifest().networks) == [
        str(conf_host.conf_dir / name) for name in ("10-a.conflist", "10-b.conflist")
    ]


def test_a_network_of_ours_gives_way_to_the_file_that_was_before(conf_host):
    conf_host.put("87-a.conflist", text("a", mtu=1))
    conf_host.run(want("a"), exclusive=True)
    plan = conf_host.run(unset("a"))
    assert steps(plan) == [("restore", "87-a.conflist", "safe"), ("remove", "10-a.conflist", "safe")]
    assert conf_host.files() == ["87-a.conflist"]
    assert conf_host.manifest().networks == {}


def test_a_network_of_ours_that_replaced_nothing_stays(conf_host):
    conf_host.run(want("a"), want("b", priority=5))
    plan = conf_host.run(unset("a"))
    assert plan.networks == [{"name": "a", "path": str(conf_host.conf_dir / "10-a.conflist"), "action": "none"}]
    assert conf_host.files() == ["05-b.conflist", "10-a.conflist"]


def test_of_several_the_last_one_comes_back(conf_host):
    for mtu in (1, 2):
        conf_host.put("87-b.conflist", text("b", mtu=mtu))
        conf_host.run(want("a"), exclusive=True)
    conf_host.run(unset("b"))
    assert conf_host.read("87-b.conflist") == text("b", mtu=2)
    assert conf_host.files() == ["10-a.conflist", "87-b.conflist", "87-b.conflist" + ASIDE]


# ---- adopted files


def test_the_original_of_an_adopted_file_comes_back(conf_host):
    conf_host.put("87-a.conflist", text("a", mtu=1))
    os.chmod(conf_host.conf_dir / "87-a.conflist", 0o600)
    adopted = conf_host.run(want("a", file="87-a.conflist", bridge="b9")).steps[0]
    assert (adopted.kind, adopted.before, adopted.after) == ("adopt", {"managed": False}, {"managed": True})
    # Two entries may mean one file.
    plan = conf_host.run(unset("a"), unset(file="87-a.conflist"))
    assert (steps(plan), actions(plan)) == ([("restore", "87-a.conflist", "disruptive")], ["restored", "none"])
    assert ['"mtu": 1' in plan.diff()[0][side] for side in ("before", "after")] == [False, True]
    assert conf_host.read("87-a.conflist") == text("a", mtu=1)
    assert stat.S_IMODE(os.stat(conf_host.conf_dir / "87-a.conflist").st_mode) == 0o600
    assert conf_host.manifest().networks == {}
    assert os.listdir(os.path.join(conf_host.state, "objects")) == []


@pytest.mark.parametrize("file", ["10-a.conflist", "87-a.conflist"])
def test_the_original_comes_back_to_its_own_place_and_one_before_it_to_what_gets_free(conf_host, file):
    conf_host.put("10-a.conflist", text("c"))
    conf_host.run(want("b", priority=20), exclusive=True)
    conf_host.put(file, text("a", mtu=1))
    conf_host.run(want("a", file=file))
    conf_host.run(want("a", priority=10))
    both = unset("a"), unset("c"), unset(file=file)
    if file == "10-a.conflist":
        assert conf_host.refused(*both[:2]) == [("file_in_use", "10-a.conflist")]
        return
    plan = conf_host.run(*both)
    assert steps(plan) == [("restore", "87-a.conflist", "safe"), ("restore", "10-a.conflist", "safe")]
    assert conf_host.files() == ["10-a.conflist", "20-b.conflist", "87-a.conflist"]
    assert [conf_host.read(name) for name in ("10-a.conflist", file)] == [text("c"), text("a", mtu=1)]


def test_a_removed_adopted_network_comes_back_with_its_original(conf_host):
    conf_host.put("87-a.conflist", text("a", mtu=1))
    conf_host.run(want("a", file="87-a.conflist"))
    conf_host.run(want("a", priority=10))
    conf_host.run(unwant("a"))
    assert conf_host.files() == ["87-a.conflist" + ASIDE]
    conf_host.run(unset("a"))
    assert conf_host.files() == ["87-a.conflist"]


def test_ours_aside_that_had_an_original_makes_room_for_it(conf_host):
    conf_host.put("87-a.conflist", text("a", mtu=1))
    conf_host.run(want("a", file="87-a.conflist"), want("b"))
    conf_host.run(want("b"), exclusive=True)
    plan = conf_host.run(unset("a"))
    assert steps(plan) == [("restore", "87-a.conflist", "safe")]
    assert conf_host.read("87-a.conflist") == text("a", mtu=1)
    assert conf_host.files() == ["10-b.conflist", "87-a.conflist"]
    assert list(conf_host.manifest().networks) == [str(conf_host.conf_dir / "10-b.conflist")]


def test_a_kept_original_that_is_damaged_is_found_before_anything_is_done(conf_host):
    conf_host.put("87-a.conflist", text("a", mtu=1))
    conf_host.run(want("a", file="87-a.conflist"))
    (name,) = os.listdir(os.path.join(conf_host.state, "objects"))
    with open(os.path.join(conf_host.state, "objects", name), "a") as stream:
        stream.write(" ")
    with fails_with("not_kept", "is damaged"):
        conf_host.plan(unset("a"))


def test_ours_can_go_while_what_was_before_comes_back(conf_host):
    conf_host.put("10-a.conflist", text("a", mtu=1))
    conf_host.put("87-b.conflist", text("b", mtu=1))
    conf_host.run(want("a"), want("b"), exclusive=True)
    plan = conf_host.plan(unset(file="10-a.conflist"), unset(file="87-b.conflist"), unwant("a"), unwant("b"))
    assert ['"mtu": 1' in plan.diff()[0][side] for side in ("before", "after")] == [False, True]
    plan.apply()
    assert actions(plan) == ["restored", "restored", "none", "none"]
    assert conf_host.files() == ["10-a.conflist", "87-b.conflist"]
    assert conf_host.read("10-a.conflist") == text("a", mtu=1)
    assert conf_host.manifest().networks == {}


# ---- what stands in the way


def test_somebody_elses_file_in_the_place_is_not_replaced(conf_host):
    conf_host.put("87-b.conflist", text("b"))
    conf_host.run(want("a"), exclusive=True)
    conf_host.put("87-b.conflist", text("other"))
    assert conf_host.refused(unset("b")) == [("file_in_use", "87-b.conflist")]
    conf_host.put("87-b.conflist", text("b", mtu=5))
    assert actions(conf_host.run(unset("b"))) == ["none"]
    assert conf_host.read("87-b.conflist" + ASIDE) == text("b")


def test_another_network_of_ours_in_the_place_is_not_replaced(conf_host):
    conf_host.put("10-a.conflist", text("b"))
    conf_host.run(want("a"), exclusive=True)
    assert conf_host.refused(unset("b")) == [("file_in_use", "10-a.conflist")]
    conf_host.run(unwant("a"))
    assert actions(conf_host.run(unset("b"))) == ["restored"]


def test_a_network_of_the_same_task_in_the_place_is_not_replaced(conf_host):
    conf_host.put("87-b.conflist", text("b"))
    conf_host.run(want("a"), exclusive=True)
    assert conf_host.refused(want("c", file="87-b.conflist"), unset("b")) == [("file_in_use", "87-b.conflist")]


def test_a_directory_in_the_place_is_not_replaced(conf_host):
    conf_host.put("87-b.conflist", text("b"))
    conf_host.run(want("a"), exclusive=True)
    (conf_host.conf_dir / "87-b.conflist").mkdir()
    assert conf_host.refused(unset("b")) == [("not_regular", "87-b.conflist")]


def test_attached_containers_keep_their_addresses(conf_host):
    conf_host.put("87-a.conflist", text("a", bridge="b9"))
    conf_host.run(want("a"), exclusive=True)
    conf_host.attach("a")
    assert conf_host.refused(unset("a")) == [("attachments_exist", "10-a.conflist")]
    conf_host.run(unset("a"), force=True)
    conf_host.run(want("a", file="87-a.conflist"), force=True)
    assert conf_host.refused(unset("a")) == [("attachments_exist", "87-a.conflist")]


def test_what_went_away_meanwhile_is_told(conf_host):
    conf_host.put("87-b.conflist", text("b"))
    conf_host.run(want("a"), exclusive=True)
    plan = conf_host.plan(unset("b"))
    conf_host.put("87-b.conflist", text("other"))
    with fails_with("changed_meanwhile"):
        plan.apply()
    assert conf_host.read("87-b.conflist") == text("other")
    os.unlink(conf_host.conf_dir / "87-b.conflist")
    os.unlink(conf_host.conf_dir / ("87-b.conflist" + ASIDE))
    assert actions(conf_host.run(unset("b"))) == ["none"]


# ---- crashes


@pytest.mark.parametrize("file", ["10-a.conflist", "87-a.conflist"])
def test_a_crash_while_a_file_from_aside_comes_back(tmp_path, monkeypatch, file):
    crash(tmp_path, monkeypatch, file, lambda conf_host: conf_host.run(want("a"), exclusive=True))


@pytest.mark.parametrize("priority", [None, 10])
def test_a_crash_while_an_original_comes_back(tmp_path, monkeypatch, priority):
    def adopt(conf_host):
        conf_host.run(want("a", file="87-a.conflist"))
        conf_host.run(want("a", priority=priority))

    crash(tmp_path, monkeypatch, "87-a.conflist", adopt)


def crash(tmp_path, monkeypatch, file, replace):
    """Replace a file by ours, and die at every moment while it comes back: nothing is lost, a second try ends it."""
    for host, die in dying_hosts(tmp_path, monkeypatch, 5):
        host.put(file, text("a", mtu=1))
        replace(host)
        die(host.plan(unset("a")).apply)
        live = [host.read(name) for name in host.files() if name.endswith(".conflist")]
        assert live
        assert set(live) <= {text("a"), text("a", mtu=1)}
        if file in host.files() and host.read(file) == text("a", mtu=1):
            # It is somebody else's from the first moment on.
            assert host.refused(want("a", priority=50)) == [("duplicate_name", file)]
        host.run(unset("a"))
        assert host.files() == [file]
        assert host.read(file) == text("a", mtu=1)
        # What has come back is somebody else's, whatever had been interrupted.
        assert host.refused(want("a", priority=50)) == [("duplicate_name", file)]
