# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.addresses import packed
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.kernel_drift import (
    Interface,
    Kernel,
    KernelView,
    Missing,
    parse_address,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.records import ATTACHED, Attached, Record
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.kinds import (
    FIREWALL,
    IPMASQ,
    MACSPOOFCHK,
    PORTMAP,
    chain_name,
    instance_hash,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.owners import Rule, RuleSet
from ansible_collections.podwire.cni.plugins.module_utils._host.netlink import Route
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes

NETNS = "/run/netns/web"
KEY = Key("demo", "web", "eth0")
RESULT = {
    "cniVersion": "1.1.0",
    "interfaces": [
        {"name": "cni0", "mac": "0a:00:00:00:00:01"},
        {"name": "veth1", "mac": "0a:00:00:00:00:02", "mtu": 1450},
        {"name": "eth0", "mac": "0A:00:00:00:00:03", "mtu": 1450, "sandbox": NETNS},
    ],
    "ips": [
        {"address": "10.1.0.2/24", "gateway": "10.1.0.1", "interface": 2},
        {"address": "fd00::2/64", "interface": 2},
    ],
    "routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.9.8.7/16", "gw": "10.1.0.9"}],
}
BRIDGE = Interface(2, "cni0", "bridge", "0a:00:00:00:00:99", 1500, True, "", 0, [parse_address("10.1.0.1/24")])
PORT = Interface(3, "veth1", "veth", "0a:00:00:00:00:98", 1450, True, "cni0", 7, [])
ADDRESSES = [parse_address("10.1.0.2/24"), parse_address("fd00::2/64")]
INSIDE = Interface(7, "eth0", "veth", "0a:00:00:00:00:03", 1450, True, "", 3, ADDRESSES)


def route(dst, gateway, **more):
    raw, length = parse_address(dst)
    return Route(raw, length, 7, True, packed(gateway), **more)


ROUTES = [route("0.0.0.0/0", "10.1.0.1"), route("10.9.0.0/16", "10.1.0.9")]


def entry(result, *plugins, **capability_args):
    conf = {"cniVersion": "1.0.0", "name": "demo", "plugins": list(plugins or [{"type": "bridge"}])}
    config = network_conf_from_bytes(json.dumps(conf).encode())
    return Attached(KEY, config, NETNS, [], capability_args, result)


def drift(host=(BRIDGE, PORT), inside=(INSIDE,), routes=tuple(ROUTES), result="as above", record=None):
    kernel = Kernel(KernelView(host, []), {NETNS: KernelView(inside, routes)}, Missing())
    return kernel.drift(entry(RESULT if result == "as above" else result), record)


def test_nothing_has_changed():
    assert drift() == []


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"inside": []}, "the interface eth0 is gone"),
        ({"inside": [INSIDE._replace(up=False)]}, "the interface eth0 is down"),
        ({"inside": [INSIDE._replace(mtu=1500)]}, "the interface eth0 has the MTU 1500 instead of 1450"),
        (
            {"inside": [INSIDE._replace(mac="0a:00:00:00:00:04")]},
            "the interface eth0 has the MAC 0a:00:00:00:00:04 instead of 0a:00:00:00:00:03",
        ),
        (
            {"inside": [INSIDE._replace(addresses=ADDRESSES[:1])]},
            "the address fd00::2/64 on eth0 is gone",
        ),
        # The length of the prefix counts.
        (
            {"inside": [INSIDE._replace(addresses=[parse_address("10.1.0.2/16"), parse_address("fd00::2/64")])]},
            "the address 10.1.0.2/24 on eth0 is gone",
        ),
        ({"routes": ROUTES[1:]}, "the route to 0.0.0.0/0 is gone"),
        ({"routes": ROUTES[:1]}, "the route to 10.9.8.7/16 through 10.1.0.9 is gone"),
        (
            {"routes": [ROUTES[0], route("10.9.0.0/16", "10.1.0.8")]},
            "the route to 10.9.8.7/16 through 10.1.0.9 is gone",
        ),
        # One of another table serves only who asks there.
        (
            {"routes": [ROUTES[0], route("10.9.0.0/16", "10.1.0.9", table=100)]},
            "the route to 10.9.8.7/16 through 10.1.0.9 is gone",
        ),
        ({"host": [BRIDGE]}, "the host's interface veth1 is gone"),
        ({"host": [PORT._replace(master="")]}, "the host's interface cni0 is gone"),
        ({"host": [BRIDGE, PORT._replace(up=False)]}, "the host's interface veth1 is down"),
        ({"host": [BRIDGE, PORT._replace(mtu=1500)]}, "the host's interface veth1 has the MTU 1500 instead of 1450"),
        ({"host": [BRIDGE, PORT._replace(master="")]}, "the host's interface veth1 is no longer a port of cni0"),
        (
            {"host": [BRIDGE, PORT._replace(master="br1")]},
            "the host's interface veth1 is a port of br1 instead of cni0",
        ),
    ],
)
def test_each_difference_is_told(changed, told):
    assert drift(**changed) == [told]


@pytest.mark.parametrize(
    ("plugins", "mtu"),
    [
        ([{"type": "bridge"}], None),
        ([{"type": "bridge", "mtu": 0}], None),
        ([{"type": "bridge", "mtu": "1400"}], None),
        ([{"type": "bridge", "mtu": 1450}], None),
        ([{"type": "bridge", "mtu": 1400}], 1400),
        ([{"type": "bridge", "mtu": 1450}, {"type": "tuning", "mtu": 1300}], 1300),
    ],
)
def test_an_mtu_that_no_result_has_is_that_of_the_network(plugins, mtu):
    result = dict(RESULT, interfaces=[{"name": "cni0"}, {"name": "veth1"}, {"name": "eth0", "sandbox": NETNS}])
    kernel = Kernel(KernelView([BRIDGE, PORT], []), {NETNS: KernelView([INSIDE], ROUTES)}, Missing())
    wrong = [f"the interface eth0 has the MTU 1450 instead of {mtu}"] if mtu else []
    assert kernel.drift(entry(result, *plugins), None) == wrong


def test_what_an_interface_that_is_gone_had_is_not_told_again():
    assert drift(inside=[], routes=[]) == [
        "the interface eth0 is gone",
        "the route to 0.0.0.0/0 is gone",
        "the route to 10.9.8.7/16 through 10.1.0.9 is gone",
    ]


def test_what_was_never_so_is_no_drift():
    kernel = Kernel(KernelView([BRIDGE], []), {NETNS: KernelView([INSIDE], ROUTES[1:])}, Missing())
    keys = [difference.key for difference in kernel.differences(entry(RESULT))]
    assert keys == ["host's interface veth1", "route 0.0.0.0/0"]
    assert kernel.drift(entry(RESULT), Record(ATTACHED, untrue=keys)) == []
    assert kernel.drift(entry(RESULT), Record(ATTACHED, untrue=keys[:1])) == ["the route to 0.0.0.0/0 is gone"]


def test_results_before_interfaces_speak_of_the_one_that_was_asked_for():
    result = {"cniVersion": "0.2.0", "ip4": {"ip": "10.1.0.2/24", "routes": [{"dst": "10.8.0.0/16"}]}}
    assert drift(result=result) == ["the route to 10.8.0.0/16 is gone"]
    lost = drift(result=result, inside=[INSIDE._replace(addresses=[])])
    assert lost[0] == "the address 10.1.0.2/24 on eth0 is gone"


@pytest.mark.parametrize("version", ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"])
def test_results_of_all_later_versions_say_the_same(version):
    result = dict(RESULT, cniVersion=version)
    assert drift(result=result) == []
    assert drift(result=result, inside=[INSIDE._replace(addresses=ADDRESSES[1:])], routes=ROUTES[:1]) == [
        "the address 10.1.0.2/24 on eth0 is gone",
        "the route to 10.9.8.7/16 through 10.1.0.9 is gone",
    ]


def test_addresses_on_the_hosts_interfaces_and_routes_of_other_tables_are_not_compared():
    result = dict(RESULT, ips=[{"address": "10.7.0.1/24", "interface": 0}], routes=[{"dst": "10.8.0.0/16", "table": 9}])
    assert drift(result=result) == []


@pytest.mark.parametrize(
    "result",
    [
        None,
        {},
        {"cniVersion": "9.9.9", "ips": []},
        {"cniVersion": "1.0.0", "interfaces": [{}], "ips": [{"address": "10.1.0.2/24", "interface": 7}]},
        {"cniVersion": "1.0.0", "interfaces": None, "ips": None, "routes": None},
        {"cniVersion": "1.0.0", "interfaces": "x", "ips": 5},
        {"cniVersion": "1.0.0", "ips": [{"address": "nonsense"}], "routes": [{"dst": "10.0.0.0/99"}]},
    ],
)
def test_no_result_is_too_odd(result):
    assert all(isinstance(text, str) for text in drift(result=result))


def test_a_namespace_that_is_gone_is_none_of_this():
    assert Kernel(KernelView([], []), {}, Missing()).drift(entry(RESULT), None) == []


# ---- rules

MASQUERADING = {"type": "bridge", "ipMasq": True}
MAPPING = {"type": "portmap", "capabilities": {"portMappings": True}}
RULES = (Rule(("chain", "iptables-nft", "ipv4", "nat", "POSTROUTING", "-j X")),)


def rules(plugin, name, family="ipv4", backend="iptables-nft", **more):
    return RuleSet(backend, family, plugin, name, rules=RULES, **more)


def lost(sets, *plugins, problems=(), **capability_args):
    return [kind for kind, _text in Missing(sets, problems).of(entry(RESULT, *plugins, **capability_args))]


def test_masquerading():
    chain = chain_name("", "demo", "web")
    both = [rules(IPMASQ, chain), rules(IPMASQ, chain, "ipv6")]
    assert lost(both, MASQUERADING) == []
    assert lost([], {"type": "bridge", "ipMasq": False}) == []
    # Each family has its own.
    assert lost(both[:1], MASQUERADING) == [IPMASQ]
    # A flushed table keeps its chains, and a chain that nothing leads to is as good as none.
    assert lost([both[0], RuleSet("iptables-nft", "ipv6", IPMASQ, chain)], MASQUERADING) == [IPMASQ]
    assert lost([both[0], rules(IPMASQ, chain, "ipv6", inert=True)], MASQUERADING) == [IPMASQ]
    assert lost([rules(IPMASQ, instance_hash("demo", "eth0", "web"), "inet", "nftables")], MASQUERADING) == []
    assert lost([rules(IPMASQ, chain_name("", "demo", "other"))], MASQUERADING) == [IPMASQ]


def test_masquerading_of_one_family():
    chain = chain_name("", "demo", "web")
    for address, own, other in (("10.1.0.2/24", "ipv4", "ipv6"), ("fd00::2/64", "ipv6", "ipv4")):
        attached = entry({"cniVersion": "1.0.0", "ips": [{"address": address}]}, MASQUERADING)
        assert Missing([rules(IPMASQ, chain, own)], ()).of(attached) == []
        assert [kind for kind, _text in Missing([rules(IPMASQ, chain, other)], ()).of(attached)] == [IPMASQ]


def test_port_mappings():
    ports = [{"hostPort": 8080, "containerPort": 80}]
    assert lost([], MAPPING, portMappings=ports) == [PORTMAP]
    # Without mappings portmap makes nothing.
    assert lost([], MAPPING) == lost([], MAPPING, portMappings=[]) == []
    assert lost([], {"type": "portmap"}, portMappings=ports) == []
    assert lost([rules(PORTMAP, chain_name("DN-", "demo", "web"))], MAPPING, portMappings=ports) == []
    assert lost([rules(PORTMAP, "web", backend="nftables")], MAPPING, portMappings=ports) == []


def test_firewall_and_forged_macs():
    assert lost([], {"type": "firewall"}, {"type": "bridge", "macspoofchk": True}) == [FIREWALL, MACSPOOFCHK]
    there = [rules(FIREWALL, "10.1.0.2"), rules(FIREWALL, "fd00::2", "ipv6"), rules(MACSPOOFCHK, "web-eth0", "bridge")]
    assert lost(there, {"type": "firewall"}, {"type": "bridge", "macspoofchk": True}) == []
    assert lost(there[1:], {"type": "firewall"}) == [FIREWALL]
    assert lost([], {"type": "firewall", "backend": "firewalld"}) == []


def test_without_our_record_nobody_knows_whether_firewall_uses_firewalld():
    kernel = Kernel(KernelView([BRIDGE, PORT], []), {NETNS: KernelView([INSIDE], ROUTES)}, Missing())
    walled = entry(RESULT, {"type": "firewall"})
    assert kernel.drift(walled, None) == []
    assert kernel.drift(walled, Record(ATTACHED)) == ["its rules in the chain CNI-FORWARD are gone"]


def test_rules_that_cannot_be_read_are_not_missing():
    assert lost([], MASQUERADING, problems=[{"code": "rules_unreadable"}]) == []
