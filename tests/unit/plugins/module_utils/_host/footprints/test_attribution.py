# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose the objects of a host are."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.attribution import (
    SHARED,
    Attribution,
    Party,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.objects import KernelObject
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
    Party(WEB, ["10.88.0.2"], {("link", "eth0"): link(2, (3, True))}, ["up0"]),
    Party(DB, ["10.88.0.21"], {("link", "eth0"): link(5, (4, True))}),
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
        ((*NAT, "X", "-p tcp -j DNAT --to-destination 10.88.0.2:80"), WEB),
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


def test_a_chain_belongs_to_the_one_whose_rules_jump_to_it():
    jump = (*NAT, "POSTROUTING", f"-s 10.88.0.2/32 -j {CHAIN}")
    inner = (*NAT, CHAIN, "-j DEEPER")
    deeper = (*NAT, "DEEPER", "-j MASQUERADE")
    for key in ((*NAT, CHAIN), inner, (*NAT, "DEEPER"), deeper):
        assert owner(key, jump, inner, deeper) == WEB
    other = (*NAT, "POSTROUTING", f"-s 10.88.0.21/32 -j {CHAIN}")
    assert owner((*NAT, CHAIN), jump, other) is None


def test_the_attachments_of_one_container_are_told_apart():
    parties = [Party(("a", "web", "eth0"), [], None), Party(("b", "web", "eth1"), [], None)]
    rule = (*NAT, "X", '-m comment --comment "name: \\"b\\" id: \\"web\\""')
    assert owner(rule, parties=parties) == ("b", "web", "eth1")
    spoof = ("chain", "nftables", "bridge", "nat", "cni-br-iface-web-eth1")
    assert owner(spoof, parties=parties) == ("b", "web", "eth1")
