# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Packets between two containers of a network, and to a published port."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh

MAPPED = {"type": "portmap", "capabilities": {"portMappings": True}}
RANGES = [[{"subnet": "10.46.0.0/24"}], [{"subnet": "fd46::/64"}]]
ROUTES = [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]


@pytest.fixture
def uplink(host):
    """A way out of the host, whose addresses published ports have."""
    sh(
        """
        ip address add 192.0.2.8/24 dev pwslower
        ip address add 2001:db8::8/64 dev pwslower nodad
        ip route add default via 192.0.2.1
        ip -6 route add default via 2001:db8::1 dev pwslower
        """
    )


@pytest.fixture
def routed(write, host_local):
    """Return a function that configures a network with IPv4, or *families*, and *plugins* after its bridge."""

    def configure(*plugins, families=1, routed=True):
        ipam = host_local(ranges=RANGES[:families], routes=ROUTES[:families] if routed else [])
        write(10, "pwsrouted", [{"type": "bridge", "bridge": "pwsrou0", "isGateway": True, "ipam": ipam}, *plugins])

    return configure


@pytest.mark.usefixtures("uplink")
def test_a_published_port_is_reached_at_the_address_of_the_uplink(routed, smoke):
    routed(MAPPED, families=2)
    (row,) = smoke(networks=["pwsrouted"])["networks"]
    assert (row["container"], row["published"], row["notes"]) == ("passed", "passed", [])
    sh("ip6tables -A OUTPUT -p tcp --dport 8080 -j DROP")
    tried = smoke(fails=True, networks=["pwsrouted"])
    (row,) = tried["networks"]
    assert (row["ping"], row["container"], row["published"]) == ("passed", "passed", "failed")
    assert row["error"]["code"] == "port_unreachable"
    assert "2001:db8::8" in tried["msg"]
    assert "192.0.2.8" not in tried["msg"]


def test_a_published_port_is_reached_at_the_gateway_without_a_default_route(routed, smoke):
    routed(MAPPED, routed=False)
    (row,) = smoke(networks=["pwsrouted"])["networks"]
    assert row["published"] == "passed"
    sh("iptables -A OUTPUT -p tcp --dport 8080 -j DROP")
    assert "10.46.0.1" in smoke(fails=True, networks=["pwsrouted"])["msg"]


def test_ports_that_are_not_for_everyone(routed, host, work, generations, generation):
    """Only one of the containers has those of the pod."""
    routed({**MAPPED, "conditionsV4": ["!", "-d", "192.0.2.0/24"]})
    (work / "bin").mkdir()
    (work / "bin/portmap").write_text(f"#!/bin/sh\ntee -a {work}/$CNI_COMMAND | $REAL_PLUGINS/portmap\n")
    (work / "bin/portmap").chmod(0o755)
    options = {"bin_dirs": [str(work / "bin"), str(generations[generation])], "networks": ["pwsrouted"]}
    pod = {"name": "probe", "ports": [{"host_port": 8047, "container_port": 80}]}
    (row,) = host.run("cni_smoke", pod=pod, **options)["networks"]
    assert (row["container"], row["published"]) == ("passed", None)
    assert (work / "ADD").read_text().count('"HostPort":8047') == 1


def test_a_mapping_without_effect(routed, smoke):
    routed(MAPPED, {"type": "unmap"})
    (row,) = smoke(fails=True, networks=["pwsrouted"])["networks"]
    assert (row["container"], row["published"]) == ("passed", "failed")
    assert row["error"]["code"] == "port_unreachable"
    (row,) = smoke(networks=["pwsrouted"], packets=False)["networks"]
    assert (row["ping"], row["container"], row["published"]) == ("passed", None, None)


def test_a_port_that_a_rule_names_is_another_containers(routed, smoke):
    routed(MAPPED)
    before = sh("sysctl -n net.ipv4.ip_local_port_range")
    try:
        sh("sysctl -qw net.ipv4.ip_local_port_range='50000 50003'")
        for port in (50000, 50001, 50002):
            sh(f"iptables -t nat -A OUTPUT -p tcp --dport {port} -j DNAT --to-destination 192.0.2.77:1")
        (row,) = smoke(networks=["pwsrouted"])["networks"]
        assert row["published"] == "passed"
    finally:
        sh(f"sysctl -qw net.ipv4.ip_local_port_range='{before}'")


def test_a_rule_drops_packets_between_containers(write, host_local, smoke):
    write(10, "pwsptp", [{"type": "ptp", "ipMasq": True, "ipam": host_local(subnet="10.47.0.0/24")}])
    sh("iptables -A FORWARD -s 10.47.0.0/24 -d 10.47.0.0/24 -j DROP")
    tried = smoke(fails=True, networks=["pwsptp"])
    (row,) = tried["networks"]
    assert (row["add"], row["ping"], row["container"], row["del"]) == ("passed", "passed", "failed", "passed")
    assert row["error"]["code"] == "container_unreachable"
    assert row["ips"][0].partition("/")[0] in tried["msg"]
    assert smoke(networks=["pwsptp"], packets=False)["networks"][0]["container"] is None


def test_addresses_that_are_tentative_for_a_moment(write, host_local, smoke):
    write(10, "pwssix", [{"type": "bridge", "bridge": "pwssix0", "ipam": host_local(subnet="fd47::/64")}])
    assert smoke()["networks"][0]["container"] == "passed"


@pytest.fixture
def alone(host, write, host_local):
    """Networks whose containers are kept apart, or that only one can have; the code of each."""
    bridge = {"type": "bridge", "bridge": "pwsone0", "isGateway": True}
    one = {"subnet": "10.58.0.0/24", "rangeStart": "10.58.0.9", "rangeEnd": "10.58.0.9"}
    static = {"type": "static", "addresses": [{"address": "10.58.0.7/24", "gateway": "10.58.0.1"}]}
    pool = host_local(subnet="10.58.0.0/24")
    chains = {
        "apart": ([{"type": "macvlan", "master": "pwslower", "mode": "private", "ipam": pool}], "kept_apart"),
        "device": ([{"type": "macvlan", "master": "pwslower", "mode": "passthru", "ipam": pool}], "one_container"),
        "empty": ([{"type": "bridge", "bridge": "pwsone0"}], "no_address"),
        "fixed": ([{**bridge, "ipam": static}], "one_container"),
        "full": (
            [{"type": "bridge", "bridge": "pwsone0", "ipam": host_local(ranges=[[{"subnet": "10.59.0.0/24"}], [one]])}],
            "one_container",
        ),
        "isolated": ([{**bridge, "portIsolation": True, "ipam": pool}], "kept_apart"),
        "same": ([{**bridge, "ipam": pool}, {"type": "tuning", "mac": "02:00:00:00:00:58"}], "one_container"),
    }
    for name, (plugins, _code) in chains.items():
        write(10, f"pws{name}", plugins)
    return {f"pws{name}": code for name, (_plugins, code) in chains.items()}


def test_networks_of_one_container(alone, smoke):
    rows = smoke(networks=list(alone))["networks"]
    assert [row["container"] for row in rows] == [None] * len(alone)
    notes = {row["network"]: [note["code"] for note in row["notes"]] for row in rows}
    assert {name: set(codes) - {"no_gateway", "check_unusable"} for name, codes in notes.items()} == {
        name: {code} for name, code in alone.items()
    }
