# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import confdir
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.through import in_words, networks_through


@pytest.fixture
def through(tmp_path):
    """Return a function that returns the networks that Multus with these keys gives, beside these files."""

    def run(files=(), **keys):
        for name, network in dict(files).items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps({"cniVersion": "1.0.0", "name": network, "plugins": [{"type": "bridge"}]}))
        plugin = json.loads(json.dumps({"type": "multus", **keys}).replace("@", str(tmp_path)))
        text = json.dumps({"cniVersion": "1.0.0", "name": "m", "plugins": [plugin]})
        (tmp_path / "net.d").mkdir(exist_ok=True)
        (tmp_path / "net.d" / "00-m.conflist").write_text(text)
        there = confdir.scan_conf_dir(str(tmp_path / "net.d"))
        return networks_through(there[0], str(tmp_path / "net.d"), there, HostView())

    return run


def pairs(found):
    return [(row["interface"], row["network"]) for row in found]


def test_networks_in_the_configuration(through):
    delegates = [{"name": "pods", "plugins": [{"type": "bridge"}]}, {"name": "storage", "type": "macvlan"}]
    found = through(delegates=delegates)
    assert pairs(found) == [(None, "pods"), ("net1", "storage")]
    assert in_words(found) == "Multus gives every pod pods, net1: storage"


def test_a_file_by_path_and_by_name(through):
    files = {"conf/10-pods.conflist": "pods", "conf/20-storage.conflist": "storage"}
    found = through(files, clusterNetwork="@/conf/10-pods.conflist", defaultNetworks=["storage"], confDir="@/conf")
    assert pairs(found) == [(None, "pods"), ("net1", "storage")]
    assert found[1]["file"].endswith("/conf/20-storage.conflist")


@pytest.mark.parametrize(("name", "given"), [("podwire-multinet", [(None, "pods")]), ("bridge", [])])
def test_the_plugin_of_the_collection_and_another_one(through, name, given):
    found = through(type=name, delegates=[{"name": "pods", "plugins": [{"type": "bridge"}]}])
    assert pairs(found) == given


def test_the_first_file_of_a_directory(through):
    files = {"conf/10-pods.conflist": "pods", "conf/20-b.conflist": "b"}
    assert pairs(through(files, clusterNetwork="@/conf")) == [(None, "pods")]


def test_a_definition_in_the_cluster_is_not_known_here(through):
    found = through(clusterNetwork="pods", defaultNetworks=["storage"], confDir="@/conf")
    assert pairs(found) == [(None, None), ("net1", None)]
    assert in_words(found) == "Multus gives every pod pods of the cluster, net1: storage of the cluster"
