# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Drop-ins are owned and ordered, and each change of them ends with a write of the network's own file."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.networks.request import WantedNetwork
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import discover
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.runtime import Runtime
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.networks.conf_host import (
    actions,
    dies_at,
    steps,
    text,
    unwant,
)


def plugin(kind="tuning", **keys):
    return (json.dumps({"type": kind, **keys}) + "\n").encode()


def want(name="a", drop_ins=None, file=None, priority=None, **keys):
    return WantedNetwork(name, True, text(name, **keys), file, priority, drop_ins=drop_ins)


TWO = {"10-x.conf": plugin(), "20-y.conf": plugin("portmap")}


def folder(conf_host, name="a"):
    path = conf_host.conf_dir / name
    return sorted(os.listdir(path)) if path.exists() else None


def test_they_are_written_before_the_file_that_makes_runtimes_notice_them(conf_host):
    plan = conf_host.run(want(drop_ins=TWO))
    assert steps(plan) == [
        ("make_directory", "net.d", "safe"),
        ("create", "10-x.conf", "safe"),
        ("create", "20-y.conf", "safe"),
        ("create", "10-a.conflist", "safe"),
    ]
    assert folder(conf_host) == ["10-x.conf", "20-y.conf"]
    assert (conf_host.conf_dir / "a" / "10-x.conf").read_bytes() == plugin()
    assert [path.stat().st_mode & 0o777 for path in (conf_host.conf_dir, conf_host.conf_dir / "a")] == [0o755] * 2


def test_one_that_changes_alone_writes_the_file_once_more(conf_host):
    conf_host.run(want(drop_ins=TWO))
    before = os.stat(conf_host.conf_dir / "10-a.conflist").st_ino
    plan = conf_host.run(want(drop_ins=dict(TWO, **{"10-x.conf": plugin(mtu=1400)})))
    assert steps(plan) == [("write", "10-x.conf", "safe"), ("write", "10-a.conflist", "safe")]
    assert actions(plan) == ["updated"]
    assert os.stat(conf_host.conf_dir / "10-a.conflist").st_ino != before
    assert conf_host.read("10-a.conflist") == text("a")
    # They stay with a file that libcni does not load.
    assert steps(conf_host.run(WantedNetwork("a", True, b"{}"))) == [("write", "10-a.conflist", "disruptive")]


@pytest.mark.parametrize("change", [{"mtu": 1400}, {"priority": 5}], ids=["content", "name"])
def test_a_file_that_is_written_or_renamed_anyway_is_not_written_twice(conf_host, change):
    conf_host.run(want(drop_ins=TWO))
    plan = conf_host.run(want(drop_ins={}, **change))
    assert [kind for kind, _target, _class in steps(plan)].count("write") == int("mtu" in change)
    assert len(plan.steps) == 3


def test_what_is_not_listed_is_removed_and_an_empty_folder_goes(conf_host):
    conf_host.run(want(drop_ins=TWO))
    plan = conf_host.run(want(drop_ins={"20-y.conf": TWO["20-y.conf"]}))
    assert steps(plan) == [("remove", "10-x.conf", "safe"), ("write", "10-a.conflist", "safe")]
    assert "tuning" in plan.steps[0].before
    assert folder(conf_host) == ["20-y.conf"]
    conf_host.run(want(drop_ins={}))
    assert folder(conf_host) is None


def test_an_unmanaged_one_is_never_touched(conf_host):
    (conf_host.conf_dir / "a").mkdir(parents=True)
    (conf_host.conf_dir / "a" / "05-other.conf").write_bytes(plugin("sbr"))
    conf_host.run(want(drop_ins=TWO))
    conf_host.run(want(drop_ins={}))
    assert folder(conf_host) == ["05-other.conf"]
    assert conf_host.refused(want(drop_ins={"05-other.conf": plugin()})) == [("foreign_file", "05-other.conf")]
    conf_host.run(unwant("a"))
    assert folder(conf_host) == ["05-other.conf"]


@pytest.mark.parametrize("edit", [plugin(mtu=9), b"{", b"", None], ids=["edited", "broken", "empty", "lost"])
def test_drift_of_one_is_repaired(conf_host, edit):
    conf_host.run(want(drop_ins=TWO))
    path = conf_host.conf_dir / "a" / "10-x.conf"
    path.unlink() if edit is None else path.write_bytes(edit)
    kind = "create" if edit is None else "write"
    assert steps(conf_host.run(want(drop_ins=TWO))) == [(kind, "10-x.conf", "safe"), ("write", "10-a.conflist", "safe")]


def test_the_same_in_another_layout_is_no_change(conf_host):
    conf_host.run(want(drop_ins=TWO))
    (conf_host.conf_dir / "a" / "10-x.conf").write_bytes(b' {"type":"tuning"}')
    assert conf_host.run(want(drop_ins=TWO)).steps == []


def test_a_removed_network_takes_its_own_with_it(conf_host):
    conf_host.run(want(drop_ins=TWO), want("b", drop_ins=TWO))
    plan = conf_host.run(unwant("a"))
    assert steps(plan) == [
        ("remove", "10-a.conflist", "disruptive"),
        ("remove", "10-x.conf", "safe"),
        ("remove", "20-y.conf", "safe"),
    ]
    assert (folder(conf_host), folder(conf_host, "b")) == (None, ["10-x.conf", "20-y.conf"])
    assert not [path for path in conf_host.manifest().networks if "/a/" in path]


def test_they_are_gone_when_another_network_takes_the_file(conf_host):
    conf_host.run(want(drop_ins=TWO, file="x.conflist"))
    conf_host.run(want("b", file="x.conflist"))
    assert folder(conf_host) is None


def test_those_of_a_network_whose_file_was_deleted_go_with_it(conf_host):
    conf_host.run(want(drop_ins=TWO))
    os.unlink(conf_host.conf_dir / "10-a.conflist")
    conf_host.run(unwant("a"))
    assert folder(conf_host) is None


def test_a_kill_at_any_moment_leaves_what_the_next_run_finishes(conf_host, monkeypatch):
    conf_host.run(want(drop_ins={"10-x.conf": plugin()}))
    wanted = want(drop_ins={"10-x.conf": plugin(mtu=1400), "20-y.conf": plugin("portmap")})
    for moment in range(100):
        conf_host.run(want(drop_ins={"10-x.conf": plugin()}))
        before = os.stat(conf_host.conf_dir / "10-a.conflist").st_ctime_ns
        if not dies_at(moment, monkeypatch, lambda: conf_host.plan(wanted).apply()):
            break
        changed = (conf_host.conf_dir / "a" / "20-y.conf").exists() or b"1400" in (
            conf_host.conf_dir / "a" / "10-x.conf"
        ).read_bytes()
        conf_host.run(wanted)
        assert folder(conf_host) == ["10-x.conf", "20-y.conf"]
        # Runtimes have noticed what was written before the kill.
        assert not changed or os.stat(conf_host.conf_dir / "10-a.conflist").st_ctime_ns > before
    else:
        pytest.fail("it never came to its end")
    assert moment > 10


def test_a_link_in_the_place_of_the_folder_is_refused(conf_host, tmp_path):
    conf_host.run(want())
    (tmp_path / "elsewhere").mkdir()
    (conf_host.conf_dir / "a").symlink_to(tmp_path / "elsewhere")
    plan = conf_host.plan(want(drop_ins=TWO))
    with pytest.raises(Exception, match="is a symbolic link"):
        plan.apply()
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_readable_secret_is_told(conf_host):
    plan = conf_host.plan(want(drop_ins={"10-x.conf": plugin(token="s3cret")}))
    assert [(one.code, os.path.basename(one.file)) for one in plan.problems] == [("readable_secret", "10-x.conf")]


@pytest.fixture
def runtimes(conf_host, monkeypatch):
    """containerd 1.7 and 2.1, and nerdctl 2.1, which contains libcni 1.3 and reads no folder."""
    found = []
    for name, version in (("containerd-1.7", "1.7.24"), ("containerd-2.1", "2.1.9"), ("nerdctl", "2.1.0")):
        found.append(Runtime(name, version, "a running one", str(conf_host.conf_dir), ["/nowhere"]))
    monkeypatch.setattr(discover, "runtimes_on_host", lambda conf_dir, view: found)
    return found


def test_each_runtime_is_predicted(conf_host, runtimes):
    plan = conf_host.plan(want(drop_ins=TWO), runtimes=None)
    paths = [str(conf_host.conf_dir / "a" / name) for name in TWO]
    assert {row["runtime"]: row["drop_ins"] for row in plan.effective} == {
        "containerd-1.7": [],
        "containerd-2.1": paths,
        "nerdctl": [],
    }
    ignored = [one.message for one in plan.problems if one.code == "drop_in_ignored"]
    assert len(ignored) == 2
    assert "containerd-1.7 contains libcni 1.1, which is older than 1.3" in ignored[0]
    assert "nerdctl reads no drop-in folders" in ignored[1]
    verdicts = [runtime.verdict for runtime in plan.judged.runtimes]
    [newest] = [one for one in verdicts if one.networks and len(one.networks[0].plugins) == 3]
    assert newest.networks[0].types == ["bridge", "tuning", "portmap"]


def test_missing_plugins_of_drop_ins_are_found(conf_host):
    codes = conf_host.refused(want(drop_ins={"10-x.conf": plugin("nosuch")}), levels=("plugins",))
    assert ("missing_plugin", "10-x.conf") in codes


def test_managed_ones_that_stay_are_not_called_unmanaged(conf_host):
    conf_host.run(want(drop_ins=TWO))
    (conf_host.conf_dir / "a" / "30-z.conf").write_bytes(plugin())
    plan = conf_host.run(want(mtu=1400))
    assert [os.path.basename(one.file) for one in plan.problems if one.code == "drop_in"] == ["30-z.conf"]
