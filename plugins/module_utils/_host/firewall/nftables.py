# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugins' rules in tables of nftables (since plugins 1.6; those of macspoofchk since 1.1).

Removed by handle in one transaction. The kernel never gives a handle to a second rule of a table.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from .. import commands
from ..errors import HostError
from .chains import CHAIN, NFT_FAMILIES, NFTABLES, TIMEOUT, FoundChains, find_nft, read_nftables
from .iptables import TRIES, check_unchanged, not_removed
from .kinds import IPMASQ, MACSPOOFCHK, PORTMAP
from .ownership import SPOOF_CHAIN, SPOOF_COMMENT, Rule, RuleOwner, RuleSet, is_container_id, of_nftables

_MASQUERADE = ("inet", "cni_plugins_masquerade")
_HOSTPORTS = (("ip", "cni_hostport"), ("ip6", "cni_hostport"))
_SPOOFCHECK = ("bridge", "nat")


class NftRule:
    """One rule: its ``chain``, what it does, and ``text``, what tells it from others."""

    __slots__ = ("chain", "comment", "handle", "statements", "text")

    def __init__(self, chain: str, text: str, handle: int) -> None:
        rule = json.loads(text)
        self.chain = chain
        self.text = text
        self.handle = handle
        self.comment = str(rule.get("comment") or "")
        self.statements: List[Mapping[str, Any]] = rule["expr"]


class NftTable:
    """One table: ``rules`` of each of its chains, in order."""

    __slots__ = ("family", "name", "rules")

    def __init__(self, found: FoundChains, family: str, name: str) -> None:
        self.family = family
        self.name = name
        self.rules: Dict[str, List[NftRule]] = {}
        for chain, texts in found.table(NFTABLES, family, name).items():
            handles = found.handles.get((CHAIN, NFTABLES, family, name, chain), [])
            self.rules[chain] = [NftRule(chain, text, handle) for text, handle in zip(texts, handles)]


def group_nftables(found: FoundChains) -> List[RuleSet]:
    """Return the containers' rules."""
    sets = _masquerades(NftTable(found, *_MASQUERADE))
    for place in _HOSTPORTS:
        sets += _hostports(NftTable(found, *place))
    return sets + _spoofchecks(NftTable(found, *_SPOOFCHECK))


def _masquerades(table: NftTable) -> List[RuleSet]:
    """Return one set for each attachment: the comments of its rules start with the same hash."""
    rules: Dict[str, List[NftRule]] = {}
    for rule in table.rules.get("masq_checks", []):
        rules.setdefault(rule.comment.partition(",")[0], []).append(rule)
    sets = []
    for told in sorted(rules):
        opinions = [of_nftables(rule.comment) for rule in rules[told]]
        owner, unclear = opinions[0]
        if len(set(opinions)) > 1:
            owner, unclear = RuleOwner(), "its comments name several containers"
        addresses = [value for rule in rules[told] for value in _matched(rule, "saddr")]
        sets.append(_set(table, "inet", IPMASQ, told, owner, rules[told], addresses, unclear))
    return sets


def _hostports(table: NftTable) -> List[RuleSet]:
    """Return one set for each container: its id is the comment."""
    rules: Dict[str, List[NftRule]] = {}
    for chain in ("hostports", "hostip_hostports", "masquerading"):
        for rule in table.rules.get(chain, []):
            rules.setdefault(rule.comment, []).append(rule)
    sets = []
    for told in sorted(rules):
        unclear = "" if is_container_id(told) else "its comment is not a container ID"
        owner = RuleOwner() if unclear else RuleOwner(container_id=told)
        addresses = [value for rule in rules[told] for value in _targets(rule)]
        sets.append(_set(table, NFT_FAMILIES[table.family], PORTMAP, told, owner, rules[told], addresses, unclear))
    return sets


def _spoofchecks(table: NftTable) -> List[RuleSet]:
    """Return one set for each attachment: two chains, and the rule that jumps to the first."""
    bases = [name for name in table.rules if name.startswith(SPOOF_CHAIN) and not _is_second(name, table)]
    return [_spoofcheck(table, base) for base in sorted(bases)]


def _is_second(name: str, table: NftTable) -> bool:
    return name.endswith("-mac") and name[: -len("-mac")] in table.rules


def _spoofcheck(table: NftTable, base: str) -> RuleSet:
    reference = base[len(SPOOF_CHAIN) :]
    chains = [name for name in (base, base + "-mac") if name in table.rules]
    jumps = [rule for name in table.rules for rule in table.rules[name] if name not in chains and _leads(rule, chains)]
    rules = [*jumps, *(rule for name in chains for rule in table.rules[name])]
    unclear = "" if is_container_id(reference) and "-" in reference else "its name contains no container ID"
    if any(rule.comment != SPOOF_COMMENT + reference for rule in rules):
        unclear = "rules that the plugin does not make are in it, or jump to it"
    owner = RuleOwner()
    if not unclear:
        container_id, _dash, ifname = reference.partition("-")
        # With a second dash, the end of the ID is ambiguous.
        owner = RuleOwner(claimed=reference) if "-" in ifname else RuleOwner(container_id=container_id, ifname=ifname)
    one = _set(table, "bridge", MACSPOOFCHK, reference, owner, rules, [], unclear)
    # The first chain jumps to the second, so the jump is removed first.
    one.chains = tuple(chains)
    one.inert = not jumps
    return one


def _set(
    table: NftTable,
    family: str,
    plugin: str,
    name: str,
    owner: RuleOwner,
    rules: Sequence[NftRule],
    addresses: Sequence[str],
    unclear: str,
) -> RuleSet:
    shown = [Rule(f"{table.family} {table.name}", rule.chain, rule.text, rule.handle) for rule in rules]
    return RuleSet(NFTABLES, family, plugin, name, owner, addresses, (), shown, unclear)


def _matched(rule: NftRule, field: str) -> List[str]:
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


def _targets(rule: NftRule) -> List[str]:
    """Return the container's addresses in a rule of portmap: the target, or the destination of the masquerading."""
    targets = [statement["dnat"] for statement in rule.statements if isinstance(statement.get("dnat"), dict)]
    if targets:
        return [target["addr"] for target in targets if isinstance(target.get("addr"), str)]
    return _matched(rule, "daddr")


def _leads(rule: NftRule, chains: Sequence[str]) -> bool:
    verdicts = [statement.get(kind) for statement in rule.statements for kind in ("jump", "goto")]
    return any(isinstance(verdict, dict) and verdict.get("target") in chains for verdict in verdicts)


def remove_nftables(sets: Sequence[RuleSet]) -> None:
    """Remove *sets* in one transaction; rules that are already gone are no error.

    Raises HostError ``rules_changed`` if one of them has gained rules since it was read, ``rules_not_removed`` if the
    transaction failed. Nothing is removed then.
    """
    nft = find_nft()
    error = HostError("nft is not installed, so its rules stay; install it and run again", code="rules_not_removed")
    # As in iptables, a DEL may run in between.
    for _try in range(TRIES if nft is not None else 0):
        found = FoundChains()
        read_nftables(found)
        found.require(NFTABLES)
        wanted = _deletions(sets, {present.key: present for present in group_nftables(found)})
        if not wanted:
            return
        argv = [str(nft), "-j", "-f", "-"]
        script = json.dumps({"nftables": [{"delete": entry} for entry in wanted]})
        done = commands.run_command(argv, TIMEOUT, script.encode("utf-8", "surrogateescape"))
        if done.rc == 0:
            return
        error = not_removed(argv, done)
    raise error


def _deletions(sets: Sequence[RuleSet], present: Mapping[Tuple[str, ...], RuleSet]) -> List[Dict[str, Any]]:
    rules: List[Dict[str, Any]] = []
    chains: List[Dict[str, Any]] = []
    for one in sets:
        now = present.get(one.key)
        if now is None:
            continue
        check_unchanged(one, now)
        for rule in now.rules:
            family, table = rule.table.split(" ")
            rules.append({"rule": {"family": family, "table": table, "chain": rule.chain, "handle": rule.handle}})
        for chain in now.chains:
            chains.append({"chain": {"family": _SPOOFCHECK[0], "table": _SPOOFCHECK[1], "name": chain}})
    return rules + chains
