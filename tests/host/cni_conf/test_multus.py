# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Multus: its configuration, the networks in its confDir, and its removal."""

from __future__ import annotations

import json

from ansible_collections.podwire.cni.plugins.filter.networks import cni_multus
from ansible_collections.podwire.cni.plugins.module_utils.libcni.multi.definitions import NetworkDefinition
from ansible_collections.podwire.cni.tests.host.networks import PORTMAP, network

PODS = network("pods", {"type": "bridge", "bridge": "pwmul0"}, PORTMAP)
STORAGE = network("storage", {"type": "macvlan", "master": "eth1"})
MULTUS = cni_multus([PODS, STORAGE])
# The test has no binary of Multus.
LEVELS = ["syntax", "schema", "directory"]
OPTIONS = {"runtime": ["containerd-1.7"], "validate": LEVELS}


def codes(result):
    return [entry["code"] for entry in result["problems"] if entry["code"].startswith("multus")]


def test_the_network_of_pods_is_the_one_behind_multus(host, conf_dir):
    check = host.run("cni_conf", networks=[MULTUS], ensure_effective="pods", check_mode=True, **OPTIONS)
    run = host.run("cni_conf", networks=[MULTUS], ensure_effective="pods", **OPTIONS)
    again = host.run("cni_conf", networks=[MULTUS], ensure_effective="pods", **OPTIONS)
    assert [result["changed"] for result in (check, run, again)] == [True, True, False]
    assert check["effective"] == run["effective"]
    (row,) = run["effective"]
    assert (row["network"], row["file"]) == ("multus-cni-network", f"{conf_dir}/00-multus.conflist")
    assert [(one["interface"], one["network"]) for one in row["through"]] == [(None, "pods"), ("net1", "storage")]
    assert row["reason"].endswith("Multus gives every pod pods, net1: storage")
    assert codes(run) == []
    refused = host.fail("cni_conf", networks=[MULTUS], ensure_effective="storage", **OPTIONS)
    assert refused["code"] == "not_effective"


def test_multus_is_removed_without_a_moment_without_a_network(host, conf_dir):
    host.run("cni_conf", networks=[MULTUS], **OPTIONS)
    gone = [{"name": MULTUS["name"], "state": "absent"}, {**PODS, "priority": 10}]
    run = host.run("cni_conf", networks=gone, ensure_effective="pods", **OPTIONS)
    assert [step["kind"] for step in run["actions"]][-1] == "remove"
    assert [path.name for path in conf_dir.iterdir()] == ["10-pods.conflist"]
    assert run["effective"][0]["through"] == []


def test_networks_in_the_directory_of_multus_are_found_by_definitions_without_a_spec(host, work):
    where = f"{work}/multus"
    networks = [network("storage", {"type": "dummy", "ipam": {"type": "static"}})]
    first = host.run("cni_conf", networks=networks, conf_dir=where, runtime=[])
    again = host.run("cni_conf", networks=networks, conf_dir=where, runtime=[])
    assert [result["changed"] for result in (first, again)] == [True, False]
    found = json.loads(NetworkDefinition("default", "storage").configuration(where))
    assert (found["name"], found["plugins"][0]["type"]) == ("storage", "dummy")
