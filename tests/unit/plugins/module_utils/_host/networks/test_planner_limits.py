# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import stat

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.request import WantedNetwork
from ansible_collections.podwire.cni.plugins.module_utils._host.plan import SAFE
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.networks.conf_host import (
    actions,
    dying_hosts,
    steps,
    text,
    unwant,
    want,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with, raising

# ---- attachments


def test_absent_is_refused_while_the_network_is_attached(conf_host):
    conf_host.run(want("a"))
    conf_host.attach("a")
    assert conf_host.refused(unwant("a")) == [("attachments_exist", "10-a.conflist")]
    with pytest.raises(HostError, match="c1/eth0"):
        conf_host.plan(unwant("a"))
    assert actions(conf_host.run(unwant("a"), force=True)) == ["removed"]


def test_addresses_may_move_back_to_where_the_attachments_are(conf_host):
    ipam = {"type": "host-local", "subnet": "10.1.0.0/24"}
    conf_host.run(want("a", ipam=ipam))
    conf_host.attach("a", text("a", ipam=ipam))
    conf_host.put("10-a.conflist", text("a", ipam=dict(ipam, subnet="10.2.0.0/24")))
    assert steps(conf_host.plan(want("a", ipam=ipam))) == [("write", "10-a.conflist", "disruptive")]
    conf_host.attach("a", text("a", ipam=dict(ipam, subnet="10.2.0.0/24")), "c2")
    with pytest.raises(HostError, match=r"has 1 attachment in .*: c2/eth0;"):
        conf_host.plan(want("a", ipam=ipam))
    conf_host.attach("a", b"damaged", "c2")
    assert conf_host.refused(want("a", ipam=ipam)) == [("attachments_exist", "10-a.conflist")]


# ---- classes


def test_of_networks_all_is_left_or_nothing(conf_host):
    conf_host.run(want("a", bridge="b1"), want("b", bridge="b2"))
    plan = conf_host.plan(want("a", bridge="b3"), want("b", bridge="b2", mtu=1400), want("c", bridge="b4"))
    plan.restrict([SAFE])
    assert not plan.changed
    assert [step.kind for step in plan.left] == ["write", "write", "create"]
    assert actions(plan) == ["left", "left", "left"]
    plan = conf_host.plan(want("a", bridge="b1"), want("b", bridge="b2", mtu=1400))
    plan.restrict([SAFE])
    assert actions(plan) == ["none", "updated"]


def test_giving_an_attached_networks_file_away_is_refused(conf_host):
    conf_host.run(want("a", file="main.conflist"))
    conf_host.attach("a")
    assert conf_host.refused(want("b", file="main.conflist")) == [("attachments_exist", "main.conflist")]


def test_a_cache_that_cannot_be_read_is_not_an_empty_one(conf_host):
    conf_host.run(want("a"))
    os.mkdir(conf_host.cache)
    open(os.path.join(conf_host.cache, "results"), "w").close()
    with fails_with("cache_unreadable"):
        conf_host.plan(unwant("a"))
    # Check mode shows the rest, too.
    plan = conf_host.plan(want("b"), unwant("a"), tolerate_missing=True)
    assert [entry.code for entry in plan.errors] == ["cache_unreadable", "cache_unreadable"]
    assert [file.name for file in plan.files_after] == ["10-a.conflist"]


# ---- plugins, drop-ins, directory


def test_strict_leaves_what_an_earlier_task_of_the_run_may_install_to_check_mode(conf_host):
    plan = conf_host.plan(want("a"), levels=("plugins",), tolerate_missing=True, strict=True)
    assert [entry.level for entry in plan.problems] == ["warning"]
    assert conf_host.refused(want("a"), levels=("plugins",), strict=True) == [("missing_plugin", "10-a.conflist")]


def test_drop_ins_count_and_are_told_of(conf_host):
    folder = conf_host.conf_dir / "a"
    folder.mkdir(parents=True)
    (folder / "50-x.conf").write_text('{"type": "extra"}')
    levels = ("plugins", "directory")
    plan = conf_host.plan(want("a"), levels=levels, tolerate_missing=True)
    assert [(entry.code, os.path.basename(entry.file)) for entry in plan.problems] == [
        ("missing_plugin", "10-a.conflist"),
        ("missing_plugin", "50-x.conf"),
        ("drop_in", "50-x.conf"),
    ]
    (folder / "50-x.conf").write_text("{")
    assert conf_host.refused(want("a"), levels=levels, tolerate_missing=True) == [("drop_in_broken", "50-x.conf")]


def test_a_list_that_does_without_drop_ins_ignores_the_folder(conf_host):
    folder = conf_host.conf_dir / "a"
    folder.mkdir(parents=True)
    (folder / "50-x.conf").write_text("{")
    data = dict(json.loads(text("a")), loadOnlyInlinedPlugins=True)
    plan = conf_host.plan(
        WantedNetwork("a", True, json.dumps(data).encode()), levels=("plugins",), tolerate_missing=True
    )
    assert [entry.code for entry in plan.problems] == ["missing_plugin"]


def test_the_directory_is_judged_as_it_will_be(conf_host):
    conf_host.put("87-podman.conflist", text("podman"))
    plan = conf_host.plan(want("a"))
    assert [code for code, _text in plan.warnings] == ["order_flip"]
    assert conf_host.run(want("a", priority=99)).warnings == {}
    assert [code for code, _text in conf_host.plan(want("a"), unwant("b")).warnings] == []


def test_all_errors_are_reported_at_once(conf_host):
    conf_host.put("87-a.conflist", text("a"))
    conf_host.put("88-b.conflist", text("b"))
    assert conf_host.refused(want("a"), unwant("b")) == [
        ("duplicate_name", "87-a.conflist"),
        ("foreign_file", "88-b.conflist"),
    ]


# ---- crashes


def test_a_crash_at_any_point_leaves_old_or_new_and_ours(tmp_path, monkeypatch):
    wanted = (want("a", mtu=2, priority=20), want("b", file="87-b.conflist"), want("c"))
    for host, die in dying_hosts(tmp_path, monkeypatch, 20):
        host.run(want("a"))
        host.put("87-b.conflist", text("b", mtu=1))
        die(host.plan(*wanted).apply)
        for name in host.files():
            if name.endswith(".conflist"):
                assert host.read(name) in (text("a"), text("a", mtu=2), text("b", mtu=1), text("b"), text("c"))
        host.run(*wanted)
        assert host.files() == ["10-c.conflist", "20-a.conflist", "87-b.conflist"]
        entry = host.manifest().networks[str(host.conf_dir / "87-b.conflist")]
        with host.manifest().kept(entry["original"]["sha256"]) as kept:
            assert kept.read() == text("b", mtu=1)


@pytest.mark.parametrize("number", [0, 1])
def test_what_appeared_meanwhile_stays_unmanaged(conf_host, number):
    """The next run replaces neither the file that prevented a step nor one that a later step would have written."""
    conf_host.conf_dir.mkdir()
    wanted = [want("a"), want("b", bridge="b1")]
    plan = conf_host.plan(*wanted)
    for name in ("10-a.conflist", "10-b.conflist")[: number + 1]:
        conf_host.put(name, text("foreign"))
    with fails_with("changed_meanwhile"):
        plan.apply()
    assert (
        conf_host.refused(*wanted)
        == [("foreign_file", "10-a.conflist"), ("foreign_file", "10-b.conflist")][: number + 1]
    )
    assert conf_host.read("10-a.conflist") == text("foreign")


def test_a_failed_write_leaves_no_claim_on_a_file_that_is_not_there(conf_host, monkeypatch):
    conf_host.conf_dir.mkdir()
    plan = conf_host.plan(want("a"))

    with monkeypatch.context() as patch:
        patch.setattr(
            "ansible_collections.podwire.cni.plugins.module_utils._host.networks.execute.write",
            raising(OSError(28, "No space left on device")),
        )
        with pytest.raises(HostError, match="No space left"):
            plan.apply()
    assert conf_host.manifest().networks == {}


def test_a_secret_in_a_world_readable_file_is_warned_of_until_its_mode_is_0600(conf_host):
    secret = want("a", env=[{"name": "DB_PASSWORD", "value": "hush-hush"}])

    def warned(plan):
        return [code for code, message in plan.warnings if 'mode: "0600"' in message and "hush" not in message]

    for plan in (conf_host.plan(secret), conf_host.run(secret), conf_host.plan(secret), conf_host.run(secret)):
        assert warned(plan) == ["readable_secret"]
    assert conf_host.run(secret).steps == []
    assert stat.S_IMODE(os.stat(conf_host.conf_dir / "10-a.conflist").st_mode) == 0o644
    assert warned(conf_host.run(secret, mode=0o600)) == []
    assert stat.S_IMODE(os.stat(conf_host.conf_dir / "10-a.conflist").st_mode) == 0o600


def test_a_directory_that_others_can_write_is_warned_of(conf_host):
    conf_host.run(want("a"))
    os.chmod(conf_host.conf_dir, 0o777)
    plan = conf_host.run(want("a"))
    assert [code for code, _message in plan.warnings] == ["unsafe_permissions"]
