# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

"""The reference plugins: what each takes, and what each refuses, as releases 1.1.1 and 1.9.1 did."""

from __future__ import annotations

import ipaddress

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.plugin_utils._conf.test_schema_plugins import (
    BRIDGE,
    LOCAL,
    RANGE,
    ROUTE,
    ranges,
    static,
)

UNICAST = ipaddress.ip_network("2000::/3")
WARNED = [
    # What the plugin takes, and what nobody can have meant.
    ({"type": "firewall", "backend": "iptabels"}, "schema", "/backend", "did you mean iptables?"),
    ({"type": "bridge", "dns": {"nameservers": ["ns1"]}}, "schema", "/dns/nameservers/0", "is not an IP address"),
    ({"type": "macvlan", "master": "lo"}, "schema", "/master", "every ADD fails"),
    ({"type": "calico"}, "schema", "", "ipam is missing"),
    ({"type": "multus", "clusterNetwork": "a", "delegates": [BRIDGE]}, "schema", "/delegates", "remove one of the two"),
    ({"type": "vlan", "master": "eth0", "ipam": LOCAL}, "schema", "", "vlanId is missing"),
    ({"type": "bridge", "ipam": {"subnet": "10.1.0.0/24"}}, "no_ipam_type", "/ipam", "ipam has no type"),
    (
        {"type": "bridge", "ipMasq": True, "ipam": {"type": "host-local", "subnet": "2001:4860:4860::/64"}},
        "public_subnet",
        "/ipam/subnet",
        "fd00:55::/64",
    ),
    (
        {"type": "bridge", "ipMasq": True, "ipam": {"type": "host-local", "ranges": [[{"subnet": "8.8.8.0/24"}]]}},
        "public_subnet",
        RANGE + "/subnet",
        "10.55.0.0/24",
    ),
    ({"type": "bridge", "ipam": {**LOCAL, "routes": [{"dst": "::/0"}]}}, "route_family", ROUTE + "/dst", "IPv6"),
    (
        {
            **static({"address": "fd00::2/64"}),
            "ipam": {"type": "static", "addresses": [{"address": "fd00::2/64"}], "routes": [{"dst": "0.0.0.0/0"}]},
        },
        "route_family",
        ROUTE + "/dst",
        "IPv4",
    ),
]


@pytest.mark.parametrize(("plugin", "code", "pointer", "words"), WARNED, ids=range(len(WARNED)))
def test_what_works_but_surprises_is_a_warning(problems, plugin, code, pointer, words):
    (entry,) = problems(plugin)
    assert entry[:3] == ("warning", code, pointer)
    assert words in entry[3]


def levels(found):
    return [entry[:3] for entry in found if entry[0] != "info"]


@pytest.mark.parametrize("more", [{}, {"isDefaultGateway": True, "mtu": 1500}, {"capabilities": {"snat": True}}])
def test_host_local_without_ranges_that_a_daemon_fills_in_at_run_time_is_no_error(problems, more):
    plugin = {"type": "bridge", "bridge": "kube-bridge", "ipam": {"type": "host-local"}, **more}
    assert [entry[:3] for entry in problems(plugin)] == [("info", "range_filled_in", "/ipam")]
    # Another bridge is nobody's, and half a range is a mistake: the plugin fails.
    assert levels(problems({**plugin, "bridge": "cni0"})) == [("error", "schema", "/ipam")]
    half = {"type": "host-local", "rangeStart": "10.1.0.5"}
    assert levels(problems({**plugin, "ipam": half})) == [("error", "schema", "/ipam")]


# The address blocks of IANA's registries of special-purpose addresses that are not reachable on the internet.
SPECIAL = """
    10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.2.0/24 192.168.0.0/16 198.18.0.0/15
    198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 100::/64 2001:2::/48 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 fc00::/7
    fe80::/10
"""


@pytest.mark.parametrize("subnet", SPECIAL.split())
def test_documentation_prefixes_such_as_3fff_and_other_special_ones_are_not_public(problems, subnet):
    inside = ipaddress.ip_network(subnet)
    part = next(inside.subnets(new_prefix=max(inside.prefixlen, 24 if inside.version == 4 else 64)))
    for given in (inside, part):
        plugin = {"type": "bridge", "ipMasq": True, "ipam": {"type": "host-local", "subnet": str(given)}}
        assert problems(plugin) == []


@pytest.mark.parametrize("subnet", ["2001:4860:4860::/64", "3ffe::/32", "4000::/8", "3fff:1000::/36", "8.8.8.0/24"])
def test_what_is_beside_a_documentation_prefix_is_public(problems, subnet):
    plugin = {"type": "bridge", "ipMasq": True, "ipam": {"type": "host-local", "subnet": subnet}}
    public = ipaddress.ip_network(subnet).version == 4 or ipaddress.ip_network(subnet).subnet_of(UNICAST)
    assert [entry[1] for entry in problems(plugin)] == ["public_subnet"] * public
    assert problems({**plugin, "ipMasq": False}) == []


@pytest.mark.parametrize(
    "more",
    [
        {"args": {"cni": {"ips": ["10.1.0.9/24"]}}},
        {"capabilities": {"ips": True}},
        {"runtimeConfig": {"ips": ["10.1.0.9/24"]}},
    ],
)
def test_static_that_gets_its_addresses_from_args_is_no_warning(problems, more):
    assert problems({"type": "bridge", "ipam": {"type": "static"}, **more}) == []
    # What comes from there replaces the addresses, so nothing is known about their subnets.
    ipam = {"type": "static", "addresses": [{"address": "10.5.0.9/24"}], "routes": [{"dst": "::/0", "gw": "fd00::1"}]}
    assert problems({"type": "bridge", "ipam": ipam, **more}) == []


def test_static_without_addresses_may_get_them_from_cni_args(problems):
    for plugin in ("bridge", "ptp"):
        ((level, code, _place, text),) = problems({"type": plugin, "ipam": {"type": "static"}})
        assert (level, code) == ("info", "static_no_address")
        assert "CNI_ARGS has them (IP, and GATEWAY)" in text


ROUTING = ["bridge", "ptp", "macvlan", "ipvlan", "vlan", "host-device", "dummy", "tap"]


def routed(kind, *routes, subnets=("10.1.0.0/24", "fd00::/64"), **keys):
    ipam = {"type": "host-local", "ranges": [[{"subnet": subnet}] for subnet in subnets], "routes": list(routes)}
    more = {"vlan": {"master": "eth0", "vlanId": 5}, "host-device": {"device": "eth0"}}.get(kind, {})
    return {"type": kind, "ipam": ipam, **more, **keys}


@pytest.mark.parametrize("kind", ROUTING)
def test_a_gateway_of_a_route_outside_every_subnet_is_an_error(problems, kind):
    defaults = {"10.1.0.77": "0.0.0.0/0", "fd00::77": "::/0", "fe80::1": "::/0", "0.0.0.0": "10.9.0.1/32"}
    for gw, dst in defaults.items():
        assert levels(problems(routed(kind, {"dst": dst, "gw": gw}))) == []
    outside = {"10.1.1.0": "0.0.0.0/0", "10.0.255.255": "10.9.0.0/16", "fd00:0:0:1::": "::/0", "::": "::/0"}
    for gw, dst in outside.items():
        (entry,) = [entry for entry in problems(routed(kind, {"dst": dst, "gw": gw})) if entry[0] != "info"]
        assert entry[:3] == ("error", "gateway_outside", ROUTE + "/gw")
        assert gw in entry[3]
    # Each set of ranges gives an address, so each subnet is near.
    both = routed(kind, {"dst": "0.0.0.0/0", "gw": "10.2.0.9"}, subnets=("10.1.0.0/24", "10.2.0.0/24"))
    assert levels(problems(both)) == []
    ranges_of_runtime = routed(kind, {"dst": "0.0.0.0/0", "gw": "10.9.0.1"}, capabilities={"ipRanges": True})
    assert levels(problems(ranges_of_runtime)) == []


def test_a_gateway_of_a_route_outside_is_a_warning_where_others_may_know_more(problems):
    assert levels(problems(routed("acme", {"dst": "0.0.0.0/0", "gw": "10.9.0.1"}))) == [
        ("warning", "gateway_outside", ROUTE + "/gw")
    ]
    # CNI_ARGS may add an address.
    plugin = static({"address": "10.1.0.9/24", "gateway": "10.1.0.1"})
    plugin["ipam"]["routes"] = [{"dst": "0.0.0.0/0", "gw": "10.9.0.1"}]
    assert levels(problems(plugin)) == [("warning", "gateway_outside", ROUTE + "/gw")]


def test_a_gateway_of_a_route_may_be_behind_an_earlier_route_on_the_link(problems):
    def check(address, *routes, **keys):
        ipam = {"type": "static", "addresses": [{"address": address, **keys}], "routes": list(routes)}
        return [entry[2] for entry in problems({"type": "macvlan", "ipam": ipam}) if entry[0] != "info"]

    near, default = {"dst": "fd08::/64"}, {"dst": "::/0", "gw": "fd08::1"}
    assert check("fd07::5/64", near, default) == []
    assert check("fd07::5/64", default, near) == [ROUTE + "/gw"]
    assert check("fd07::5/64", near, default, gateway="fd07::1") == ["/ipam/routes/1/gw"]
    # The kernel wants the scope link of IPv4, and plugins set it only if they are told.
    near, default = {"dst": "169.254.1.1/32"}, {"dst": "0.0.0.0/0", "gw": "169.254.1.1"}
    assert check("10.1.0.5/24", near, default) == ["/ipam/routes/1/gw"]
    assert check("10.1.0.5/24", {**near, "scope": 253}, default) == []


@pytest.mark.parametrize("kind", ROUTING)
@pytest.mark.parametrize(
    ("routes", "place", "words"),
    [
        ([{"dst": "0.0.0.0/0", "gw": "fd00::1"}], "/gw", "an IPv4 address"),
        ([{"dst": "::/0", "gw": "10.1.0.1"}], "/gw", "an IPv6 address"),
        ([{"dst": "10.20.3.4/16"}], "/dst", "write 10.20.0.0/16"),
        ([{"dst": "10.0.0.1/0"}], "/dst", "write 0.0.0.0/0"),
        ([{"dst": "10.20.0.0/16"}, {"dst": "10.20.0.0/16"}], "", "twice"),
        ([{"dst": "10.20.0.0/16"}, {"dst": "10.20.0.0/16", "gw": "10.1.0.1", "mtu": 1400}], "", "twice"),
        ([{"dst": "fd20::/64"}, {"dst": "fd20::/64", "table": 254}], "", "twice"),
    ],
)
def test_routes_that_the_kernel_refuses_are_errors(problems, kind, routes, place, words):
    (entry,) = [entry for entry in problems(routed(kind, *routes)) if entry[0] != "info"]
    assert (entry[0], entry[2]) == ("error", "/ipam/routes/%d%s" % (len(routes) - 1, place))
    assert words in entry[3]


def test_routes_that_the_kernel_takes_are_none(problems):
    for other in ({"gw": "10.1.0.9"}, {"priority": 5}, {"table": 5}):
        assert levels(problems(routed("bridge", {"dst": "10.20.0.0/16"}, {"dst": "10.20.0.0/16", **other}))) == []
    # IPv6 drops the host bits; only CHECK minds, which versions before 0.4.0 do not have.
    conf = routed("bridge", {"dst": "fd20::5/64"})
    assert levels(problems(conf)) == [("warning", "schema", ROUTE + "/dst")]
    assert levels(problems(conf, "0.3.1")) == []


def test_a_default_route_beside_isdefaultgateway_is_there_twice(problems):
    def check(*routes, subnets=("10.1.0.0/24", "fd00::/64"), **keys):
        return levels(problems(routed("bridge", *routes, subnets=subnets, isDefaultGateway=True, **keys)))

    twice = [("error", "route_twice", ROUTE)]
    assert check({"dst": "0.0.0.0/0"}) == twice
    assert check({"dst": "::/0"}, isGateway=True) == twice
    # With gw, bridge sees that there is one.
    assert check({"dst": "0.0.0.0/0", "gw": "10.1.0.1"}) == []
    assert check({"dst": "0.0.0.0/0", "priority": 5}) == []
    assert check({"dst": "10.0.0.0/8"}) == []
    assert [entry[1] for entry in check({"dst": "::/0"}, subnets=["10.1.0.0/24"])] == ["route_family"]
    assert levels(problems(routed("ptp", {"dst": "0.0.0.0/0"}))) == []


def test_ptp_with_static_and_no_gateway_is_an_error(problems):
    def ptp(*addresses, **keys):
        return levels(problems({"type": "ptp", "ipam": {"type": "static", "addresses": list(addresses)}, **keys}))

    good = {"address": "10.1.0.9/24", "gateway": "10.1.0.1"}
    assert ptp(good) == []
    assert ptp({"address": "10.1.0.9/24"}) == [("error", "schema", "/ipam/addresses/0")]
    assert ptp(good, {"address": "fd00::9/64", "gateway": ""}) == [("error", "schema", "/ipam/addresses/1")]
    assert ptp(good, args={"cni": {"ips": ["10.1.0.5/24"]}}) == [("error", "schema", "/ipam")]
    assert ptp(good, capabilities={"ips": True}) == [("warning", "ptp_no_gateway", "/ipam")]
    # bridge takes the first address of the subnet, others need none.
    for kind in ("bridge", "macvlan"):
        assert problems({"type": kind, "ipam": {"type": "static", "addresses": [{"address": "10.1.0.9/24"}]}}) == []


def test_a_gateway_that_is_a_containers_own_address(problems):
    plugin = static({"address": "10.1.0.1/24", "gateway": "10.1.0.1"})
    assert levels(problems(plugin)) == [("warning", "own_gateway", "/ipam/addresses/0/gateway")]
    only = {"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.1", "rangeEnd": "10.1.0.1"}
    assert levels(problems(ranges([only]))) == [("error", "schema", RANGE)]
    assert problems(ranges([{**only, "gateway": "10.1.0.2"}])) == []


@pytest.mark.parametrize("key", ["hostPort", "containerPort"])
@pytest.mark.parametrize("value", ["9001", 0, -1, 65536, 1.5, None, True, [1]])
def test_string_ports_in_runtimeconfig_are_errors(problems, key, value):
    mapping = {"hostPort": 9001, "containerPort": 80, "protocol": "TCP", "hostIP": ""}
    plugin = {"type": "portmap", "capabilities": {"portMappings": True}, "runtimeConfig": {"portMappings": [mapping]}}
    assert problems(plugin, before=[BRIDGE]) == []
    mapping[key] = value
    (entry,) = problems(plugin, before=[BRIDGE])
    place = "/runtimeConfig/portMappings/0"
    assert entry[:3] == ("error", "schema", place if value is None else "%s/%s" % (place, key))


BURST = {"ingressRate": 8000, "ingressBurst": 8000}


@pytest.mark.parametrize(
    ("plugin", "place"),
    [
        ({"type": "portmap", "runtimeConfig": {"portMappings": {}}}, "/portMappings"),
        ({"type": "portmap", "runtimeConfig": {"PortMappings": [{"hostPort": "1"}]}}, "/PortMappings/0"),
        (
            {"type": "bandwidth", "runtimeConfig": {"bandWidth": {**BURST, "ingressRate": "8"}}},
            "/bandWidth/ingressRate",
        ),
        ({"type": "bandwidth", "runtimeConfig": {"bandwidth": {"egressRate": 1}}}, "/bandwidth"),
        ({"type": "tuning", "runtimeConfig": {"mac": 5}}, "/mac"),
        ({"type": "bridge", "runtimeConfig": {"mac": "zz"}}, "/mac"),
        ({"type": "host-device", "device": "eth0", "runtimeConfig": {"deviceID": 5}}, "/deviceID"),
        ({"type": "bridge", "ipam": LOCAL, "runtimeConfig": {"ips": "10.1.0.5"}}, "/ips"),
        ({"type": "bridge", "ipam": LOCAL, "runtimeConfig": {"ips": ["x"]}}, "/ips/0"),
        ({"type": "bridge", "ipam": LOCAL, "runtimeConfig": {"ipRanges": [{"subnet": "10.1.0.0/24"}]}}, "/ipRanges/0"),
        ({"type": "bridge", "ipam": {"type": "static"}, "runtimeConfig": {"ips": ["10.1.0.5"]}}, "/ips/0"),
    ],
    ids=range(11),
)
def test_other_arguments_in_runtimeconfig_have_the_plugins_types(problems, plugin, place):
    found = levels(problems(plugin))
    assert {entry[:2] for entry in found} == {("error", "schema")}
    assert {entry[2].partition("/runtimeConfig")[2][: len(place)] for entry in found} == {place}


@pytest.mark.parametrize(
    "plugin",
    [
        {"type": "bandwidth", "runtimeConfig": {"bandWidth": BURST}},
        {"type": "bridge", "ipam": LOCAL, "runtimeConfig": {"ips": ["10.1.0.5", "10.1.0.6/24"], "acme": [1]}},
        {"type": "bridge", "ipam": {"type": "host-local"}, "runtimeConfig": {"ipRanges": [[{"subnet": "fd00::/64"}]]}},
        {"type": "bridge", "ipam": {"type": "acme"}, "runtimeConfig": {"ips": ["any"], "portMappings": "any"}},
        {"type": "loopback", "runtimeConfig": {"mac": 5}},
    ],
)
def test_arguments_in_runtimeconfig_that_work_or_that_nobody_reads_pass(problems, plugin):
    assert levels(problems(plugin, before=[BRIDGE])) == []


@pytest.mark.parametrize("key", ["isGateway", "isDefaultGateway", "ipMasq"])
def test_isgateway_and_ipmasq_without_ipam_have_no_effect(problems, key):
    for ipam in ({}, {"ipam": {}}, {"ipam": {"type": ""}}):
        assert levels(problems({"type": "bridge", key: True, **ipam})) == [("warning", "no_effect", "/" + key)]
        assert problems({"type": "bridge", key: False, **ipam}) == []
    assert problems({"type": "bridge", key: True, "ipam": LOCAL}) == []
    # flannel adds the ipam.
    assert levels(problems({"type": "flannel", "delegate": {key: True}})) == []


PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}
LIMITED = {"type": "bandwidth", "capabilities": {"bandwidth": True}}
INGRESS = {"type": "bandwidth", **BURST}
EGRESS = {"type": "bandwidth", "egressRate": 8000, "egressBurst": 8000}


@pytest.mark.parametrize(
    ("first", "second", "level"),
    [
        (PORTMAP, PORTMAP, "warning"),
        (PORTMAP, {**PORTMAP, "snat": False}, "warning"),
        ({**PORTMAP, "backend": "iptables"}, {**PORTMAP, "backend": "nftables"}, None),
        ({"type": "firewall"}, {"type": "firewall"}, "warning"),
        (INGRESS, INGRESS, "error"),
        (EGRESS, {**INGRESS, **EGRESS}, "error"),
        (INGRESS, EGRESS, None),
        (LIMITED, LIMITED, "warning"),
        (INGRESS, LIMITED, "warning"),
        (LIMITED, {"type": "bandwidth"}, None),
        ({"type": "tuning", "mtu": 1400}, {"type": "tuning", "mtu": 1300}, "warning"),
        ({"type": "tuning", "mtu": 1400}, {"type": "tuning", "mtu": 1400}, None),
        ({"type": "tuning", "mtu": 1400}, {"type": "tuning", "args": {"cni": {"mtu": 1300}}}, "warning"),
        ({"type": "tuning", "mtu": 1400}, {"type": "tuning", "sysctl": {"net.core.a": "1"}}, None),
        ({"type": "tuning", "sysctl": {"net.a.b": "1"}}, {"type": "tuning", "sysctl": {"net/a/b": "2"}}, "warning"),
        ({"type": "tuning", "promisc": True}, {"type": "tuning", "mtu": 1400}, "warning"),
        ({"type": "loopback"}, {"type": "loopback"}, None),
        (PORTMAP, {"type": "tuning"}, None),
    ],
    ids=range(18),
)
def test_portmap_and_others_twice_in_a_chain(problems, first, second, level):
    tuning = {"type": "sbr"}
    found = [entry for entry in problems(second, before=[BRIDGE, first, tuning]) if entry[0] != "info"]
    assert [entry[:3] for entry in found] == ([(level, "plugin_twice", "")] if level else [])


def test_public_addresses_without_masquerading_are_fine(problems):
    public = {"type": "host-local", "subnet": "2001:4860:4860::/64"}
    assert problems({"type": "bridge", "ipam": public}) == []


@pytest.mark.parametrize(
    ("plugin", "first", "too_old"),
    [
        ({"type": "firewall"}, "0.4.0", "0.3.1"),
        ({"type": "vrf", "vrfname": "v"}, "0.3.1", "0.3.0"),
        ({"type": "bandwidth"}, "0.3.0", "0.2.0"),
        ({"type": "tc-redirect-tap"}, "0.3.0", "0.2.0"),
    ],
)
def test_a_version_that_no_release_of_the_plugin_supports_is_a_warning(problems, plugin, first, too_old):
    assert problems(plugin, first, [BRIDGE]) == []
    ((level, code, pointer, message),) = problems(plugin, too_old, [BRIDGE])
    assert (level, code, pointer) == ("warning", "version_too_old", "")
    assert first in message


def test_old_versions_know_one_address_of_each_family(problems):
    two = ranges([{"subnet": "10.1.0.0/24"}], [{"subnet": "10.2.0.0/24"}])
    assert [entry[:3] for entry in problems(two, "0.2.0")] == [("error", "schema", "/ipam")]
    assert problems(two, "0.3.0") == []
    assert problems(ranges([{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00::/64"}]), "0.2.0") == []
    assert [e[2] for e in problems(static({"address": "10.1.0.2/24"}, {"address": "10.1.0.3/24"}), "0.1.0")] == [
        "/ipam"
    ]


def test_what_a_plugin_needs_of_those_before_it(problems):
    assert problems({"type": "ipvlan", "master": "eth0"}, before=[BRIDGE]) == []
    policy = {"type": "firewall", "ingressPolicy": "same-bridge"}
    ((level, code, _pointer, message),) = problems(policy, before=[BRIDGE])
    assert (level, code, "release 1.1.0" in message) == ("info", "needs_release", True)
    assert [entry[:2] for entry in problems(policy, before=[{"type": "ptp", "ipam": LOCAL}])] == [
        ("info", "needs_release"),
        ("warning", "no_effect"),
    ]


def test_what_old_releases_do_not_know_is_said(problems):
    ((level, code, pointer, message),) = problems({"type": "bridge", "portIsolation": True})
    assert (level, code, pointer) == ("info", "needs_release", "/portIsolation")
    assert "after 1.1.1" in message
    ((_level, _code, _pointer, message),) = problems({"type": "firewall", "ingressPolicy": "isolated"}, before=[BRIDGE])
    assert "ingressPolicy isolated needs release 1.7.1" in message
    assert problems({"type": "firewall", "ingressPolicy": "open"}) == []
