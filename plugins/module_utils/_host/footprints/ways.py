# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether packets go another way once what is lost is put back: a container may rely on the way that they go now."""

from __future__ import annotations

import re
import socket
from typing import Collection, Iterator, List, Mapping, Sequence

from ..firewall.chains import CHAIN, FoundChains
from ..kernel.objects import ObjectKey, State, has_rival
from ..netlink import UP
from .footprint import Footprint, Objects
from .object_kinds import LINK, Difference, is_whole

_PVID = 0x2
# Members that say where packets go.
_MEMBERS = {LINK: ("master",), "neigh": ("mac",), "route": ("gw", "via", "hops"), "vlan": ("flags",)}
# The values of settings, from the one that lets most packets or addresses through.
_STRICTER = {"rp_filter": "021", "disable_ipv6": "01", "forwarding": "10", "ip_forward": "10"}
_USED = "packets may go that way"
# What ends the conditions of a rule that changes the destination, in iptables and nftables.
_DNAT = re.compile(r' -j DNAT |, \{"dnat"')


def diversions(
    spaces: Mapping[str, State], chains: FoundChains, footprint: Footprint, lost: Sequence[Difference]
) -> List[str]:
    """Return why packets go another way when what is *lost* of a *footprint* is put back."""
    own, all_own = footprint.host, {**footprint.inside, **footprint.host}
    reasons = [phrase for difference in lost for phrase in _ways(spaces.get(difference.space, {}), difference, all_own)]
    tables = {difference.key[:4] for difference in lost if difference.key[0] == CHAIN}
    if any(_is_published(chains, own, key) for key in own if key[:4] in tables):
        reasons.append("its host port leads to another container")
    return list(dict.fromkeys(reasons))


def _ways(state: State, difference: Difference, own: Objects) -> Iterator[str]:
    kind, was, now = str(difference.key[0]), difference.was, difference.now
    if kind == "vlan" and was is not None and was["flags"] & _PVID:
        others = (key for key, vlan in state.items() if key[:2] == difference.key[:2] and vlan.value["flags"] & _PVID)
        yield from (f"untagged packets of {key[1]} are in the VLAN {key[2]}" for key in others if key != difference.key)
    if was is None or now is None:
        if now is not None:
            yield _USED
        elif kind == "route":
            yield from _other_route(state, difference, own[difference.key].ifindex)
        return
    order = _STRICTER.get(str(difference.key[-1]).rpartition("/")[2], "")
    members = [member for member in _MEMBERS.get(kind, ()) if now.get(member)]
    if (
        any(was.get(member, now[member]) != now[member] for member in members)
        or order.find(str(was)) > order.find(str(now)) >= 0
        or (kind == LINK and is_whole(was) and now["flags"] & ~was["flags"] & UP)
    ):
        yield _USED


def _other_route(state: State, difference: Difference, ifindex: int) -> Iterator[str]:
    """Yield a phrase if packets take another route, before which the lost one on the interface *ifindex* would come."""
    others = sorted(
        (int(key[5]), str(difference.key[7] if route.ifindex == ifindex else key[7]), route.value["gw"])
        for key, route in state.items()
        if key[0] == "route" and (*key[:5], key[6]) == (*difference.key[:5], difference.key[6])
    )
    # Of equal routes, IPv4 takes the first, which the lost one becomes only before a rival, and IPv6 all.
    rivals = has_rival(difference.space, state, difference.key)
    least = int(difference.key[5]) + (difference.key[1] == socket.AF_INET and not rivals)
    if others and others[0][0] >= least and others[0][1:] != (difference.key[7], difference.was.get("gw")):
        yield f"packets go through {others[0][2] or others[0][1]}"


def _is_published(chains: FoundChains, own: Collection[ObjectKey], key: ObjectKey) -> bool:
    """Tell whether a rule of another container takes packets to the port whose rule has *key*."""
    mine = _conditions(str(key[-1]))
    if not mine:
        return False
    others = (
        _conditions(rule)
        for place, chain in chains.chains.items()
        if place[:4] == key[:4]
        for rule in chain.rules
        if (*place, rule) not in own
    )
    # An address of the host comes first in them; who names none takes packets to all.
    return any(other and (other.endswith(mine) or mine.endswith(other)) for other in others)


def _conditions(rule: str) -> str:
    """Return the conditions of a rule that changes the destination, "" for any other."""
    conditions, *ends = _DNAT.split(rule, 1)
    return conditions.rpartition('"expr": [')[2] if ends else ""
