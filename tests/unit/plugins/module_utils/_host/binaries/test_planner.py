# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import io
import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries import batch, outcome, store
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.planner import (
    ContentMissing,
    known_archive,
    plan_present,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.store import WantedPlugins
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.files import TEMP_SUFFIX
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.lock import read_state
from ansible_collections.podwire.cni.plugins.module_utils._host.plan import SAFE
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.binaries.plugin_host import (
    BROKEN,
    ELF,
    MINE,
    NEW,
    OLD,
    sha,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with


def test_install_then_nothing_and_nothing_is_executed_or_hashed(plugin_host, monkeypatch):
    predicted = plugin_host.present(OLD, check=True)
    plan = plugin_host.present(OLD)
    assert predicted.actions() == plan.actions()
    assert [step["kind"] for step in plan.actions()] == ["make_directory", "install", "install"]
    assert plugin_host.files() == {}
    assert plugin_host.apply(plan) == {"bridge": "installed", "ptp": "installed"}
    assert plugin_host.files() == OLD
    assert [os.path.basename(path) for path in plugin_host.asked] == ["bridge", "ptp"]
    assert [entry["cni_versions"] for entry in plan.report()] == [["1.0.0"], ["1.0.0"]]
    monkeypatch.setattr(store, "digest_of", lambda stream: pytest.fail("read again"))
    again = plugin_host.present(OLD, shipped=())
    assert not again.changed and len(plugin_host.asked) == 2
    assert [entry["cni_versions"] for entry in again.report()] == [["1.0.0"], ["1.0.0"]]


def test_content_that_is_not_at_hand_is_asked_for_in_a_run_and_predicted_in_check_mode(plugin_host):
    with pytest.raises(ContentMissing) as caught:
        plugin_host.present(NEW, shipped=["tap"])
    assert str(caught.value) == "bridge, ptp"
    assert len(plugin_host.present(NEW, shipped=["tap"], check=True).steps) == 4


def test_an_older_version_is_installed_from_what_is_kept_without_a_transfer(plugin_host):
    plugin_host.apply(plugin_host.present(OLD))
    plugin_host.apply(plugin_host.present(NEW))
    assert plugin_host.apply(plugin_host.present(OLD, shipped=())) == {"bridge": "replaced", "ptp": "replaced"}
    assert plugin_host.read("bridge") == OLD["bridge"]


def test_force_restores_what_was_there_before_the_first_of_ours(plugin_host):
    plugin_host.put("bridge", ELF + b"distribution", 0o750)
    plugin_host.apply(plugin_host.present(OLD))
    plugin_host.apply(plugin_host.present(NEW))
    assert plugin_host.apply(plugin_host.restored(force=True)) == {
        "bridge": "restored",
        "ptp": "removed",
        "tap": "removed",
    }
    assert plugin_host.files() == {"bridge": ELF + b"distribution"}
    assert os.stat(os.path.join(plugin_host.bin_dir, "bridge")).st_mode & 0o777 == 0o750
    assert plugin_host.manifest().binaries == {} and os.listdir(os.path.join(plugin_host.state, "objects")) == []
    assert not plugin_host.restored(force=True).changed


def test_a_foreign_file_with_the_wanted_content_is_left_alone_and_not_ours(plugin_host):
    plugin_host.put("bridge", NEW["bridge"])
    plan = plugin_host.present({"bridge": NEW["bridge"]}, shipped=())
    assert not plan.changed and plan.report()[0]["action"] == "none"
    assert plan.report()[0]["cni_versions"] == ["1.0.0", "1.1.0"]
    assert plugin_host.entry("bridge") is None


def test_an_unchanged_run_remembers_so_that_the_next_one_asks_nothing(plugin_host, monkeypatch):
    plugin_host.put("bridge", NEW["bridge"])
    now = store.time.time_ns()
    monkeypatch.setattr(store.time, "time_ns", lambda: now + 10**10)
    listing = {"sha256": "a" * 64, "sha512": "b" * 128, "plugins": {"bridge": sha(NEW["bridge"])}}
    seen = read_state(plugin_host.lock)
    plan = plugin_host.present({"bridge": NEW["bridge"]}, archive=listing)
    plan.remember(seen, plugin_host.lock)
    assert plugin_host.asked == [os.path.join(plugin_host.bin_dir, "bridge")]
    assert not plugin_host.present({"bridge": NEW["bridge"]}).changed
    assert len(plugin_host.asked) == 1
    assert known_archive(plugin_host.manifest(), "sha512", "b" * 128) == listing
    assert known_archive(plugin_host.manifest(), "sha256", "b" * 64) is None


def test_what_another_module_did_meanwhile_counts_more_than_what_was_learned(plugin_host):
    plugin_host.put("bridge", NEW["bridge"])
    seen = read_state(plugin_host.lock)
    plan = plugin_host.present({"bridge": NEW["bridge"]}, archive={"sha256": "a" * 64, "sha512": "", "plugins": {}})
    outcome.Lock("other", 0, seen, plugin_host.lock).__enter__().__exit__(None, None, None)
    plan.remember(seen, plugin_host.lock)
    assert plugin_host.manifest().archives == {}


def test_a_foreign_file_with_another_mode_becomes_ours_and_can_be_restored(plugin_host):
    plugin_host.put("bridge", NEW["bridge"], 0o700)
    assert plugin_host.apply(plugin_host.present({"bridge": NEW["bridge"]}, shipped=())) == {"bridge": "attributes"}
    assert plugin_host.apply(plugin_host.restored()) == {"bridge": "restored"}
    assert os.stat(os.path.join(plugin_host.bin_dir, "bridge")).st_mode & 0o777 == 0o700


def test_a_link_is_replaced_and_comes_back(plugin_host, tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"untouched")
    os.makedirs(plugin_host.bin_dir)
    os.symlink(str(outside), os.path.join(plugin_host.bin_dir, "bridge"))
    plan = plugin_host.present(OLD)
    assert plan.diff()[0]["before"] == f"bridge: link to {outside}\n"
    assert plugin_host.apply(plan)["bridge"] == "replaced"
    assert plugin_host.files() == OLD and outside.read_bytes() == b"untouched"
    assert plugin_host.apply(plugin_host.restored())["bridge"] == "restored"
    assert plugin_host.read("bridge") == str(outside)
    assert not plugin_host.restored().changed


@pytest.mark.parametrize("state", ["present", "absent", "restored"])
def test_a_directory_in_the_way_is_an_error(plugin_host, state):
    plugin_host.apply(plugin_host.present(OLD))
    os.unlink(os.path.join(plugin_host.bin_dir, "bridge"))
    os.mkdir(os.path.join(plugin_host.bin_dir, "bridge"))
    with fails_with("not_regular"):
        {"present": lambda: plugin_host.present(OLD), "absent": lambda: plugin_host.absent("bridge")}.get(
            state, plugin_host.restored
        )()


@pytest.mark.parametrize(
    "content, code",
    [(ELF + BROKEN, "plugin_failed"), (ELF[:-2] + b"\xb7\x00", "wrong_machine"), (b"text", "wrong_machine")],
)
def test_one_that_does_not_run_keeps_all_from_being_installed(plugin_host, content, code):
    plugin_host.apply(plugin_host.present(OLD))
    with pytest.raises(HostError) as caught:
        plugin_host.apply(plugin_host.present(dict(NEW, tap=content)))
    assert caught.value.code == code and "tap" in caught.value.msg
    assert plugin_host.files() == OLD
    assert plugin_host.entry("bridge")["sha256"] == sha(OLD["bridge"])


def test_what_arrives_damaged_is_not_installed(plugin_host):
    wanted = WantedPlugins({"bridge": sha(b"x")}, None, lambda names: iter([("bridge", io.BytesIO(ELF))]), ["bridge"])
    with fails_with("damaged_transfer"):
        plugin_host.apply(plan_present(plugin_host.bin_dir, wanted, MINE, HostView(plugin_host.manifest()), False))
    assert plugin_host.files() == {}


class Crash(BaseException):
    pass


def test_a_crash_while_restoring_is_completed_by_the_next_run(plugin_host, monkeypatch):
    plugin_host.put("tap", ELF + b"foreign")
    plugin_host.apply(plugin_host.present(OLD))
    plugin_host.apply(plugin_host.present(NEW))
    real = batch.PluginBatch.commit
    done = []

    def commit(self, change):
        if done:
            raise Crash
        done.append(1)
        real(self, change)

    monkeypatch.setattr(batch.PluginBatch, "commit", commit)
    with pytest.raises(Crash):
        plugin_host.apply(plugin_host.restored())
    monkeypatch.setattr(batch.PluginBatch, "commit", real)
    assert plugin_host.apply(plugin_host.restored()) == {"bridge": "none", "ptp": "restored", "tap": "restored"}
    assert plugin_host.files() == dict(OLD, tap=ELF + b"foreign")
    assert plugin_host.entry("tap") is None and plugin_host.entry("bridge")["sha256"] == sha(OLD["bridge"])
    assert not plugin_host.restored().changed


def test_absent_removes_ours_and_keeps_what_it_had_replaced(plugin_host):
    plugin_host.put("bridge", ELF + b"foreign")
    plugin_host.apply(plugin_host.present(OLD))
    plan = plugin_host.absent("bridge", "none")
    assert plan.actions() == [
        {
            "kind": "remove",
            "target": os.path.join(plugin_host.bin_dir, "bridge"),
            "class": "safe",
            "reason": "state is absent",
        },
    ]
    assert plugin_host.apply(plan) == {"bridge": "removed", "none": "none"}
    assert list(plugin_host.files()) == ["ptp"]
    assert not plugin_host.absent("bridge").changed
    assert plugin_host.apply(plugin_host.restored("bridge")) == {"bridge": "restored"}
    assert plugin_host.read("bridge") == ELF + b"foreign" and plugin_host.entry("bridge") is None


@pytest.mark.parametrize("earlier", [False, True])
def test_absent_leaves_a_foreign_file_unless_forced_and_then_keeps_it(plugin_host, earlier):
    if earlier:
        plugin_host.apply(plugin_host.present({"bridge": OLD["bridge"]}))
        plugin_host.put("bridge", b"somebody's")
        plugin_host.apply(plugin_host.absent("bridge", force=True))
    plugin_host.put("bridge", ELF + b"foreign")
    with fails_with("foreign_file"):
        plugin_host.absent("bridge")
    assert plugin_host.apply(plugin_host.absent("bridge", force=True)) == {"bridge": "removed"}
    assert plugin_host.files() == {}
    assert plugin_host.apply(plugin_host.restored()) == {"bridge": "restored"}
    assert plugin_host.read("bridge") == ELF + b"foreign"


def test_removing_what_a_network_names_is_left_where_nothing_disruptive_is_allowed(plugin_host):
    plugin_host.apply(plugin_host.present(OLD))
    os.makedirs(plugin_host.conf_dir)
    with open(os.path.join(plugin_host.conf_dir, "10-a.conflist"), "w") as stream:
        json.dump({"cniVersion": "1.0.0", "name": "a", "plugins": [{"type": "bridge"}]}, stream)
    plan = plugin_host.absent("bridge", "ptp", force=True)
    plan.restrict([SAFE])
    assert not plan.changed and len(plan.left) == 2
    assert [(row["action"], row["sha256"]) for row in plan.report()] == [
        ("left", sha(OLD["bridge"])),
        ("left", sha(OLD["ptp"])),
    ]


@pytest.mark.parametrize("what", ["absent", "restored"])
def test_what_somebody_put_over_ours_is_not_removed_unless_forced(plugin_host, what):
    plugin_host.apply(plugin_host.present(OLD))
    plugin_host.put("bridge", ELF + b"somebody's")
    plan = getattr(plugin_host, what)
    with fails_with("foreign_file"):
        plan("bridge")
    assert plugin_host.apply(plan("bridge", force=True)) == {"bridge": "removed"}
    assert plugin_host.manifest().has_kept(sha(ELF + b"somebody's"))


def test_a_foreign_file_that_came_after_the_removal_is_not_restored_over(plugin_host):
    plugin_host.put("bridge", ELF + b"foreign")
    plugin_host.apply(plugin_host.present(OLD))
    plugin_host.apply(plugin_host.absent("bridge"))
    plugin_host.put("bridge", ELF + b"another")
    assert not plugin_host.restored("bridge").changed
    assert plugin_host.apply(plugin_host.present(NEW))["bridge"] == "replaced"
    assert plugin_host.manifest().has_kept(sha(ELF + b"foreign"))
    assert plugin_host.manifest().has_kept(sha(ELF + b"another"))


def network(plugin_host, plugin):
    os.makedirs(plugin_host.conf_dir, exist_ok=True)
    with open(os.path.join(plugin_host.conf_dir, "10-apps.conflist"), "w") as stream:
        json.dump({"cniVersion": "1.0.0", "name": "apps", "plugins": [{"type": "x", "ipam": {"type": plugin}}]}, stream)


@pytest.mark.parametrize("what", ["absent", "restored"])
def test_a_plugin_in_use_is_removed_only_with_force_and_that_is_disruptive(plugin_host, what):
    plugin_host.apply(plugin_host.present(OLD))
    network(plugin_host, "bridge")
    plan = getattr(plugin_host, what)
    with fails_with("plugin_in_use") as caught:
        plan("bridge", "ptp")
    users = [f"the network 'apps' in {plugin_host.conf_dir}/10-apps.conflist"]
    assert caught.value.facts["users"] == [{"name": "bridge", "users": users}]
    assert [step["class"] for step in plan("bridge", "ptp", force=True).actions()] == ["disruptive", "safe"]
    assert plugin_host.files() == OLD


def test_restoring_another_version_of_a_plugin_in_use_is_fine(plugin_host):
    plugin_host.apply(plugin_host.present(OLD))
    plugin_host.apply(plugin_host.present({"bridge": NEW["bridge"]}))
    network(plugin_host, "bridge")
    assert plugin_host.apply(plugin_host.restored("bridge")) == {"bridge": "restored"}


def test_stale_temporary_files_go_with_the_next_change(plugin_host):
    stale = plugin_host.put(".bridge.0123" + TEMP_SUFFIX, b"half")
    plugin_host.apply(plugin_host.present(OLD))
    assert not os.path.exists(stale)
