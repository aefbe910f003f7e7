# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Typing errors: which known word somebody has meant, and the sentence about options that are unknown."""

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
            errors = [_distance(part, other_part, len(parts) > 1) for part, other_part in zip(parts, others)]
        else:
            long, short = sorted((parts, others), key=len, reverse=True)
            is_word_more = any(long[:place] + long[place + 1 :] == short for place in range(len(long)))
            errors = [3 if is_word_more else _distance(plain, _plain(other), False)]
        if 3 > sum(errors) < best[1] and max(errors) < 3:
            best = (other, sum(errors))
    return best[0]


def unsupported(names: Iterable[object], known: Iterable[str], module: str = "", section: str = "") -> list[str]:
    """Return a sentence about those of *names* that are not among the *known* options, in Ansible's words."""
    options = sorted(known)
    near = {str(name): meant(str(name), options) for name in names if name not in options}
    unknown = [f"{section}{name}" + (f" (did you mean {section}{near[name]}?)" if near[name] else "") for name in near]
    of = f" for (podwire.cni.{module}) module" if module else ""
    told = f"Unsupported parameters{of}: {', '.join(unknown)}. Supported parameters include: {', '.join(options)}"
    return [told] if unknown else []


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
    return _errors(word, other, most)


def _errors(word: str, other: str, most: int) -> int:
    while word and word[:1] == other[:1]:
        word, other = word[1:], other[1:]
    if not word and not other:
        return 0
    if most == 0:
        return 3
    others = [(word[1:], other), (word, other[1:]), (word[1:], other[1:])]
    others += [(word[2:], other[2:])] if word[:2] == other[1::-1] else []
    return min(3, 1 + min(_errors(*pair, most - 1) for pair in others))
