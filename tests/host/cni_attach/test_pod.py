# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Plugins get of a pod what containerd and CRI-O hand to them."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh

POD = {
    "name": "web",
    "namespace": "shop",
    "uid": "4711",
    "annotations": {"example.org/odd": 'a=b;c "q" é'},
    "ports": [{"host_port": 18066, "container_port": 80}],
    "egress_bandwidth": "20M",
    "dns": {"servers": ["10.0.0.10"]},
    "cgroup_path": "/kubepods/pod-x",
}
ANNOTATIONS = {"example.org/odd": 'a=b;c "q" é', "kubernetes.io/egress-bandwidth": "20M"}
NAMES = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=web;K8S_POD_UID=4711"
CAPABILITIES = ("portMappings", "bandwidth", "dns", "cgroupPath", "io.kubernetes.cri.pod-annotations", "labels")
CONTAINERD = {
    "portMappings": [{"HostPort": 18066, "ContainerPort": 80, "Protocol": "tcp", "HostIP": ""}],
    "bandwidth": {"IngressRate": 0, "IngressBurst": 0, "EgressRate": 20000000, "EgressBurst": 4294967295},
    "dns": {"Servers": ["10.0.0.10"], "Searches": None, "Options": None},
    "cgroupPath": "/kubepods/pod-x",
    "io.kubernetes.cri.pod-annotations": ANNOTATIONS,
}


@pytest.fixture
def network(write_network, bridge):
    """The name of a network whose last plugin records what it gets, and of which portmap maps ports."""
    own = {"type": "record", "capabilities": dict.fromkeys(CAPABILITIES, True)}
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    write_network("pwarec", [bridge("pwarec0", "10.65.0.0/24", isGateway=True), portmap, own])
    return "pwarec"


def warnings(row):
    # portmap 1.1.1 has no CHECK that can pass.
    return [warning["code"] for warning in row["warnings"] if warning["code"] != "check_unusable"]


def recorded(fakes):
    return [json.loads(line) for line in (fakes / "record.log").read_text().splitlines()]


def test_the_plugins_get_what_the_runtime_would_hand_over(change, fakes, network):
    entry = {"network": network, "container_id": "web", "netns": "pwa-web", "pod": POD}
    found = change([entry], ["add"], ["added"])
    assert warnings(found.run["attachments"][0]) == []
    calls = recorded(fakes)
    assert [call["command"] for call in calls if call["command"] != "CHECK"] == ["ADD"]
    change([dict(entry, state="absent")], ["del"], ["deleted"])
    calls = recorded(fakes)
    # The CHECK of portmap 1.1.1 fails, so that none reaches the last plugin.
    assert {call["command"] for call in calls} - {"CHECK"} == {"ADD", "DEL"}
    assert {call["args"] for call in calls} == {NAMES}
    assert [call["runtimeConfig"] for call in calls] == [CONTAINERD] * len(calls)


def test_portmap_maps_a_port_that_is_written_in_capitals_and_removes_it(change, network):
    """Its keys are those of containerd; a DEL without them would leave the rules."""
    pod = {"name": "web", "ports": [{"host_port": 18066, "container_port": 80}]}
    entry = {"network": network, "container_id": "web", "netns": "pwa-web", "pod": pod}
    change([entry], ["add"], ["added"])
    assert "18066" in sh("iptables-save; nft list ruleset")
    change([dict(entry, state="absent")], ["del"], ["deleted"])
    assert "18066" not in sh("iptables-save; nft list ruleset")


def test_a_port_of_a_pod_that_another_container_has_is_found(change, attach, network):
    pod = {"name": "web", "ports": [{"host_port": 18066, "container_port": 80}]}
    change([{"network": network, "container_id": "web", "netns": "pwa-web", "pod": pod}], ["add"], ["added"])
    given = {"portMappings": [{"hostPort": 18066, "containerPort": 81, "protocol": "tcp"}]}
    other = {"network": network, "container_id": "db", "netns": "pwa-db", "capability_args": given}
    [row] = attach(other)["attachments"]
    assert warnings(row) == ["host_port_twice"]


def test_another_pod_is_another_attachment(change, network):
    entry = {"network": network, "container_id": "web", "netns": "pwa-web", "pod": {"name": "web"}}
    change([entry], ["add"], ["added"])
    renamed = dict(entry, pod={"name": "web2"})
    assert change([renamed], ["repair"], ["repaired"]).run["attachments"][0]["reason"] == "args"
