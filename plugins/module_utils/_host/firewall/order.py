# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The order of the rules of a chain: which of them do not stand where they stood, and where missing ones belong."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import Container, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from ..struct import grouped


def places(order: Sequence[str], wanted: Iterable[str], present: Sequence[str]) -> List[Tuple[int, str]]:
    """Return (position from 0, rule) of each missing rule; positions count the ones before in this list."""
    now, left, ours = list(present), Counter(present), list(wanted)
    missing: List[str] = []
    for rule in ours:
        if left[rule]:
            left[rule] -= 1
        else:
            missing.append(rule)
    rank = grouped((rule, place) for place, rule in enumerate(order))
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
    rising: List[int] = []
    last: Optional[int] = ends[-1] if ends else None
    while last is not None:
        rising.append(last)
        last = before[last]
    return rising
