# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Random JSON text: not what a value is, but how somebody may write it."""

from __future__ import annotations

import json
import random
import typing as t


class Raw(str):
    """JSON text that is written as it is."""


class Pairs(t.List[t.Tuple[str, t.Any]]):
    """An object by its members, in order and with duplicates."""


NUMBERS = (
    *(
        "0",
        "-0",
        "1",
        "-1",
        "1.0",
        "1.5",
        "-0.0",
        "0.1",
        "1e3",
        "1E3",
        "1e+3",
        "1500.0",
        "1e21",
        "1e20",
        "1e-6",
        "1e-7",
    ),
    *(
        "123456789012345680000",
        "0.000001",
        "0.0000001",
        "1e22",
        "3.14159265358979",
        "2.5e-8",
        "1e300",
        "1e-320",
        "5e-324",
    ),
    *("100000000000000000000", "9007199254740991", "-9007199254740991", "4294967296", "1234567890123456", "123e18"),
    *("0.30000000000000004", "12345.678e2", "1.7976931348623157e308", "33333333.33333333", "1e15", "1e16", "999999e15"),
)
# Beyond what a float64 has exactly.
BIG_NUMBERS = ["9007199254740993", "18446744073709551615", "-9223372036854775809", "123456789012345678901234567890"]
STRINGS = (
    "",
    "a",
    "eth0",
    "<b>&amp;</b>",
    "\u2028\u2029",
    "\x7f",
    "\x00\x01\x1f",
    "\b\f\n\r\t",
    '"\\/',
    "\u00e4\u00f6\u20ac",
    "\U0001f600",
    "\ufeffbom",
    "\u017fs",
    "\u0130",
    "\ufffd",
    " blank ",
    "e\u0301",
)
KEYS = ("a", "A", "b", "name", "x-y", "", "\u00e4", "\U0001f600", "\uffff", "<k>", "10", "9", "k\n", "mtu", "Z", "_")


def number(rng: random.Random) -> Raw:
    """Return a number that both sides write the same."""
    if rng.random() < 0.4:
        return Raw(rng.choice(NUMBERS))
    if rng.random() < 0.5:
        return Raw(str(rng.randint(-(2**53), 2**53)))
    return Raw(repr(rng.uniform(-1, 1) * 10.0 ** rng.randint(-30, 30)))


def value(rng: random.Random, depth: int = 3) -> t.Any:
    """Return any JSON value."""
    kind = rng.randrange(8 if depth else 5)
    if kind == 0:
        return rng.choice((None, True, False))
    if kind in (1, 2):
        return number(rng)
    if kind in (3, 4):
        return rng.choice(STRINGS)
    if kind == 5:
        return [value(rng, depth - 1) for _index in range(rng.randrange(4))]
    return obj(rng, depth - 1)


def obj(rng: random.Random, depth: int = 2) -> Pairs:
    """Return any JSON object, perhaps with duplicate keys."""
    return Pairs((rng.choice(KEYS), value(rng, depth)) for _index in range(rng.randrange(5)))


def text(rng: random.Random, item: t.Any, wild: float = 0.3) -> bytes:
    """Write `item` as UTF-8; `wild`: how often with blanks, newlines and escapes that nobody needs."""
    out: list[str] = []
    _write(rng, item, out.append, wild)
    return "".join(out).encode("utf-8", "surrogateescape")


def _blank(rng: random.Random, wild: float) -> str:
    return rng.choice((" ", "\n", "\t", "\r\n  ")) if rng.random() < wild else ""


def _write(rng: random.Random, item: t.Any, put: t.Callable[[str], None], wild: float) -> None:
    if isinstance(item, Raw):
        put(str(item))
    elif isinstance(item, str):
        put(_string(rng, item, wild))
    elif isinstance(item, (dict, Pairs)):
        members = list(item.items()) if isinstance(item, dict) else item
        put("{" + _blank(rng, wild))
        for index, (key, member) in enumerate(members):
            put("," + _blank(rng, wild) if index else "")
            put(_string(rng, key, wild) + _blank(rng, wild) + ":" + _blank(rng, wild))
            _write(rng, member, put, wild)
        put(_blank(rng, wild) + "}")
    elif isinstance(item, (list, tuple)):
        put("[")
        for index, member in enumerate(item):
            put("," + _blank(rng, wild) if index else _blank(rng, wild))
            _write(rng, member, put, wild)
        put(_blank(rng, wild) + "]")
    else:
        put(json.dumps(item))


def _string(rng: random.Random, content: str, wild: float) -> str:
    out = []
    for char in content:
        plain = json.dumps(char, ensure_ascii=False)[1:-1]
        if rng.random() >= wild / 3:
            out.append(plain)
        elif char == "/":
            out.append("\\/")
        elif "\ud800" <= char <= "\udfff":
            out.append(char)
        else:
            escaped = json.dumps(char)[1:-1]
            out.append(escaped if escaped != char else f"\\u{ord(char):04x}")
    return '"' + "".join(out) + '"'
