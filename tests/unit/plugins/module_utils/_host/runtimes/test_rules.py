# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import ConfFile, scan_conf_dir
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.profiles import (
    NAMES,
    OWN,
    PROFILES,
    containerd_profile,
    version_of,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.rules import judge
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.runtime import Runtime
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.runtimes.layouts import (
    BRIDGE,
    LAYOUTS,
    network,
    put,
    single,
)

ANY = ["0.1.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]


@pytest.fixture
def look(tmp_path):
    """Return a function that shows files to a runtime and returns its verdict, with names in place of paths."""

    def show(name, files, version="", ask=lambda plugin: ANY, **settings):
        put(str(tmp_path), files)
        runtime = Runtime(name, version, conf_dir=str(tmp_path))
        for key, value in settings.items():
            setattr(runtime, key, value)
        if runtime.conf_file:
            runtime.conf_file = str(tmp_path / "cni.json")
        found = [file for file in scan_conf_dir(str(tmp_path)) if runtime.conf_file in ("", file.path)]
        verdict = judge(runtime, [] if runtime.profile.choice == OWN else found, ask)
        verdict.left = {os.path.basename(entry["file"]): entry["reason"] for entry in verdict.not_chosen}
        verdict.base = os.path.basename(verdict.file) if verdict.file else None
        return verdict

    return show


def missing(plugin):
    if plugin in ("gone", "bin/gone"):
        raise HostError("there is no plugin", code="bad_type" if "/" in plugin else "missing_plugin")
    if plugin == "mute":
        raise HostError("it does not answer", code="plugin_failed")
    if plugin == "script":
        raise HostError("it is no ELF file", code="not_elf")
    return ["0.4.0", "1.0.0"]


def listed(name, kind, **keys):
    return network(name, plugins=[{"type": kind}], **keys)


# --- every profile on every directory


# One of each kind that reads a directory.
READERS = {name: profile for name, profile in PROFILES.items() if profile.choice != OWN and not profile.one_file}
KINDS = sorted({profile[: profile._fields.index("conf_dir")]: name for name, profile in READERS.items()}.values())


@pytest.mark.parametrize("name", KINDS)
def test_every_file_of_every_directory_is_accounted_for(look, tmp_path, name):
    for title, files in LAYOUTS.items():
        verdict = look(name, files)
        used = {entry.file.path for entry in verdict.networks} | {verdict.file}
        left = {entry["file"] for entry in verdict.not_chosen}
        assert (used | left) - {None} == {file.path for file in scan_conf_dir(str(tmp_path))}, title
        assert verdict.reason and all(entry["reason"] for entry in verdict.not_chosen), title
        assert not (verdict.failed and (verdict.network or verdict.networks)), title
        assert verdict.file not in left, title


# --- those that take the first


def test_containerd_names_the_winner_and_why_each_other_loses(look):
    verdict = look("containerd-2.1", {"20-a.conflist": network("a"), "100-b.conflist": network("b"), "3.conf": "{"})
    assert (verdict.network, verdict.base) == ("b", "100-b.conflist")
    assert verdict.reason == "100-b.conflist is the first file"
    assert verdict.left == {
        "20-a.conflist": "100-b.conflist sorts before it",
        "3.conf": "100-b.conflist sorts before it",
    }


def test_containerd_with_several_networks_says_which_interface_each_gets(look):
    files = {"10-a.conflist": network("a"), "20-b.conflist": network("b"), "30-c.conf": single("c")}
    verdict = look("containerd-1.7", files, max_networks=2)
    assert verdict.network == "a" and "'b' as eth1" in verdict.reason
    assert list(verdict.left) == ["30-c.conf"]
    assert len(look("containerd-1.7", files, max_networks=0).networks) == 3


def test_what_containerd_loaded_before_an_error_is_void(look):
    verdict = look("containerd-1.7", {"10-a.conflist": network("a"), "20-b.conflist": "{"}, max_networks=2)
    assert verdict.failed and verdict.network is None and verdict.networks == []
    assert "failed to load CNI config list file" in verdict.reason
    assert "it is valid" in verdict.left["10-a.conflist"]


def test_crio_skips_what_it_cannot_load_or_run(look):
    verdict = look(
        "crio",
        {
            "05-a.conflist": "{",
            "06-b.conflist": listed("b", "gone"),
            "07-c.conflist": listed("c", "mute"),
            "08-d.conflist": listed("d", "bridge", cniVersion="0.3.1"),
            "10-e.conflist": listed("e", "bridge"),
            "20-f.conflist": listed("f", "bridge"),
        },
        ask=missing,
        bin_dirs=["/opt/cni/bin"],
    )
    assert (verdict.network, verdict.reason) == ("e", "10-e.conflist is the first file that can be used")
    assert verdict.left["05-a.conflist"].startswith("it is skipped: error parsing")
    assert verdict.left["06-b.conflist"] == "it is skipped: the plugin gone is not in /opt/cni/bin"
    assert verdict.left["07-c.conflist"] == "it is skipped: the plugin mute does not answer VERSION"
    assert verdict.left["08-d.conflist"] == "it is skipped: the plugin bridge does not support the version 0.3.1"
    assert verdict.left["20-f.conflist"] == "10-e.conflist sorts before it"


def test_a_plugin_that_root_does_not_run_is_taken_for_one_that_works(look):
    verdict = look("crio", {"10-a.conflist": listed("a", "script")}, ask=missing)
    assert verdict.network == "a"
    why = "(it is no ELF file) and is assumed to work"
    assert verdict.notes == [f"the plugin script of 10-a.conflist was not asked {why}"]


def test_crio_without_a_usable_file(look):
    assert "Has your network provider started?" in look("crio", {}).reason
    verdict = look("crio", {"10-a.conflist": "{"})
    assert verdict.failed and "no file in" in verdict.reason


def test_crio_waits_for_a_network_that_is_set_by_name(look):
    files = {"10-a.conflist": network("a"), "20-b.conflist": network("b")}
    verdict = look("crio", files, default_network="b")
    assert (verdict.network, verdict.base) == ("b", "20-b.conflist")
    assert verdict.left["10-a.conflist"] == "it is used only when the network 'a' is requested by name"
    verdict = look("crio", files, default_network="c")
    assert verdict.failed and verdict.network is None and "waits for the default network 'c'" in verdict.reason


def test_crio_names_a_network_without_name_after_its_file(look):
    assert look("crio", {"10-a.conflist": network("")}).network == "10-a.conflist"


def test_crio_takes_the_first_of_two_with_one_name(look):
    files = {"10-a.conflist": network("n"), "20-b.conflist": network("n")}
    verdict = look("crio", files, default_network="n")
    assert verdict.left == {"20-b.conflist": "10-a.conflist has the network 'n' already"}


def test_dockershim_does_not_ask_plugins(look):
    verdict = look("dockershim", {"05.conflist": "{", "10-a.conflist": listed("a", "gone")}, ask=missing)
    assert (verdict.network, verdict.notes) == ("a", [])
    assert "No networks found" in look("dockershim", {"10-a.conflist": "{}"}).reason or look("dockershim", {}).failed


def test_rkt_reads_conf_files_by_name_and_a_broken_one_ends_all(look):
    files = {"10-a.conf": single("a"), "20-b.conf": single("a"), "30-c.conflist": listed("c", "bridge")}
    verdict = look("rkt", files)
    assert ([network.name for network in verdict.networks], verdict.network) == (["a"], "default")
    assert "stage1 image" in verdict.reason
    assert verdict.left["20-b.conf"] == "10-a.conf has the network 'a' already"
    assert verdict.left["30-c.conflist"] == "it reads .conf only"
    verdict = look("rkt", {**files, "99-z.conf": "{"})
    assert verdict.failed and "99-z.conf" in verdict.reason
    # Go decodes a conflist into the configuration of a plugin, whose type is missing.
    verdict = look("rkt", {"10-a.conf": single("a"), "99-z.conf": listed("z", "bridge")})
    assert ([network.name for network in verdict.networks], verdict.failed) == (["a"], "")
    assert "missing 'type'" in verdict.left["99-z.conf"]


def test_rkt_prefers_a_file_with_its_default_network(look):
    verdict = look("rkt", {"50-d.conf": single("default")})
    assert (verdict.network, verdict.base) == ("default", "50-d.conf")


def test_mesos_looks_whether_plugins_are_there_and_reads_single_plugins_only(look):
    files = {
        "05.json": "{",
        "10-a.conflist": single("a"),
        "20-l.conflist": listed("l", "bridge"),
        "30-g.conf": json.dumps({"name": "g", "type": "gone"}),
        "40-i.conf": json.dumps({"name": "i", "type": "bridge", "ipam": {"type": "bin/gone"}}),
        "50-m.conf": json.dumps({"name": "m", "type": "mute"}),
        "60-n.conf": json.dumps({"type": "bridge"}),
        "70-a.conf": single("a"),
    }
    verdict = look("mesos", files, ask=missing)
    assert [network.name for network in verdict.networks] == ["a", "m"]
    assert "'type'" in verdict.left["20-l.conflist"]
    assert verdict.left["30-g.conf"] == "it is skipped: the plugin gone is not in /var/lib/mesos/cni/plugins"
    assert verdict.left["40-i.conf"].endswith("the plugin bin/gone is not in /var/lib/mesos/cni/plugins")
    assert verdict.left["60-n.conf"] == "it is skipped: it has no name"
    assert verdict.left["70-a.conf"] == "10-a.conflist has the network 'a' already"


@pytest.mark.parametrize("name", ["kubenet", "ecs", "nomad-bridge"])
def test_what_builds_its_network_reads_no_files(look, name):
    verdict = look(name, {"10-a.conf": single("a")}, default_network="own")
    assert (verdict.network, verdict.file, verdict.left) == ("own", None, {})


def test_cri_dockerd_asks_plugins(look):
    files = {"05-a.conflist": listed("a", "gone"), "10-b.conflist": listed("b", "bridge")}
    assert look("cri-dockerd", files, ask=missing).network == "b"


def test_multus_wraps_the_first_that_is_not_its_own(look):
    files = {"00-multus.conf": single("multus-cni-network"), "10-a.json": single("x"), "20-b.conf": single("b")}
    verdict = look("multus", files)
    assert (verdict.network, verdict.base) == ("b", "20-b.conf")
    assert "its own" in verdict.left["00-multus.conf"] and ".conflist only" in verdict.left["10-a.json"]
    assert look("multus", {"00-multus.conf": single("m")}).failed
    assert look("multus", {"10-a.conf": "{", "20-b.conf": single("b")}).failed


def test_buildkit_reads_one_file(look):
    verdict = look("buildkit", {"cni.json": single("b"), "other.json": single("x")})
    assert (verdict.network, verdict.base) == ("b", "cni.json")
    assert "host's network" in look("buildkit", {"other.json": single("x")}).reason
    assert look("buildkit", {"cni.json": network("b")}).failed


# --- those that are told a name


def test_podman_reads_lists_only_and_makes_its_default(look):
    verdict = look("podman", {"10-a.conflist": network("a"), "20-b.conf": single("b")})
    assert (verdict.network, verdict.file) == ("podman", None)
    assert verdict.can_use("a") and not verdict.can_use("b")
    assert "in memory" in verdict.reason and verdict.left["20-b.conf"] == "it reads .conflist only"
    verdict = look("podman", {"87-podman.conflist": network("podman"), "99.conflist": network("podman")})
    assert verdict.base == "87-podman.conflist"
    assert look("podman", {"10-a.conflist": network("a")}, default_network="a").base == "10-a.conflist"


def test_podman_leaves_out_what_it_cannot_name_run_or_show(look):
    files = {
        "1.conflist": network("a b"),
        "2.conflist": listed("b", "bin/gone"),
        "3.conflist": network("c", plugins=[dict(BRIDGE, mtu="1500")]),
    }
    verdict = look("podman", files, ask=missing)
    assert verdict.networks == []
    assert "not valid" in verdict.left["1.conflist"] and "gone" in verdict.left["2.conflist"]
    assert verdict.left["3.conflist"] == "it is skipped: mtu is not understood"


@pytest.mark.parametrize(
    ("plugin", "why"),
    [
        ({"Type": "bridge", "MTU": "1500"}, "mtu is not understood"),
        ({"type": "bridge", "IPAM": {"TYPE": "host-local", "Ranges": [[{"Subnet": "10.1.0.0"}]]}}, "a subnet is"),
        ({"type": "bridge", "ipam": {"Routes": {}, "routes": "x"}}, "the ranges or routes are not understood"),
    ],
)
def test_podman_reads_keys_in_any_case_as_go_does(look, plugin, why):
    assert why in look("podman", {"1.conflist": network("c", plugins=[plugin])}).left["1.conflist"]


def test_one_broken_file_leaves_nerdctl_without_networks_wherever_it_stands(look):
    for broken in ("00.conflist", "99.json"):
        verdict = look("nerdctl", {"10-a.conflist": network("a"), broken: "{"})
        assert verdict.failed and broken in verdict.reason and not verdict.can_use("a")


def test_nerdctl_takes_the_label_then_the_name_bridge_then_its_own(look):
    label = {"nerdctlLabels": {"nerdctl/default-network": "true"}}
    files = {"10-a.conflist": network("a", **label), "nerdctl-bridge.conflist": network("bridge")}
    assert look("nerdctl", files).network == "a"
    files["10-a.conflist"] = network("a", nerdctlLabels=["nerdctl/default-network"])
    assert look("nerdctl", files).base == "nerdctl-bridge.conflist"
    verdict = look("nerdctl", {"10-a.conflist": network("a")})
    assert (verdict.network, verdict.file) == ("bridge", None) and "nerdctl-bridge.conflist" in verdict.reason


@pytest.mark.parametrize(("version", "works"), [("1.7.7", False), ("2.0.3", False), ("2.1.0", True), ("", True)])
def test_nerdctl_reads_single_plugins_as_lists(look, version, works):
    verdict = look("nerdctl", {"10-a.conf": single("a")}, version)
    assert verdict.can_use("a") is works


def test_nomad_finds_networks_by_name_unless_a_file_is_broken(look):
    files = {"10-a.conf": single("a"), "20-b.conflist": network("b"), "30-c.conflist": network("b")}
    verdict = look("nomad", files)
    assert (verdict.network, verdict.file, verdict.failed) == (None, None, "")
    assert verdict.can_use("a") and verdict.can_use("b") and not verdict.can_use("c")
    assert "already" in verdict.left["30-c.conflist"]
    files["99-x.json"] = "{}"
    verdict = look("nomad", files)
    assert verdict.failed and not verdict.can_use("a")


@pytest.mark.parametrize("name", ["cnitool", "firecracker"])
def test_libcni_looks_at_single_plugins_after_all_lists(look, name):
    files = {"10-a.conf": single("n"), "20-b.conflist": network("n"), "30-c.json": single("c")}
    verdict = look(name, files)
    assert verdict.left["10-a.conf"] == "20-b.conflist has the network 'n' already"
    assert verdict.can_use("c")


@pytest.mark.parametrize("name", ["cnitool", "firecracker"])
def test_libcni_finds_nothing_behind_a_broken_file(look, name):
    files = {
        "10-a.conflist": network("a"),
        "20-b.conflist": "{",
        "30-c.conflist": network("c"),
        "05-d.conf": single("d"),
    }
    verdict = look(name, files)
    assert not verdict.failed and verdict.can_use("a")
    assert not verdict.can_use("c") and not verdict.can_use("d")
    assert verdict.left["05-d.conf"] == "it is not read after the error"
    assert look(name, {"20-b.conflist": "{", "30-c.conflist": network("c")}).failed
    assert "no net configurations found" in look(name, {}).reason


# --- releases of libcni


@pytest.mark.parametrize(
    ("name", "version", "level"),
    [
        ("crio", "1.24.6", "1.1"),
        ("crio", "1.31.0", "1.2"),
        ("crio", "1.33.1", "1.3"),
        ("crio", "", "1.3"),
        ("k3s", "1.7.11", "1.1"),
        ("k3s", "2.0.5", "1.2"),
        ("rke2", "2.1.4", "1.3"),
        ("podman", "4.3.1", "1.1"),
        ("containerd-2.0", "2.0.1", "1.2"),
        ("nerdctl", "1.7.0", "1.1"),
    ],
)
def test_each_release_carries_its_libcni(name, version, level):
    assert Runtime(name, version).libcni == level


def test_only_libcni_1_3_appends_drop_ins(look):
    files = {"10-a.conflist": network("n"), "n/10-x.conf": "{"}
    assert look("crio", files, "1.32.0").network == "n"
    assert look("crio", files, "1.33.0").failed


# --- names and versions


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3", "1.6.20"),
        ("containerd github.com/containerd/containerd/v2 2.1.9+unknown ", "2.1.9"),
        ("containerd github.com/k3s-io/containerd v1.7.11-k3s2 3c8d1e", "1.7.11"),
        ("podman version 4.3.1", "4.3.1"),
        ("Nomad v1.10.0\nBuildDate 2025-04-09T16:40:54Z", "1.10.0"),
        ("crio version 1.24\nVersion: 1.24.6", "1.24"),
        ("", ""),
        ("no version", ""),
        ("1" * 50 + ".2", ""),
    ],
)
def test_versions_are_read_from_what_commands_print(text, version):
    assert version_of(text) == version


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("1.5.9", "containerd-1.6"),
        ("1.6.20", "containerd-1.6"),
        ("1.7.24", "containerd-1.7"),
        ("2.0.0", "containerd-2.0"),
        ("2.1.9", "containerd-2.1"),
        ("2.4.0", "containerd-2.1"),
        ("", "containerd-2.1"),
    ],
)
def test_versions_of_containerd_have_rows(version, name):
    assert containerd_profile(version) == name
    assert name in NAMES


def test_a_file_of_which_only_the_network_is_known_counts():
    file = ConfFile("10-a.conflist", "/etc/cni/net.d/10-a.conflist")
    file.network = "a"
    assert judge(Runtime("containerd-1.7"), [file], missing).network == "a"
    assert judge(Runtime("crio"), [file], missing).network == "a"
