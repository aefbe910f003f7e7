# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What _host/firewall/change.py does, with rules that real plugins made in the kernel."""

from __future__ import annotations

import shlex

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import change
from ansible_collections.podwire.cni.tests.host.cni_gc_rules.world import (
    FIREWALL,
    Container,
    connect,
    firewall,
    read_sets,
)
from ansible_collections.podwire.cni.tests.host.host import sh

LONG = "f" * 64
FOREIGN = [
    ("-t", "nat", "-N", "OTHERS"),
    ("-t", "nat", "-A", "POSTROUTING", "-m", "comment", "--comment", 'a "quote" -j CNI-', "-j", "OTHERS"),
    ("-t", "nat", "-N", "CNI-others"),
    ("-t", "filter", "-N", "CNI-FORWARD"),
    ("-t", "filter", "-A", "CNI-FORWARD", "-s", "10.81.0.0/24", "-j", "ACCEPT"),
    ("-t", "filter", "-A", "CNI-FORWARD", "-s", "10.81.0.9", "-j", "DROP"),
    ("-t", "filter", "-A", "CNI-FORWARD", "-s", "10.81.0.8", "-p", "tcp", "-j", "ACCEPT"),
]


@pytest.mark.parametrize(
    ("generation", "backend"),
    [
        ("old", "iptables-nft"),
        ("old", "iptables-legacy"),
        ("new", "iptables-nft"),
        ("new", "iptables-legacy"),
        ("new", "nftables"),
    ],
)
def test_rules_of_one_container_are_removed_and_those_of_all_others_stay_and_work(world, backend):
    # With nftables, portmap writes the conditions of whoever comes last over those of all others.
    conditions = {} if backend == "nftables" else {"conditionsV4": ["!", "-s", "10.99.0.0/16"]}
    both = world.network("both", "cnia", ["10.81.0.0/24", "fd81::/64"], {"snat": True}, FIREWALL, spoof=True)
    four = world.network("four", "cnib", ["10.82.0.0/24"], {"snat": False, **conditions})
    sh("iptables -w -L -n")
    for words in FOREIGN:
        sh(shlex.join(["iptables", "-w", *words]))
    live = Container(world, both, LONG, 8081)
    other = Container(world, four, "db-1.a_b", 8082)
    before = firewall()

    dead = Container(world, both, "dead", 8080)
    check_others(live, other)
    dead.check_reached("10.81.0.1")
    with_dead = firewall()
    for container, families in ((live, 2), (dead, 2), (other, 1)):
        check_found(container, families, filtered=container is not other)
    assert [one for one in read_sets() if "others" in one.name or "10.81.0.8" in one.addresses] == []
    # Reading changes nothing.
    assert firewall() == with_dead

    sets = dead.sets()
    assert change.drop_rules(sets) == {}
    assert firewall() == before
    with pytest.raises(ConnectionError):
        connect("10.81.0.1", 8080)
    check_others(live, other)

    # Once more, and one by one: what is gone is gone.
    assert [change.drop_rules([one]) for one in sets] == [{}] * len(sets)
    assert firewall() == before
    check_used_again(live)
    check_others(live, other)
    if backend == "nftables":
        # The bridge plugin of 1.9.1 takes iptables' answer "Chain ... does not exist" for a failure of its DEL.
        return
    for container in (live, other):
        container.delete()
        assert container.sets() == []


def check_others(live, other):
    live.check_reached("10.81.0.1")
    live.check_reached("fd81::1")
    other.check_reached("10.82.0.1")


def check_found(container, families, filtered):
    nftables = container.world.backend == "nftables"
    sets = container.sets()
    # One table of nftables serves both families.
    expected = ["ipmasq"] * (1 if nftables else families) + ["portmap"] * families
    if filtered:
        expected += ["firewall", "firewall", "macspoofchk"]
    assert sorted(one.plugin for one in sets) == sorted(expected)
    assert {address for one in sets for address in one.addresses} == container.addresses
    for one in sets:
        if one.plugin == "ipmasq" or (one.plugin == "portmap" and not nftables):
            assert one.owner.network == container.conf.name


def check_used_again(live):
    """A set that has got rules since it was read stays."""
    (mappings,) = (one for one in live.sets() if one.plugin == "portmap" and one.family == "ipv4")
    if live.world.backend == "nftables":
        sh(f"nft add rule ip cni_hostport hostports tcp dport 9 accept comment {LONG}")
    else:
        sh(f"iptables -w -t nat -A {mappings.chains[0][-1]} -p tcp -j RETURN")
    changed = firewall()
    assert [error.code for error in change.drop_rules([mappings]).values()] == ["rules_changed"]
    assert firewall() == changed
