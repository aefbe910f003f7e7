# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.checks.network import network_problems
from ansible_collections.podwire.cni.plugins.module_utils._host.checks.view import uses_of_network

BRIDGE = {"type": "bridge"}
PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}


def problems_of(view, file):
    return network_problems(view, file, uses_of_network(file))


@pytest.fixture
def check(directory, codes):
    def run(*plugins, **options):
        file = directory.add("a", *plugins)
        return codes(problems_of(directory.view(**options), file))

    return run


@pytest.mark.parametrize("kind", ["portmap", "bandwidth", "firewall", "tuning", "sbr", "vrf"])
def test_a_plugin_that_needs_an_interface_cannot_come_first(check, kind):
    found = check({"type": kind, "capabilities": {"portMappings": True, "bandwidth": True}}, BRIDGE)
    assert found == [("error", "chain_order", "/net.d/10-a.conflist", "/plugins/0")]


@pytest.mark.parametrize("kind", ["bridge", "ptp", "macvlan", "vlan", "host-device", "dummy", "flannel"])
def test_a_second_interface_of_the_same_name_cannot_be_made(check, kind):
    assert check(BRIDGE, PORTMAP, {"type": kind}) == [("error", "chain_order", "/net.d/10-a.conflist", "/plugins/2")]


@pytest.mark.parametrize("kind", ["loopback", "tap", "ipvlan", "tuning", "istio-cni", "tc-redirect-tap"])
def test_these_may_follow(check, kind):
    assert check(BRIDGE, {"type": kind}) == []


def test_between_others_it_is_only_to_be_known(check):
    assert check({"type": "tuning"}, wanted=[])[0][:2] == ("info", "chain_order")
    assert check({"type": "tuning"}, wanted=[], managed=["10-a.conflist"])[0][:2] == ("warning", "chain_order")


def test_the_message_says_where_it_belongs(directory):
    first = directory.add("a", {"type": "tuning"}, {"type": "ptp"})
    assert "put it after ptp" in next(problems_of(directory.view(), first)).message
    alone = directory.add("b", {"type": "tuning"})
    assert "begin with one such as bridge" in next(problems_of(directory.view(), alone)).message


@pytest.mark.parametrize(
    "plugin",
    [
        {"type": "portmap"},
        {"type": "portmap", "capabilities": {"portMappings": False}},
        {"type": "portmap", "capabilities": {"portmappings": True}},
        {"type": "bandwidth"},
        {"type": "bandwidth", "ingressRate": 0},
        {"type": "bandwidth", "runtimeConfig": {"bandwidth": {}}},
        {"type": "portmap", "runtimeConfig": {"portMappings": []}},
        # The plugin reads limits beside its type, or under runtimeConfig; tried with 1.1.1 and 1.9.1.
        {"type": "bandwidth", "bandWidth": {"ingressRate": 1000, "ingressBurst": 1000}},
    ],
)
def test_a_capability_that_is_not_declared_never_arrives(check, plugin):
    assert check(BRIDGE, plugin) == [("warning", "capability_missing", "/net.d/10-a.conflist", "/plugins/1")]


@pytest.mark.parametrize(
    "plugin",
    [
        PORTMAP,
        {"type": "portmap", "Capabilities": {"portMappings": True}},
        {"type": "bandwidth", "capabilities": {"bandwidth": True}},
        {"type": "bandwidth", "ingressrate": 1000, "ingressBurst": 1000},
        {"type": "bandwidth", "runtimeConfig": {"bandWidth": {"egressRate": 1000, "egressBurst": 1000}}},
        {"type": "bandwidth", "RuntimeConfig": {"bandwidth": {"ingressrate": 1000, "ingressBurst": 1000}}},
        {"type": "bandwidth", "capabilities": {"bandWidth": True}},
        {"type": "portmap", "runtimeConfig": {"PortMappings": [{"hostPort": 80, "containerPort": 80}]}},
    ],
)
def test_declared_in_any_way_or_written_under_runtimeconfig_as_bandwidth_it_arrives(check, plugin):
    assert check(BRIDGE, plugin) == []


def test_a_single_plugin_has_no_place_in_a_list(directory, codes):
    file = directory.add("a", {"type": "portmap"}, name="10-a.conf")
    assert {entry[3] for entry in codes(problems_of(directory.view(), file))} == {""}
