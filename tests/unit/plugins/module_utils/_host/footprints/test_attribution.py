# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whose the objects of a host are."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.kinds import chain_name, instance_hash
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.attribution import SHARED, Attribution, Party
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.links import pack_attribute
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.objects import LINK, KernelObject
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.footprints.states import FILTER, NAT, link

WEB, DB = ("demo", "web", "eth0"), ("demo", "db", "eth0")
CHAIN = "CNI-" + "ab" * 12
HOST = {
    ("link", "cni0"): link(9, kind="bridge"),
    ("link", "veth1"): link(3, (2, True), master="cni0"),
    ("link", "veth2"): link(4, (5, True), master="cni0"),
    ("link", "veth3"): link(6, (7, True)),
    ("filter", "veth1", 1, 2): KernelObject({"options": {"actions": [["mirred", 4, 1, "ifb1"]]}}),
}
PARTIES = (
    Party(WEB, ["10.88.0.2"], {("link", "eth0"): link(2, (3, True))}, ["up0"], switches=["ipv4/ip_forward"]),
    Party(DB, ["10.88.0.21"], {("link", "eth0"): link(5, (4, True))}, sysctls=["accept_ra"]),
)


def owner(key, *others, parties=PARTIES):
    keys = dict.fromkeys([key, *others], 1)
    return Attribution(HOST, parties).owners(keys).get(key)


@pytest.mark.parametrize(
    ("key", "whose"),
    [
        (("link", "veth1"), WEB),
        (("conf6", "veth2", "accept_ra"), DB),
        (("qdisc", "ifb1", 1, 2), WEB),
        (("link", "veth3"), None),
        (("link", "other0"), None),
        (("link", "cni0"), ("demo",)),
        (("addr", "cni0", "10.88.0.1", 16), ("demo",)),
        (("route", 2, 254, "10.88.0.0/16", 0, 0, 1, "cni0"), ("demo",)),
        (("link", "up0"), ("demo",)),
        (("lease", "/d", "demo", "10.88.0.2"), WEB),
        (("lease", "/d", "demo", "10.88.0.3"), None),
        (("route", 2, 254, "10.88.0.21/32", 0, 0, 1, "veth9"), DB),
        (("sysctl", "ipv4/ip_forward"), SHARED),
        ((*FILTER, "CNI-FORWARD", "-s 10.88.0.2/32 -j ACCEPT"), WEB),
        ((*FILTER, "CNI-FORWARD", "-s 10.88.0.21/32 -j ACCEPT"), DB),
        ((*FILTER, "CNI-FORWARD", "-s 10.88.0.3/32 -j ACCEPT"), None),
        ((*FILTER, "CNI-FORWARD"), SHARED),
        ((*FILTER, "FORWARD", "-j CNI-FORWARD"), SHARED),
        ((*FILTER, "FORWARD", "-s 192.0.2.0/24 -j DROP"), None),
        ((*FILTER, "CNI-ISOLATION-STAGE-1", "-i cni0 ! -o cni0 -j CNI-ISOLATION-STAGE-2"), ("demo",)),
        ((*NAT, "POSTROUTING", f'-m comment --comment "name: \\"demo\\" id: \\"web\\"" -j {CHAIN}'), WEB),
        ((*NAT, "CNI-HOSTPORT-DNAT", f'-m comment --comment "dnat name: \\"x\\" id: \\"other\\"" -j {CHAIN}'), None),
        ((*NAT, "KUBE-SEP-X", "-p tcp -j DNAT --to-destination 10.88.0.2:80"), None),
        ((*NAT, "X", "-p tcp -j DNAT --to-destination 10.88.0.2:80"), None),
        ((*NAT, "X", "-d fd00::2 -j DNAT"), None),
        (("chain", "nftables", "bridge", "nat", "cni-br-iface-web-eth0"), WEB),
        (("chain", "nftables", "bridge", "nat", "cni-br-iface-other-eth0"), None),
        (("chain", "nftables", "ip", "cni_hostport", "hostports", '{"comment": "db", "expr": []}'), DB),
        (("chain", "nftables", "ip", "cni_hostport", "hostports", '{"comment": "other", "expr": []}'), None),
        (("chain", "nftables", "ip", "cni_hostport", "masquerading", '{"expr": []}'), SHARED),
        (("table", "nftables", "ip", "cni_hostport"), SHARED),
        (("table", "nftables", "inet", "firewalld"), None),
    ],
)
def test_owners(key, whose):
    assert owner(key) == whose


def comment(network, container_id, kind="", target="CNI-X"):
    return f'-m comment --comment "{kind}name: \\"{network}\\" id: \\"{container_id}\\"" -j {target}'


OWN = {("link", "cni0"): link(9, kind="bridge"), ("link", "up0"): link(8, kind="")}
GATEWAY = "10.88.0.1"


def on_own_bridge(key, value=None, **more):
    """Return the owner of a change on a host that had the bridge before."""
    inside = {("link", "eth0"): link(2, (3, True), mac="0a0000000002")}
    settings = {"gateways": [GATEWAY], "flags": 1, "sysctls": ["accept_ra"], "switches": ["ipv4/ip_forward"], **more}
    party = Party(WEB, ["10.88.0.2"], inside, ["up0"], **settings)
    change = KernelObject(value, LINK.pack(0, 0, 8, 0, 0) + pack_attribute(1, bytes.fromhex("0a0000000002")))
    return Attribution(HOST, [party], OWN).owners({key: change}).get(key)


def by_kernel(protocol=2):
    return {"proto": protocol}


@pytest.mark.parametrize(
    ("key", "value", "whose"),
    [
        (("addr", "cni0", GATEWAY, 16), {}, ("demo",)),
        (("addr", "cni0", "10.88.0.250", 32), {}, None),
        (("route", 2, 254, "10.88.0.0/16", 0, 0, 1, "cni0"), by_kernel(), ("demo",)),
        (("route", 2, 255, "10.88.0.1/32", 0, 0, 2, "cni0"), by_kernel(), ("demo",)),
        (("route", 2, 254, "10.88.0.0/16", 0, 0, 1, "cni0"), by_kernel(3), None),
        (("route", 2, 254, "default/0", 0, 0, 1, "cni0"), by_kernel(3), None),
        (("route", 2, 254, "10.88.0.2/32", 0, 0, 1, "cni0"), by_kernel(3), WEB),
        (("route", 2, 254, "198.51.100.0/24", 0, 0, 1, "cni0"), {"proto": 3, "gw": "10.88.0.2"}, None),
        (("link", "cni0"), {"kind": "bridge", "flags": 1}, ("demo",)),
        (("link", "cni0"), {"kind": "bridge", "flags": 0x101}, None),
        (("link", "up0"), None, ("demo",)),
        (("link", "up0"), {"kind": "", "flags": 1}, None),
        (("addr", "up0", GATEWAY, 16), {}, None),
        (("conf6", "up0", "accept_ra"), 0, None),
        (("fdb", "up0", "0a0000000002", 0), {}, WEB),
        (("fdb", "cni0", "0a0000000099", 0), {}, None),
        (("neigh", "cni0", "10.88.0.77", 0), {"mac": "0a0000000077"}, None),
        (("qdisc", "cni0", 1, 2), {}, None),
        (("conf6", "cni0", "accept_ra"), 0, ("demo",)),
        (("conf4", "cni0", "rp_filter"), 2, None),
        (("conf4", "veth1", "rp_filter"), 2, None),
        (("sysctl", "ipv4/ip_forward"), "1", SHARED),
        (("sysctl", "ipv4/tcp_fin_timeout"), "33", None),
        ((*FILTER, "INPUT", "-i cni0 -j ACCEPT"), 1, None),
        ((*FILTER, "CNI-ADMIN"), 1, SHARED),
        ((*FILTER, "CNI-ADMIN", "-s 192.0.2.9/32 -j DROP"), 1, None),
        ((*FILTER, "FORWARD", "-i cni0 -m comment --comment CNI-like -j ACCEPT"), 1, None),
    ],
)
def test_what_the_host_had_stays_its_own(key, value, whose):
    assert on_own_bridge(key, value) == whose


@pytest.mark.parametrize("sysctls", [None, ["accept_ra"], [], ["rp_filter"]])
@pytest.mark.parametrize("existed", [False, True])
@pytest.mark.parametrize(("device", "whose"), [("cni0", ("demo",)), ("veth1", WEB), ("ifb1", WEB)])
def test_sysctls_of_an_interface_of_the_host_are_a_plugin_s_only_if_it_is_known_to_set_them(
    device, whose, existed, sysctls
):
    """A bridge, the end of a veth that was moved into the container, or an ifb may have existed."""
    party = Party(WEB, ["10.88.0.2"], PARTIES[0].inside, sysctls=sysctls)
    before = {("link", device): link(9)} if existed else {("link", "other0"): link(9)}
    key = ("conf4", device, "rp_filter")
    is_known = not existed if sysctls is None else "rp_filter" in sysctls
    assert Attribution(HOST, [party], before).owners({key: KernelObject(2)}).get(key) == (whose if is_known else None)


def test_on_a_new_bridge_only_gateways_of_the_network_are_its_own():
    party = Party(WEB, ["10.88.0.2"], PARTIES[0].inside, gateways=[GATEWAY])
    keys = [("addr", "cni0", GATEWAY, 16), ("addr", "cni0", "10.9.9.9", 16), ("link", "cni0")]
    changed = dict.fromkeys(keys, KernelObject(1))
    assert list(Attribution(HOST, [party]).owners(changed)) == [("addr", "cni0", GATEWAY, 16), ("link", "cni0")]


def test_a_chain_belongs_to_the_one_whose_rules_jump_to_it():
    jump = (*NAT, "POSTROUTING", comment("demo", "web", target="MORE"))
    inner = (*NAT, "MORE", "-j DEEPER")
    deeper = (*NAT, "DEEPER", "-j MASQUERADE")
    for key in ((*NAT, "MORE"), inner, (*NAT, "DEEPER"), deeper):
        assert owner(key, jump, inner, deeper) == WEB
    other = (*NAT, "POSTROUTING", comment("demo", "db", target="MORE"))
    assert owner((*NAT, "MORE"), jump, other) is None


def test_a_chain_that_containers_share_is_nobody_s_even_while_there_is_one():
    jump = (*NAT, chain_name("DN-", "demo", "web"), "-p tcp -j CNI-HOSTPORT-SETMARK")
    assert owner(jump) == WEB
    assert owner((*NAT, "CNI-HOSTPORT-SETMARK"), jump) == SHARED


def test_a_chain_is_known_by_the_hash_in_its_name():
    for prefix in ("", "DN-", "SN-"):
        chain = chain_name(prefix, "demo", "web")
        for key in ((*NAT, chain), (*NAT, chain, "-j RETURN"), (*NAT, "POSTROUTING", f"-j {chain}")):
            assert owner(key) == WEB
        assert owner((*NAT, chain_name(prefix, "demo", "gone"), "-d 10.88.0.2/32 -j ACCEPT")) is None


# IDs that are words of everybody's rules, or of their keys.
WORDS = ["nat", "filter", "iptables-nft", "ipv4", "chain", "POSTROUTING", "CNI-HOSTPORT-DNAT", "id", "name", "dnat"]


@pytest.mark.parametrize(
    "container_id", [*WORDS, "comment", "tcp", "ACCEPT", "demo", "cni_hostport", "expr", "api-eth0"]
)
@pytest.mark.parametrize("unknown", [False, True])
def test_no_container_gets_another_one_s_rules_because_of_a_word(container_id, unknown):
    """The other one may be attached in the same run, earlier, or gone."""
    mine = Party(("demo", container_id, "eth0"), ["10.88.0.7"], None, sysctls=None if unknown else ())
    api = Party(("demo", "api", "eth0"), ["10.88.0.8"], None)
    told = instance_hash("demo", "eth0", "api")
    masquerade = json.dumps({"comment": f"{told}, net: demo, if: eth0, id: api", "expr": []})
    hostport = json.dumps({"comment": "api", "expr": [{"dnat": {"addr": "10.88.0.8", "port": 80}}]})
    rules = [
        (*NAT, "POSTROUTING", "-s 10.88.0.8/32 " + comment("demo", "api", target=chain_name("", "demo", "api"))),
        (*NAT, "CNI-HOSTPORT-DNAT", comment("demo", "api", "dnat ", chain_name("DN-", "demo", "api"))),
        (*NAT, chain_name("DN-", "demo", "api"), "-p tcp -j DNAT --to-destination 10.88.0.8:80"),
        (*FILTER, "CNI-FORWARD", "-s 10.88.0.8/32 -j ACCEPT"),
        ("chain", "nftables", "inet", "cni_plugins_masquerade", "masq_checks", masquerade),
        ("chain", "nftables", "ip", "cni_hostport", "hostports", hostport),
        (
            "chain",
            "nftables",
            "bridge",
            "nat",
            "cni-br-iface-api-eth0",
            '{"comment": "macspoofchk-api-eth0", "expr": []}',
        ),
        ("chain", "nftables", "bridge", "nat", "PREROUTING", '{"comment": "macspoofchk-api-eth0", "expr": []}'),
    ]
    for rule in rules:
        assert owner(rule, parties=[mine, api]) == api.key, rule
        assert owner(rule, parties=[mine]) is None, rule
    foreign = (*NAT, "POSTROUTING", '-p tcp -m comment --comment "nat of eth0" -j ACCEPT')
    assert owner(foreign, parties=[mine]) == (mine.key if unknown and container_id == "nat" else None)


def test_rules_of_a_plugin_that_is_not_known_are_told_by_words():
    """Only by its comment and by addresses, and not if they are of several."""
    web = Party(("demo", "web", "eth0"), ["10.88.0.2"], None, sysctls=None)
    db = Party(("demo", "db", "eth0"), ["10.88.0.3"], None, sysctls=None)
    known = Party(("other", "db2", "eth0"), ["10.99.0.3"], None)
    for rule, whose in (
        ("-p tcp -j DNAT --to-destination 10.88.0.2:80", web.key),
        ("-s 10.88.0.3/32 -j ACCEPT", db.key),
        ("-m comment --comment web -j ACCEPT", web.key),
        ('-m comment --comment "for web-eth0" -j ACCEPT', web.key),
        ('-m comment --comment "for web and db" -j ACCEPT', None),
        ("-s 10.88.0.2/32 -d 10.88.0.3/32 -j ACCEPT", None),
        ("-m comment --comment db2 -j ACCEPT", None),
        ("-s 10.99.0.3/32 -j ACCEPT", None),
        ("-p tcp -j web", None),
        ("", None),
    ):
        assert owner((*NAT, "X", rule), parties=[web, db, known]) == whose, rule
    assert owner((*NAT, "web"), parties=[web]) is None
    assert owner(("set", "nftables", "ip", "x", "y", '"10.88.0.2"'), parties=[web]) == web.key
    assert owner(("chain", "nftables", "ip", "x", "y", '{"comment": "web", "expr": []}'), parties=[web]) == web.key


def test_an_address_of_two_networks_is_nobody_s():
    twins = [Party((network, network, "eth0"), ["10.88.0.2"], None) for network in ("a", "b")]
    assert owner((*FILTER, "CNI-FORWARD", "-s 10.88.0.2/32 -j ACCEPT"), parties=twins) is None
    assert owner(("route", 2, 254, "10.88.0.2/32", 0, 0, 1, "veth9"), parties=twins) is None
    assert owner(("lease", "/d", "a", "10.88.0.2"), parties=twins) == twins[0].key


def test_the_attachments_of_one_container_are_told_apart():
    parties = [Party(("a", "web", "eth0"), [], None), Party(("b", "web", "eth1"), [], None)]
    rule = (*NAT, "X", '-m comment --comment "name: \\"b\\" id: \\"web\\""')
    assert owner(rule, parties=parties) == ("b", "web", "eth1")
    spoof = ("chain", "nftables", "bridge", "nat", "cni-br-iface-web-eth1")
    assert owner(spoof, parties=parties) == ("b", "web", "eth1")
