# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import stat

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.packages import DPKG, RPM, Package
from ansible_collections.podwire.cni.plugins.module_utils._host.networks import aside as removals
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.request import WantedNetwork
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.networks.conf_host import (
    actions,
    dying_hosts,
    steps,
    text,
    unwant,
    want,
)

ASIDE = ".podwire-aside"


def aside(name, step_class="disruptive"):
    return ("set_aside", name, step_class)


def test_everything_else_that_runtimes_read_goes_aside(conf_host, tmp_path):
    conf_host.put("05-broken.conflist", b"")
    conf_host.put(".10-hidden.conf", b'{"type": "loopback", "name": "h"}')
    conf_host.put("50-x.json", b"{}")
    conf_host.put("87-b.conflist", text("b"))
    (tmp_path / "target").write_bytes(text("l"))
    (conf_host.conf_dir / "20-link.conflist").symlink_to(tmp_path / "target")
    (conf_host.conf_dir / "30-dangling.conf").symlink_to(tmp_path / "nothing")
    plan = conf_host.run(want("a"), exclusive=True)
    assert steps(plan) == [
        ("create", "10-a.conflist", "safe"),
        aside(".10-hidden.conf"),
        aside("05-broken.conflist", "safe"),
        aside("20-link.conflist"),
        aside("30-dangling.conf", "safe"),
        aside("50-x.json", "safe"),
        aside("87-b.conflist"),
    ]
    assert os.readlink(conf_host.conf_dir / ("20-link.conflist" + ASIDE)) == str(tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == text("l")
    record = conf_host.manifest().aside[str(conf_host.conf_dir / ("87-b.conflist" + ASIDE))]
    assert record == {"path": str(conf_host.conf_dir / "87-b.conflist"), "network": "b"}


def test_what_no_runtime_reads_stays(conf_host):
    conf_host.put("README", b"text")
    conf_host.put("87-b.conflist.bak", text("b"))
    conf_host.put("10-calico.conflist.cilium_bak", text("c"))
    folders = ("a", "multus.d", "x.conflist")
    for folder in folders:
        (conf_host.conf_dir / folder).mkdir()
        (conf_host.conf_dir / folder / "50-inner.conflist").write_bytes(b"")
    os.mkfifo(conf_host.conf_dir / "99-pipe.conf")
    plan = conf_host.run(want("a"), exclusive=True)
    assert steps(plan) == [("create", "10-a.conflist", "safe")]
    assert stat.S_ISFIFO(os.stat(conf_host.conf_dir / "99-pipe.conf").st_mode)
    assert all(os.listdir(conf_host.conf_dir / folder) == ["50-inner.conflist"] for folder in folders)


@pytest.mark.parametrize("network", ["pipe", "kubeconfig"])
def test_what_stays_stands_in_the_way(conf_host, network):
    conf_host.conf_dir.mkdir()
    os.mkfifo(conf_host.conf_dir / "10-pipe.conflist")
    conf_host.put("10-kubeconfig.conflist", b"x")
    assert len(conf_host.refused(want(network), exclusive=True)) == 1


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("calico-kubeconfig.conf", b"x"),
        ("KubeConfig.json", b"{}"),
        ("50-cluster.conf", b"apiVersion: v1\nkind: Config\nusers: []\n"),
        ("50-cluster.json", b'{"apiVersion": "v1", "kind": "Config", "users": []}'),
    ],
)
def test_a_kubeconfig_never_goes(conf_host, name, data):
    conf_host.put(name, data)
    assert steps(conf_host.run(want("a"), exclusive=True)) == [("create", "10-a.conflist", "safe")]
    assert conf_host.read(name) == data


def test_a_network_of_ours_that_is_not_listed_goes_aside_and_stays_ours(conf_host):
    conf_host.run(want("a"), want("b", priority=20))
    assert steps(conf_host.run(want("a"), exclusive=True)) == [aside("20-b.conflist")]
    assert list(conf_host.manifest().networks) == [str(conf_host.conf_dir / "10-a.conflist")]
    plan = conf_host.run(want("a"), want("b", mtu=9), exclusive=True)
    assert steps(plan) == [("restore", "20-b.conflist", "safe"), ("write", "20-b.conflist", "safe")]
    assert plan.steps[0].reason == "its network is wanted again"
    assert actions(plan) == ["none", "restored"]
    assert conf_host.files() == ["10-a.conflist", "20-b.conflist"]
    assert conf_host.manifest().networks[str(conf_host.conf_dir / "20-b.conflist")]["network"] == "b"
    assert conf_host.manifest().aside == {}


def test_ours_comes_back_from_aside_under_another_name(conf_host):
    conf_host.run(want("a"), want("b"))
    conf_host.run(want("a"), exclusive=True)
    plan = conf_host.run(want("b", priority=30))
    assert (steps(plan), actions(plan)) == ([("restore", "30-b.conflist", "safe")], ["restored"])
    assert list(conf_host.manifest().networks) == [
        str(conf_host.conf_dir / name) for name in ("10-a.conflist", "30-b.conflist")
    ]


def test_an_original_is_kept_while_ours_is_aside_and_comes_back_changed(conf_host):
    conf_host.put("87-b.conflist", text("b", mtu=1))
    conf_host.run(want("a"), want("b", file="87-b.conflist"))
    conf_host.run(want("a"), exclusive=True)
    conf_host.run(want("b", priority=30, mtu=7))
    entry = conf_host.manifest().networks[str(conf_host.conf_dir / "30-b.conflist")]
    with conf_host.manifest().kept(entry["original"]["sha256"]) as kept:
        assert kept.read() == text("b", mtu=1)


def test_absent_removes_ours_from_aside(conf_host):
    conf_host.run(want("a"), want("b"))
    conf_host.run(want("a"), exclusive=True)
    plan = conf_host.run(unwant("b"))
    assert (steps(plan), actions(plan)) == ([("remove", "10-b.conflist" + ASIDE, "safe")], ["removed"])
    assert plan.steps[0].reason == "state is absent"
    assert conf_host.files() == ["10-a.conflist"]
    assert conf_host.manifest().aside == {}


def test_a_file_of_the_same_network_makes_room(conf_host):
    conf_host.put("87-a.conflist", text("a", mtu=1))
    plan = conf_host.run(want("a"), exclusive=True)
    assert steps(plan) == [("create", "10-a.conflist", "safe"), aside("87-a.conflist", "safe")]
    conf_host.put("10-b.conf", b'{"type": "bridge", "name": "b"}')
    plan = conf_host.run(want("a"), unwant("b"), exclusive=True)
    assert (steps(plan), actions(plan)) == ([aside("10-b.conf")], ["none", "removed"])


def test_what_is_named_is_adopted_all_the_same(conf_host):
    conf_host.put("87-a.conflist", text("a", mtu=1))
    conf_host.put("88-b.conflist", text("b"))
    plan = conf_host.run(want("a", file="87-a.conflist"), exclusive=True)
    assert [step[:2] for step in steps(plan)] == [
        ("adopt", "87-a.conflist"),
        ("write", "87-a.conflist"),
        ("set_aside", "88-b.conflist"),
    ]


def test_ours_moves_to_where_something_else_stood(conf_host):
    conf_host.run(want("a"))
    conf_host.put("20-a.conflist", text("other"))
    plan = conf_host.run(want("a", priority=20), exclusive=True)
    assert steps(plan) == [aside("20-a.conflist"), ("rename", "10-a.conflist", "safe")]
    assert conf_host.read("20-a.conflist" + ASIDE) == text("other")


def test_attached_networks_are_not_set_aside(conf_host):
    conf_host.run(want("a"), want("b"))
    conf_host.put("87-c.conflist", text("c"))
    conf_host.attach("b")
    conf_host.attach("c")
    assert conf_host.refused(want("a"), exclusive=True) == [
        ("attachments_exist", "10-b.conflist"),
        ("attachments_exist", "87-c.conflist"),
    ]
    assert len(steps(conf_host.run(want("a"), exclusive=True, force=True))) == 2


def test_an_attached_network_may_change_its_file_but_not_its_addresses(conf_host):
    conf_host.put("87-a.conflist", text("a", mtu=1))
    conf_host.attach("a")
    assert conf_host.refused(want("a", bridge="b9"), exclusive=True) == [("attachments_exist", "87-a.conflist")]
    assert len(steps(conf_host.run(want("a"), exclusive=True))) == 2


def test_the_directory_is_judged_without_what_goes_aside(conf_host):
    conf_host.put("05-x.bak.conflist", text("x"))
    plan = conf_host.run(want("a"), exclusive=True)
    assert [entry.code for entry in plan.problems] == ["order_flip"]


@pytest.mark.parametrize(
    ("package", "words"),
    [
        (Package("podman", "4.3.1", DPKG), ["podman 4.3.1", "leave the change alone", "containers.conf"]),
        (Package("cri-o1.30", "1.30", RPM), ["cri-o1.30", "next update brings the file back", "cni_default_network"]),
        (Package("other", "1", RPM), ["other 1"]),
    ],
)
def test_the_package_of_a_file_is_named(conf_host, monkeypatch, package, words):
    conf_host.put("87-podman.conflist", text("podman"))
    path = str(conf_host.conf_dir / "87-podman.conflist")
    monkeypatch.setattr(removals, "packages_of", lambda paths: {path: package} if path in paths else {})
    plan = conf_host.plan(want("a", priority=99), exclusive=True)
    found = [entry for entry in plan.problems if entry.code == "package_file"]
    assert [(entry.level, entry.file) for entry in found] == [("warning", path)]
    assert all(word in found[0].message for word in words)
    plan = conf_host.plan(want("podman", file="87-podman.conflist"))
    assert "package_file" in [entry.code for entry in plan.problems]


def test_a_crash_at_any_point_loses_nothing(tmp_path, monkeypatch):
    wanted = (want("a", priority=20), want("c"))
    for host, die in dying_hosts(tmp_path, monkeypatch, 15):
        host.run(want("a"), want("b"))
        host.put("10-c.conflist", text("foreign"))
        host.put("87-x.conflist", text("x"))
        die(host.plan(*wanted, exclusive=True).apply)
        contents = {host.read(name) for name in host.files()}
        assert {text("a"), text("b"), text("foreign"), text("x")} <= contents
        host.run(*wanted, exclusive=True)
        assert host.files() == sorted(
            ["10-c.conflist", "20-a.conflist"]
            + [name + ASIDE for name in ("10-b.conflist", "10-c.conflist", "87-x.conflist")]
        )
        assert host.read("10-c.conflist" + ASIDE) == text("foreign")
        asides = [str(host.conf_dir / name) for name in host.files() if name.endswith(ASIDE)]
        assert sorted(host.manifest().aside) == asides
        assert json.loads(host.read("10-c.conflist"))["name"] == "c"
        host.run(want("b"))
        assert host.read("10-b.conflist") == text("b")


# --- replace


@pytest.mark.parametrize("name", ["05-a.conf", "87-a.conflist", "10-a.conflist", ".x.json", "20-link.conf"])
def test_an_unmanaged_file_of_the_network_is_replaced_in_one_step_and_can_be_restored(conf_host, tmp_path, name):
    original = text("a") if name.endswith(".conflist") else b'{"type": "loopback", "name": "a"}'
    conf_host.put("30-b.conflist", text("b"))
    if "link" in name:
        (tmp_path / "target").write_bytes(original)
        (conf_host.conf_dir / name).symlink_to(tmp_path / "target")
    else:
        conf_host.put(name, original)
    assert conf_host.refused(want("a")) in ([("duplicate_name", name)], [])
    plan = conf_host.run(want("a", replace=True))
    assert sorted(step[:2] for step in steps(plan)) == [("create", "10-a.conflist"), ("set_aside", name)]
    # By name, a list counts before a single plugin; the network is gone for a moment only if the file has its place.
    disruptive = {"10-a.conflist": "set_aside", "87-a.conflist": ""}.get(name, "create")
    assert [step[0] for step in steps(plan) if step[2] == "disruptive"] == [disruptive] * bool(disruptive)
    # No runtime is left without the network, unless the file has its place.
    assert plan.steps[0].kind == ("set_aside" if name == "10-a.conflist" else "create")
    assert actions(plan) == ["created"]
    assert conf_host.files() == sorted(["10-a.conflist", name + ASIDE, "30-b.conflist"])
    conf_host.run(WantedNetwork("a", False, restored=True))
    assert conf_host.files() == sorted([name, "30-b.conflist"])
    assert conf_host.read(name) == original


def test_what_replace_must_not_do(conf_host):
    conf_host.put("05-a.conf", b'{"type": "loopback", "name": "a"}')
    conf_host.put("10-c.conflist", text("b"))
    conf_host.attach("a", b'{"name": "a", "plugins": [{"type": "ptp"}]}')
    assert conf_host.refused(want("a", replace=True)) == [("attachments_exist", "05-a.conf")]
    # The file of another network is not in its way.
    assert conf_host.refused(want("c", replace=True)) == [("foreign_file", "10-c.conflist")]
