# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of CNI plugins for single containers in the host's firewall, and whose they are.

The owner is in a rule's comment and in the hash in the name of its chain. Chains that containers share
(CNI-HOSTPORT-DNAT, CNI-FORWARD, CNI-ADMIN, ...), the per-bridge rules of ``ingressPolicy`` and rules that no plugin
made are never in a set. firewalld's zones are not read.

Sources: plugins/pkg/utils/utils.go (chain names and comments of iptables), pkg/ip/ipmasq_nftables_linux.go,
plugins/meta/portmap, pkg/link/spoofcheck.go.
"""

from __future__ import annotations

import re
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..json_text import parse_json
from ..problems import WARNING, Finding
from ..struct import field, grouped, struct
from .chains import (
    BACKENDS,
    CHAIN,
    FAMILIES,
    INCOMPATIBLE,
    LEGACY,
    NFT,
    NFT_FAMILIES,
    NFTABLES,
    NOT_INSTALLED,
    NOT_UNDERSTOOD,
    Chain,
    ChainKey,
    FoundChains,
    jumps_of,
    read_chains,
    words_of,
)
from .kinds import CHAIN_LENGTH, FIREWALL, IPMASQ, MACSPOOFCHK, PORTMAP, chain_name, instance_hash

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
# The chain from which each kind of a container's chains is entered.
_ENTRIES = {"": "POSTROUTING", "DN-": "CNI-HOSTPORT-DNAT", "SN-": "CNI-HOSTPORT-SNAT"}
_FORWARD = "CNI-FORWARD"
# What macspoofchk names its chains, and its rules in their comments; the container ID and the interface follow.
SPOOF_CHAIN = "cni-br-iface-"
SPOOF_COMMENT = "macspoofchk-"

SetKey = Tuple[str, str, str, str]


class Rule(NamedTuple):
    """One rule: the key of its chain, and the rule itself; ``handle`` is nft's number, 0 for iptables."""

    key: ChainKey
    handle: int = 0

    @property
    def text(self) -> str:
        """Return the line of iptables-save, or nft's JSON."""
        return str(self.key[5]) if self.key[1] == NFTABLES else f"-A {self.key[4]} {self.key[5]}"


class RuleOwner(NamedTuple):
    """The owner in a comment. ``claimed`` is the start of the ID if the comment is truncated; the ID is then None."""

    network: Optional[str] = None
    container_id: Optional[str] = None
    ifname: Optional[str] = None
    claimed: str = ""


NOBODY = RuleOwner()


class RuleSet(NamedTuple):
    """The rules of one plugin for one container in one place of the firewall.

    ``backend``: ``iptables-nft``, ``iptables-legacy`` or ``nftables``. ``family``: ``ipv4``, ``ipv6``, ``inet`` or
    ``bridge``. ``plugin``: the plugin that makes them. ``name``: what identifies the set among those of the plugin (a
    chain's name, an address, an ID, a hash). ``chains`` are the keys of chains that are the container's alone.

    ``owner.container_id`` is set if comment and hash agree on it. If only its start can be read (or, for
    ``macspoofchk``, the ID together with the name of the interface), that is ``owner.claimed``; :func:`attribute`
    completes it for the containers that are passed to it. Both are empty if only a hash or an address identifies the
    owner.

    ``unclear`` is the reason why a set must never be removed; ``inert`` means that no rule jumps to its chains, so no
    packet ever reaches them. ``addresses`` are those of the container that the rules name.
    """

    backend: str
    family: str
    plugin: str
    name: str
    owner: RuleOwner = NOBODY
    addresses: Tuple[str, ...] = ()
    chains: Tuple[ChainKey, ...] = ()
    rules: Tuple[Rule, ...] = ()
    unclear: str = ""
    inert: bool = False

    @property
    def key(self) -> SetKey:
        """Return the key that identifies the same set in another reading."""
        return (self.backend, self.family, self.plugin, self.name)

    @property
    def text(self) -> str:
        """Return the set in words, as evidence."""
        count = len(self.rules)
        parts = [f"{self.backend} {self.family}, {self.plugin}: {count} {'rule' if count == 1 else 'rules'}"]
        if self.chains:
            parts.append("chain " + ", ".join(str(chain[4]) for chain in self.chains))
        if self.owner.container_id is not None:
            network = f"network {self.owner.network}, " if self.owner.network else ""
            parts.append(f"{network}container {self.owner.container_id}")
        elif self.owner.claimed:
            parts.append(f"container {self.owner.claimed}... (the end of the ID is unknown)")
        else:
            parts.append("it does not contain the container ID")
        if self.addresses:
            parts.append("address " + ", ".join(self.addresses))
        if self.inert:
            parts.append("no rule jumps to it")
        if self.unclear:
            parts.append(self.unclear)
        return "; ".join(parts)


@struct
class FoundRules:
    """``sets``, sorted by their key, and ``problems``: what could not be read, so sets may be missing."""

    chains: Mapping[ChainKey, Chain] = field(default_factory=dict)
    sets: List[RuleSet] = field(default_factory=list)
    problems: List[Finding] = field(default_factory=list)

    def unknown(self, keys: Iterable[ChainKey]) -> List[ChainKey]:
        """Return those of the *keys* of rules (a chain's, and the rule) that are there and in no set."""
        known = {rule.key for ruleset in self.sets for rule in ruleset.rules}
        chains = self.chains
        return [key for key in keys if key not in known and key[:-1] in chains and key[-1] in chains[key[:-1]].rules]


def read_rules() -> FoundRules:
    """Read iptables (both backends, both families) and nftables. Needs root; changes nothing."""
    return group_rules(read_chains())


def group_rules(chains: FoundChains) -> FoundRules:
    """Return the containers' rules among all *chains*."""
    sets = _masquerades(chains) + _hostports(chains, "ip") + _hostports(chains, "ip6") + _spoofchecks(chains)
    for backend in BACKENDS:
        for family in FAMILIES:
            sets += _chains_of_containers(chains, backend, family) + _forwards(chains, backend, family)
    return FoundRules(chains.chains, sorted(sets, key=lambda ruleset: ruleset.key), _problems(chains))


def _problems(chains: FoundChains) -> List[Finding]:
    # With a table that iptables cannot show, and without the tool, nft shows the chains of iptables-nft.
    hidden = any(key[1] == NFTABLES and key[2] in NFT_FAMILIES and key[-1].startswith("CNI-") for key in chains.chains)
    problems = []
    for place, error in chains.unread.items():
        if error.code == INCOMPATIBLE and not (hidden and place[2] in ("nat", "filter")):
            continue
        if error.code == NOT_INSTALLED and place[0] != LEGACY and not (hidden and place[0] == NFT):
            continue
        code = error.code if error.code == NOT_INSTALLED else NOT_UNDERSTOOD
        problems.append(Finding(WARNING, code, f"cannot read {' '.join(place[:2])}: {error.msg}"))
    return problems


def attribute(sets: Iterable[RuleSet], networks: Iterable[str], container_ids: Iterable[str]) -> List[RuleSet]:
    """Return the sets, with the owner of each without a container ID, if it is one of *container_ids*.

    A set that stays without an owner and is not ``unclear`` belongs to no container of *container_ids* in a network
    of *networks*, unless only an address identifies it (``firewall``).
    """
    sets, ids = list(sets), frozenset(container_ids)
    missing = [ruleset for ruleset in sets if ruleset.owner.container_id is None and not ruleset.unclear]
    names = frozenset(networks).union(ruleset.owner.network for ruleset in missing if ruleset.owner.network)
    chains = _chains_of(missing, names, ids)
    owners: Dict[SetKey, RuleOwner] = {}
    for ruleset in missing:
        owner = chains.get(ruleset.name)
        if owner is None and ruleset.plugin == IPMASQ and ruleset.backend == NFTABLES:
            owner = _of_hash(ruleset, names, ids)
        elif owner is None and ruleset.plugin == MACSPOOFCHK:
            owner = _of_reference(ruleset.name, ids)
        if owner is not None:
            owners[ruleset.key] = owner
    return [ruleset._replace(owner=owners.get(ruleset.key, ruleset.owner)) for ruleset in sets]


def _chains_of(missing: Iterable[RuleSet], networks: FrozenSet[str], ids: FrozenSet[str]) -> Dict[str, RuleOwner]:
    """Return the owner of every chain that one of the containers could have."""
    prefixes = {chain_kind(ruleset.name) for ruleset in missing}
    return {
        chain_name(prefix, network, container_id): RuleOwner(network, container_id)
        for prefix in prefixes
        if prefix is not None
        for network in networks
        for container_id in ids
    }


def _of_hash(ruleset: RuleSet, networks: Iterable[str], ids: Iterable[str]) -> Optional[RuleOwner]:
    ifname = ruleset.owner.ifname
    for container_id in ids:
        if container_id.startswith(ruleset.owner.claimed):
            for network in networks:
                if instance_hash(network, ifname or "", container_id) == ruleset.name:
                    return RuleOwner(network, container_id, ifname)
    return None


def _of_reference(reference: str, ids: Iterable[str]) -> Optional[RuleOwner]:
    # IDs and interface names may contain dashes; the longest ID that fits is used.
    container_id = max((name for name in ids if reference.startswith(name + "-")), key=len, default=None)
    return RuleOwner(None, container_id, reference[len(container_id) + 1 :]) if container_id is not None else None


# ---- what comments and names tell


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
    match = _IPTABLES.fullmatch(comment)
    if match:
        return RuleOwner(match.group(1), match.group(2))
    match = _IPTABLES_CUT.fullmatch(comment)
    return RuleOwner(match.group(1), claimed=match.group(2)) if match else None


def of_nftables(comment: str) -> Tuple[RuleOwner, str]:
    """Return the owner in the comment of a masquerading rule, and what is wrong with the comment ("" for nothing).

    The plugins truncate it to 128 bytes, which affects most of containerd's long IDs.
    """
    match = _NFTABLES.fullmatch(comment)
    if match:
        digest, network, ifname, container_id = match.groups()
        if instance_hash(network, ifname, container_id) == digest:
            return RuleOwner(network, container_id, ifname), ""
        if instance_hash(network, "", "")[:16] == digest[:16] and len(comment) == 128:
            return RuleOwner(network, None, ifname, container_id), ""
        return NOBODY, "its comment and its hash identify different containers"
    match = _NFTABLES_CUT.fullmatch(comment)
    if match and len(comment) == 128:
        return RuleOwner(match.group(1), None, match.group(2)), ""
    return NOBODY, "its comment does not have the plugins' form, with an interface and a container"


def of_forward(family: str, words: Sequence[str]) -> str:
    """Return the address of a rule in exactly one of the two forms of the plugin firewall, "" for any other rule."""
    to_it = ["-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "ACCEPT"]
    if len(words) > 2 and [words[0], *words[2:]] in (["-d", *to_it], ["-s", "-j", "ACCEPT"]):
        return _single_address(family, words[1])
    return ""


def _single_address(family: str, network: str) -> str:
    """Return the address of a network of one address, "" for a larger one."""
    address, bits = network[: -len(_HOST_BITS[family])], _HOST_BITS[family]
    return address if network.endswith(bits) else ""


# ---- iptables


class _Line(NamedTuple):
    """One rule of iptables with its words."""

    rule: Rule
    words: List[str]

    @property
    def chain(self) -> str:
        return str(self.rule.key[4])

    def after(self, *options: str) -> List[str]:
        """Return the values of *options*."""
        return [value for option, value in zip(self.words, self.words[1:]) if option in options]

    def owners(self) -> Set[RuleOwner]:
        return {owner for owner in map(of_iptables, self.after("--comment")) if owner is not None}


def _lines(place: ChainKey, table: Mapping[str, Sequence[str]]) -> List[_Line]:
    """Return the rules of a table that name a chain of CNI, or are in one."""
    return [
        _Line(Rule((*place, chain, rule)), words_of(rule))
        for chain, rules in table.items()
        for rule in rules
        if "CNI-" in chain or "CNI-" in rule
    ]


def _chains_of_containers(firewall: FoundChains, backend: str, family: str) -> List[RuleSet]:
    """Return one set for each chain that a plugin made for one container."""
    table = firewall.table(backend, family, "nat")
    lines = _lines((CHAIN, backend, family, "nat"), table)
    inside = grouped((line.chain, line) for line in lines)
    jumps = grouped((target, line) for line in lines for target in line.after("-j", "-g"))
    return [
        _chain((CHAIN, backend, family, "nat", chain), prefix, jumps.get(chain, []), inside.get(chain, []))
        for chain, prefix in ((chain, chain_kind(chain)) for chain in table)
        if prefix is not None
    ]


def _chain(key: ChainKey, prefix: str, jumps: Sequence[_Line], inside: Sequence[_Line]) -> RuleSet:
    _kind, backend, family, _table, chain = key
    unclear = ""
    for line in jumps:
        if line.chain != _ENTRIES[prefix]:
            unclear = f"a rule in {line.chain} that no plugin makes jumps to it"
        elif not line.owners():
            unclear = f"a rule in {line.chain} without a plugin's comment jumps to it"
    owners = {owner for line in (*jumps, *inside) for owner in line.owners()}
    owner = next(iter(owners)) if len(owners) == 1 else NOBODY
    named = chain_name(prefix, owner.network or "", owner.container_id) if owner.container_id is not None else chain
    if len(owners) > 1 or named != chain:
        unclear = "its comments and the hash in its name identify different containers"
        owner = NOBODY
    return RuleSet(
        backend,
        family,
        PORTMAP if prefix else IPMASQ,
        chain,
        owner,
        addresses=_sorted(_addresses(family, prefix, jumps, inside)),
        chains=(key,),
        rules=tuple(line.rule for line in (*jumps, *inside)),
        unclear=unclear,
        inert=not jumps,
    )


def _sorted(addresses: Iterable[str]) -> Tuple[str, ...]:
    return tuple(sorted(set(addresses)))


def _addresses(family: str, prefix: str, jumps: Iterable[_Line], inside: Iterable[_Line]) -> List[str]:
    if prefix == "DN-":
        # 10.1.0.2:80 or [fd00::2]:80
        targets = [value for line in inside for value in line.after("--to-destination")]
        return [target.rpartition(":")[0].strip("[]") for target in targets]
    lines = jumps if prefix == "" else inside
    sources = [value for line in lines for value in line.after("-s")]
    return [address for address in (_single_address(family, source) for source in sources) if address]


def _forwards(firewall: FoundChains, backend: str, family: str) -> List[RuleSet]:
    """Return one set for each address that the plugin firewall lets through; only the address identifies the owner."""
    chain = firewall.chains.get((CHAIN, backend, family, "filter", _FORWARD))
    lines = _lines((CHAIN, backend, family, "filter"), {_FORWARD: chain.rules} if chain else {})
    return [
        RuleSet(backend, family, FIREWALL, address, addresses=(address,), rules=tuple(line.rule for line in some))
        for address, some in grouped((of_forward(family, line.words), line) for line in lines).items()
        if address
    ]


# ---- nftables: since plugins 1.6, those of macspoofchk since 1.1


class _NftRule(NamedTuple):
    """One rule of nftables: its comment, and what it does."""

    rule: Rule
    comment: str
    statements: List[Mapping[str, Any]]


def _nft_rules(firewall: FoundChains, family: str, table: str, *chains: str) -> List[_NftRule]:
    """Return the rules of *chains* in their order."""
    rules = []
    for chain in chains:
        key = (CHAIN, NFTABLES, family, table, chain)
        texts = firewall.chains[key].rules if key in firewall.chains else []
        # The kernel never gives a handle to a second rule of a table.
        for text, handle in zip(texts, firewall.handles.get(key, ())):
            body = parse_json(text)
            rules.append(_NftRule(Rule((*key, text), handle), str(body.get("comment") or ""), body["expr"]))
    return rules


def _masquerades(firewall: FoundChains) -> List[RuleSet]:
    """Return one set for each attachment: the comments of its rules start with the same hash."""
    rules = _nft_rules(firewall, "inet", "cni_plugins_masquerade", "masq_checks")
    sets = []
    for digest, some in grouped((rule.comment.partition(",")[0], rule) for rule in rules).items():
        opinions = [of_nftables(rule.comment) for rule in some]
        owner, unclear = opinions[0]
        if len(set(opinions)) > 1:
            owner, unclear = NOBODY, "its comments name several containers"
        addresses = [value for rule in some for value in _matched(rule, "saddr")]
        sets.append(_nft_set("inet", IPMASQ, digest, owner, some, addresses, unclear))
    return sets


def _hostports(firewall: FoundChains, family: str) -> List[RuleSet]:
    """Return one set for each container: its id is the comment."""
    rules = _nft_rules(firewall, family, "cni_hostport", "hostports", "hostip_hostports", "masquerading")
    sets = []
    for comment, some in grouped((rule.comment, rule) for rule in rules).items():
        unclear = "" if _ID.fullmatch(comment) else "its comment is not a container ID"
        owner = NOBODY if unclear else RuleOwner(container_id=comment)
        addresses = [value for rule in some for value in _targets(rule)]
        sets.append(_nft_set(NFT_FAMILIES[family], PORTMAP, comment, owner, some, addresses, unclear))
    return sets


def _spoofchecks(firewall: FoundChains) -> List[RuleSet]:
    """Return one set for each attachment: two chains, and the rule that jumps to the first."""
    table = {chain: _nft_rules(firewall, "bridge", "nat", chain) for chain in firewall.table(NFTABLES, "bridge", "nat")}
    bases = [
        chain
        for chain in table
        if chain.startswith(SPOOF_CHAIN) and not (chain.endswith("-mac") and chain[: -len("-mac")] in table)
    ]
    # Once for all: with many attachments, each base has as many others.
    leads = [(chain, rule, jumps_of(NFTABLES, rule.rule.text)) for chain, some in table.items() for rule in some]
    return [_spoofcheck(table, leads, base) for base in bases]


def _spoofcheck(
    table: Mapping[str, Sequence[_NftRule]], leads: Sequence[Tuple[str, _NftRule, List[str]]], base: str
) -> RuleSet:
    reference = base[len(SPOOF_CHAIN) :]
    chains = [chain for chain in (base, base + "-mac") if chain in table]
    jumps = [rule for chain, rule, to in leads if chain not in chains and not set(to).isdisjoint(chains)]
    rules = [*jumps, *(rule for chain in chains for rule in table[chain])]
    unclear = "" if _ID.fullmatch(reference) and "-" in reference else "its name contains no container ID"
    if any(rule.comment != SPOOF_COMMENT + reference for rule in rules):
        unclear = "rules that the plugin does not make are in it, or jump to it"
    owner = NOBODY
    if not unclear:
        container_id, _dash, ifname = reference.partition("-")
        # With a second dash, the end of the ID is ambiguous.
        owner = RuleOwner(claimed=reference) if "-" in ifname else RuleOwner(container_id=container_id, ifname=ifname)
    ruleset = _nft_set("bridge", MACSPOOFCHK, reference, owner, rules, [], unclear)
    # The first chain jumps to the second, so the jump is removed first.
    keys = tuple((CHAIN, NFTABLES, "bridge", "nat", chain) for chain in chains)
    return ruleset._replace(chains=keys, inert=not jumps)


def _nft_set(
    family: str,
    plugin: str,
    name: str,
    owner: RuleOwner,
    rules: Iterable[_NftRule],
    addresses: Iterable[str],
    unclear: str,
) -> RuleSet:
    shown = tuple(rule.rule for rule in rules)
    return RuleSet(NFTABLES, family, plugin, name, owner, _sorted(addresses), (), shown, unclear)


def _matched(rule: _NftRule, field: str) -> List[str]:
    """Return the addresses that a rule matches in *field* of the packet."""
    values = []
    for statement in rule.statements:
        match = statement.get("match")
        if not isinstance(match, dict) or not isinstance(match.get("left"), dict):
            continue
        payload = match["left"].get("payload")
        if isinstance(payload, dict) and payload.get("field") == field and isinstance(match.get("right"), str):
            values.append(match["right"])
    return values


def _targets(rule: _NftRule) -> List[str]:
    """Return the container's addresses in a rule of portmap: the target, or the destination of the masquerading."""
    targets = [statement["dnat"] for statement in rule.statements if isinstance(statement.get("dnat"), dict)]
    if targets:
        return [target["addr"] for target in targets if isinstance(target.get("addr"), str)]
    return _matched(rule, "daddr")
