# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What the result of an ADD implies, compared with made-up hosts."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.deduce import deduce
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import Attached
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import owners
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.chains import FoundChains
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.kinds import (
    IPMASQ,
    MACSPOOFCHK,
    PORTMAP,
    chain_name,
    instance_hash,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.owners import FoundRules, Rule, RuleSet
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.object_kinds import HOST, phrases_of
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.state import DEDUCED, Drift, Reading, compare
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.objects import KernelObject
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.footprints.states import (
    DEFAULT,
    address,
    link,
    route,
)

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
LINK, FOUR, SIX = ("link", "eth0"), ("addr", "eth0", "10.1.0.2", 24), ("addr", "eth0", "fd00::2", 64)
SECOND = ("route", 2, 254, "10.9.0.0/16", 0, 7, 1, "eth0")
SECOND_GONE = "the route to 10.9.0.0/16 through 10.1.0.9 on eth0 is gone"
BRIDGE, PORT, WAY = ("link", "cni0"), ("link", "veth1"), ("way", "10.1.0.2")


def eth0(**other):
    return {LINK: link(7, (3, True), **{"mac": "0a0000000003", "mtu": 1450, **other})}


def port(**other):
    return {PORT: link(3, (7, True), **{"mac": "0a0000000098", "mtu": 1450, "master": "cni0", **other})}


HOST_STATE = {BRIDGE: link(2, kind="bridge", mac="0a0000000099"), **port()}
INSIDE = {**eth0(), FOUR: address(), SIX: address(), DEFAULT: route("10.1.0.1"), SECOND: route("10.1.0.9")}


def entry(result, *plugins, **capability_args):
    conf = {"cniVersion": "1.0.0", "name": "demo", "plugins": list(plugins or [{"type": "bridge"}])}
    config = network_conf_from_bytes(json.dumps(conf).encode())
    return Attached(KEY, config, NETNS, [], capability_args, result)


def drift(changed=None, attached=None, chains=None):
    """Return what differs in words. *changed*: objects that differ, None for those that are gone."""
    changed = changed or {}
    host = {key: there for key, there in changed.items() if key in (BRIDGE, PORT, WAY)}
    inside = {key: there for key, there in changed.items() if key not in host}
    states = {**HOST_STATE, **host}, {**INSIDE, **inside}
    spaces = [{key: there for key, there in state.items() if there is not None} for state in states]
    look = Reading({HOST: spaces[0], NETNS: spaces[1]}, chains or FoundChains())
    found = Drift(KEY, deduce(attached or entry(RESULT), {}, look), NETNS, DEDUCED)
    compare(look, found)
    return phrases_of(found.differences, True)


def test_nothing_has_changed():
    assert drift() == []


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (eth0(flags=0), "the interface eth0 is down"),
        (eth0(mtu=1500), "the interface eth0 has the MTU 1500 instead of 1450"),
        (eth0(mac="0a0000000004"), "the interface eth0 has the MAC 0a:00:00:00:00:04 instead of 0a:00:00:00:00:03"),
        ({SIX: None}, "the address fd00::2/64 on eth0 is gone"),
        # The length of the prefix counts.
        ({FOUR: None, (*FOUR[:3], 16): address()}, "the address 10.1.0.2/24 on eth0 is gone"),
        ({DEFAULT: None}, "the route to 0.0.0.0/0 on eth0 is gone"),
        ({SECOND: None}, SECOND_GONE),
        ({SECOND: route("10.1.0.8")}, SECOND_GONE),
        # One of another table serves only who asks there.
        ({SECOND: None, ("route", 2, 100, *SECOND[3:]): route("10.1.0.9")}, SECOND_GONE),
        ({PORT: None}, "the host's interface veth1 is gone"),
        ({BRIDGE: None}, "the host's interface cni0 is gone"),
        (port(flags=0), "the host's interface veth1 is down"),
        (port(mtu=1500), "the host's interface veth1 has the MTU 1500 instead of 1450"),
        (port(master=""), "the host's interface veth1 is no longer a port of cni0"),
        (port(master="br1"), "the host's interface veth1 is a port of br1 instead of cni0"),
        # The route has no gateway in the result.
        ({("way", "10.1.0.1"): KernelObject("prohibit")}, "the way to 10.1.0.1 is prohibit, want eth0"),
        ({WAY: KernelObject("local")}, "the host's way to 10.1.0.2 is local, want cni0"),
        # What was on an interface is gone with it.
        (dict.fromkeys(INSIDE), "the interface eth0 is gone"),
    ],
)
def test_each_difference_is_told(changed, told):
    assert drift(changed) == [told]


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
    wrong = [f"the interface eth0 has the MTU 1450 instead of {mtu}"] if mtu else []
    assert drift(attached=entry(result, *plugins)) == wrong


def test_results_before_interfaces_speak_of_the_one_that_was_asked_for():
    result = {"cniVersion": "0.2.0", "ip4": {"ip": "10.1.0.2/24", "routes": [{"dst": "10.8.0.0/16"}]}}
    told = ["the route to 10.8.0.0/16 on eth0 is gone"]
    assert drift(attached=entry(result)) == told
    assert drift({FOUR: None}, entry(result)) == ["the address 10.1.0.2/24 on eth0 is gone", *told]


@pytest.mark.parametrize("version", ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"])
def test_results_of_all_later_versions_say_the_same(version):
    attached = entry(dict(RESULT, cniVersion=version))
    assert drift(attached=attached) == []
    assert drift({FOUR: None, SECOND: None}, attached) == ["the address 10.1.0.2/24 on eth0 is gone", SECOND_GONE]


def test_addresses_on_the_hosts_interfaces_and_routes_of_other_tables_are_not_compared():
    result = dict(RESULT, ips=[{"address": "10.7.0.1/24", "interface": 0}], routes=[{"dst": "10.8.0.0/16", "table": 9}])
    assert drift(attached=entry(result)) == []


def test_a_route_that_is_gone_had_the_metric_that_the_kernel_gives():
    attached = entry(dict(RESULT, routes=[{"dst": "10.8.0.0/16"}, {"dst": "fd08::/64"}]))
    inside = deduce(attached, {}, Reading({HOST: {}, NETNS: INSIDE})).inside
    assert {key[3]: key[5] for key in inside if key[0] == "route"} == {"10.8.0.0/16": 0, "fd08::/64": 1024}


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
    assert all(isinstance(text, str) for text in drift(attached=entry(result)))


# ---- rules

MASQUERADING = {"type": "bridge", "ipMasq": True}
MAPPING = {"type": "portmap", "capabilities": {"portMappings": True}}
RULES = (Rule(("chain", "iptables-nft", "ipv4", "nat", "POSTROUTING", "-j X")),)
MASQUERADING_GONE = "its masquerading rules are gone"
MAPPINGS_GONE = "the rules of its port mappings are gone"


def rules(plugin, name, family="ipv4", backend="iptables-nft", **more):
    return RuleSet(backend, family, plugin, name, rules=RULES, **more)


@pytest.fixture
def lost(monkeypatch):
    """Return a function that returns which rules are gone, where these sets of them are there."""

    def run(sets, *plugins, problems=(), result=None, **capability_args):
        found = FoundRules()
        found.sets, found.problems = list(sets), list(problems)
        monkeypatch.setattr(owners, "group_rules", lambda chains: found)
        return drift(attached=entry(result or RESULT, *plugins, **capability_args), chains=FoundChains())

    return run


def test_masquerading(lost):
    chain = chain_name("", "demo", "web")
    both = [rules(IPMASQ, chain), rules(IPMASQ, chain, "ipv6")]
    assert lost(both, MASQUERADING) == []
    assert lost([], {"type": "bridge", "ipMasq": False}) == []
    # Each family has its own.
    assert lost(both[:1], MASQUERADING) == [MASQUERADING_GONE]
    # A flushed table keeps its chains, and a chain that nothing leads to is as good as none.
    assert lost([both[0], RuleSet("iptables-nft", "ipv6", IPMASQ, chain)], MASQUERADING) == [MASQUERADING_GONE]
    assert lost([both[0], rules(IPMASQ, chain, "ipv6", inert=True)], MASQUERADING) == [MASQUERADING_GONE]
    assert lost([rules(IPMASQ, instance_hash("demo", "eth0", "web"), "inet", "nftables")], MASQUERADING) == []
    assert lost([rules(IPMASQ, chain_name("", "demo", "other"))], MASQUERADING) == [MASQUERADING_GONE]


def test_masquerading_of_one_family(lost):
    chain = chain_name("", "demo", "web")
    for one, own, other in (("10.1.0.2/24", "ipv4", "ipv6"), ("fd00::2/64", "ipv6", "ipv4")):
        result = {"cniVersion": "1.0.0", "ips": [{"address": one}]}
        assert lost([rules(IPMASQ, chain, own)], MASQUERADING, result=result) == []
        assert lost([rules(IPMASQ, chain, other)], MASQUERADING, result=result) == [MASQUERADING_GONE]


def test_port_mappings(lost):
    ports = [{"hostPort": 8080, "containerPort": 80}]
    assert lost([], MAPPING, portMappings=ports) == [MAPPINGS_GONE]
    # Without mappings portmap makes nothing.
    assert lost([], MAPPING) == lost([], MAPPING, portMappings=[]) == []
    assert lost([], {"type": "portmap"}, portMappings=ports) == []
    assert lost([rules(PORTMAP, chain_name("DN-", "demo", "web"))], MAPPING, portMappings=ports) == []
    assert lost([rules(PORTMAP, "web", backend="nftables")], MAPPING, portMappings=ports) == []


def test_firewall_and_forged_macs(lost):
    """Whether the plugin firewall works with firewalld is known only at the ADD, so nothing is missed of it."""
    plugins = {"type": "firewall"}, {"type": "bridge", "macspoofchk": True}
    assert lost([], *plugins) == ["its rules against MAC spoofing are gone"]
    assert lost([rules(MACSPOOFCHK, "web-eth0", "bridge")], *plugins) == []


def test_rules_that_cannot_be_read_are_not_missing(lost):
    assert lost([], MASQUERADING, problems=[{"code": "rules_unreadable"}]) == []
