# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""How two states of an object differ: reduced to what differs for a diff, and in words for the reason of a step.

Both mask secrets first: the key that marks a value as secret may be equal on both sides and missing from the outcome.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from .secrets import mask

Pair = Tuple[Optional[int], Optional[int]]
"""The position of an element in two lists; None where a list does not have it."""

SAME = "..."
"""Stands for an element of a list that does not differ."""

_MOST_NAMED = 2
_LONGEST_VALUE = 40
_LONGEST_PATH = 80
_LONGEST_HEADER = 250
# Comparing the elements of longer lists takes too long.
_LONGEST_LIST = 200
_BARE = re.compile(r"[\w./:@+-]+")


def reduce_change(before: Any, after: Any) -> Tuple[Any, Any]:
    """Return two JSON-ready states without what is equal in them; both are "" if nothing is left.

    Texts stay whole. In lists, :data:`SAME` stands for equal elements. An object with a ``type`` keeps it.
    """
    pair = _reduced(mask(before), mask(after))
    return ("", "") if pair is None else pair


def _reduced(before: Any, after: Any) -> Optional[Tuple[Any, Any]]:
    """Return what differs of both, None if they are equal."""
    if isinstance(before, dict) and isinstance(after, dict):
        return _reduced_objects(before, after)
    if isinstance(before, list) and isinstance(after, list):
        return _reduced_lists(before, after)
    # To Python, True and 1 are equal.
    return None if before == after and isinstance(before, bool) == isinstance(after, bool) else (before, after)


def _reduced_objects(before: Dict[str, Any], after: Dict[str, Any]) -> Optional[Tuple[Any, Any]]:
    left: Dict[str, Any] = {}
    right: Dict[str, Any] = {}
    differ = False
    for key in {**before, **after}:
        if key not in after:
            left[key] = before[key]
        elif key not in before:
            right[key] = after[key]
        else:
            pair = _reduced(before[key], after[key])
            if pair is None:
                if key == "type":
                    left[key], right[key] = before[key], after[key]
                continue
            left[key], right[key] = pair
        differ = True
    return (left, right) if differ else None


def _reduced_lists(before: List[Any], after: List[Any]) -> Optional[Tuple[Any, Any]]:
    left: List[Any] = []
    right: List[Any] = []
    differ = False
    for old_index, new_index in _aligned(before, after):
        if old_index is None or new_index is None:
            left += [] if old_index is None else [before[old_index]]
            right += [] if new_index is None else [after[new_index]]
            differ = True
            continue
        pair = _reduced(before[old_index], after[new_index])
        differ = differ or pair is not None
        left.append(SAME if pair is None else pair[0])
        right.append(SAME if pair is None else pair[1])
    if not differ:
        return None
    # An element that is gone may look like what is left of another one.
    return (before, after) if left == right else (left, right)


def _aligned(before: Sequence[Any], after: Sequence[Any]) -> Iterator[Pair]:
    """Yield the positions of elements that belong together, in order: plugins of one type, equal ones, or one place."""
    keys = _keys(before, after)
    if keys is None:
        for number in range(max(len(before), len(after))):
            yield number if number < len(before) else None, number if number < len(after) else None
        return
    for tag, start, end, new_start, new_end in difflib.SequenceMatcher(None, *keys, False).get_opcodes():
        if tag == "equal":
            yield from zip(range(start, end), range(new_start, new_end))
        else:
            yield from ((number, None) for number in range(start, end))
            yield from ((None, number) for number in range(new_start, new_end))


def _keys(before: Sequence[Any], after: Sequence[Any]) -> Optional[Tuple[List[str], List[str]]]:
    """Return what identifies the elements of both lists, None if it is their place."""
    if max(len(before), len(after)) > _LONGEST_LIST:
        return None
    if _are_typed(before) and _are_typed(after):
        return [element["type"] for element in before], [element["type"] for element in after]
    if len(before) == len(after):
        return None
    return [json.dumps(element, sort_keys=True) for element in before], [
        json.dumps(element, sort_keys=True) for element in after
    ]


def _are_typed(value: Any) -> bool:
    """Tell whether this is a list of plugins, or of other objects that name their type."""
    return isinstance(value, list) and all(
        isinstance(element, dict) and isinstance(element.get("type"), str) for element in value
    )


def diff_of(steps: Iterable[Any]) -> List[Dict[str, Any]]:
    """Return Ansible's diff structure: what the steps of a plan change, below their reasons.

    ``step`` is the place in the plan of the one that an entry is about; rows have one entry for all of them.
    """
    entries: Dict[Any, Dict[str, Any]] = {}
    for place, step in enumerate(steps):
        before, after = step.before, step.after
        if before is not None and after is not None:
            before, after = reduce_change(before, after)
        if step.row:
            before, after = (_line_of(step.row, *sides) for sides in ((before, after), (after, before)))
        entry = {
            "before_header": os.path.dirname(step.target) if step.row else step.target,
            "after_header": f"{step.kind}: {step.reason}",
            "before": "" if before is None else before,
            "after": "" if after is None else after,
        }
        if not step.row:
            entries[place] = dict(entry, step=place)
            continue
        table = entries.setdefault(entry["before_header"], dict(entry, before="", after=""))
        table.update({side: table[side] + entry[side] for side in ("before", "after")})
        if entry["after_header"] not in table["after_header"]:
            table["after_header"] = f"{table['after_header']}; {entry['after_header']}"[:_LONGEST_HEADER]
    return list(entries.values())


def _line_of(name: str, state: Any, other: Any) -> str:
    """Return the line of a row in the diff of its directory: its version, and what else the *other* state has, too."""
    shown = [key for key in state or () if key == "version" or key in (other or ())]
    words = [state[key] if key == "version" else f"{key} {state[key]}" for key in shown]
    return f"{name}: {', '.join(words)}\n" if words else ""


# ---- in words


def change_in_words(before: Any, after: Any) -> str:
    """Return how the JSON-ready state *before* differs from the desired one, "" if it does not.

    A phrase such as ``bridge: mtu 1450, want 1500; plugin portmap is missing``. It names two differences, and counts
    the others if there are more.
    """
    phrases = list(_phrases(mask(before), mask(after)))
    if not phrases:
        return "" if _reduced(before, after) is None else "a secret differs"
    if len(phrases) <= _MOST_NAMED:
        return "; ".join(phrases)
    return f"{phrases[0]}, and {len(phrases) - 1} other values differ"


def _phrases(before: Any, after: Any) -> Iterator[str]:
    if not isinstance(before, dict) or not isinstance(after, dict):
        yield from _differences("its content", before, after)
        return
    for key in {**before, **after}:
        if key == "plugins" and _are_typed(before.get(key)) and _are_typed(after.get(key)):
            yield from _in_chain(before[key], after[key])
        else:
            yield from _of_member(key, key, before, after)


def _in_chain(before: List[Dict[str, Any]], after: List[Dict[str, Any]]) -> Iterator[str]:
    pairs = list(_aligned(before, after))
    gone = [old_index for old_index, new_index in pairs if new_index is None and old_index is not None]
    new = [new_index for old_index, new_index in pairs if old_index is None and new_index is not None]
    same = [(old_index, new_index) for old_index, new_index in pairs if old_index is not None and new_index is not None]
    moved = False
    for new_index in list(new):
        old_index = next((number for number in gone if before[number]["type"] == after[new_index]["type"]), None)
        if old_index is not None:
            moved = True
            gone.remove(old_index)
            new.remove(new_index)
            same.append((old_index, new_index))
    yield from (f"plugin {_named(after[new_index]['type'])} is missing" for new_index in new)
    yield from (f"plugin {_named(before[old_index]['type'])} is not wanted" for old_index in gone)
    if moved:
        yield "the plugins are in another order"
    types = [plugin["type"] for plugin in after]
    for old_index, new_index in same:
        place = _named(types[new_index]) if types.count(types[new_index]) == 1 else f"plugins[{new_index}]"
        for key in {**before[old_index], **after[new_index]}:
            yield from (f"{place}: {text}" for text in _of_member(key, key, before[old_index], after[new_index]))


def _of_member(path: str, key: str, before: Dict[str, Any], after: Dict[str, Any]) -> Iterator[str]:
    """Yield how the member *key* of two objects differs; *path* is its name in the text."""
    if key in before and key in after:
        yield from _differences(path, before[key], after[key])
    elif key in after:
        want = _shown(after[key])
        yield f"{_named(path)} is not set" + (want and f", want {want}")
    else:
        have = _shown(before[key])
        yield f"{_named(path)}{have and ' '}{have} is not wanted"


def _differences(path: str, before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from _of_member(f"{path}.{key}", key, before, after)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after)):
            yield from _differences(f"{path}[{number}]", old, new)
    elif _reduced(before, after) is not None:
        have, want = _shown(before), _shown(after)
        yield f"{_named(path)} {have}, want {want}" if have and want else f"{_named(path)} differs"


def _named(path: str) -> str:
    """Return a path of keys, which may be of any length in a file that somebody else wrote."""
    return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}..."


def _shown(value: Any) -> str:
    """Return a value in one line, "" if it is too long for that."""
    text = value if isinstance(value, str) and _is_bare(value) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else ""


def _is_bare(text: str) -> bool:
    """Tell whether a text needs no quotes, so that nobody takes it for a number or for several words."""
    if not _BARE.fullmatch(text):
        return False
    try:
        json.loads(text)
    except ValueError:
        return True
    return False
