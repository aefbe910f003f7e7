# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Puts lost rules and chains back where they stood, and removes those of containers: one transaction for each backend.

Rules of others keep their places. A rule goes behind the nearest rule that stood before it and is there, else in front
of the nearest one that stood behind it, else to the end.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .. import commands
from ..errors import HostError
from ..json_text import parse_json
from .chains import (
    CHAIN,
    FAMILIES,
    NFTABLES,
    NO_POLICY,
    TABLE,
    TIMEOUT,
    Chain,
    ChainKey,
    FoundChains,
    read_iptables,
    read_nftables,
    replayed,
    rule_line,
    tool,
)
from .order import misplaced, places
from .owners import RuleSet, SetKey, group_rules

_TRIES = 3
_NAME = re.compile(r"[^\s\"'\\-][^\s\"'\\]*")
_KINDS = (TABLE, "set", "map", CHAIN)


class ChainRepair(NamedTuple):
    """One chain, table, set or map that must be there with *wanted* rules, or elements.

    ``order`` are the rules of the chain as they stood, with the nearest ones of others. ``body`` None: it is not known.
    """

    key: ChainKey
    body: Any
    order: Sequence[str]
    wanted: Sequence[str]


def change(
    put: Sequence[ChainRepair] = (), drop: Sequence[RuleSet] = (), present: Optional[FoundChains] = None
) -> None:
    """Put back what is missing of *put*, and remove what *drop* had when it was read; what is gone is no error.

    All of it is in one backend, and in one family of iptables. *present*: what was read last, None to read it. Plugins
    may change the firewall after the reading, so a transaction that fails is tried again after a new one.

    Raises HostError ``rules_changed`` if a set of *drop* has gained rules since it was read, ``rules_not_restored`` or
    ``rules_not_removed`` if the transaction failed. Nothing is changed then.
    """
    backend, family = put[0].key[1:3] if put else (drop[0].backend, drop[0].family)
    verb = "removed" if drop else "restored"
    code = f"rules_not_{verb}"
    argv = _command(backend, family, verb, code)
    for _try in range(_TRIES):
        if present is None:
            present = _read(backend, family, put, drop)
        try:
            script = _script(backend, put, _as_they_are(drop, present), present)
        except ValueError as error:
            raise HostError(f"{error}; no rule was {verb}", code=code) from error
        if not script:
            return
        done = commands.run_command(argv, TIMEOUT, script.encode("utf-8", "surrogateescape"))
        if done.rc == 0:
            return
        present = None
    failure = commands.failure(argv, f"exit status {done.rc}", done.stderr)
    raise HostError(f"{failure.msg}; no rule was {verb}", code=code)


def drop_rules(rulesets: Sequence[RuleSet]) -> Dict[SetKey, HostError]:
    """Remove what the sets had when they were read, with few transactions.

    Returns the errors of those that are not gone, by their keys (``rules_unclear``: never removed; those of
    :func:`change`). Of one with an error, all stays.
    """
    errors: Dict[SetKey, HostError] = {}
    groups: Dict[Tuple[str, str], List[RuleSet]] = {}
    for ruleset in rulesets:
        if ruleset.unclear:
            errors[ruleset.key] = HostError(f"not removed: {ruleset.text}", code="rules_unclear")
        else:
            # One transaction serves all families of nftables.
            family = "" if ruleset.backend == NFTABLES else ruleset.family
            groups.setdefault((ruleset.backend, family), []).append(ruleset)
    for group in groups.values():
        _remove_group(group, errors)
    return errors


def _remove_group(group: Sequence[RuleSet], errors: Dict[SetKey, HostError]) -> None:
    try:
        change(drop=group)
    except HostError as error:
        if len(group) == 1:
            errors[group[0].key] = error
        else:
            # One set makes the transaction fail for all, so each gets its own.
            for ruleset in group:
                _remove_group([ruleset], errors)


def _command(backend: str, family: str, verb: str, code: str) -> List[str]:
    native = backend == NFTABLES
    path = commands.find_command("nft") if native else tool(backend, family, "restore")
    if path is None:
        name = "nft" if native else f"{FAMILIES[family]}-restore of {backend}"
        package = "nftables" if native else "iptables"
        text = f"{name} is not installed, so no rule was {verb}; install it (package {package}) and run again"
        raise HostError(text, code=code)
    return [path, "-j", "-f", "-"] if native else [path, "--noflush", "--wait=10"]


def _read(backend: str, family: str, put: Iterable[ChainRepair], drop: Iterable[RuleSet]) -> FoundChains:
    """Read one backend. Raises HostError if it, or a table that is to be changed, could not be read."""
    firewall = FoundChains()
    if backend == NFTABLES:
        read_nftables(firewall)
    else:
        read_iptables(firewall, backend, family)
    keys = [repair.key for repair in put]
    for ruleset in drop:
        keys += [*ruleset.chains, *(rule.key for rule in ruleset.rules)]
    for key in keys:
        error = firewall.why_unread(key[:4])
        if error is not None:
            raise error
    return firewall


def _as_they_are(rulesets: Sequence[RuleSet], present: FoundChains) -> List[RuleSet]:
    """Return the sets as they are now, without those that are gone. Raises HostError ``rules_changed``."""
    if not rulesets:
        return []
    now = {ruleset.key: ruleset for ruleset in group_rules(present).sets}
    for ruleset in rulesets:
        ruleset_now = now.get(ruleset.key, ruleset)
        if set(ruleset_now.rules) - set(ruleset.rules) or set(ruleset_now.chains) - set(ruleset.chains):
            raise HostError(
                f"{ruleset.plugin} {ruleset.name} ({ruleset.backend} {ruleset.family}) has gained rules since it was "
                "inspected, so it is in use and was left; if it is not in use, run again",
                code="rules_changed",
            )
    return [now[ruleset.key] for ruleset in rulesets if ruleset.key in now]


def _script(backend: str, put: Sequence[ChainRepair], drop: Sequence[RuleSet], present: FoundChains) -> str:
    """Return the input of the command, "" if there is nothing to do. Raises ValueError."""
    if backend != NFTABLES:
        return _iptables_script(put, drop, present.chains)
    entries = _nft_deletions(drop) + _nft_commands(put, present)
    return json.dumps({"nftables": entries}) if entries else ""


def _iptables_script(put: Iterable[ChainRepair], drop: Iterable[RuleSet], present: Mapping[ChainKey, Chain]) -> str:
    # Table -> lines: new chains, rules, chains that go.
    tables: Dict[str, Tuple[List[str], List[str], List[str]]] = {}
    for ruleset in drop:
        for rule in ruleset.rules:
            lines = tables.setdefault(rule.key[3], ([], [], []))
            lines[1].append(f"-D {rule.key[4]} {rule_line(rule.key[5])}")
        for chain in ruleset.chains:
            tables.setdefault(chain[3], ([], [], []))[2].append(f"-X {chain[4]}")
    for repair in put:
        table, name = repair.key[3:5]
        made, rules, _gone = tables.setdefault(table, ([], [], []))
        chain_now = present.get(repair.key)
        # A line for a chain that exists would empty it, even with --noflush. Policies are the host's.
        if chain_now is None:
            made.append(f":{_name(name)} {NO_POLICY} [0:0]")
        now = list(chain_now.rules) if chain_now else []
        for text in misplaced(repair.order, repair.wanted, now):
            rules.append(f"-D {name} {rule_line(text)}")
            now.remove(text)
        for position, text in places(repair.order, repair.wanted, now):
            rules.append(f"-I {_name(name)} {position + 1} {rule_line(text)}")
    return "".join(
        "\n".join([f"*{_name(table)}", *made, *rules, *gone, "COMMIT", ""])
        for table, (made, rules, gone) in tables.items()
    )


def _name(text: Any) -> str:
    """Return the name of a table or chain. Raises ValueError if it is none."""
    if not isinstance(text, str) or _NAME.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not the name of a chain or table")
    return text


def _nft_deletions(drop: Iterable[RuleSet]) -> List[Dict[str, Any]]:
    """Return the commands that remove rules by their handles, and then the chains that held them."""
    rules: List[Dict[str, Any]] = []
    chains: List[Dict[str, Any]] = []
    for ruleset in drop:
        for rule in ruleset.rules:
            family, table, chain = rule.key[2:5]
            rules.append({"rule": {"family": family, "table": table, "chain": chain, "handle": rule.handle}})
        for _kind, _backend, family, table, chain in ruleset.chains:
            chains.append({"chain": {"family": family, "table": table, "name": chain}})
    return [{"delete": entry} for entry in rules + chains]


def _nft_commands(repairs: Sequence[ChainRepair], present: FoundChains) -> List[Dict[str, Any]]:
    made: List[Dict[str, Any]] = []
    rules: List[Dict[str, Any]] = []
    tables = set()
    for repair in sorted(repairs, key=lambda repair: _KINDS.index(repair.key[0])):
        kind, _backend, family, table = repair.key[:4]
        if (family, table) not in tables:
            tables.add((family, table))
            body = repair.body if kind == TABLE else None
            made.append({"add": {"table": {**(body or {}), "family": family, "name": table}}})
        if kind == TABLE:
            continue
        name, chain_now = repair.key[4], present.chains.get(repair.key)
        where = {"family": family, "table": table, "name": name}
        if kind == CHAIN:
            made.append({"add": {CHAIN: {**where, **(repair.body or {})}}})
            standing = zip(chain_now.rules if chain_now else (), present.handles.get(repair.key, ()))
            rules += _nft_rules(repair, list(standing))
            continue
        elements = [parse_json(text) for text in repair.wanted if chain_now is None or text not in chain_now.rules]
        if chain_now is None:
            made.append({"add": {kind: {**(repair.body or {}), **where}}})
        if elements:
            made.append({"add": {"element": {**where, "elem": elements}}})
    return made + rules


def _nft_rules(repair: ChainRepair, standing: Sequence[Tuple[str, int]]) -> List[Dict[str, Any]]:
    """Return the commands for the rules of one chain. New ones go in front of the handle of the rule that follows.

    nft 1.0.6 ignores the handle of "add" in JSON, but not that of "insert".
    """
    family, table, chain = repair.key[2:5]
    base = {"family": family, "table": table, "chain": chain}
    moving = set(misplaced(repair.order, repair.wanted, [text for text, _handle in standing]))
    gone = [{**base, "handle": handle} for text, handle in standing if text in moving]
    nft_commands: List[Dict[str, Any]] = [{"delete": {"rule": rule}} for rule in gone]
    now: List[Tuple[str, int]] = [(text, handle) for text, handle in standing if text not in moving]
    for position, rule in places(repair.order, repair.wanted, [text for text, _handle in now]):
        now.insert(position, (rule, 0))
    for position, (rule, handle) in enumerate(now):
        if handle:
            continue
        body = {**replayed(NFTABLES, rule), **base}
        follower = next((other for _text, other in now[position + 1 :] if other), 0)
        nft_commands.append({"insert": {"rule": {**body, "handle": follower}}} if follower else {"add": {"rule": body}})
    return nft_commands
