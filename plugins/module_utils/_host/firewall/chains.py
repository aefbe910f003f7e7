# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All chains of a host's firewall with their rules in order: iptables of both backends, and nftables.

A chain has the key ``(chain, backend, family, table, name)``. Tables, sets and maps of nftables have such keys with
their own kind. Rules of iptables are lines of iptables-save without "-A CHAIN", those of nftables are JSON without
counters and handles.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

from .. import commands
from ..errors import HostError
from .iptables import BACKENDS, FAMILIES, NFT, TIMEOUT, iptables_in_use, tool
from .nftables import BACKEND, query_nft
from .nftables import FAMILIES as NFT_FAMILIES

# Texts; readers of whole states keep them among keys that have numbers, too.
ChainKey = Tuple[Any, ...]
CHAIN, TABLE = "chain", "table"
NFTABLES = BACKEND
# What iptables-nft shows of its tables is the better text: nft does not know all of their matches.
_XTABLES = frozenset(("filter", "nat", "mangle", "raw", "security"))
_COUNTER = re.compile(r" \[\d+:\d+\]$")
_INCOMPATIBLE = re.compile(r"# Table `([^']*)' is incompatible")
_PASSING = frozenset(("handle", "packets", "bytes", "used", "expires", "index"))
_OF_A_BASE_CHAIN = ("type", "hook", "prio", "policy", "dev")
EMPTY_POLICY = "ACCEPT"


class Chain(NamedTuple):
    """A chain, table, set or map: ``body`` is its policy (iptables) or its properties, ``rules`` rules or elements."""

    body: Any
    rules: List[str]


class FoundChains:
    """What was read: ``chains``, and ``unread``: (backend, family, table or "" for all) -> why it could not be read."""

    __slots__ = ("chains", "unread")

    def __init__(self) -> None:
        self.chains: Dict[ChainKey, Chain] = {}
        self.unread: Dict[Tuple[str, str, str], str] = {}

    def why_unread(self, key: ChainKey) -> str:
        """Return why nothing is known of the chain *key*, "" if it was read."""
        _kind, backend, family, table = key[:4]
        return self.unread.get((backend, family, "")) or self.unread.get((backend, family, table), "")


def read_chains() -> FoundChains:
    """Read the firewall of this thread's namespace. Needs root; changes nothing."""
    found = FoundChains()
    shown: Set[Tuple[str, str]] = set()
    for backend in BACKENDS:
        for family in FAMILIES:
            tables = _read_iptables(found, backend, family)
            if backend == NFT:
                shown.update((kind, table) for kind in NFT_FAMILIES if NFT_FAMILIES[kind] == family for table in tables)
    _read_nftables(found, shown)
    return found


def _read_iptables(found: FoundChains, backend: str, family: str) -> Set[str]:
    """Add the chains of one backend. Returns the tables that it shows."""
    if not iptables_in_use(backend, family):
        return set()
    try:
        save = tool(backend, family, "save")
        if save is None:
            text = f"{FAMILIES[family]}-save of {backend} is not installed; install it (package iptables)"
            found.unread[backend, family, ""] = text
            return set()
        done = commands.run_command([save], TIMEOUT)
        if done.rc != 0:
            raise commands.failure([save], f"exit status {done.rc}", done.stderr)
    except HostError as error:
        found.unread[backend, family, ""] = error.msg
        return set()
    return _parse_iptables(found, backend, family, done.stdout.decode("utf-8", "surrogateescape"))


def _parse_iptables(found: FoundChains, backend: str, family: str, dump: str) -> Set[str]:
    table, tables = "", set()
    for line in dump.split("\n"):
        if line.startswith("*"):
            table = line[1:]
            tables.add(table)
        elif line.startswith(":"):
            name, _blank, policy = _COUNTER.sub("", line[1:]).partition(" ")
            found.chains[CHAIN, backend, family, table, name] = Chain(policy, [])
        elif line.startswith("-A "):
            _add, name, rule = line.split(" ", 2)
            chain = found.chains.setdefault((CHAIN, backend, family, table, name), Chain("-", []))
            chain.rules.append(rule)
        else:
            hidden = _INCOMPATIBLE.match(line)
            if hidden:
                text = f"the table {hidden.group(1)} of {backend} ({family}) contains rules that iptables cannot show"
                found.unread[backend, family, hidden.group(1)] = text
    return (tables & _XTABLES) - {key[2] for key in found.unread if key[:2] == (backend, family)}


def _read_nftables(found: FoundChains, shown: Set[Tuple[str, str]]) -> None:
    try:
        nft = commands.find_command("nft")
        entries = query_nft(nft, ["ruleset"]) if nft is not None else None
        why = "nft is not installed; install it (package nftables)"
    except HostError as error:
        entries, why = None, error.msg
    if entries is None:
        for family in ("ip", "ip6", "inet", "bridge", "arp", "netdev"):
            found.unread[NFTABLES, family, ""] = why
        return
    for entry in entries:
        if isinstance(entry, dict) and len(entry) == 1:
            ((kind, body),) = entry.items()
            if isinstance(body, dict) and kind != "metainfo":
                place = (str(body.get("family")), str(body.get("table", body.get("name"))))
                if place not in shown:
                    _add_entry(found.chains, kind, place, body)


def _add_entry(chains: Dict[ChainKey, Chain], kind: str, place: Tuple[str, str], body: Mapping[str, Any]) -> None:
    name = str(body.get("name"))
    if kind == TABLE:
        # nft shows it from 1.1 on.
        shown = {"comment": body["comment"]} if isinstance(body.get("comment"), str) else {}
        chains[(TABLE, NFTABLES, *place)] = Chain(shown, [])
    elif kind == CHAIN:
        base = {key: body[key] for key in _OF_A_BASE_CHAIN if body.get(key) is not None}
        chains[(CHAIN, NFTABLES, *place, name)] = Chain(base, [])
    elif kind == "rule":
        chain = chains.setdefault((CHAIN, NFTABLES, *place, str(body.get("chain"))), Chain({}, []))
        chain.rules.append(rule_text(body))
    elif kind in ("set", "map"):
        elements = body.get("elem")
        texts = sorted(json.dumps(_lasting(one), sort_keys=True) for one in elements) if elements else []
        rest = {key: value for key, value in body.items() if key not in ("elem", "handle")}
        # The elements of a set with timeouts come and go.
        dynamic = "timeout" in rest or "timeout" in rest.get("flags", ()) or "dynamic" in rest.get("flags", ())
        chains[(kind, NFTABLES, *place, name)] = Chain(_lasting(rest), [] if dynamic else texts)


def rule_text(rule: Mapping[str, Any]) -> str:
    """Return a rule of nft's JSON without what changes by itself."""
    shown: Dict[str, Any] = {"expr": _lasting(rule.get("expr"))}
    if rule.get("comment") is not None:
        shown["comment"] = rule["comment"]
    return json.dumps(shown, sort_keys=True)


def _lasting(part: Any) -> Any:
    if isinstance(part, dict):
        kept = {key: _lasting(value) for key, value in part.items() if key not in _PASSING}
        # A counter without its numbers is written as null.
        return {key: None if key == "counter" and value == {} else value for key, value in kept.items()}
    return [_lasting(entry) for entry in part] if isinstance(part, list) else part


def jumps_of(backend: str, rule: str) -> List[str]:
    """Return the chains that a rule leads to."""
    if backend != NFTABLES:
        return re.findall(r"(?:^| )-[jg] (\S+)", rule)
    return re.findall(r'"(?:jump|goto)": \{"target": "([^"]+)"', rule)


def find_nft() -> Optional[str]:
    """Return the path of nft, None if it is not installed."""
    return commands.find_command("nft")
