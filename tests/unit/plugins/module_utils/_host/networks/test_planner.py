# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import stat

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.networks.conf_host import (
    actions,
    steps,
    text,
    unwant,
    want,
)


def test_a_deleted_file_comes_back_under_its_name(conf_host):
    conf_host.run(want("a", priority=30))
    os.unlink(conf_host.conf_dir / "30-a.conflist")
    assert steps(conf_host.run(want("a"))) == [("create", "30-a.conflist", "safe")]


def test_a_file_of_another_directory_gives_no_name(conf_host):
    manifest = conf_host.manifest()
    for folder in ("aaa.d", "zzz.d"):
        path = str(conf_host.conf_dir.parent / folder / "30-a.conflist")
        manifest.networks[path] = {"network": "a", "sha256": "", "original": None}
    manifest.save()
    assert steps(conf_host.run(want("a")))[-1] == ("create", "10-a.conflist", "safe")


def test_another_priority_or_file_renames(conf_host):
    conf_host.run(want("a"))
    plan = conf_host.run(want("a", priority=20))
    assert (steps(plan), actions(plan)) == ([("rename", "10-a.conflist", "safe")], ["renamed"])
    assert conf_host.files() == ["20-a.conflist"]
    assert conf_host.run(want("a")).steps == []
    plan = conf_host.run(want("a", file="z.conflist", mtu=9))
    assert steps(plan) == [("rename", "20-a.conflist", "safe"), ("write", "z.conflist", "safe")]
    assert actions(plan) == ["renamed"]
    assert conf_host.read("z.conflist") == text("a", mtu=9)
    assert list(conf_host.manifest().networks) == [str(conf_host.conf_dir / "z.conflist")]


def test_our_second_file_of_one_network_goes(conf_host):
    conf_host.run(want("a"))
    manifest = conf_host.manifest()
    manifest.networks[str(conf_host.conf_dir / "20-a.conflist")] = {"network": "a", "sha256": "", "original": None}
    manifest.save()
    conf_host.put("20-a.conflist", text("a"))
    assert steps(conf_host.run(want("a"))) == [("remove", "20-a.conflist", "safe")]


# ---- files of others


def test_a_foreign_file_with_the_name_is_refused_and_named(conf_host):
    conf_host.put("87-a.conflist", text("a"))
    assert conf_host.refused(want("a")) == [("duplicate_name", "87-a.conflist")]
    with pytest.raises(HostError, match=r"file: 87-a.conflist"):
        conf_host.plan(want("a"))
    conf_host.put("50-a.conf", b'{"type": "bridge", "name": "a"}')
    assert sorted(conf_host.refused(want("a"), levels=())) == [
        ("duplicate_name", "50-a.conf"),
        ("duplicate_name", "87-a.conflist"),
    ]


def test_what_can_be_done_about_a_foreign_file_of_the_network(conf_host):
    conf_host.put("50-a.conf", b'{"type": "bridge", "name": "a"}')
    text = r"cannot be adopted because it is a link or not a \.conflist; replace it with 'replace: true'"
    with pytest.raises(HostError, match=text):
        conf_host.plan(want("a"), levels=())


def test_a_foreign_file_is_adopted_when_it_is_named(conf_host):
    conf_host.put("87-a.conflist", text("a", mtu=1))
    plan = conf_host.run(want("a", file="87-a.conflist"))
    assert steps(plan) == [("adopt", "87-a.conflist", "safe"), ("write", "87-a.conflist", "safe")]
    assert actions(plan) == ["adopted"]
    entry = conf_host.manifest().networks[str(conf_host.conf_dir / "87-a.conflist")]
    with conf_host.manifest().kept(entry["original"]["sha256"]) as kept:
        assert kept.read() == text("a", mtu=1)


def test_an_equal_foreign_file_is_adopted_without_a_write(conf_host):
    conf_host.put("87-a.conflist", text("a"))
    os.chmod(conf_host.conf_dir / "87-a.conflist", 0o644)
    assert steps(conf_host.run(want("a", file="87-a.conflist"))) == [("adopt", "87-a.conflist", "safe")]
    assert steps(conf_host.run(want("a"))) == []


def test_ours_moves_onto_an_adopted_file(conf_host):
    conf_host.run(want("a"))
    conf_host.put("87-a.conflist", text("a", mtu=1))
    assert conf_host.refused(want("a")) == [("duplicate_name", "87-a.conflist")]
    plan = conf_host.run(want("a", file="87-a.conflist"))
    assert [step[0] for step in steps(plan)] == ["adopt", "rename"]
    assert conf_host.files() == ["87-a.conflist"]
    assert conf_host.manifest().networks[str(conf_host.conf_dir / "87-a.conflist")]["original"]


def test_an_original_is_kept_while_ours_moves_and_changes(conf_host):
    conf_host.put("87-a.conflist", text("a", mtu=1))
    conf_host.run(want("a", file="87-a.conflist"))
    conf_host.run(want("a", priority=10, mtu=2))
    entry = conf_host.manifest().networks[str(conf_host.conf_dir / "10-a.conflist")]
    with conf_host.manifest().kept(entry["original"]["sha256"]) as kept:
        assert kept.read() == text("a", mtu=1)
    conf_host.run(unwant("a"))
    assert conf_host.read("87-a.conflist.podwire-aside") == text("a", mtu=1)


def test_two_originals_are_both_kept(conf_host):
    conf_host.put("10-a.conflist", text("a", mtu=1))
    conf_host.run(want("a", file="10-a.conflist"))
    conf_host.put("20-a.conflist", text("a", mtu=2))
    conf_host.run(want("a", file="20-a.conflist"))
    assert conf_host.files() == ["10-a.conflist.podwire-aside", "20-a.conflist"]
    assert conf_host.read("10-a.conflist.podwire-aside") == text("a", mtu=1)


def test_a_foreign_file_where_ours_belongs_is_left_alone(conf_host):
    conf_host.put("10-a.conflist", text("other"))
    assert conf_host.refused(want("a")) == [("foreign_file", "10-a.conflist")]
    assert conf_host.refused(want("a", file="10-a.conflist")) == [("file_in_use", "10-a.conflist")]
    assert actions(conf_host.run(want("a", file="10-a.conflist"), force=True)) == ["adopted"]


def test_a_broken_foreign_file_can_be_adopted(conf_host):
    conf_host.put("10-a.conflist", b"")
    assert conf_host.refused(want("a"), levels=()) == [("foreign_file", "10-a.conflist")]
    assert actions(conf_host.run(want("a", file="10-a.conflist"))) == ["adopted"]


def test_links_and_directories_of_others_are_not_replaced(conf_host, tmp_path):
    conf_host.conf_dir.mkdir()
    (tmp_path / "target").write_bytes(text("b"))
    (conf_host.conf_dir / "10-a.conflist").symlink_to(tmp_path / "target")
    (conf_host.conf_dir / "10-c.conflist").mkdir()
    assert conf_host.refused(want("a", file="10-a.conflist"), want("c"), force=True) == [
        ("not_regular", "10-a.conflist"),
        ("not_regular", "10-c.conflist"),
    ]


def test_the_file_of_one_network_can_become_anothers(conf_host):
    conf_host.run(want("a", file="main.conflist"))
    assert set(conf_host.refused(want("b", file="main.conflist"), want("a"))) == {("file_in_use", "main.conflist")}
    plan = conf_host.run(want("b", file="main.conflist"))
    assert steps(plan) == [("write", "main.conflist", "disruptive")]
    assert conf_host.manifest().networks[str(conf_host.conf_dir / "main.conflist")]["network"] == "b"


def test_a_removed_network_makes_room_for_another_in_one_run(conf_host):
    conf_host.run(want("a", file="main.conflist"))
    plan = conf_host.run(want("b", file="main.conflist"), unwant("a"))
    assert steps(plan) == [("remove", "main.conflist", "disruptive"), ("create", "main.conflist", "safe")]
    assert actions(plan) == ["created", "removed"]
    assert conf_host.read("main.conflist") == text("b")


def test_two_networks_cannot_share_a_file(conf_host):
    assert conf_host.refused(want("a", file="x.conflist"), want("b", file="x.conflist")) == [
        ("file_in_use", "x.conflist")
    ]
    conf_host.run(want("a", file="10-b.conflist"))
    assert set(conf_host.refused(want("b"), want("a", file="10-b.conflist"))) == {("file_in_use", "10-b.conflist")}
    assert conf_host.refused(want("b")) == [("file_in_use", "10-b.conflist")]


# ---- absent


def test_absent_removes_ours_and_only_ours(conf_host):
    conf_host.run(want("a"), want("b"))
    plan = conf_host.run(unwant("a"), unwant("never"))
    assert (steps(plan), actions(plan)) == ([("remove", "10-a.conflist", "disruptive")], ["removed", "none"])
    assert plan.networks[1]["path"] is None
    assert conf_host.files() == ["10-b.conflist"]
    assert list(conf_host.manifest().networks) == [str(conf_host.conf_dir / "10-b.conflist")]


def test_absent_where_nothing_is_does_nothing(conf_host):
    plan = conf_host.run(unwant("a"))
    assert (steps(plan), actions(plan)) == ([], ["none"])
    assert not conf_host.conf_dir.exists() and not os.path.exists(conf_host.state)


def test_absent_leaves_a_foreign_file_unless_forced(conf_host):
    conf_host.put("87-a.conflist", text("a"))
    assert conf_host.refused(unwant("a")) == [("foreign_file", "87-a.conflist")]
    plan = conf_host.run(unwant("a"), force=True)
    assert steps(plan) == [("set_aside", "87-a.conflist", "disruptive")]
    assert conf_host.files() == ["87-a.conflist.podwire-aside"]
    aside = str(conf_host.conf_dir / "87-a.conflist.podwire-aside")
    assert conf_host.manifest().aside == {aside: {"path": str(conf_host.conf_dir / "87-a.conflist"), "network": "a"}}
    conf_host.put("87-a.conflist", text("a", mtu=2))
    conf_host.run(unwant("a"), force=True)
    assert conf_host.files() == ["87-a.conflist.2.podwire-aside", "87-a.conflist.podwire-aside"]


def test_absent_of_an_adopted_network_brings_the_original_back_aside(conf_host):
    conf_host.put("87-a.conflist", text("a", mtu=1))
    os.chmod(conf_host.conf_dir / "87-a.conflist", 0o600)
    conf_host.run(want("a", file="87-a.conflist"))
    conf_host.run(unwant("a"))
    assert conf_host.files() == ["87-a.conflist.podwire-aside"]
    assert conf_host.read("87-a.conflist.podwire-aside") == text("a", mtu=1)
    assert stat.S_IMODE(os.stat(conf_host.conf_dir / "87-a.conflist.podwire-aside").st_mode) == 0o600
    assert os.listdir(os.path.join(conf_host.state, "objects")) == []


def kinds(some):
    return [step.kind for step in some]


def configured():
    return [
        {"action": "configured", "restart": True},
        {"action": "none", "restart": False},
        {"action": "a new one", "restart": True},
    ]


def test_the_rows_of_a_plan_with_steps_left_out(conf_host):
    conf_host.run(want("a"))
    plan = conf_host.plan(want("a"), want("b"))
    plan.configured = configured()
    assert plan.judged is not None
    plan.leave_out([step for step in plan.steps if step.kind == "create"])
    assert (actions(plan), steps(plan)) == (["none", "left"], [])
    assert plan.configured == [
        {"action": "left", "restart": False},
        {"action": "none", "restart": False},
        {"action": "left", "restart": False},
    ]
    assert plan.judged is None


def test_a_plan_with_nothing_left_out_keeps_its_rows(conf_host):
    plan = conf_host.plan(want("a"))
    plan.configured = configured()
    assert plan.judged is not None
    plan.leave_out([])
    assert (actions(plan), plan.configured) == (["created"], configured())
    assert plan.judged is not None


def test_removals_at_the_end_are_put_off(conf_host):
    conf_host.run(want("a"), want("b"), want("c"))
    conf_host.put("87-x.conflist", text("x"))
    plan = conf_host.plan(want("a"), want("b", mtu=9), unwant("c"), exclusive=True)
    assert kinds(plan.steps) == ["write", "remove", "set_aside"]
    assert kinds(plan.defer_removals()) == ["remove", "set_aside"]
    plan.apply()
    assert conf_host.files() == ["10-a.conflist", "10-b.conflist", "10-c.conflist", "87-x.conflist"]
    assert [step.state for step in plan.steps] == ["done", "planned", "planned"]
    plan.apply_deferred()
    assert conf_host.files() == ["10-a.conflist", "10-b.conflist", "87-x.conflist.podwire-aside"]
    assert {step.state for step in plan.steps} == {"done"}
