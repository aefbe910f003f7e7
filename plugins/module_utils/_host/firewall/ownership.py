# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The owner of a CNI plugin's firewall rule: from its comment, and the hash in the name of its chain.

Sources: plugins/pkg/utils/utils.go (chain names and comments of iptables), pkg/ip/ipmasq_nftables_linux.go,
plugins/meta/portmap, pkg/link/spoofcheck.go.
"""

from __future__ import annotations

import re
from typing import Any, FrozenSet, Iterable, NamedTuple, Optional, Sequence, Tuple

from .kinds import CHAIN_LENGTH, IPMASQ, MACSPOOFCHK, chain_name, instance_hash

# libcni allows no other characters in names and IDs; a rule with others is not from a plugin that libcni called.
_WORD = r"[A-Za-z0-9][A-Za-z0-9_.\-]*"
_IPTABLES = re.compile(rf'(?:dnat |snat )?name: "({_WORD})" id: "({_WORD})"')
# portmap cuts its comment at 255 characters.
_IPTABLES_CUT = re.compile(rf'(?:dnat |snat )?name: "({_WORD})" id: "({_WORD}?)\.\.\.')
_NFTABLES = re.compile(rf"([0-9a-f]{{16}}-[0-9a-f]{{16}}), net: ({_WORD}), if: ([^\s/:,]+), id: ({_WORD})")
# Cut before the id begins.
_NFTABLES_CUT = re.compile(rf"[0-9a-f]{{16}}-[0-9a-f]{{16}}, net: ({_WORD}), if: ([^\s/:,]+),[ id:]*")
_ID = re.compile(_WORD)
_HOST_BITS = {"ipv4": "/32", "ipv6": "/128"}
# What macspoofchk names its chains, and its rules in their comments; the container ID and the interface follow.
SPOOF_CHAIN = "cni-br-iface-"
SPOOF_COMMENT = "macspoofchk-"


class Rule(NamedTuple):
    """One rule. ``text`` is the line of iptables-save, or nft's JSON; ``handle`` is nft's number, 0 for iptables."""

    table: str
    chain: str
    text: str
    handle: int = 0


class RuleOwner(NamedTuple):
    """The owner in a comment. ``claimed`` is the start of the ID if the comment is truncated; the ID is then None."""

    network: Optional[str] = None
    container_id: Optional[str] = None
    ifname: Optional[str] = None
    claimed: str = ""


class RuleSet:
    """The rules of one plugin for one container in one place of the firewall.

    ``backend``: ``iptables-nft``, ``iptables-legacy`` or ``nftables``. ``family``: ``ipv4``, ``ipv6``, ``inet`` or
    ``bridge``. ``plugin``: the plugin that makes them. ``name``: what identifies the set among those of the plugin (a
    chain's name, an address, an ID, a hash).

    ``container_id`` is set if comment and hash agree on it. If only its start can be read (or, for ``macspoofchk``,
    the ID together with the name of the interface), that is ``claimed``; :func:`attribute` completes it for the
    containers that are passed to it. Both are empty if only a hash or an address identifies the owner.

    ``unclear`` is the reason why a set must never be removed; ``inert`` means that no rule jumps to its chains, so no
    packet ever reaches them. ``addresses`` are those of the container that the rules name.
    """

    __slots__ = (
        "addresses",
        "backend",
        "chains",
        "claimed",
        "container_id",
        "family",
        "ifname",
        "inert",
        "name",
        "network",
        "plugin",
        "rules",
        "unclear",
    )

    def __init__(
        self,
        backend: str,
        family: str,
        plugin: str,
        name: str,
        owner: RuleOwner = RuleOwner(),  # noqa: B008 - a tuple does not change
        addresses: Iterable[str] = (),
        chains: Iterable[str] = (),
        rules: Iterable[Rule] = (),
        unclear: str = "",
        inert: bool = False,
    ) -> None:
        self.backend = backend
        self.family = family
        self.plugin = plugin
        self.name = name
        self.network = owner.network
        self.container_id = owner.container_id
        self.ifname = owner.ifname
        self.claimed = owner.claimed
        self.addresses: Tuple[str, ...] = tuple(sorted(set(addresses)))
        self.chains: Tuple[str, ...] = tuple(chains)
        self.rules: Tuple[Rule, ...] = tuple(rules)
        self.unclear = unclear
        self.inert = inert

    @property
    def key(self) -> Tuple[str, str, str, str]:
        """Return the key that identifies the same set in another reading."""
        return (self.backend, self.family, self.plugin, self.name)

    @property
    def text(self) -> str:
        """Return the set in words, as evidence."""
        parts = [f"{self.backend} {self.family}, {self.plugin}: {_count(len(self.rules), 'rule')}"]
        if self.chains:
            parts.append("chain " + ", ".join(self.chains))
        if self.container_id is not None:
            network = f"network {self.network}, " if self.network else ""
            parts.append(f"{network}container {self.container_id}")
        elif self.claimed:
            parts.append(f"container {self.claimed}... (the end of the ID is unknown)")
        else:
            parts.append("it does not contain the container ID")
        if self.addresses:
            parts.append("address " + ", ".join(self.addresses))
        if self.inert:
            parts.append("no rule jumps to it")
        if self.unclear:
            parts.append(self.unclear)
        return "; ".join(parts)


def attribute(sets: Iterable[RuleSet], networks: Iterable[str], container_ids: Iterable[str]) -> None:
    """Set the owner of each set without a container ID, if it is one of *container_ids*.

    A set that stays without an owner and is not ``unclear`` belongs to no container of *container_ids* in a network
    of *networks*, unless only an address identifies it (``firewall``).
    """
    missing = [one for one in sets if one.container_id is None and not one.unclear]
    ids = frozenset(container_ids)
    names = frozenset(networks).union(one.network for one in missing if one.network)
    chains = _chains_of(missing, names, ids)
    for one in missing:
        if one.name in chains:
            one.network, one.container_id = chains[one.name]
        elif one.plugin == IPMASQ and one.backend == "nftables":
            _attribute_hash(one, names, ids)
        elif one.plugin == MACSPOOFCHK:
            _attribute_reference(one, ids)


def _chains_of(missing: Iterable[RuleSet], networks: FrozenSet[str], ids: FrozenSet[str]) -> Any:
    """Return chain name -> (network, ID) for every chain that one of the containers could have."""
    prefixes = {chain_kind(one.name) for one in missing} - {None}
    return {
        chain_name(prefix, network, container_id): (network, container_id)
        for prefix in prefixes
        if prefix is not None
        for network in networks
        for container_id in ids
    }


def _attribute_hash(one: RuleSet, networks: FrozenSet[str], ids: FrozenSet[str]) -> None:
    for container_id in ids:
        if not container_id.startswith(one.claimed):
            continue
        for network in networks:
            if instance_hash(network, one.ifname or "", container_id) == one.name:
                one.network, one.container_id = network, container_id
                return


def _attribute_reference(one: RuleSet, ids: FrozenSet[str]) -> None:
    # IDs and interface names may contain dashes; the longest ID that fits is used.
    fitting = [container_id for container_id in ids if one.name.startswith(container_id + "-")]
    if fitting:
        one.container_id = max(fitting, key=len)
        one.ifname = one.name[len(one.container_id) + 1 :]


def chain_kind(name: str) -> Optional[str]:
    """Return the prefix in a container's chain of iptables: "" (ipMasq), "DN-" or "SN-" (portmap); None for others."""
    if len(name) == CHAIN_LENGTH and name.startswith("CNI-"):
        for prefix in ("DN-", "SN-", ""):
            rest = name[4:]
            if rest.startswith(prefix) and re.fullmatch("[0-9a-f]+", rest[len(prefix) :]):
                return prefix
    return None


def of_iptables(comment: str) -> Optional[RuleOwner]:
    """Return the owner in a comment of iptables, None if no plugin writes such a comment."""
    found = _IPTABLES.fullmatch(comment)
    if found:
        return RuleOwner(found.group(1), found.group(2))
    found = _IPTABLES_CUT.fullmatch(comment)
    if found:
        return RuleOwner(found.group(1), claimed=found.group(2))
    return None


def of_nftables(comment: str) -> Tuple[RuleOwner, str]:
    """Return the owner in the comment of a masquerading rule, and what is wrong with the comment ("" for nothing).

    The plugins truncate it to 128 bytes, which affects most of containerd's long IDs.
    """
    found = _NFTABLES.fullmatch(comment)
    if found:
        told, network, ifname, container_id = found.groups()
        if instance_hash(network, ifname, container_id) == told:
            return RuleOwner(network, container_id, ifname), ""
        if instance_hash(network, "", "")[:16] == told[:16] and len(comment) == 128:
            return RuleOwner(network, None, ifname, container_id), ""
        return RuleOwner(), "its comment and its hash identify different containers"
    found = _NFTABLES_CUT.fullmatch(comment)
    if found and len(comment) == 128:
        return RuleOwner(found.group(1), None, found.group(2)), ""
    return RuleOwner(), "its comment does not have the plugins' form, with an interface and a container"


def of_forward(family: str, words: Sequence[str]) -> str:
    """Return the address of a rule in exactly one of the two forms of the plugin firewall, "" for any other rule."""
    to_it = ["-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "ACCEPT"]
    if len(words) > 2 and [words[0], *words[2:]] in (["-d", *to_it], ["-s", "-j", "ACCEPT"]):
        return single_address(family, words[1])
    return ""


def single_address(family: str, network: str) -> str:
    """Return the address of a network of one address, "" for a larger one."""
    address, bits = network[: -len(_HOST_BITS[family])], _HOST_BITS[family]
    return address if network.endswith(bits) else ""


def is_container_id(text: str) -> bool:
    """Tell whether libcni accepts *text* as a container ID."""
    return _ID.fullmatch(text) is not None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
