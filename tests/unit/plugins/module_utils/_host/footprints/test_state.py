# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What of a footprint is drift, what is not, and the words for it."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.chains import Chain, FoundChains
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.footprint import Footprint
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.object_kinds import (
    HOST,
    KINDS,
    Difference,
    phrases_of,
    summarize,
    without_consequences,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.recorder import (
    _merge,
    changes,
    changes_on_host,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.repair import why_not
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.state import (
    DEDUCED,
    Drift,
    Reading,
    compare,
    note_order,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.links import pack_attribute
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.objects import ROUTE, KernelObject
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.footprints.states import (
    DEFAULT,
    FILTER,
    NAT,
    address,
    link,
    route,
)

NETNS, KEY = "/run/netns/web", ("demo", "web", "eth0")
ADDR = ("addr", "eth0", "10.88.0.2", 16)
STATE = {
    ("link", "eth0"): link(),
    ADDR: address(),
    DEFAULT: route("10.88.0.1"),
    ("conf4", "eth0"): KernelObject([0, 0, 1]),
    ("sysctl", "core/somaxconn"): KernelObject("500"),
}


def inside(**changed):
    objects = {key: there for key, there in STATE.items() if key[0] != "conf4"}
    objects["conf4", "eth0", "proxy_arp"] = KernelObject(1)
    return Footprint(inside=objects)


def found(state, footprint=None, host=(), chains=None):
    look = Reading({NETNS: state, HOST: dict(host)}, chains or FoundChains())
    drift = Drift(KEY, footprint or inside(), NETNS)
    note_order(look, {}, [drift.footprint])
    compare(look, drift)
    return drift


def drift_of(*differences, footprint=None):
    drift = Drift(KEY, footprint or Footprint(), NETNS)
    drift.differences = list(differences)
    return drift


def test_an_untouched_state_has_no_drift():
    assert found(STATE).differences == found(STATE).unread == []
    more = {("addr", "eth1", "10.88.0.9", 16): address(), ("route", 2, 254, "10.0.0.0/8", 0, 0, 1, "eth0"): route()}
    assert found({**STATE, **more}).differences == []


@pytest.mark.parametrize("key", STATE)
def test_each_object_that_is_gone_is_drift(key):
    (one,) = found({other: there for other, there in STATE.items() if other != key}).differences
    assert one.key[:2] == key[:2]
    assert one.now is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("link", "eth0"), link(mtu=1400)),
        (("link", "eth0"), link(mac="0a0000000009")),
        (ADDR, KernelObject(dict(address().value, peer="10.0.0.1"))),
        (DEFAULT, route("10.88.0.9")),
        (("conf4", "eth0"), KernelObject([0, 0, 0])),
        (("sysctl", "core/somaxconn"), KernelObject("4096")),
    ],
)
def test_each_object_with_another_value_is_drift(key, value):
    assert len(found({**STATE, key: value}).differences) == 1


@pytest.mark.parametrize("kind", ["veth", "bridge"])
def test_a_mac_that_follows_is_no_drift(kind):
    footprint = Footprint({("link", "x"): link(kind=kind)})
    assert not found({}, footprint, {("link", "x"): link(kind=kind, mac="0a0000000009")}).differences
    assert found({}, footprint, {("link", "x"): link(kind=kind, mtu=9)}).differences


@pytest.mark.parametrize(
    ("was", "mtu", "ports", "drift"),
    [
        (1500, 1400, [1400, 1500], 0),
        (1500, 1400, [1500], 1),
        (1500, 1400, [], 1),
        (1400, 1500, [], 0),
        (1400, 1300, [1400], 1),
    ],
)
def test_the_mtu_of_a_bridge_may_follow_its_ports(was, mtu, ports, drift):
    footprint = Footprint({("link", "cni0"): link(kind="bridge", mtu=was)})
    host = {("link", f"veth{at}"): link(mtu=size, master="cni0") for at, size in enumerate(ports)}
    host["link", "cni0"] = link(kind="bridge", mtu=mtu)
    assert len(found({}, footprint, host).differences) == drift


def test_what_the_add_removed_and_is_back_is_drift():
    footprint = Footprint(inside={DEFAULT: KernelObject(None)})
    assert not found({}, footprint).differences
    (one,) = found({DEFAULT: route()}, footprint).differences
    assert (one.was, one.now) == (None, route().value)


@pytest.mark.parametrize(
    ("key", "there", "harms"),
    [
        (("addr", "eth0", "10.88.3.3", 16), address(), True),
        (("addr", "eth0", "10.88.3.3", 32), address(), True),
        (("addr", "eth0", "10.89.0.2", 16), address(), False),
        (("addr", "eth0", "fd00::2", 64), address(), False),
        (("addr", "eth1", "10.88.3.3", 16), address(), False),
        (("addr", "eth0", "10.88.3.3", 16), address()._replace(derived=True), False),
        (("route", 2, 254, "default/0", 0, 5, 1, "eth0"), route(), False),
        (("route", 10, 254, "default/0", 0, 0, 1, "eth1"), route(), False),
        (("route", 2, 100, "default/0", 0, 0, 1, "eth1"), route(), False),
    ],
)
def test_additions_are_drift_if_they_do_harm(key, there, harms):
    assert [one.key for one in found({**STATE, key: there}).differences] == ([key] if harms else [])


@pytest.mark.parametrize(("prefix", "harms"), [(16, True), (8, True), (24, True), (32, False)])
def test_an_address_on_the_host_does_harm_only_with_the_subnet(prefix, harms):
    footprint = Footprint({("addr", "cni0", "10.88.0.1", 16): address()})
    key = ("addr", "cni0", "10.88.0.250", prefix)
    compared = found({}, footprint, {("addr", "cni0", "10.88.0.1", 16): address(), key: address()})
    assert [one.key for one in compared.additions] == ([key] if harms else [])
    assert compared.lost == []


def test_of_an_interface_that_the_host_had_only_flags_are_compared():
    footprint = Footprint({("link", "br0"): KernelObject({"kind": "bridge", "flags": 1})})
    for there, words in (
        (link(kind="bridge", mtu=1400, flags=0x301), []),
        (link(kind="bridge", flags=0x100), ["the host's interface br0 is down"]),
        (None, ["the host's interface br0 is gone"]),
    ):
        compared = found({}, footprint, {("link", "br0"): there} if there else {})
        assert phrases_of(compared.lost, False) == words
    assert why_not(compared) == "br0 was there before the attachment"


@pytest.mark.parametrize(
    ("protocol", "gateway", "same"), [(3, "0a580001", True), (4, "0a580001", False), (3, "", False)]
)
def test_a_route_that_others_have_added_is_not_the_one_that_the_add_removed(protocol, gateway, same):
    def raw(number, through):
        body = pack_attribute(5, bytes.fromhex(through)) if through else b""
        return ROUTE.pack(2, 0, 0, 0, 254, number, 0, 1, 0) + body

    footprint = Footprint(inside={DEFAULT: KernelObject(None, raw(3, "0a580001"))})
    there = route()._replace(raw=raw(protocol, gateway))
    assert len(found({DEFAULT: there}, footprint).differences) == same


def test_an_address_without_a_subnet_has_no_neighbours():
    footprint = Footprint(inside={("addr", "eth0", "10.88.0.2", 32): address()})
    state = {("addr", "eth0", "10.88.0.2", 32): address(), ("addr", "eth0", "10.88.0.3", 32): address()}
    assert not found(state, footprint).differences


def chains(*rules):
    there = FoundChains()
    there.chains[(*NAT, "CNI-X")] = Chain("-", list(rules))
    return there


def test_a_rule_that_others_add_to_a_chain_of_the_attachment_is_told_and_left():
    footprint = Footprint({(*NAT, "CNI-X"): KernelObject("-"), (*NAT, "CNI-X", "-j ACCEPT"): KernelObject(1)})
    drift = found({}, footprint, chains=chains("-j DROP", "-j ACCEPT"))
    assert [one.key[-1] for one in drift.additions] == ["-j DROP"] and drift.lost == []
    text = "the rule of the chain CNI-X of the table nat (iptables-nft, ipv4) was added"
    assert phrases_of(drift.additions, True) == [text]


@pytest.mark.parametrize(
    ("target", "gateway", "device", "told"),
    [
        ("0.0.0.0/1", "10.88.0.9", "eth0", True),
        ("0.0.0.0/1", "10.88.0.1", "eth0", False),
        # A tunnel takes it on purpose.
        ("0.0.0.0/1", "10.9.0.1", "tun0", False),
        ("10.0.0.0/8", "10.88.0.9", "eth0", False),
    ],
)
def test_a_route_that_takes_half_of_the_traffic_elsewhere_is_told(target, gateway, device, told):
    key = ("route", 2, 254, target, 0, 0, 1, device)
    assert [one.key for one in found({**STATE, key: route(gateway)}).additions] == ([key] if told else [])


def test_rules_are_counted():
    footprint = Footprint({(*NAT, "CNI-X", "-j ACCEPT"): KernelObject(2)})
    assert not found({}, footprint, chains=chains("-j ACCEPT", "other", "-j ACCEPT")).differences
    assert not found({}, footprint, chains=chains(*["-j ACCEPT"] * 3)).differences
    (one,) = found({}, footprint, chains=chains("-j ACCEPT")).differences
    assert (one.was, one.now) == (2, 1)
    assert len(found({}, footprint, chains=FoundChains()).differences) == 1


def test_the_comment_of_a_table_is_no_drift():
    """nft shows it from 1.1 on, so an upgrade of nft would look like a change of each table."""
    key = ("table", "nftables", "ip", "cni_hostport")
    there = FoundChains()
    there.chains[key] = Chain({"comment": "CNI portmap plugin"}, [])
    assert not found({}, Footprint({key: KernelObject({})}), chains=there).differences
    assert found({}, Footprint({key: KernelObject({})}), chains=FoundChains()).differences


def test_what_cannot_be_read_is_no_drift_but_told():
    footprint = Footprint({(*NAT, "CNI-X", "-j ACCEPT"): KernelObject(1)})
    unread = FoundChains()
    unread.unread["iptables-nft", "ipv4", "nat"] = HostError("it cannot be shown")
    compared = found({}, footprint, chains=unread)
    assert (compared.differences, compared.unread) == ([], ["it cannot be shown"])
    unread.unread["iptables-nft", "ipv4"] = HostError("not installed")
    assert found({}, footprint, chains=unread).unread == ["not installed"]
    assert found({}, footprint, chains=Reading({}).chains).unread == ["the firewall was not read"]


# ---- words

GONE = [
    (("link", "eth0"), link().value, "the interface eth0 is gone"),
    (ADDR, address().value, "the address 10.88.0.2/16 on eth0 is gone"),
    (DEFAULT, route("10.88.0.1").value, "the route to 0.0.0.0/0 through 10.88.0.1 on eth0 is gone"),
    (("route", 10, 100, "default/0", 0, 0, 1, "eth0"), route().value, "the route to ::/0 on eth0 in table 100 is gone"),
    (
        ("rule", 2, 500, "x", "y"),
        {"count": 1, "from": "10.0.0.2/32", "to": "", "table": 100},
        "the routing rule from 10.0.0.2/32 to table 100 is gone",
    ),
    (("neigh", "eth0", "10.0.0.9", 0), {"mac": ""}, "the neighbour entry 10.0.0.9 on eth0 is gone"),
    (("fdb", "eth0", "0a0000000001", 0), {}, "the forwarding entry 0a:00:00:00:00:01 on eth0 is gone"),
    (("vlan", "eth0", 5), {"flags": 0}, "the VLAN 5 on eth0 is gone"),
    (("qdisc", "eth0", 1, 2), {"kind": "tbf"}, "the queueing discipline tbf on eth0 is gone"),
    (("class", "eth0", 1, 2), {"kind": "htb"}, "the traffic class htb on eth0 is gone"),
    (("filter", "eth0", 1, 2), {"kind": "u32"}, "the traffic filter u32 on eth0 is gone"),
    (("conf4", "eth0", "proxy_arp"), 1, "the sysctl net.ipv4.conf.eth0.proxy_arp is gone"),
    (("conf6", "eth0", "accept_ra"), 1, "the sysctl net.ipv6.conf.eth0.accept_ra is gone"),
    (("sysctl", "core/somaxconn"), "1", "the sysctl net.core.somaxconn is gone"),
    (("lease", "/d", "demo", "10.0.0.2"), "x", "the lease of 10.0.0.2 in /d/demo is gone"),
    ((*FILTER, "CNI-FORWARD", "-s 10.0.0.2/32 -j ACCEPT"), 1, "its rules in the chain CNI-FORWARD are gone"),
    ((*NAT, "CNI-DN-0123", "-j DNAT"), 1, "the rules of its port mappings are gone"),
    ((*NAT, "CNI-" + "a1" * 12, "-j MASQUERADE"), 1, "its masquerading rules are gone"),
    (("chain", "nftables", "bridge", "nat", "cni-br-iface-x", "{}"), 1, "its rules against MAC spoofing are gone"),
    (("table", "nftables", "inet", "t"), {}, "the table t (nftables, inet) is gone"),
    (("set", "nftables", "inet", "t", "s"), {}, "the set s of the table t (nftables, inet) is gone"),
]


@pytest.mark.parametrize(("key", "was", "words"), GONE)
def test_words_for_what_is_gone(key, was, words):
    assert phrases_of([Difference(NETNS, key, was, None)], True) == [words]


def test_there_are_words_for_every_kind():
    kinds = {key[0] for key, _was, _words in GONE}
    assert kinds == set(KINDS) - {"map", "switch", "way"}


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        ({}, {"flags": 0}, "the host's interface veth1 is down"),
        ({}, {"flags": 0x101}, "the host's interface veth1 has promiscuous mode on"),
        ({}, {"mtu": 1400}, "the host's interface veth1 has the MTU 1400 instead of 1500"),
        ({"master": "cni0"}, {}, "the host's interface veth1 is no longer a port of cni0"),
        ({"master": "cni0"}, {"master": "br1"}, "the host's interface veth1 is a port of br1 instead of cni0"),
        ({"data": {"1": "00"}}, {}, "the host's interface veth1 has other settings"),
        (
            {"master": "a", "port": {"4": "01"}},
            {"master": "a", "port": {}},
            "the host's interface veth1 has other settings as a port of a",
        ),
        ({}, {"genmode": 1}, "the host's interface veth1 has changed"),
    ],
)
def test_words_for_settings_of_interfaces(was, now, words):
    one = Difference(HOST, ("link", "veth1"), link(**was).value, link(**now).value)
    assert phrases_of([one], True) == [words]


def test_shared_rules_are_named_by_their_chain():
    lost = Difference(HOST, (*FILTER, "FORWARD", "-j CNI-FORWARD"), 1, None)
    assert summarize([lost], False) == "the rule of the chain FORWARD of the table filter (iptables-nft, ipv4) is gone"


def test_many_phrases_are_counted():
    lost = [Difference(NETNS, ("addr", "eth0", f"10.0.0.{number}", 24), {}, None) for number in range(9)]
    assert summarize(lost, True).endswith("10.0.0.5/24 on eth0 is gone; and 3 more")


def test_a_device_that_is_back_on_the_host_is_told():
    back = Difference(HOST, ("link", "dev0"), None, link().value)
    assert summarize([back], True) == "the host's interface dev0, which the ADD removed, is back"


def test_consequences_are_not_told():
    gone = Difference(NETNS, ("link", "eth0"), link().value, None)
    follow = [
        Difference(NETNS, ADDR, address().value, None),
        Difference(NETNS, DEFAULT, route().value, None),
        Difference(NETNS, ("conf4", "eth0", "proxy_arp"), 1, None),
    ]
    other = Difference(HOST, ("addr", "eth0", "10.0.0.1", 24), address().value, None)
    assert without_consequences([gone, *follow, other]) == [gone, other]
    assert without_consequences(follow) == follow
    own = Difference(NETNS, ("route", 2, 255, "10.88.0.2/32", 0, 0, 2, "eth0"), route(source="10.88.0.2").value, None)
    assert without_consequences([follow[0], own]) == [follow[0]]


# ---- what can be put back

ANOTHER = "another interface has the name eth0"


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (Difference(NETNS, ("link", "eth0"), link().value, None), ""),
        (Difference(NETNS, ("link", "eth0"), link(kind="tun").value, None), "eth0 was a tun device"),
        (Difference(NETNS, ("link", "eth0"), link(kind="").value, None), "eth0 was a physical device"),
        (Difference(NETNS, ("link", "eth0"), link().value, link(kind="dummy").value), ANOTHER),
        (Difference(NETNS, ("link", "eth0"), link().value, link(lower="peer0").value), ANOTHER),
        (Difference(HOST, ("link", "dev0"), None, link().value), "the interface dev0 has left the container"),
        (
            Difference(NETNS, ("qdisc", "eth0", 1, 2), None, {"kind": "tbf"}),
            "only an ADD removes the queueing discipline tbf on eth0",
        ),
        (
            Difference(HOST, ("lease", "/d", "n", "10.0.0.2"), "a", "b"),
            "the address 10.0.0.2 is leased to another container",
        ),
    ],
)
def test_why_something_cannot_be_put_back(one, why):
    ends = {("link", "veth1"): KernelObject(link().value, b"", 12346, (12345, True))}
    value = link().value if one.key[0] != "link" or one.was is None else one.was
    footprint = Footprint(ends, {("link", "eth0"): KernelObject(value, b"", 12345, (12346, True))})
    assert why_not(drift_of(one, footprint=footprint)) == why


def test_a_veth_without_a_recorded_end_cannot_be_made_again():
    footprint = Footprint({}, {("link", "eth0"): KernelObject(link().value, b"", 12345, (12346, True))})
    lost = Difference(NETNS, ("link", "eth0"), link().value, None)
    assert why_not(drift_of(lost, footprint=footprint)) == "the other end of eth0 is not recorded"


def test_of_what_is_only_deduced_nothing_is_put_back():
    drift = Drift(KEY, Footprint(), NETNS, DEDUCED, "it is not known what the plugin x does")
    assert why_not(drift) == ""
    drift.differences = [Difference(NETNS, ("addr", "eth0", "10.0.0.2", 24), {}, None)]
    assert why_not(drift) == "what its ADD did is only partly known: it is not known what the plugin x does"


# ---- what is recorded


@pytest.mark.parametrize(("index", "kept"), [(5, 2), (9, 0)])
def test_an_interface_that_others_have_made_again_is_theirs(index, kept):
    known = {("link", "cni0"): link(5, kind="bridge"), ("addr", "cni0", "10.88.0.1", 16): address()}
    after = Reading({HOST: {("link", "cni0"): link(index, kind="bridge", mtu=1400)}})
    assert len(_merge(known, True, {}, after)) == kept


def test_changes_of_an_add():
    switch = ("sysctl", "ipv4/ip_forward")
    before = {("conf4", "old"): KernelObject([0, 0]), switch: KernelObject("0"), ("link", "dev0"): link()}
    after = {
        ("conf4", "old"): KernelObject([1, 5]),
        ("conf4", "new"): KernelObject([1, 0, 3]),
        ("link", "new"): link(),
        ("addr", "new", "fe80::1", 64): address()._replace(derived=True),
        switch: KernelObject("1"),
        ("sysctl", "netfilter/nf_conntrack_tcp_timeout_close"): KernelObject("10"),
    }
    defaults = {("conf4", "forwarding"): 0, ("conf4", "mc_forwarding"): 0, ("conf4", "proxy_arp"): 1}
    assert changes(before, after, defaults) == {
        ("conf4", "old", "mc_forwarding"): KernelObject(5),
        ("conf4", "new", "forwarding"): KernelObject(1),
        ("conf4", "new", "proxy_arp"): KernelObject(3),
        ("link", "new"): link(),
        ("link", "dev0"): KernelObject(None, b"", 1),
        switch: KernelObject("1"),
    }


def test_chains_that_iptables_makes_when_it_looks_are_not_recorded():
    before, after = FoundChains(), FoundChains()
    after.chains[(*NAT, "PREROUTING")] = Chain("ACCEPT", ["-j X"])
    after.chains[(*NAT, "X")] = Chain("-", [])
    found_ = changes_on_host(Reading({HOST: {}}, before), Reading({HOST: {}}, after), {})
    assert set(found_) == {(*NAT, "PREROUTING", "-j X"), (*NAT, "X")}
    before.unread["iptables-nft", "ipv4"] = HostError("it was not installed")
    assert changes_on_host(Reading({HOST: {}}, before), Reading({HOST: {}}, after), {}) == {}


SPOOF = {"type": "filter", "hook": "prerouting", "prio": -300, "policy": "accept"}
NFT = ("chain", "nftables", "inet")


@pytest.mark.parametrize("existed", [False, True])
@pytest.mark.parametrize(
    ("key", "was", "body", "made"),
    [
        ((*FILTER, "FORWARD"), "ACCEPT", "DROP", False),
        ((*FILTER, "X"), "-", "-", True),
        ((*NFT, "admin", "forward"), {**SPOOF, "policy": "accept"}, {**SPOOF, "policy": "drop"}, False),
        ((*NFT, "x", "forward"), {}, SPOOF, True),
        ((*NFT, "x", "y"), SPOOF, {}, True),
        ((*NFT, "cni_x", "forward"), {**SPOOF, "policy": "accept"}, {**SPOOF, "policy": "drop"}, True),
        (("table", "nftables", "inet", "x"), {}, {"comment": "x"}, True),
        (("set", "nftables", "inet", "x", "y"), {"type": "ipv4_addr"}, {"type": "ipv6_addr"}, True),
    ],
)
def test_a_chain_that_existed_is_nobody_s_and_a_policy_is_only_that_of_a_plugin_s_chain(key, was, body, made, existed):
    """Another program may set a policy during an ADD."""
    rule = (*key, "-s 10.88.0.2/32 -j ACCEPT" if key[1] == "iptables-nft" else '{"expr": []}')
    before, after = FoundChains(), FoundChains()
    if existed:
        before.chains[key] = Chain(was, [])
    after.chains[key] = Chain(body, [rule[-1]])
    recorded_ = changes_on_host(Reading({HOST: {}}, before), Reading({HOST: {}}, after), {})
    assert set(recorded_) == {rule, *([key] if made and not existed else [])}
