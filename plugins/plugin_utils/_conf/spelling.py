# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Typing errors: which known word somebody has meant."""

from __future__ import annotations

import re
from typing import Iterable

_LONGEST = 100
# Of words so short, another letter makes another word: ovs and ovn.
_SHORT = 3


def meant(word: str, known: Iterable[str]) -> str:
    """Return the one of the *known* words that differs from *word* by a typing error, "" if there is none.

    Case and separators do not count. A word of several parts, such as host-device, may have an error in each.
    """
    if len(word) > _LONGEST:
        return ""
    best, plain = ("", 3), _plain(word)
    for other in known:
        if _plain(other) == plain:
            return other
        parts, others = _parts(word), _parts(other)
        if len(parts) == len(others):
            errors = [_distance(part, there, len(parts) > 1) for part, there in zip(parts, others)]
        else:
            long, short = sorted((parts, others), key=len, reverse=True)
            is_word_more = any(long[:place] + long[place + 1 :] == short for place in range(len(long)))
            errors = [3 if is_word_more else _distance(plain, _plain(other), False)]
        if 3 > sum(errors) < best[1] and max(errors) < 3:
            best = (other, sum(errors))
    return best[0]


def _plain(word: str) -> str:
    return "".join(_parts(word))


def _parts(word: str) -> list[str]:
    return [part.lower() for part in re.split(r"[-_. ]", word)]


def _distance(word: str, other: str, is_part: bool) -> int:
    """Return how many letters were left out, added, exchanged or mistaken; 3 for more than a typing error.

    *is_part*: of a longer word, so that a letter too few or too many is one, even in a short word.
    """
    length = min(len(word), len(other))
    most = 2 if length > 7 else 1
    if word == other:
        return 0
    is_short = length <= _SHORT and sorted(word) != sorted(other) and not (is_part and len(word) != len(other))
    if is_short or abs(len(word) - len(other)) > most:
        return 3
    rows = [list(range(len(other) + 1))]
    for row, letter in enumerate(word, 1):
        line = [row]
        for column, there in enumerate(other, 1):
            cost = min(rows[-1][column] + 1, line[-1] + 1, rows[-1][column - 1] + (letter != there))
            if row > 1 and column > 1 and letter == other[column - 2] and word[row - 2] == there:
                cost = min(cost, rows[-2][column - 2] + 1)
            line.append(cost)
        rows.append(line)
    return rows[-1][-1] if rows[-1][-1] <= most else 3
