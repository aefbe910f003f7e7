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
from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import Any, Container, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from .. import commands
from ..errors import HostError
from .chains import (
    CHAIN,
    FAMILIES,
    NFTABLES,
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

_NO_POLICY = "-"
_NAME = re.compile(r"[^\s\"'\\-][^\s\"'\\]*|-")
_KINDS = (TABLE, "set", "map", CHAIN)


class ChainRepair(NamedTuple):
    """One chain, table, set or map that must be there with *wanted* rules, or elements.

    ``order`` are the rules of the chain as they stood, with the nearest ones of others. ``body`` None: it is not known.
    """

    key: ChainKey
    body: Any
    order: Sequence[str]
    wanted: Sequence[str]


def places(order: Sequence[str], wanted: Iterable[str], present: Sequence[str]) -> List[Tuple[int, str]]:
    """Return (position from 0, rule) of each missing rule; positions count the ones before in this list."""
    now, left, ours = list(present), Counter(present), list(wanted)
    missing: List[str] = []
    for rule in ours:
        if left[rule]:
            left[rule] -= 1
        else:
            missing.append(rule)
    rank: Dict[str, List[int]] = {}
    for place, rule in enumerate(order):
        rank.setdefault(rule, []).append(place)
    # The last ones of rules that stood several times are missing.
    todo = []
    for rule in missing:
        ranks = rank.get(rule)
        todo.append((ranks.pop() if ranks else len(order), rule))
    # Rules that others have moved tell a place only if nothing else does.
    firm = _steady(_ranks(order, present), set(ours)).union(ours)
    result = []
    for place, rule in sorted(todo, key=lambda entry: entry[0]):
        position = _position(order, place, [other if other in firm else None for other in now])
        if position is None:
            position = _position(order, place, now)
        if position is None:
            position = len(now)
        now.insert(position, rule)
        result.append((position, rule))
    return result


def _position(order: Sequence[str], place: int, now: Sequence[Optional[str]]) -> Optional[int]:
    """Return the position in *now* behind the nearest rule before *place*, else before the nearest one behind it."""
    last = {rule: position for position, rule in enumerate(now)}
    before = next((last[other] + 1 for other in reversed(order[:place]) if other in last), None)
    if before is not None:
        return before
    return next((now.index(other) for other in order[place + 1 :] if other in last), None)


def misplaced(order: Sequence[str], wanted: Iterable[str], present: Sequence[str]) -> List[str]:
    """Return the fewest wanted rules that must move so that all stand in the recorded *order*.

    They are judged by each other, and by those of others in *order* that still stand in the order of then. Rules that
    stood several times, or stand several times, are not judged.
    """
    ours, rank = set(wanted), _ranks(order, present)
    ranks = list(rank.values())
    if ranks == sorted(ranks):
        return []
    fits = _between(ranks, {rank[rule] for rule in _steady(rank, ours)})
    stay = set(_longest_rising([place for rule, place in rank.items() if rule in ours and place in fits]))
    return [rule for rule, place in rank.items() if rule in ours and place not in stay]


def _ranks(order: Sequence[str], present: Sequence[str]) -> Dict[str, int]:
    """Return the rules that are in both once, as they stand, with their places in *order*."""
    often, now = Counter(order), Counter(present)
    rank = {rule: place for place, rule in enumerate(order) if often[rule] == 1 and now[rule] == 1}
    return {rule: rank[rule] for rule in present if rule in rank}


def _steady(rank: Mapping[str, int], ours: Container[str]) -> Set[str]:
    """Return the rules of others that stand behind all that they stood behind, and before the rest."""
    others = [rule for rule in rank if rule not in ours]
    most = list(accumulate((rank[rule] for rule in others), max))
    least = reversed(list(accumulate((rank[rule] for rule in reversed(others)), min)))
    return {rule for rule, above, below in zip(others, most, least) if above == rank[rule] == below}


def _between(ranks: Sequence[int], fixed: Set[int]) -> Set[int]:
    """Return those of *ranks* that stand between the same *fixed* ones, which rise, as their size tells."""
    order, passed = sorted(fixed), 0
    fits = set()
    for place in ranks:
        if place in fixed:
            passed += 1
        elif bisect_left(order, place) == passed:
            fits.add(place)
    return fits


def arranged(order: Sequence[str], wanted: Iterable[str], present: Sequence[str]) -> List[str]:
    """Return the *present* rules as they stand when each misplaced one has been moved."""
    now, ours = list(present), set(wanted)
    for rule in misplaced(order, ours, present):
        now.remove(rule)
    for position, rule in places(order, [rule for rule in present if rule in ours], now):
        now.insert(position, rule)
    return now


def _longest_rising(numbers: Sequence[int]) -> List[int]:
    # For each length, the smallest number that a rising sequence of this length can end with; and what precedes it.
    ends: List[int] = []
    before: Dict[int, Optional[int]] = {}
    for number in numbers:
        place = bisect_left(ends, number)
        before[number] = ends[place - 1] if place else None
        ends[place : place + 1] = [number]
    found: List[int] = []
    last: Optional[int] = ends[-1] if ends else None
    while last is not None:
        found.append(last)
        last = before[last]
    return found


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
        # A line for a chain that exists would empty it, even with --noflush; that of a built-in one sets its policy.
        if here is None or (repair.body not in (None, _NO_POLICY, here.body)):
            chains.append(f":{_name(name)} {_name(repair.body or _NO_POLICY)} [0:0]")
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
    """Return the name of a table, chain or policy. Raises ValueError if it is none."""
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
