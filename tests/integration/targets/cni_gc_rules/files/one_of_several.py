# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of one container are removed; those of the others, and whatever no plugin made, stay and work."""

from __future__ import annotations

import world

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import rules

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


def main():
    world.prepare()
    both = world.network("both", "cnia", ["10.81.0.0/24", "fd81::/64"], {"snat": True}, world.FIREWALL, spoof=True)
    four = world.network("four", "cnib", ["10.82.0.0/24"], dict({"snat": False}, **world.CONDITIONS))
    world.command("iptables", "-w", "-L", "-n")
    for words in FOREIGN:
        world.command("iptables", "-w", *words)
    live = world.Container(both, LONG, 8081)
    other = world.Container(four, "db-1.a_b", 8082)
    live.serve()
    other.serve()
    before = world.firewall()

    dead = world.Container(both, "dead", 8080)
    dead.serve()
    check_answers(live, other)
    world.check(world.answer("10.81.0.1", 8080) == "dead", "the container to die is not reached")
    with_dead = world.firewall()
    check_found(live, dead, other)

    # Reading changes nothing.
    world.same(with_dead, world.firewall(), "reading changed the firewall")
    sets = world.sets_of(dead)
    outcomes = rules.remove_all_rules(sets)
    world.check(not [error for _one, error in outcomes if error], [str(error) for _one, error in outcomes])
    world.same(before, world.firewall(), "not exactly the dead container's rules were removed")
    world.check(world.answer("10.81.0.1", 8080) is None, "the dead container's port is still mapped")
    check_answers(live, other)

    # Once more, and one by one: what is gone is gone.
    for one in sets:
        rules.remove_rules(one)
    world.same(before, world.firewall(), "removing again changed the firewall")
    check_used_again(live)
    check_answers(live, other)
    if world.BACKEND == "nftables":
        # The bridge plugin of 1.9.1 takes iptables' answer "Chain ... does not exist" for a failure of its DEL.
        return
    for container in (live, other):
        container.delete()
        world.check(not world.sets_of(container), "DEL left what is found")


def check_answers(live, other):
    for address, container in (("10.81.0.1", live), ("fd81::1", live), ("10.82.0.1", other)):
        heard = world.answer(address, container.host_port)
        world.check(heard == container.container_id, "port %d of %s: %r" % (container.host_port, address, heard))


def check_found(live, dead, other):
    for container, families in ((live, 2), (dead, 2), (other, 1)):
        sets = world.sets_of(container)
        plugins = sorted(one.plugin for one in sets)
        filtering = ["firewall"] * 2 if container is not other else []
        # One table of nftables serves both families.
        masquerading = ["ipmasq"] * (1 if world.BACKEND == "nftables" else families)
        spoofing = ["macspoofchk"] if container is not other else []
        world.check(plugins == [*filtering, *masquerading, *spoofing, *["portmap"] * families], plugins)
        addresses = {address for one in sets for address in one.addresses}
        world.check(addresses == container.addresses, addresses)
        for one in sets:
            if one.plugin == "ipmasq" or (one.plugin == "portmap" and world.BACKEND != "nftables"):
                world.check(one.network == container.conf.name, one.text)
    foreign = [one for one in rules.read_rules().sets if "others" in one.name or "10.81.0.8" in one.addresses]
    world.check(not foreign, "what no plugin made was found")


def check_used_again(live):
    """A set that has got rules since it was read stays."""
    sets = [one for one in world.sets_of(live) if one.plugin == "portmap" and one.family == "ipv4"]
    world.check(len(sets) == 1, sets)
    if world.BACKEND == "nftables":
        rule = ["tcp", "dport", "9", "accept", "comment", LONG]
        world.command("nft", "add", "rule", "ip", "cni_hostport", "hostports", *rule)
    else:
        world.command("iptables", "-w", "-t", "nat", "-A", sets[0].chains[0], "-p", "tcp", "-j", "RETURN")
    changed = world.firewall()
    try:
        rules.remove_rules(sets[0])
        world.check(False, "a set that is in use again was removed")
    except HostError as error:
        world.check(error.code == "rules_changed", error.msg)
    world.same(changed, world.firewall(), "something was removed of a set that is in use again")


main()
