# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Runtimes that are retired, but in use: kubelet with Docker, rkt, Mesos; and the agent of Amazon ECS."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import discover
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.others import Other


def others(fake_host):
    return {runtime.name: runtime for runtime in Other.find(fake_host.processes)}


def test_kubelet_counts_with_dockershim_only(fake_host):
    fake_host.run("kubelet", "--container-runtime-endpoint=unix:///x")
    fake_host.run("kubelet", "--container-runtime=remote", "--network-plugin=cni")
    assert others(fake_host) == {}
    fake_host.run("kubelet", "--network-plugin=cni", "--cni-conf-dir=/c", "--cni-bin-dir=/a,/b")
    runtime = others(fake_host)["dockershim"]
    assert (runtime.conf_dir, runtime.bin_dirs) == ("/c", ["/a", "/b"])


@pytest.mark.parametrize(
    ("version", "words", "name", "reads"),
    [
        ("v1.9.11", ["--network-plugin=cni"], "dockershim", True),
        ("v1.10.0", ["--network-plugin=cni"], "dockershim", True),
        ("v1.8.4", ["--network-plugin=kubenet"], "kubenet", True),
        ("v1.9.0", [], "dockershim", False),
        ("v1.23.17", ["--network-plugin=kubernetes.io/no-op"], "dockershim", False),
        ("v1.24.0", [], None, None),
        ("", [], None, None),
        ("v1.9.0", ["--network-plugin=exec"], None, None),
    ],
)
def test_kubelets_version_and_its_network_plugin_make_the_profile(fake_host, version, words, name, reads):
    fake_host.prints = {"--version": f"Kubernetes {version}"} if version else {}
    fake_host.run("kubelet", *words)
    assert [(one.name, one.reads) for one in others(fake_host).values()] == ([(name, reads)] if name else [])
    assert all(one.reads or "Docker makes the network of pods" in one.notes[-1] for one in others(fake_host).values())


def test_an_old_kubelet_takes_the_directory_of_network_plugins(fake_host):
    fake_host.run("kubelet", "--network-plugin=cni", "--network-plugin-dir=/n")
    runtime = others(fake_host)["dockershim"]
    assert (runtime.conf_dir, runtime.bin_dirs) == ("/n", ["/n"])


def test_rkt_has_fixed_directories(fake_host):
    fake_host.programs, fake_host.prints = ["rkt"], {"version": "rkt Version: 1.30.0\nappc Version: 0.8.11"}
    runtime = others(fake_host)["rkt"]
    assert (runtime.version, runtime.conf_dir, runtime.bin_dirs) == (
        "1.30.0",
        "/etc/rkt/net.d",
        ["/usr/lib/rkt/plugins/net"],
    )


def test_mesos_is_configured_by_flags_and_files(fake_host):
    fake_host.programs = ["mesos-agent"]
    assert (others(fake_host)["mesos"].reads, len(others(fake_host)["mesos"].notes)) == (False, 1)
    fake_host.put("/etc/mesos-slave/network_cni_config_dir", "/c\n")
    fake_host.put("/etc/mesos-slave/network_cni_plugins_dir", "/p:/q\n")
    runtime = others(fake_host)["mesos"]
    assert (runtime.reads, runtime.conf_dir, runtime.bin_dirs) == (True, "/c", ["/p", "/q"])
    fake_host.run("mesos-agent", "--network_cni_config_dir=/d", "--network_cni_plugins_dir=relative")
    runtime = others(fake_host)["mesos"]
    assert runtime.conf_dir == "/d" and "not understood" in runtime.notes[0]


@pytest.mark.parametrize(
    ("text", "reads", "bin_dir"),
    [
        ("", False, "/amazon-ecs-cni-plugins"),
        ("ECS_ENABLE_TASK_ENI=false\n", False, "/amazon-ecs-cni-plugins"),
        ("#x\nECS_ENABLE_TASK_ENI=true\n", True, "/amazon-ecs-cni-plugins"),
        ("ECS_CNI_PLUGINS_PATH=/ecs/cni\nECS_ENABLE_TASK_ENI=true", True, "/ecs/cni"),
        ("ECS_CNI_PLUGINS_PATH=ecs\nECS_ENABLE_TASK_ENI=True", True, "/amazon-ecs-cni-plugins"),
    ],
)
def test_the_agent_of_ecs_is_found_by_its_configuration(fake_host, text, reads, bin_dir):
    fake_host.put("/etc/ecs/ecs.config", text)
    [runtime] = discover.runtimes_on_host(fake_host.path("/net.d"), HostView())
    assert (runtime.name, runtime.reads, runtime.bin_dirs) == ("ecs", reads, [bin_dir])
