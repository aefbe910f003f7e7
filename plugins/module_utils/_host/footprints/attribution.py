# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a changed object of the host is: an attachment's, a network's, or what all networks share.

In this order: what is on the host end of an attachment's veth, or on an ifb that its filter leads to; rules, see
rule_owners, and what leads to an address of the container; a chain that only rules of one attachment jump to; what is
on the bridge of a network; rules and sysctls that plugins share. Everything else is a change of somebody else at the
same time.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict, Iterable, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..firewall.chains import CHAIN, jumps_of
from ..kernel.objects import ObjectKey, State
from ..kernel.sysctls import GLOBAL
from .rule_owners import RuleOwners, is_of_container
from .state import CHAIN_KEY_LENGTH, IN_FIREWALL, LEASE, ON_INTERFACES

Owner = Tuple[str, ...]
SHARED: Owner = ()
"""The owner of what all networks share. That of a network's objects is its name, that of an attachment its key."""

_ROUTE_DEVICE = 7
_WORD = re.compile(r"[\w.:-]+")
# Chains and tables that a daemon keeps as it wants them.
_OF_DAEMONS = re.compile(r"[^/]*/(KUBE-|DOCKER|cali-|CILIUM|FLANNEL|LIBVIRT_)|firewalld/|kube-proxy/", re.IGNORECASE)
# The match of an interface, in iptables or nftables.
_INTERFACE = re.compile(r"(?:^| )-[io] |ifname")
# An address, or the comment of a rule in nftables.
_ONE = re.compile(r'/32 |/128 |\bid: \\*"|^\{"comment"')
# Chains that containers share, whether a second one is there or not.
_SHARED_CHAIN = re.compile(r"CNI-(HOSTPORT-|FORWARD$|ADMIN$|ISOLATION-)")
# How plugins name their chains and tables.
_OF_PLUGINS = re.compile(r"\bCNI-|\bcni[_-]", re.IGNORECASE)


class Party(NamedTuple):
    """One attachment: its ``key`` (network, container ID, ifname), addresses without length, and what is inside."""

    key: Owner
    addresses: Sequence[str]
    inside: Optional[State]
    named: Sequence[str] = ()
    """Interfaces of the host that the network's configuration names."""
    unknown: bool = False
    """Its network has a plugin that is not known, whose rules may name it in any form."""


class Attribution:
    """Finds the owners of objects. *host* is the state of the host's interfaces after the ADDs."""

    def __init__(self, host: State, parties: Iterable[Party]) -> None:
        self._host = host
        self._parties = list(parties)
        self._ends = self._find_ends()
        self._bridges: Dict[str, str] = {}
        self._rules = RuleOwners(self._parties)
        owners = [(address, party.key) for party in self._parties for address in party.addresses]
        often = Counter(address for address, _owner in owners)
        self._words: Dict[str, Owner] = {address: owner for address, owner in owners if often[address] == 1}
        for name, owner in self._ends.items():
            link = host.get(("link", name))
            master = link.value["master"] if link is not None else ""
            if master:
                self._bridges.setdefault(master, owner[0])
        self._named = {name: party.key[0] for party in self._parties for name in party.named}

    @property
    def bridges(self) -> Mapping[str, str]:
        """The bridges that host ends are ports of -> the network."""
        return self._bridges

    def is_gateway(self, name: str) -> bool:
        """Tell whether containers reach the host by its interface *name*."""
        return name in self._bridges or name in self._ends

    def _find_ends(self) -> Dict[str, Owner]:
        outer = {(link.ifindex, link.peer): str(key[1]) for key, link in self._host.items() if key[0] == "link"}
        ends: Dict[str, Owner] = {}
        for party in self._parties:
            mine = (party.inside or {}).get(("link", party.key[2]))
            if mine is not None and mine.value["kind"] == "veth" and mine.peer[1]:
                end = outer.get((mine.peer[0], (mine.ifindex, True)))
                if end:
                    ends[end] = party.key
        for key, found in self._host.items():
            if key[0] == "filter" and key[1] in ends and isinstance(found.value["options"], dict):
                for action in found.value["options"]["actions"]:
                    if action[0] == "mirred" and action[-1]:
                        ends.setdefault(action[-1], ends[str(key[1])])
        return ends

    def owners(self, changed: Mapping[ObjectKey, Any], shared: bool = True) -> Dict[ObjectKey, Owner]:
        """Return the owners of changed objects (key -> value). What nobody here owns is left out.

        *shared*: with what networks share.
        """
        found: Dict[ObjectKey, Owner] = {}
        for key, value in changed.items():
            device = str(key[_ROUTE_DEVICE]) if key[0] == "route" else str(key[1]) if key[0] in ON_INTERFACES else ""
            owner = self._ends.get(device) or self._named_in(key, value)
            if owner is None and device:
                network = self._bridges.get(device) or self._named.get(device)
                owner = (network,) if network else None
            if owner is not None:
                found[key] = owner
        self._chains_of_one(changed, found)
        if shared:
            self._shared(changed, found)
        return found

    def _named_in(self, key: ObjectKey, value: Any) -> Optional[Owner]:
        if key[0] in (*ON_INTERFACES, GLOBAL) or _is_of_daemon(key):
            return None
        if key[0] in IN_FIREWALL:
            return self._rules.owner(key)
        if key[0] == LEASE:
            owners = {party.key for party in self._parties if party.key[0] == key[2] and key[3] in party.addresses}
        else:
            owners = {self._words[word] for word in _WORD.findall(f"{key} {value}") if word in self._words}
        return owners.pop() if len(owners) == 1 else None

    def _chains_of_one(self, changed: Iterable[ObjectKey], found: Dict[ObjectKey, Owner]) -> None:
        """Give chains that only one attachment's rules jump to, and the rules in them, to that attachment."""
        rules = [key for key in changed if key[0] == CHAIN and len(key) > CHAIN_KEY_LENGTH]
        # A chain may lead to another one.
        for _depth in range(3):
            jumps: Dict[ObjectKey, Set[Optional[Owner]]] = {}
            for key in rules:
                for target in jumps_of(str(key[1]), str(key[-1])):
                    jumps.setdefault((*key[:4], target), set()).add(found.get(key))
            before = len(found)
            for key in changed:
                mine = key[0] == CHAIN and key not in found and not _SHARED_CHAIN.match(str(key[4]))
                owners = jumps.get(key[:CHAIN_KEY_LENGTH], set()) if mine else set()
                if len(owners) == 1:
                    owner = next(iter(owners))
                    if owner is not None:
                        found[key] = owner
            if len(found) == before:
                return

    def _shared(self, changed: Iterable[ObjectKey], found: Dict[ObjectKey, Owner]) -> None:
        related: Set[ObjectKey] = {key[:CHAIN_KEY_LENGTH] for key in found if key[0] == CHAIN}
        for key in changed:
            if key in found:
                continue
            if key[0] == GLOBAL:
                found[key] = SHARED
            elif key[0] in IN_FIREWALL and not _is_of_daemon(key) and not _of_one_container(key):
                text = " ".join(map(str, key[3:]))
                words = set(_WORD.findall(text))
                network = next((name for bridge, name in self._bridges.items() if bridge in words), None)
                if network is not None:
                    found[key] = (network,)
                elif _INTERFACE.search(text):
                    # A rule of a network of somebody else.
                    continue
                elif _OF_PLUGINS.search(text) or (len(key) == CHAIN_KEY_LENGTH and key in related):
                    found[key] = SHARED


def _is_of_daemon(key: ObjectKey) -> bool:
    return key[0] in IN_FIREWALL and _OF_DAEMONS.match("/".join(map(str, key[3:CHAIN_KEY_LENGTH]))) is not None


def _of_one_container(key: ObjectKey) -> bool:
    """Tell whether a chain or rule is one that a plugin made for a single container, which nobody here has attached."""
    jumps = jumps_of(str(key[1]), str(key[-1])) if len(key) > CHAIN_KEY_LENGTH else []
    chains = [str(name) for name in (*key[4:CHAIN_KEY_LENGTH], *jumps)]
    if any(map(is_of_container, chains)):
        return True
    return len(key) > CHAIN_KEY_LENGTH and _ONE.search(str(key[-1])) is not None
