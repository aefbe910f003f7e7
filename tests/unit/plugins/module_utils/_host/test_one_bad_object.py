# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""One bad object does not hide what is wrong with the others, and what an earlier section repairs is no error."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import manifest as manifests, named_netns
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import request as attach_request
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries import store
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.usable import Binaries
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.problems import rows
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import (
    MAIN,
    actions,
    codes,
    web,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.binaries import plugin_host
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.networks import conf_host
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.networks.conf_host import want
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with, raising

# ---- cni_plugins


@pytest.fixture
def binaries(tmp_path, monkeypatch):
    made = plugin_host.Host(tmp_path)
    made.patch(monkeypatch)
    made.apply(made.present(plugin_host.NEW))
    return made


def spoil(path, how):
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
    if how == "garbage":
        Path(path).write_text("no binary")
    elif how == "dangling link":
        os.symlink("/nowhere", path)
    elif how == "directory":
        os.mkdir(path)
    elif how == "fifo":
        os.mkfifo(path)
    elif how == "link to itself":
        os.symlink(os.path.basename(path), path)


@pytest.mark.parametrize("how", ["garbage", "dangling link", "link to itself", "missing", "directory", "fifo"])
def test_a_bad_plugin_does_not_hide_the_drift_of_the_others(binaries, how):
    names = sorted(plugin_host.NEW)
    for bad in names:
        for name in names:
            spoil(binaries.bin_dir + "/" + name, how if name == bad else "garbage")
        plan = binaries.present(plugin_host.NEW, check=True)
        steps = {os.path.basename(step.target) for step in plan.steps}
        if how in ("directory", "fifo"):
            assert steps == set(names) - {bad}
            assert [error.code for error in plan.errors] == ["not_regular"]
            with pytest.raises(HostError, match="is a directory or a special file"):
                binaries.present(plugin_host.NEW)
        else:
            assert (steps, plan.errors) == (set(names), [])


def test_a_plugin_that_cannot_be_read_does_not_hide_the_drift_of_the_others(binaries, monkeypatch):
    for name in plugin_host.NEW:
        spoil(binaries.bin_dir + "/" + name, "garbage")
    whole = store.Store._sha256

    def failing(self, name, status):
        if name == "ptp":
            raise OSError(errno.EIO, "Input/output error")
        return whole(self, name, status)

    monkeypatch.setattr(store.Store, "_sha256", failing)
    plan = binaries.present(plugin_host.NEW, check=True)
    assert {os.path.basename(step.target) for step in plan.steps} == {"bridge", "tap"}
    assert plan.error.code == "unreadable"
    assert "Input/output error" in plan.error.msg


def test_several_errors_are_told_together(binaries):
    for name in ("bridge", "tap"):
        spoil(binaries.bin_dir + "/" + name, "directory")
    error = binaries.present(plugin_host.NEW, check=True).error
    assert (error.code, error.msg.count("is a directory or a special file")) == ("not_regular", 2)


# ---- what cni_plugins puts back, seen by those that need it

# The manifest's entry of a managed plugin whose file has been replaced since.
ENTRY = {"sha256": "0" * 64, "archive": None, "cni_versions": None, "gone": False, "history": []}


@pytest.fixture
def installed(tmp_path):
    """A directory of plugins of which ``ours`` is in the manifest, and both are no plugins any more."""
    folder = tmp_path / "bin"
    folder.mkdir()
    manifest = Manifest(str(tmp_path / "state"))
    for name in ("ours", "theirs"):
        (folder / name).write_text("no binary")
    manifest.binaries[str(folder / "ours")] = dict(ENTRY)
    return folder, manifest


@pytest.mark.parametrize("how", ["garbage", "dangling link", "link to itself", "missing", "directory", "fifo", "mode"])
def test_a_plugin_that_cni_plugins_puts_back_is_missing_and_not_broken(installed, how):
    folder, manifest = installed
    for name in ("ours", "theirs"):
        if how == "mode":
            shutil.copy("/bin/true", folder / name)
            os.chmod(folder / name, 0o777)
        else:
            spoil(str(folder / name), how)
    found = {}
    for name in ("ours", "theirs"):
        with pytest.raises(HostError) as caught:
            Binaries([str(folder)], HostView(manifest)).ask(name)
        found[name] = caught.value.code
        assert f"did you mean '{name}'" not in caught.value.msg
    assert found["ours"] == "missing_plugin"
    there = {"garbage": "not_elf", "mode": "unsafe_permissions"}
    assert found["theirs"] == there.get(how, "missing_plugin")


def test_a_plugin_of_ours_that_was_removed_is_not_put_back(installed):
    folder, manifest = installed
    manifest.binaries[str(folder / "ours")]["gone"] = True
    with fails_with("not_elf"):
        Binaries([str(folder)], HostView(manifest)).ask("ours")


# ---- cni_conf


@pytest.fixture
def confs(tmp_path, monkeypatch):
    (tmp_path / "net.d").mkdir()
    return conf_host.Host(tmp_path, monkeypatch)


@pytest.mark.parametrize("bad", ["foreign", "directory", "fifo", "dangling link"])
def test_a_network_that_is_refused_does_not_hide_the_steps_of_the_others(confs, bad):
    wanted = [want(name, bridge=name) for name in ("a", "b", "c")]
    path = confs.conf_dir / "10-b.conflist"
    if bad == "foreign":
        path.write_bytes(conf_host.text("other"))
    else:
        spoil(str(path), bad)
    plan = confs.plan(*wanted, tolerate_missing=True)
    assert [step[:2] for step in conf_host.steps(plan)] == [("create", "10-a.conflist"), ("create", "10-c.conflist")]
    assert conf_host.actions(plan) == ["created", "failed", "created"]
    assert plan.error is not None
    assert plan.error.facts["problems"] == rows(plan.problems)
    # A run does nothing.
    with pytest.raises(HostError) as caught:
        confs.plan(*wanted)
    assert caught.value.msg == plan.error.msg


def test_a_plugin_that_is_no_binary_is_a_problem_among_the_steps(confs, tmp_path):
    (tmp_path / "bin").mkdir()
    spoil(str(tmp_path / "bin" / "bridge"), "garbage")
    request = conf_host.ConfRequest(
        [want("a")],
        str(confs.conf_dir),
        [str(tmp_path / "bin")],
        confs.cache,
        conf_host.Attributes(0o644, os.getuid(), os.getgid()),
        tolerate_missing=True,
    )
    plan = conf_host.plan_networks(request)
    assert (plan.error.code, len(plan.steps)) == ("not_elf", 1)
    manifest = confs.manifest()
    manifest.binaries[str(tmp_path / "bin" / "bridge")] = dict(ENTRY)
    manifest.save()
    plan = conf_host.plan_networks(request)
    assert (plan.error, len(plan.steps)) == (None, 1)
    assert [entry.code for entry in plan.problems if entry.level == "warning"] == ["missing_plugin"]


def test_a_cache_that_cannot_be_read_does_not_hide_the_steps_of_networks_that_need_it_not(confs, tmp_path):
    confs.run(want("a"), want("b", bridge="b1"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "results").write_text("no directory")
    # Whether containers are attached is only asked for the first.
    wanted = [want("a", bridge="b9"), want("b", bridge="b1", mtu=1400)]
    plan = confs.plan(*wanted, tolerate_missing=True)
    assert (plan.error.code, conf_host.actions(plan)) == ("cache_unreadable", ["failed", "updated"])
    assert [step.target for step in plan.steps] == [str(confs.conf_dir / "10-b.conflist")]
    with pytest.raises(HostError, match="which networks are in use"):
        confs.plan(*wanted)


# ---- cni_netns


def test_a_name_that_is_no_namespace_does_not_hide_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(named_netns, "NETNS_DIR", str(tmp_path))
    (tmp_path / "bad").mkdir()
    plan = named_netns.plan_netns(["a", "bad", "b"], True, check_mode=True)
    assert [step.target for step in plan.steps] == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert [row["action"] for row in plan.rows] == ["created", "failed", "created"]
    assert plan.error.code == "not_a_namespace"
    with pytest.raises(HostError, match="is neither a network namespace"):
        named_netns.plan_netns(["a", "bad", "b"], True)


# ---- cni_attach


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (web(container_id="a/b"), "bad_id"),
        (web(container_id="bad", netns=""), "bad_netns"),
        (web(container_id="bad", args={"A": "a;b"}), "bad_args"),
        (web(container_id="bad", capability_args={"portMappings": [{"hostPort": "1"}]}), "bad_capability_args"),
        (web(), "duplicate_attachment"),
        (web(network="other"), "duplicate_ifname"),
    ],
)
def test_an_entry_that_is_refused_does_not_hide_the_others(bad, code):
    entries = [web(), bad, web(container_id="db", netns="db")]
    refused = []
    assert [item.key.container_id for item in attach_request.parse_attachments(entries, refused)] == ["web", "db"]
    assert [error.code for error in refused] == [code]
    assert "attachments[1]" in refused[0].msg
    with pytest.raises(HostError) as caught:
        attach_request.parse_attachments(entries)
    assert caught.value.msg == refused[0].msg


@pytest.fixture
def managed(attach_host, monkeypatch, tmp_path):
    """A host on which the file of the network ``demo`` was written by cni_conf."""
    state = str(tmp_path / "state")
    monkeypatch.setattr(manifests, "Manifest", lambda **options: Manifest(state, **options))
    manifest = Manifest(state)
    path = os.path.join(attach_host.conf_dir, "10-demo.conflist")
    manifest.networks[path] = {"network": "demo", "sha256": "", "original": None}
    manifest.save()
    attach_host.state = state
    return attach_host


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "demo", "plugins": []}', "\xff", "[" * 2000])
def test_a_broken_conflist_of_ours_is_a_step_of_cni_conf_and_no_error(managed, text):
    host = managed
    host.network("other", plugins=[MAIN])
    entries = [web(), web(network="other", ifname="eth1"), web(network="never", ifname="eth2")]
    host.run(*entries[:2])
    Path(host.conf_dir, "10-demo.conflist").write_text(text)
    host.addresses.clear()
    plan = host.check(*entries, on_drift="repair")
    assert actions(plan) == ["repaired", "repaired", "added"]
    assert [code for code in codes(plan) if code != "drifted"] == ["missing_network", "missing_network"]
    plan = host.run(*entries, on_drift="repair")
    assert actions(plan) == ["failed", "repaired", "failed"]
    assert "write it again with cni_conf" in plan.outcomes[0].error["message"]


def test_a_broken_conflist_of_others_only_concerns_networks_that_no_file_has(managed):
    host = managed
    Path(host.conf_dir, "05-theirs.conflist").write_text("{")
    Path(host.conf_dir, "20-broken.conflist").write_text("{")
    plan = host.check(web(), web(network="never", ifname="eth1"), web(network="broken", ifname="eth2"))
    assert actions(plan) == ["added", "failed", "failed"]
    for outcome, file in zip(plan.outcomes[1:], ("05-theirs", "20-broken")):
        assert outcome.error["code"] == "bad_config"
        assert f"{file}.conflist" in outcome.error["message"]


def test_a_damaged_manifest_does_not_stop_attachments(managed):
    host = managed
    Path(host.state, "manifest.json").write_text("{")
    Path(host.conf_dir, "05-theirs.conflist").write_text("{")
    assert actions(host.run(web(), web(network="never", ifname="eth1"))) == ["added", "failed"]


def test_a_check_that_cannot_run_is_one_problem_among_the_others(attach_host, monkeypatch):
    attach_host.namespace("db", inode=2)
    attach_host.network("other", plugins=[{"type": "ipam"}, MAIN])
    entries = [web(network="other"), web(container_id="db", netns="db")]
    attach_host.run(*entries)
    # What has lost something needs no CHECK.
    (lost,) = [path for path in attach_host.addresses if path.endswith("/db")]
    del attach_host.addresses[lost]
    error = HostError("ipam is not an ELF file and is not executed", code="not_elf")
    attach_host.fail_if(lambda _verb, path, _conf, _env: path.endswith("ipam"), error)
    plan = attach_host.check(*entries, on_drift="repair")
    assert actions(plan) == ["failed", "repaired"]
    assert plan.outcomes[0].error["code"] == "not_elf"

    monkeypatch.setattr(
        attach_request.Networks,
        "test_plugins",
        raising(HostError("ipam is not what cni_plugins installed", code="missing_plugin")),
    )
    plan = attach_host.check(*entries, on_drift="repair")
    assert actions(plan) == ["none", "repaired"]
    assert "missing_plugin" in codes(plan)
