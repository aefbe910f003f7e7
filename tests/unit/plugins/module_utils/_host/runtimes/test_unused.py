# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether runtimes read what a run writes: the directory of networks, and that of plugins."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import scan_conf_dir
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.runtime import Runtime
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.unused import (
    unused_bin_dirs,
    unused_directories,
)

CONFLIST = '{"cniVersion": "1.0.0", "name": "a", "plugins": [{"type": "bridge"}, {"type": "portmap"}]}'


class Host:
    """``etc`` has the networks of most runtimes; ``opt`` and ``usr`` have plugins."""

    def __init__(self, root):
        self.root = root
        for folder in ("etc", "opt", "usr"):
            (root / folder).mkdir()
        (root / "etc" / "10-a.conflist").write_text(CONFLIST)
        self.runtimes = []
        self.view = HostView(Manifest(str(root / "state")))

    def path(self, folder):
        return str(self.root / folder)

    def has(self, name, *bin_dirs, conf_dir="etc", **settings):
        dirs = [self.path(folder) for folder in bin_dirs]
        runtime = Runtime(name, "", "process 1", self.path(conf_dir), dirs)
        vars(runtime).update(settings)
        self.runtimes.append(runtime)

    def install(self, folder, *names):
        for name in names:
            (self.root / folder / name).write_text("")

    def findings(self, *bin_dirs, conf_dir="etc"):
        path = self.path(conf_dir)
        dirs = [self.path(folder) for folder in bin_dirs or ("opt",)]
        return unused_directories(self.runtimes, path, scan_conf_dir(path), dirs, self.view)

    def codes(self, *bin_dirs, **options):
        return [(finding.code, finding.runtime) for finding in self.findings(*bin_dirs, **options)]


@pytest.fixture
def unused_host(tmp_path):
    return Host(tmp_path)


# ---- plugins


@pytest.mark.parametrize(
    "runtime", ["containerd-1.6", "containerd-1.7", "containerd-2.1", "crio", "nomad", "podman", "k3s"]
)
def test_plugins_that_a_runtime_never_runs(unused_host, runtime):
    unused_host.has(runtime, "usr")
    unused_host.install("opt", "bridge", "portmap")
    [finding] = unused_host.findings()
    assert (finding.level, finding.code, finding.file) == ("warning", "bin_dir_unused", unused_host.path("opt"))
    text = finding.message
    assert "bridge, portmap" in text and unused_host.path("usr") in text
    assert "bin_dirs" in finding.remedy and "cni_bin_dirs" in finding.remedy
    assert ("cni_runtime" in finding.remedy) == (runtime != "k3s")
    # Where the runtime has them, too, it runs its own.
    unused_host.install("usr", "bridge", "portmap")
    assert unused_host.codes() == [("bin_dir_unused", runtime)]


def test_plugins_that_every_runtime_runs(unused_host):
    unused_host.install("opt", "bridge", "portmap")
    unused_host.has("containerd-1.7", "opt")
    unused_host.has("podman", "usr", "opt")
    assert unused_host.codes() == []


def test_a_directory_before_it_has_plugins_of_the_same_names(unused_host):
    unused_host.has("podman", "usr", "opt")
    unused_host.install("opt", "bridge", "portmap")
    unused_host.install("usr", "portmap")
    [finding] = unused_host.findings()
    assert "portmap" in finding.what and "bridge" not in finding.what
    assert f"{unused_host.path('usr')}/portmap" in finding.what


def test_a_list_that_names_both_directories_in_another_order(unused_host):
    unused_host.install("opt", "bridge", "portmap")
    unused_host.install("usr", "bridge")
    unused_host.has("crio", "usr", "opt")
    assert unused_host.codes("usr", "opt") == []
    assert unused_host.codes("opt", "usr") == [("bin_dir_unused", "crio")]


def test_each_runtime_that_runs_others_is_told(unused_host):
    unused_host.install("opt", "bridge")
    unused_host.has("containerd-1.7", "usr")
    unused_host.has("crio", "opt")
    unused_host.has("podman", "usr")
    assert unused_host.codes() == [("bin_dir_unused", "containerd-1.7"), ("bin_dir_unused", "podman")]


def test_a_runtime_of_another_directory_has_plugins_of_its_own(unused_host):
    unused_host.install("opt", "bridge")
    (unused_host.root / "nomad").mkdir()
    unused_host.has("containerd-1.7", "opt")
    unused_host.has("nomad", "usr", conf_dir="nomad")
    assert unused_host.codes() == []


def test_links_lead_to_the_same_directory(unused_host):
    (unused_host.root / "link").symlink_to("usr")
    (unused_host.root / "net").symlink_to("etc")
    unused_host.install("usr", "bridge", "portmap")
    unused_host.has("containerd-1.7", "usr", conf_dir="net")
    assert unused_host.codes("link") == []
    # So does a link for each plugin, as some packages make it.
    for name in ("bridge", "portmap"):
        (unused_host.root / "opt" / name).symlink_to(f"../usr/{name}")
    assert unused_host.codes("opt") == []


def test_what_is_only_planned_counts(unused_host):
    (unused_host.root / "link").symlink_to("usr")
    unused_host.has("containerd-1.7", "usr")
    unused_host.view.expect_binaries({unused_host.path("opt/bridge"): []})
    assert unused_host.codes() == [("bin_dir_unused", "containerd-1.7")]
    unused_host.view.expect_binaries({unused_host.path("link/bridge"): []})
    assert unused_host.codes("usr") == unused_host.codes("link") == []
    # A file that is removed is in the way no more.
    unused_host.install("usr", "portmap")
    unused_host.install("opt", "portmap")
    unused_host.view.expect_binaries({unused_host.path("usr/bridge"): None, unused_host.path("opt/bridge"): None})
    assert "portmap" in unused_host.findings()[0].what
    unused_host.view.expect_binaries({unused_host.path("opt/portmap"): None})
    assert unused_host.codes() == []


def test_plugins_that_do_not_exist_are_another_matter(unused_host):
    unused_host.has("containerd-1.7", "usr")
    assert unused_host.codes() == []
    unused_host.install("usr", "bridge")
    assert unused_host.codes() == []


@pytest.mark.parametrize("settings", [{"reads": False}, {"evidence": ""}])
def test_a_runtime_that_uses_no_cni_or_is_not_there(unused_host, settings):
    unused_host.install("opt", "bridge")
    unused_host.has("podman", "usr", **settings)
    assert unused_host.codes() == [] == unused_host.codes(conf_dir="opt")


# ---- plugins alone, whatever the networks


def test_plugins_are_for_all_runtimes_if_none_reads_the_networks(unused_host):
    def codes():
        names = ("bridge", "portmap")
        folders = unused_host.path("none"), names, [unused_host.path("opt")]
        found = unused_bin_dirs(unused_host.runtimes, *folders, unused_host.view)
        return [(finding.code, finding.runtime) for finding in found]

    assert codes() == []
    unused_host.install("opt", "bridge", "portmap")
    unused_host.has("nomad", "usr")
    unused_host.has("nomad-bridge", "usr")
    assert codes() == [("bin_dir_unused", "nomad"), ("bin_dir_unused", "nomad-bridge")]
    # One that runs them is enough.
    unused_host.has("crio", "opt")
    assert codes() == []


# ---- networks


@pytest.mark.parametrize("runtime", ["containerd-1.6", "containerd-2.1", "crio", "nomad", "podman", "apptainer", "k3s"])
def test_networks_that_no_runtime_reads(unused_host, runtime):
    unused_host.has(runtime, "opt", conf_dir="other")
    [finding] = unused_host.findings()
    assert (finding.level, finding.code, finding.file) == ("warning", "conf_dir_unused", unused_host.path("etc"))
    assert runtime in finding.what and unused_host.path("other") in finding.what
    assert "cni_conf_dir" in finding.remedy and unused_host.path("other") in finding.remedy
    assert ("cni_runtime" in finding.remedy) == (runtime != "k3s")


def test_one_runtime_that_reads_the_networks_is_enough(unused_host):
    unused_host.has("nomad", "opt", conf_dir="other")
    unused_host.has("containerd-1.7", "opt")
    assert unused_host.codes() == []


def test_a_directory_without_networks_may_be_anywhere(unused_host):
    unused_host.has("nomad", "opt", conf_dir="other")
    (unused_host.root / "empty").mkdir()
    assert unused_host.codes(conf_dir="empty") == []


@pytest.mark.parametrize("name", ["nomad-bridge", "kubenet", "multus", "buildkit"])
def test_who_reads_no_directory_is_not_asked(unused_host, name):
    unused_host.has(name, "opt", conf_dir="other")
    assert unused_host.codes() == []


def test_no_runtime_at_all(unused_host):
    unused_host.install("opt", "bridge")
    assert unused_host.codes() == []
