# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a changed object of the host is: an attachment's, a network's, or what all networks share.

In this order: what is on the host end of an attachment's veth, or on an ifb that its filter leads to; rules, see
RuleOwners, and what leads to an address of the container; a chain that only rules of one attachment jump to; what is
on a bridge that was made for a network; rules and sysctls that plugins share. On an interface that the host had before,
only what a plugin of the chain is known to make is the network's. Everything else is a change of somebody else at the
same time.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Collection, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set

from ...libcni.kernel import attributes_in
from ..addresses import is_in
from ..firewall.chains import CHAIN, NFTABLES, jumps_of, words_of
from ..firewall.kinds import chain_name, instance_hash
from ..firewall.owners import SPOOF_CHAIN, SPOOF_COMMENT, chain_kind, of_forward, of_iptables
from ..json_text import parse_json
from ..kernel.objects import BY_KERNEL, LINK, OF_INTERFACES, ON_INTERFACES, ObjectKey, State, device_of
from ..kernel.sysctls import GLOBAL
from .footprint import SHARED, Owner
from .object_kinds import CHAIN_KEY_LENGTH, IN_FIREWALL, LEASE

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

# The chains of the plugin firewall, and the one of them that is for rules of others.
_FORWARD, _OF_ADMINISTRATORS = "CNI-FORWARD", "CNI-ADMIN"
# Tables of ipmasq and portmap in nftables.
_MASQUERADE, _HOSTPORT = "cni_plugins_masquerade", "cni_hostport"


class Party(NamedTuple):
    """One attachment: its ``key`` (network, container ID, ifname), addresses without length, and what is inside.

    What its plugins do on the host: ``named`` are the interfaces that the configuration names, ``gateways`` the
    addresses that a bridge gets, ``flags`` those that it gets, ``sysctls`` the names of those that interfaces get
    (None: one of its plugins is not known, which may set any, and whose rules may name it in any form), ``switches``
    the global ones.
    """

    key: Owner
    addresses: Sequence[str]
    inside: Optional[State]
    named: Sequence[str] = ()
    gateways: Sequence[str] = ()
    flags: int = 0
    sysctls: Optional[Collection[str]] = ()
    switches: Collection[str] = ()


class RuleOwners:
    """Finds the attachments of chains and rules among *parties*.

    Reference plugins tell it exactly: by the hash in a chain's name, by a comment, or by the address in a rule of a
    fixed form. Only what a plugin that is not known may have made is searched for a container ID in its comment and for
    addresses. What may be of several containers is nobody's.
    """

    def __init__(self, parties: Iterable[Party]) -> None:
        self._parties = list(parties)
        self._chains: Dict[str, List[Party]] = {}
        for party in self._parties:
            network, container_id, ifname = party.key
            spoof = f"{SPOOF_CHAIN}{container_id}-{ifname}"
            names = [chain_name(prefix, network, container_id) for prefix in ("", "DN-", "SN-")]
            for name in (*names, spoof, f"{spoof}-mac"):
                self._chains.setdefault(name, []).append(party)

    def owner(self, key: ObjectKey) -> Optional[Owner]:
        """Return the attachment that a chain, rule, set or element is for, None if it is for none or for several."""
        rule = str(key[-1]) if len(key) > CHAIN_KEY_LENGTH else ""
        comment = _comment(str(key[1]), rule)
        named = self._exactly(key, rule, comment)
        words = _words(rule)
        if named is None:
            said = set(_WORD.findall(comment))
            named = [
                party
                for party in self._parties
                if party.sysctls is None
                and (words.intersection(party.addresses) or said & {party.key[1], f"{party.key[1]}-{party.key[2]}"})
            ]
        if len({party.key for party in named}) > 1:
            # The chains of a container are those of all its interfaces in the network.
            narrowed = [party for party in named if words.intersection(party.addresses)]
            same = len({party.key[:2] for party in named}) == 1
            named = narrowed if len(narrowed) == 1 else named[:1] if same else []
        return named[0].key if named else None

    def _exactly(self, key: ObjectKey, rule: str, comment: str) -> Optional[List[Party]]:
        """Return whose it is as reference plugins tell it, None if none of them makes it for a single container."""
        kind, backend, family, table = map(str, key[:4])
        chains = _chains_of(key) if kind == CHAIN else []
        if chains and is_of_container(chains[0]):
            return self._chains.get(chains[0], [])
        if backend != NFTABLES:
            told = of_iptables(comment)
            if told is not None:
                return [
                    party
                    for party in self._parties
                    if party.key[0] == told.network
                    and (party.key[1] == told.container_id or (told.claimed and party.key[1].startswith(told.claimed)))
                ]
            address = of_forward(family, words_of(rule)) if chains[:1] == [_FORWARD] else ""
            if address:
                return [party for party in self._parties if address in party.addresses]
        elif comment and table == _MASQUERADE:
            told_hash = comment.partition(",")[0]
            return [
                party for party in self._parties if instance_hash(party.key[0], party.key[2], party.key[1]) == told_hash
            ]
        elif comment and table == _HOSTPORT:
            return [party for party in self._parties if party.key[1] == comment]
        elif comment.startswith(SPOOF_COMMENT):
            name = comment[len(SPOOF_COMMENT) :]
            return [party for party in self._parties if f"{party.key[1]}-{party.key[2]}" == name]
        for chain in filter(is_of_container, chains):
            return self._chains.get(chain, [])
        return None


class Attribution:
    """Finds the owners of objects. *host*, *before*: the states of the host's interfaces after and before the ADDs."""

    def __init__(self, host: State, parties: Iterable[Party], before: Optional[State] = None) -> None:
        self._host = host
        self._before = before or {}
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

    def _find_ends(self) -> Dict[str, Owner]:
        outer = {(link.ifindex, link.peer): str(key[1]) for key, link in self._host.items() if key[0] == "link"}
        ends: Dict[str, Owner] = {}
        for party in self._parties:
            mine = (party.inside or {}).get(("link", party.key[2]))
            if mine is not None and mine.value["kind"] == "veth" and mine.peer[1]:
                end = outer.get((mine.peer[0], (mine.ifindex, True)))
                if end:
                    ends[end] = party.key
        for key, traffic in self._host.items():
            if key[0] == "filter" and key[1] in ends and isinstance(traffic.value["options"], dict):
                for action in traffic.value["options"]["actions"]:
                    if action[0] == "mirred" and action[-1]:
                        ends.setdefault(action[-1], ends[str(key[1])])
        return ends

    def owners(self, changed: Mapping[ObjectKey, Any]) -> Dict[ObjectKey, Owner]:
        """Return the owners of changed objects (key -> value). What nobody here owns is left out."""
        owned: Dict[ObjectKey, Owner] = {}
        for key, value in changed.items():
            device = device_of(key)
            owner = self._ends.get(device) or (self._routed(key) if key[0] == "route" else self._named_in(key, value))
            if owner is None and device:
                owner = self._on_interface(device, key, value)
            if owner is not None and self._is_set(owner, key):
                owned[key] = owner
        self._chains_of_one(changed, owned)
        self._shared(changed, owned)
        return owned

    def _routed(self, key: ObjectKey) -> Optional[Owner]:
        """Return the attachment that a route leads to."""
        address, _slash, length = str(key[3]).partition("/")
        return self._words.get(address) if length == ("128" if ":" in address else "32") else None

    def _is_set(self, owner: Owner, key: ObjectKey) -> bool:
        """Tell whether a sysctl of an interface is one that the plugins of its owner set.

        A plugin that is not known may set any on an interface that is new, and none on one that the host had.
        """
        if key[0] not in OF_INTERFACES:
            return True
        existed = ("link", key[1]) in self._before
        sets = [party.sysctls for party in self._parties if party.key[: len(owner)] == owner]
        return any(not existed if names is None else key[2] in names for names in sets)

    def _on_interface(self, device: str, key: ObjectKey, value: Any) -> Optional[Owner]:
        """Return whose an object is on a bridge of a network, or on an interface that a configuration names."""
        network = self._bridges.get(device) or self._named.get(device)
        if not network:
            return None
        parties = [party for party in self._parties if party.key[0] == network]
        gateways = [gateway for party in parties for gateway in party.gateways]
        existed = ("link", device) in self._before
        if not (existed or gateways):
            return (network,)
        if key[0] in ("fdb", "neigh") and existed and value.value is not None:
            return self._with_mac(parties, key[2] if key[0] == "fdb" else value.value["mac"])
        if key[0] == "link" and value.value is None:
            made = self._with_mac(parties, attributes_in(value.raw, LINK.size).get(1, b"").hex()) is not None
        elif existed and device not in self._bridges:
            made = False
        elif key[0] == "addr":
            made = key[2] in gateways
        elif key[0] == "route":
            target, _slash, length = str(key[3]).partition("/")
            covers = any(is_in(gateway, target, int(length)) or gateway == target for gateway in gateways)
            made = covers and value.value is not None and value.value["proto"] == BY_KERNEL
        elif key[0] == "link" and existed:
            made = not any(value.value["flags"] & ~party.flags for party in parties)
        else:
            made = not existed or key[0] in OF_INTERFACES
        return (network,) if made else None

    @staticmethod
    def _with_mac(parties: Iterable[Party], mac: Any) -> Optional[Owner]:
        """Return the attachment that has an interface with a MAC."""
        for party in parties:
            if any(key[0] == "link" and mac and link.value["mac"] == mac for key, link in (party.inside or {}).items()):
                return party.key
        return None

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

    def _chains_of_one(self, changed: Iterable[ObjectKey], owned: Dict[ObjectKey, Owner]) -> None:
        """Give chains that only one attachment's rules jump to, and the rules in them, to that attachment."""
        rules = [key for key in changed if key[0] == CHAIN and len(key) > CHAIN_KEY_LENGTH]
        # A chain may lead to another one.
        for _depth in range(3):
            jumps: Dict[ObjectKey, Set[Optional[Owner]]] = {}
            for key in rules:
                for target in jumps_of(str(key[1]), str(key[-1])):
                    jumps.setdefault((*key[:4], target), set()).add(owned.get(key))
            before = len(owned)
            for key in changed:
                mine = key[0] == CHAIN and key not in owned and not _SHARED_CHAIN.match(str(key[4]))
                owners = jumps.get(key[:CHAIN_KEY_LENGTH], set()) if mine else set()
                if len(owners) == 1:
                    owner = next(iter(owners))
                    if owner is not None:
                        owned[key] = owner
            if len(owned) == before:
                return

    def _shared(self, changed: Iterable[ObjectKey], owned: Dict[ObjectKey, Owner]) -> None:
        related: Set[ObjectKey] = {key[:CHAIN_KEY_LENGTH] for key in owned if key[0] == CHAIN}
        for key in changed:
            if key in owned:
                continue
            if key[0] == GLOBAL:
                if any(key[1] in party.switches for party in self._parties):
                    owned[key] = SHARED
            elif key[0] in IN_FIREWALL and not _is_of_daemon(key) and not _of_one_container(key):
                text = " ".join(map(str, key[3:]))
                words = set(_WORD.findall(text))
                # Others name the bridge, too.
                network = next((name for bridge, name in self._bridges.items() if bridge in words), None)
                if network is not None and is_of_plugins(key):
                    owned[key] = (network,)
                elif _INTERFACE.search(text):
                    # A rule of a network of somebody else.
                    continue
                elif is_of_plugins(key) or (len(key) == CHAIN_KEY_LENGTH and key in related):
                    owned[key] = SHARED


def is_of_plugins(key: ObjectKey) -> bool:
    """Tell whether an object of the firewall is in a chain or table of plugins, or leads to one."""
    if key[0] not in IN_FIREWALL or (len(key) > CHAIN_KEY_LENGTH and key[4] == _OF_ADMINISTRATORS):
        return False
    return any(map(_OF_PLUGINS.match, (str(key[3]), *_chains_of(key))))


def _is_of_daemon(key: ObjectKey) -> bool:
    return key[0] in IN_FIREWALL and _OF_DAEMONS.match("/".join(map(str, key[3:CHAIN_KEY_LENGTH]))) is not None


def _of_one_container(key: ObjectKey) -> bool:
    """Tell whether a chain or rule is one that a plugin made for a single container, which nobody here has attached."""
    if any(map(is_of_container, _chains_of(key))):
        return True
    return len(key) > CHAIN_KEY_LENGTH and _ONE.search(str(key[-1])) is not None


def _chains_of(key: ObjectKey) -> List[str]:
    """Return the chain that an object of the firewall is or is in, and those that a rule leads to; of a table none."""
    jumps = jumps_of(str(key[1]), str(key[-1])) if len(key) > CHAIN_KEY_LENGTH else []
    return [*map(str, key[4:CHAIN_KEY_LENGTH]), *jumps]


def is_of_container(chain: str) -> bool:
    """Tell whether a reference plugin names the chains of a single container so."""
    return chain_kind(chain) is not None or chain.startswith(SPOOF_CHAIN)


def _comment(backend: str, rule: str) -> str:
    if backend != NFTABLES:
        words = words_of(rule)
        return next((value for option, value in zip(words, words[1:]) if option == "--comment"), "")
    try:
        content = parse_json(rule or "{}")
    except ValueError:
        return ""
    comment = content.get("comment") if isinstance(content, dict) else None
    return comment if isinstance(comment, str) else ""


def _words(rule: str) -> Set[str]:
    """Return the words of a rule. They are compared whole, as 10.88.0.2 is in 10.88.0.21."""
    words = _WORD.findall(rule)
    # Such as 10.88.0.2:80 of a port mapping.
    return {*words, *(word.rpartition(":")[0] for word in words if word.count(":") == 1)}
