# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

"""Configurations as they occur: of the kinds that runtimes, clusters and tutorials have, with their peculiarities."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._conf.validate import Checked, TextSource

PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}
HOST_LOCAL = {"type": "host-local", "ranges": [[{"subnet": "10.44.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}
BRIDGE = {
    "type": "bridge",
    "bridge": "web0",
    "isGateway": True,
    "ipMasq": True,
    "hairpinMode": True,
    "ipam": HOST_LOCAL,
}
V6 = {"subnet": "fd00:44::/64"}


def network(*plugins, name="web", version="1.0.0"):
    return json.dumps({"cniVersion": version, "name": name, "plugins": plugins}, indent=2)


def single(version="0.3.1", **keys):
    return json.dumps({"cniVersion": version, **keys}, indent="\t")


def found(text, name=None):
    return [(entry.level, entry.code, entry.pointer) for entry in problems(text, name)]


def problems(text, name=None):
    return Checked(TextSource(text), "here", name, ("syntax", "schema")).problems


FINE = {
    "flannel whose delegate is bridge without saying so": network(
        {"type": "flannel", "delegate": {"hairpinMode": True, "isDefaultGateway": True}}, PORTMAP, version="0.3.1"
    ),
    "flannel that mends the bridge's address, with bandwidth": network(
        {"type": "flannel", "delegate": {"forceAddress": True, "isDefaultGateway": True}},
        PORTMAP,
        {"type": "bandwidth", "capabilities": {"bandwidth": True}},
    ),
    "calico as an operator renders it: flags that are strings, MTU 0": network(
        {
            "type": "calico",
            "mtu": 0,
            "ipam": {"assign_ipv4": "true", "assign_ipv6": "false", "type": "calico-ipam"},
            "container_settings": {"allow_ip_forwarding": False},
            "policy": {"type": "k8s"},
        },
        {**PORTMAP, "snat": True},
        version="0.3.1",
    ),
    "istio chained to calico, with empty ipam and dns": network(
        {"type": "calico", "ipam": {"type": "calico-ipam"}},
        {"type": "istio-cni", "name": "istio-cni", "ipam": {}, "dns": {}, "exclude_namespaces": ["mesh"]},
        version="0.3.1",
    ),
    "ptp with its leases on a tmpfs": network(
        {"type": "ptp", "ipMasq": False, "mtu": 1500, "ipam": {**HOST_LOCAL, "dataDir": "/run/leases"}}, PORTMAP
    ),
    "azure with keys of its own": network(
        {
            "type": "azure-vnet",
            "mode": "transparent",
            "ipsToRouteViaHost": ["169.254.20.10"],
            "ipam": {"type": "azure-vnet-ipam"},
        },
        {**PORTMAP, "snat": True},
        version="0.3.0",
    ),
    "ptp without a newline at the end": network({"type": "ptp", "mtu": 1460, "ipam": HOST_LOCAL}, PORTMAP).rstrip(),
    "a bridge with both families, and a route for each": network(
        {**BRIDGE, "ipam": {**HOST_LOCAL, "ranges": [[V6]], "subnet": "10.44.0.0/16", "routes": [{"dst": "::/0"}]}}
    ),
    "a bridge with IPv4 only": network(BRIDGE),
    "bridge, portmap, firewall and tuning without settings": network(
        BRIDGE, PORTMAP, {"type": "firewall"}, {"type": "tuning"}, version="0.4.0"
    ),
    "a virtual machine's tap, and loopback at the end of the chain": network(
        {**BRIDGE, "ipam": {"type": "host-local", "subnet": "10.44.0.0/16", "resolvConf": "/etc/resolv.conf"}},
        {"type": "firewall", "backend": ""},
        {"type": "tc-redirect-tap"},
        {"type": "loopback"},
    ),
    "sriov whose device comes from elsewhere": single(
        name="fast", type="sriov", ipam={"type": "host-local", "subnet": "10.44.0.0/24", "gateway": "10.44.0.1"}
    ),
}


@pytest.mark.parametrize("kind", FINE)
def test_it_passes_without_a_word(kind):
    assert found(FINE[kind]) == []


def test_a_single_plugin_without_a_name_needs_one_from_the_task_and_its_routes_a_prefix_length():
    ipam = {"type": "ecs-ipam", "id": "a", "cniVersion": "0.3.0", "ipv4-subnet": "169.254.44.0/22"}
    text = single("0.3.0", type="ecs-bridge", bridge="tasks0", mtu=1500, ipam=ipam)
    assert found(text) == [("error", "no_name", "")]
    assert found(text, "tasks") == []
    ipam["ipv4-routes"] = [{"dst": "169.254.44.1"}]
    text = single("0.3.0", type="ecs-bridge", bridge="tasks0", ipam=ipam)
    assert found(text, "tasks") == [("warning", "schema", "/ipam/ipv4-routes/0/dst")]


def test_whereabouts_with_a_key_of_old_releases_and_a_route_of_the_other_family():
    ipam = {
        "type": "whereabouts",
        "range": "10.44.0.0/24",
        "etcd_host": "192.0.2.9",
        "dns": {"nameservers": ["192.0.2.5"]},
    }
    ipam["routes"] = [{"dst": "0.0.0.0/0"}, {"dst": "10.0.0.0/8", "gw": "10.44.5.1"}, {"dst": "2001:db8::1/64"}]
    assert found(single(name="mynet", type="ipvlan", master="eth5", ipam=ipam)) == [
        ("info", "deprecated_key", "/ipam/etcd_host"),
        ("warning", "route_family", "/ipam/routes/2/dst"),
    ]


def test_addresses_of_static_in_the_shape_of_ranges_are_an_error_that_shows_the_right_shape():
    ipam = {"type": "static", "addresses": [[{"subnet": "10.44.0.9/16", "gateway": "10.44.0.1"}]]}
    (entry,) = problems(network({**BRIDGE, "ipam": ipam}, version="0.4.0"))
    assert (entry.level, entry.code, entry.pointer) == ("error", "schema", "/plugins/0/ipam/addresses/0")
    assert 'write, for example, {"address": "10.55.0.7/24", "gateway": "10.55.0.1"}' in entry.message
