# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts lost rules and chains back where they stood, in one transaction for each backend.

Rules of others keep their places. A rule goes behind the nearest rule that stood before it and is there, else in front
of the nearest one that stood behind it, else to the end.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from .. import commands
from ..errors import HostError
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
    find_nft,
    rule_line,
    rule_text,
    tool,
)
from .order import misplaced, places

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


def survives(backend: str, rule: str) -> bool:
    """Tell whether a *rule* that was read, or recorded, would be the same rule when it is put back."""
    try:
        _replayed(backend, rule)
    except ValueError:
        return False
    return True


def _replayed(backend: str, rule: str) -> Any:
    """Return a rule as the tool gets it: a line of iptables-restore, or JSON of nft. Raises ValueError."""
    if backend != NFTABLES:
        return rule_line(rule)
    try:
        content = json.loads(rule)
        if rule_text(content) == rule:
            return content
    except (AttributeError, RecursionError, TypeError) as error:
        raise ValueError(str(error)) from error
    raise ValueError("no rule of nftables")


def restore_chains(repairs: Sequence[ChainRepair], present: FoundChains) -> None:
    """Put back what is missing. Raises HostError ``rules_not_restored``; nothing of that backend is changed then."""
    native = [repair for repair in repairs if repair.key[1] == NFTABLES]
    groups: Dict[Tuple[str, str], List[ChainRepair]] = {}
    for repair in repairs:
        if repair.key[1] != NFTABLES:
            groups.setdefault((repair.key[1], repair.key[2]), []).append(repair)
    try:
        scripts = [(*place, _iptables_script(chains, present.chains)) for place, chains in groups.items()]
        entries = _nft_commands(native, present)
    except ValueError as error:
        raise HostError(f"{error}; no rule was restored", code="rules_not_restored") from error
    for backend, family, script in scripts:
        restore = tool(backend, family, "restore")
        if restore is None:
            text = f"{FAMILIES[family]}-restore of {backend} is not installed; install it (package iptables)"
            raise HostError(text, code="rules_not_restored")
        _run([restore, "--noflush", "--wait=10"], script.encode("utf-8", "surrogateescape"))
    if entries:
        nft = find_nft()
        if nft is None:
            text = "nft is not installed; install it (package nftables)"
            raise HostError(text, code="rules_not_restored")
        _run([nft, "-j", "-f", "-"], json.dumps({"nftables": entries}).encode("utf-8", "surrogateescape"))


def _run(argv: Sequence[str], script: bytes) -> None:
    done = commands.run_command(argv, TIMEOUT, script)
    if done.rc != 0:
        error = commands.failure(argv, f"exit status {done.rc}", done.stderr)
        raise HostError(f"{error.msg}; no rule was restored", code="rules_not_restored")


def _iptables_script(repairs: Iterable[ChainRepair], present: Mapping[ChainKey, Chain]) -> str:
    tables: Dict[str, Tuple[List[str], List[str]]] = {}
    for repair in repairs:
        table, name = repair.key[3:5]
        chains, rules = tables.setdefault(table, ([], []))
        here = present.get(repair.key)
        # A line for a chain that exists would empty it, even with --noflush. Policies are the host's.
        if here is None:
            chains.append(f":{_name(name)} {NO_POLICY} [0:0]")
        now = list(here.rules) if here else []
        for rule in misplaced(repair.order, repair.wanted, now):
            rules.append(f"-D {name} {rule_line(rule)}")
            now.remove(rule)
        for position, rule in places(repair.order, repair.wanted, now):
            rules.append(f"-I {_name(name)} {position + 1} {rule_line(rule)}")
    return "".join(
        "\n".join([f"*{_name(table)}", *chains, *rules, "COMMIT", ""]) for table, (chains, rules) in tables.items()
    )


def _name(text: Any) -> str:
    """Return the name of a table or chain. Raises ValueError if it is none."""
    if not isinstance(text, str) or _NAME.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no name of a chain or table")
    return text


def _nft_commands(repairs: Sequence[ChainRepair], present: FoundChains) -> List[Dict[str, Any]]:
    made: List[Dict[str, Any]] = []
    rules: List[Dict[str, Any]] = []
    tables = set()
    for repair in sorted(repairs, key=lambda one: _KINDS.index(one.key[0])):
        kind, _backend, family, table = repair.key[:4]
        if (family, table) not in tables:
            tables.add((family, table))
            body = repair.body if kind == TABLE else None
            made.append({"add": {"table": {**(body or {}), "family": family, "name": table}}})
        if kind == TABLE:
            continue
        name, here = repair.key[4], present.chains.get(repair.key)
        where = {"family": family, "table": table, "name": name}
        if kind == CHAIN:
            made.append({"add": {CHAIN: {**where, **(repair.body or {})}}})
            standing = zip(here.rules if here else (), present.handles.get(repair.key, ()))
            rules += _nft_rules(repair, list(standing))
            continue
        elements = [json.loads(text) for text in repair.wanted if here is None or text not in here.rules]
        if here is None:
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
    found: List[Dict[str, Any]] = [
        {"delete": {"rule": {**base, "handle": handle}}} for text, handle in standing if text in moving
    ]
    now: List[Tuple[str, int]] = [(text, handle) for text, handle in standing if text not in moving]
    for position, rule in places(repair.order, repair.wanted, [text for text, _handle in now]):
        now.insert(position, (rule, 0))
    for position, (rule, handle) in enumerate(now):
        if handle:
            continue
        body = {**_replayed(NFTABLES, rule), **base}
        follower = next((other for _text, other in now[position + 1 :] if other), 0)
        found.append({"insert": {"rule": {**body, "handle": follower}}} if follower else {"add": {"rule": body}})
    return found
