# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.usable import Binaries
from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import scan_conf_dir
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import discover
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.effective import Effective
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.runtime import Runtime
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.runtimes.layouts import network, put, single


class Host:
    """A host whose runtimes are given; the directory of the task is ``net.d``."""

    def __init__(self, root, monkeypatch):
        self.root = root
        self.conf_dir = str(root / "net.d")
        self.runtimes = []
        # Names of plugins that are not where a runtime looks.
        self.lacks = []
        monkeypatch.setattr(discover, "runtimes_on_host", lambda conf_dir, view: list(self.runtimes))

    def put(self, files, folder="net.d"):
        (self.root / folder).mkdir(exist_ok=True)
        put(str(self.root / folder), files)

    def has(self, name, version="", conf_dir=None, **settings):
        runtime = Runtime(name, version, "process 1", conf_dir or self.conf_dir)
        vars(runtime).update(settings)
        self.runtimes.append(runtime)
        return runtime

    def answers(self, monkeypatch):
        """Let every plugin answer that it supports all versions, except for those that the host lacks."""

        def ask(_binaries, name):
            if name in self.lacks:
                raise HostError(f"there is no plugin {name!r}", code="missing_plugin")
            return f"/opt/cni/bin/{name}", ["0.2.0", "0.3.1", "0.4.0", "1.0.0"]

        monkeypatch.setattr(Binaries, "ask", ask)

    def effective(self, names=None, tolerate_missing=False):
        files = scan_conf_dir(self.conf_dir)
        view = HostView(Manifest(str(self.root / "state")))
        return Effective(names, self.conf_dir, [str(self.root / "bin")], files, view, tolerate_missing)

    def ensure(self, network_name, names=None, **options):
        problems = self.effective(names, **options).ensure(network_name)
        return [(entry.level, entry.code, entry.message) for entry in problems]


@pytest.fixture
def effective_host(tmp_path, monkeypatch):
    return Host(tmp_path, monkeypatch)


@pytest.fixture
def _plugins(effective_host, monkeypatch):
    effective_host.answers(monkeypatch)


def test_a_row_says_everything(effective_host):
    effective_host.put({"10-a.conflist": network("a"), "20-b.conf": single("b")})
    effective_host.has("containerd-1.7", "1.7.24", notes=["a note"])
    [row] = effective_host.effective().rows()
    first, second = (os.path.join(effective_host.conf_dir, name) for name in ("10-a.conflist", "20-b.conf"))
    assert row == {
        "runtime": "containerd-1.7",
        "version": "1.7.24",
        "found": "process 1",
        "conf_dir": effective_host.conf_dir,
        "bin_dirs": ["/opt/cni/bin"],
        "network": "a",
        "file": first,
        "reason": "10-a.conflist is the first file; a note",
        "networks": [{"network": "a", "file": first}],
        "through": [],
        "not_chosen": [{"file": second, "network": "b", "reason": "10-a.conflist sorts before it"}],
        "verified": "run",
        "drop_ins": [],
        "requires": [row["requires"][0]],
    }
    assert row["requires"][0]["plugin"] == "loopback"


def test_no_names_are_no_runtimes(effective_host):
    effective_host.has("crio")
    assert effective_host.effective([]).rows() == []


def test_each_runtime_reads_its_own_directory(effective_host, tmp_path):
    effective_host.put({"10-a.conflist": network("a")})
    effective_host.put({"10-b.conflist": network("b")}, "other")
    effective_host.has("containerd-1.7")
    effective_host.has("k3s", conf_dir=str(tmp_path / "other"))
    effective_host.has("rke2", conf_dir=str(tmp_path / "nowhere"))
    assert [row["network"] for row in effective_host.effective().rows()] == ["a", "b", None]


@pytest.mark.usefixtures("_plugins")
def test_a_link_to_the_directory_is_the_directory(effective_host, tmp_path):
    effective_host.put({"10-a.conflist": network("a")})
    (tmp_path / "link").symlink_to("net.d")
    effective_host.has("containerd-1.7", conf_dir=str(tmp_path / "link"))
    assert effective_host.effective().rows()[0]["network"] == "a"
    assert effective_host.ensure("a") == []


def test_a_directory_that_cannot_be_read_is_said(effective_host, tmp_path):
    effective_host.put({})
    (tmp_path / "file").write_text("")
    effective_host.has("containerd-1.7", conf_dir=str(tmp_path / "file"))
    [row] = effective_host.effective().rows()
    assert row["network"] is None and "cannot be read" in row["reason"]


def test_one_that_uses_no_cni_says_why(effective_host):
    effective_host.put({"10-a.conflist": network("a")})
    effective_host.has("podman", reads=False, notes=["it uses netavark"])
    [row] = effective_host.effective().rows()
    assert (row["network"], row["reason"], row["not_chosen"]) == (None, "it uses netavark", [])


def test_nerdctl_reads_the_folder_of_its_namespace_too(effective_host):
    effective_host.put({"nerdctl-bridge.conflist": network("bridge"), "default/10-own.conflist": network("own")})
    effective_host.has("nerdctl", folder="default")
    [row] = effective_host.effective().rows()
    assert [entry["network"] for entry in row["networks"]] == ["own", "bridge"]


def test_buildkits_file_is_one_of_its_directory(effective_host, tmp_path):
    effective_host.put({"cni.json": single("b"), "other.json": single("o")}, "buildkit")
    runtime = effective_host.has("buildkit")
    runtime.set_conf(str(tmp_path / "buildkit" / "cni.json"))
    [row] = effective_host.effective().rows()
    assert (row["network"], row["conf_dir"], row["not_chosen"]) == ("b", str(tmp_path / "buildkit" / "cni.json"), [])


# --- plugins


def test_plugins_are_looked_for_where_the_runtime_does(effective_host, tmp_path):
    effective_host.put({"10-a.conflist": network("a")})
    effective_host.has("crio", bin_dirs=[str(tmp_path / "none")])
    [row] = effective_host.effective().rows()
    assert row["network"] is None
    assert row["not_chosen"][0]["reason"] == f"it is skipped: the plugin bridge is not in {tmp_path / 'none'}"


def test_a_plugin_to_come_is_taken_for_one_that_works_in_check_mode(effective_host, tmp_path):
    effective_host.put({"10-a.conflist": network("a")})
    effective_host.has("crio", bin_dirs=[str(tmp_path / "none")])
    [row] = effective_host.effective(tolerate_missing=True).rows()
    assert row["network"] == "a"
    assert "was not asked (it is not installed yet)" in row["reason"]


# --- ensure_effective


@pytest.mark.usefixtures("_plugins")
def test_the_network_has_to_be_the_first_of_those_that_take_the_first(effective_host):
    effective_host.put({"10-a.conflist": network("a"), "05-b.conflist": network("b")})
    effective_host.has("containerd-1.7")
    assert effective_host.ensure("b") == []
    [(level, code, message)] = effective_host.ensure("a")
    assert (level, code) == ("error", "not_effective")
    assert message == (
        "ensure_effective: containerd-1.7 would not use the network 'a' in 10-a.conflist (05-b.conflist sorts before "
        "it); it would use 'b': 05-b.conflist is the first file; set a lower 'priority', or remove or rename "
        f"{effective_host.conf_dir}/05-b.conflist"
    )
    assert "which no file has" in effective_host.ensure("c")[0][2]


@pytest.mark.usefixtures("_plugins")
def test_a_second_network_of_containerd_is_not_the_one(effective_host):
    effective_host.put({"10-a.conflist": network("a"), "20-b.conflist": network("b")})
    effective_host.has("containerd-1.7", max_networks=2)
    assert effective_host.ensure("a") == [] and effective_host.ensure("b")


def test_a_load_error_is_the_reason(effective_host):
    effective_host.put({"05-b.conflist": "{", "10-a.conflist": network("a")})
    effective_host.has("containerd-1.7")
    assert "failed to load CNI config list file" in effective_host.ensure("a")[0][2]


def test_one_that_is_told_a_name_has_to_find_it(effective_host):
    effective_host.put({"10-a.conflist": network("a"), "20-b.conflist": network("b")})
    effective_host.has("nomad")
    assert effective_host.ensure("b") == []
    assert "which no file has" in effective_host.ensure("c")[0][2]


def test_every_runtime_that_reads_the_directory_counts_and_no_other(effective_host, tmp_path):
    effective_host.put({"10-a.conflist": network("a"), "00-multus.conf": single("m")})
    effective_host.put({"10-b.conflist": network("b")}, "other")
    effective_host.has("k3s", conf_dir=str(tmp_path / "other"))
    effective_host.has("podman", reads=False)
    effective_host.has("nomad-bridge")
    effective_host.has("multus")
    effective_host.has("nomad")
    effective_host.has("containerd-1.7")
    assert [message.split()[1] for _level, _code, message in effective_host.ensure("a")] == ["containerd-1.7"]


@pytest.mark.usefixtures("_plugins")
def test_the_network_behind_multus_is_the_one_of_pods(effective_host):
    delegates = [{"name": "pods", "type": "bridge"}, {"name": "storage", "type": "macvlan"}]
    effective_host.put({"00-m.conf": single("m", type="multus", delegates=delegates), "10-a.conflist": network("a")})
    effective_host.has("containerd-1.7")
    [row] = effective_host.effective().rows()
    assert (row["network"], [one["network"] for one in row["through"]]) == ("m", ["pods", "storage"])
    assert row["reason"].endswith("Multus gives every pod pods, net1: storage")
    assert effective_host.ensure("pods") == effective_host.ensure("m") == []
    assert "Multus gives every pod pods, net1: storage" in effective_host.ensure("storage")[0][2]


def test_a_directory_that_nobody_reads_is_an_error(effective_host, tmp_path):
    effective_host.put({"10-a.conflist": network("a")})
    effective_host.has("k3s", conf_dir=str(tmp_path / "other"))
    [(level, code, message)] = effective_host.ensure("a")
    assert (level, code) == ("error", "not_effective")
    assert f"no runtime of this host reads {effective_host.conf_dir} (k3s reads {tmp_path / 'other'})" in message


def test_a_host_without_runtimes_is_an_error_but_not_in_check_mode(effective_host):
    effective_host.put({"10-a.conflist": network("a")})
    effective_host.has("podman", reads=False)
    assert [entry[:2] for entry in effective_host.ensure("a")] == [("error", "missing_runtime")]
    (entry,) = effective_host.ensure("a", tolerate_missing=True)
    assert entry[:2] == ("warning", "missing_runtime")


@pytest.mark.usefixtures("_plugins")
def test_named_ones_all_count_wherever_they_read(effective_host, tmp_path):
    effective_host.put({"10-a.conflist": network("a")})
    effective_host.put({"10-a.conflist": network("a")}, "other")
    effective_host.has("rke2", conf_dir=str(tmp_path / "other"))
    effective_host.has("podman", reads=False, notes=["it uses netavark"])
    assert ", not " + effective_host.conf_dir in effective_host.ensure("a", ["rke2"])[0][2]
    assert "uses no network: it uses netavark" in effective_host.ensure("a", ["podman"])[0][2]
    assert effective_host.ensure("a", ["containerd-2.1", "cnitool", "nomad"]) == []
    assert effective_host.ensure("a", ["k3s"])[0][1] == "not_effective"
    assert effective_host.ensure("a", ["containerd-2.1", "k3s"])[0][2].startswith("ensure_effective: k3s reads ")
    assert "Nomad builds it" in effective_host.ensure("a", ["nomad-bridge"])[0][2]


@pytest.mark.usefixtures("_plugins")
def test_of_one_name_those_count_that_read_the_directory(effective_host, tmp_path):
    effective_host.put({"10-a.conflist": network("a")})
    effective_host.put({"10-b.conflist": network("b")}, "other")
    effective_host.has("containerd-1.7", reads=False, notes=["its CRI plugin is disabled"])
    assert "is disabled" in effective_host.ensure("a", ["containerd"])[0][2]
    effective_host.has("containerd-1.7", conf_dir=str(tmp_path / "other"))
    assert ", not " + effective_host.conf_dir in effective_host.ensure("a", ["containerd"])[0][2]
    effective_host.has("containerd-1.7")
    assert effective_host.ensure("a", ["containerd"]) == []
    assert len(effective_host.ensure("b", ["containerd"])) == 1


# --- a runtime beside a task that would use none of the networks that the task writes


def displacing(host, written, managed=()):
    paths = {os.path.join(host.conf_dir, name) for name in managed}
    return [runtime.name for runtime in host.effective().displaced(written, paths)]


@pytest.mark.usefixtures("_plugins")
def test_only_an_unmanaged_file_displaces_networks(effective_host, tmp_path):
    effective_host.put({"05-b.conflist": network("b"), "10-a.conflist": network("a"), "20-c.conflist": network("c")})
    effective_host.has("containerd-1.7")
    # These choose by name, read another directory or one file, or are not there.
    for name in ("podman", "nerdctl", "nomad", "nomad-bridge", "multus"):
        effective_host.has(name)
    effective_host.has("buildkit").set_conf(os.path.join(effective_host.conf_dir, "05-b.conflist"))
    effective_host.has("k3s", conf_dir=str(tmp_path / "other"))
    effective_host.has("crio").evidence = ""
    effective_host.has("crio", reads=False)
    assert displacing(effective_host, ["a"]) == displacing(effective_host, ["c", "a"]) == ["containerd-1.7"]
    assert displacing(effective_host, ["a"], ["05-b.conflist"]) == displacing(effective_host, ["a", "b"]) == []
    assert displacing(effective_host, []) == displacing(effective_host, ["d"]) == []


@pytest.mark.usefixtures("_plugins")
def test_a_second_network_of_containerd_is_used(effective_host):
    effective_host.put({"05-b.conflist": network("b"), "10-a.conflist": network("a")})
    effective_host.has("containerd-1.7", max_networks=2)
    assert displacing(effective_host, ["a"]) == []


@pytest.mark.usefixtures("_plugins")
def test_the_name_that_crio_is_told_decides(effective_host):
    effective_host.put({"05-a.conflist": network("a"), "10-b.conflist": network("b")})
    crio = effective_host.has("crio", default_network="b")
    assert displacing(effective_host, ["a"]) == ["crio"] and displacing(effective_host, ["b"]) == []
    crio.keys = crio.keys._replace(default_network="cni_default_network")
    assert "cni_default_network to 'a'" in effective_host.ensure("a")[0][2]
    # It waits for a network that no file has.
    crio.default_network = "c"
    assert displacing(effective_host, ["a"]) == ["crio"]


@pytest.mark.usefixtures("_plugins")
@pytest.mark.parametrize(
    ("keys", "displaces"),
    [
        ({"delegates": [{"name": "b", "type": "bridge"}]}, True),
        ({"delegates": [{"name": "b", "type": "bridge"}, {"name": "a", "type": "macvlan"}]}, False),
        ({"clusterNetwork": "@/20-a.conflist"}, False),
        ({"clusterNetwork": "@/30-b.conflist"}, True),
        ({"clusterNetwork": "@/40-ours.conflist"}, False),
        # It runs networks of this directory by name.
        ({"clusterNetwork": "@/30-b.conflist", "confDir": "@"}, False),
        # What these are is known to the cluster, or to a daemon in a container.
        ({"clusterNetwork": "b"}, False),
        ({"clusterNetwork": "/host/etc/cni/net.d/20-a.conflist"}, False),
        ({"clusterNetwork": "@/30-b.conflist", "type": "multus-shim"}, False),
        ({}, False),
    ],
)
def test_multus_displaces_what_it_certainly_does_not_run(effective_host, keys, displaces):
    text = single("m", **{"type": "multus", **keys}).replace("@", effective_host.conf_dir)
    files = {"20-a.conflist": network("a"), "30-b.conflist": network("b"), "40-ours.conflist": network("ours")}
    effective_host.put({"00-m.conf": text, **files})
    effective_host.has("containerd-1.7")
    assert bool(displacing(effective_host, ["a"], ["40-ours.conflist"])) == displaces
    if displaces:
        assert "make it a network of Multus" in effective_host.ensure("a")[0][2]


@pytest.mark.usefixtures("_plugins")
def test_multus_is_found_in_what_a_runtime_with_an_older_libcni_loads(effective_host):
    multus = {"type": "multus", "clusterNetwork": "30-b", "confDir": effective_host.conf_dir}
    text = json.dumps({"cniVersion": "1.0.0", "name": "m", "disableGC": 1, "plugins": [multus]})
    effective_host.put({"00-m.conflist": text, "20-a.conflist": network("a"), "30-b.conflist": network("b")})
    effective_host.has("containerd-1.7")
    assert displacing(effective_host, ["a"], ["40-ours.conflist"]) == []


# --- what runtimes need beyond the plugins of files


@pytest.fixture
def sound(effective_host, _plugins):
    """A host with a network for containerd, and all plugins."""
    effective_host.put({"10-a.conflist": network("a")})
    return effective_host


def test_without_loopback_no_network_of_containerd_is_effective(sound):
    sound.has("containerd-1.7")
    assert sound.ensure("a") == [] and sound.effective().unmet() == []
    sound.lacks = ["loopback"]
    told = "containerd-1.7 runs the plugin loopback for every pod, and would fail: there is no plugin 'loopback'"
    assert sound.ensure("a") == [("error", "missing_plugin", told)]
    assert sound.ensure("a", tolerate_missing=True) == [("warning", "missing_plugin", told)]
    required = {"plugin": "loopback", "code": "missing_plugin", "problem": "there is no plugin 'loopback'"}
    assert sound.effective().rows()[0]["requires"] == [required]


def test_a_runtime_that_brings_up_lo_itself_needs_no_loopback(sound):
    sound.lacks = ["loopback"]
    sound.has("containerd-2.1", "2.1.9", internal_loopback=True)
    sound.has("crio")
    assert sound.ensure("a") == []
    assert [row["requires"] for row in sound.effective().rows()] == [[], []]


def test_what_the_task_names_is_an_error_and_what_it_finds_a_warning(sound):
    sound.lacks = ["loopback"]
    sound.has("containerd-1.6")
    assert [entry.level for entry in sound.effective().unmet()] == ["warning"]
    assert [entry.level for entry in sound.effective(["containerd"]).unmet()] == ["error"]
    assert [entry.level for entry in sound.effective(["containerd"], tolerate_missing=True).unmet()] == ["warning"]


def test_a_runtime_without_a_network_needs_nothing(sound):
    sound.lacks = ["loopback"]
    sound.has("containerd-1.7")
    sound.put({})
    assert sound.effective().unmet() == []


@pytest.mark.usefixtures("_plugins")
def test_who_takes_a_file(effective_host):
    """Of an unmanaged file, nobody needs the plugins if no runtime takes its network from this directory."""
    effective_host.put({"10-a.conflist": network("a"), "87-podman.conflist": network("podman")})
    bins = effective_host.root / "bin"
    bins.mkdir()
    (bins / "bridge").write_text("")
    effective_host.has("containerd-1.7", bin_dirs=[str(bins)])
    effective_host.has("podman", reads=False)
    effective = effective_host.effective()
    [first, second] = effective.files
    assert effective.users_of(first) == [{"runtime": "containerd-1.7", "plugins": [f"{bins}/bridge"]}]
    assert effective.users_of(second) == []
    effective_host.has("nerdctl", bin_dirs=["/nowhere"])
    effective = effective_host.effective()
    assert effective.users_of(second) == [{"runtime": "nerdctl", "plugins": []}]
