# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import processes
from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import ConfFile
from ansible_collections.podwire.cni.plugins.module_utils._host.networks import owners
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.owners import (
    INJECTED,
    OWNERS,
    Owners,
    recognise,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.processes import Process

CONF_DIR = "/etc/cni/net.d"


@pytest.fixture
def proc(monkeypatch):
    """Return a function that makes a process of root, which may be in a container."""
    running = []
    monkeypatch.setattr(
        processes,
        "processes",
        lambda *names, seeing: [one for one in running if one.name in names and seeing == CONF_DIR],
    )
    return lambda pid, name: running.append(Process(pid, [], name))


def file(*types, path="/etc/cni/net.d/10-x.conflist"):
    found = ConfFile(os.path.basename(path), path)
    found.plugins = [{"type": kind} for kind in types]
    return found


def owner_of(*args, **keywords):
    living = Owners(CONF_DIR).living(file(*args, **keywords))
    return living.owner.name if living else None


@pytest.mark.parametrize(
    ("types", "process", "name"),
    [
        (["multus-shim"], "multus-daemon", "Multus"),
        (["multus"], "thin_entrypoint", "Multus"),
        (["cilium-cni"], "cilium-agent", "Cilium"),
        (["aws-cni", "cilium-cni"], "cilium-agent", "Cilium"),
        (["calico", "portmap"], "calico-node", "Calico"),
        (["aws-cni", "egress-cni", "portmap"], "aws-k8s-agent", "AWS VPC CNI"),
        (["azure-vnet", "portmap"], "azure-cns", "Azure CNI"),
        (["antrea"], "antrea-agent", "Antrea"),
        (["kube-ovn"], "kube-ovn-daemon", "Kube-OVN"),
        (["ovn-k8s-cni-overlay"], "ovnkube", "OVN-Kubernetes"),
        (["weave-net"], "weaver", "Weave Net"),
        (["flannel", "portmap"], "flanneld", "flannel"),
        (["bridge", "istio-cni"], "install-cni", "Istio"),
        (["bridge", "linkerd-cni"], "install-cni.sh", "Linkerd"),
        (["bridge", "linkerd-cni"], "linkerd-cni-repair-controller", "Linkerd"),
    ],
)
def test_a_file_is_told_by_its_plugins_and_a_process(proc, types, process, name):
    assert owner_of(*types) is None
    proc(7, process)
    assert owner_of(*types) == name
    assert owner_of("bridge", "portmap") is None


@pytest.mark.parametrize(
    ("path", "process", "name"),
    [
        ("/etc/cni/net.d/05-cilium.conflist", "cilium-agent", "Cilium"),
        ("/etc/cni/net.d/00-multus.conf", "multus-daemon", "Multus"),
        ("/var/lib/rancher/k3s/agent/etc/cni/net.d/10-flannel.conflist", "k3s", "k3s"),
        ("/etc/cni/net.d/10-kindnet.conflist", "kindnetd", "kindnet"),
        ("/etc/cni/net.d/10-kuberouter.conflist", "kube-router", "kube-router"),
        ("/etc/cni/net.d/10-gke-ptp.conflist", "netd", "GKE's netd"),
    ],
)
def test_a_file_is_told_by_its_name_and_a_process(proc, path, process, name):
    assert owner_of(path=path) is None
    proc(7, process)
    assert owner_of(path=path) == name
    assert owner_of(path=path + ".conflist") is None


def test_who_puts_a_plugin_into_the_file_of_a_daemon_that_is_gone(proc):
    proc(7, "install-cni")
    assert owner_of("calico", "istio-cni") == "Istio"
    proc(8, "calico-node")
    assert owner_of("calico", "istio-cni") == "Calico"


def test_containerd_writes_a_file_only_from_a_template(proc, tmp_path, monkeypatch):
    config = tmp_path / "config.toml"
    table = [o._replace(config=(str(config), o.config[1])) if o.name == "containerd" else o for o in OWNERS]
    monkeypatch.setattr(owners, "OWNERS", table)
    path = "/etc/cni/net.d/10-containerd-net.conflist"
    proc(7, "containerd")
    assert owner_of(path=path) is None
    config.write_text('[cni]\n  conf_template = ""\n')
    assert owner_of(path=path) is None
    config.write_text('[cni]\n  conf_template = "/etc/cni/template"\n')
    assert owner_of(path=path) == "containerd"


def test_what_is_said_of_an_owner(proc):
    proc(7, "cilium-agent")
    living = Owners(CONF_DIR).living(file("cilium-cni"))
    assert str(living) == "Cilium, which is running (cilium-agent, process 7)"
    assert "cni.customConf=true" in living.owner.setting


def test_who_injects(proc):
    proc(7, "install-cni")
    found = Owners(CONF_DIR)
    assert found.injector("istio-cni").owner.name == "Istio"
    assert found.injector("linkerd-cni") is None
    assert found.injector("bridge") is None


def test_a_file_is_recognised_without_a_process():
    assert recognise(file("calico")).name == "Calico"
    assert recognise(file("bridge")) is None


def test_the_table_is_whole():
    names = [owner.name for owner in OWNERS]
    assert len(names) == len(set(names))
    assert set(INJECTED.values()) <= set(names)
    assert all(owner.setting and owner.path for owner in OWNERS)
    assert [owner.name for owner in OWNERS if not owner.processes] == ["Apptainer"]


def test_plugins_of_others_are_written_as_their_owners_write_them():
    wanted = '{"name": "ü", "plugins": [{"type": "a"}]}'.encode()
    assert owners.with_injected(wanted, [{"type": "b"}]).decode() == (
        '{\n  "name": "ü",\n  "plugins": [\n    {\n      "type": "a"\n    },\n    {\n      "type": "b"\n    }\n  ]\n}\n'
    )
