# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""JSON as Go's encoding/json reads and writes it.

Reading: UTF-8 only, no byte order mark, no NaN; invalid UTF-8 and lone surrogates become U+FFFD; the last of
several equal keys wins; a number beyond float64 is an error. Writing: the keys of maps sorted, those of Go structs
(`Struct`) in their order, no blanks, `<`, `>`, `&`, U+2028 and U+2029 escaped, numbers in Go's text.

Two deviations from Go, which avoid data loss and crashes: integers are exact (Go passes them through float64, so
9007199254740993 would become 9007199254740992), and what is nested deeper than 500 levels (Go: 10000) is an error like
any other, however deep the caller itself is in Python's stack.
"""

from __future__ import annotations

import json
import re
import sys
from functools import lru_cache
from itertools import accumulate

from .errors import JSONError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    _StrDict = t.Dict[str, t.Any]
    _T = t.TypeVar("_T")
else:
    _StrDict = dict

# For rare cases: not compiled before it is needed.
_SURROGATE = "[\ud800-\udfff]"
_ESCAPED_SURROGATE = r"\\u[dD][89a-fA-F]"
_TOKEN = r'(?s)"(?:[^"\\]|\\.)*"|[-+.\w]+'
_HTML_ESCAPES = tuple((char, f"\\u{ord(char):04x}") for char in "<>&\u2028\u2029")
_DEEPEST, _DEEPEST_IN_GO = 500, 10000
_LEVELS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKET_OR_QUOTE = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_TOO_DEEP = "the value is nested too deeply (more than {} levels)"

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
# 309 digits are the longest integer that can be within float64's range.
_LONGEST_INT = 309


class Struct(_StrDict):
    """A dict that `dumps` writes in its own order, as Go writes a struct."""

    __slots__ = ()


class Repeated(_StrDict):
    """An object with duplicate keys: a dict of the last values. `pairs` has all members, in the order of the text."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, t.Any]]) -> None:
        super().__init__()
        self.pairs = pairs
        for key, value in pairs:
            # The last one keeps its position, because the order matters for keys that differ only in case.
            self.pop(key, None)
            self[key] = value


class _NegativeZero(float):
    """-0 as JSON has it, without a point: a float to Go's interface{}, an integer to its int."""

    __slots__ = ()


class _BadTokenError(Exception):
    """A number or constant, as it was written, that Go refuses."""


# ---- reading


def loads(data: bytes | str, lax: bool = False) -> t.Any:
    """Parse JSON text. Raises `JSONError` with line and column.

    `lax` accepts what Go accepts in members that it does not decode: numbers beyond float64, which become infinite, and
    nesting up to Go's own limit.
    """
    text = data if isinstance(data, str) else _decode(data)
    if text.startswith("\ufeff"):
        raise JSONError("the text starts with a byte order mark, which JSON does not allow", line=1, column=1)
    if isinstance(data, str) and not text.isascii():
        text = re.sub(_SURROGATE, "\ufffd", text)
    deepest = _DEEPEST_IN_GO if lax else _DEEPEST
    is_deep = is_deeper(text, _DEEPEST)
    if is_deep and (not lax or is_deeper(text, _DEEPEST_IN_GO)):
        raise JSONError(_TOO_DEEP.format(deepest))
    try:
        decode = (_decode_deep if is_deep else _LAX_DECODER.decode) if lax else _DECODER.decode
        value = decode(text)
        if "\\u" in text and re.search(_ESCAPED_SURROGATE, text) and not is_deep:
            value = _without_surrogates(value)
    except json.JSONDecodeError as exc:
        msg = "unexpected end of JSON input" if exc.pos >= len(text) else f"invalid JSON: {exc.msg}"
        raise JSONError(msg, line=exc.lineno, column=exc.colno) from exc
    except _BadTokenError as exc:
        token = str(exc)
        line, column = _position(text, token)
        shown = token if len(token) <= 40 else token[:40] + "..."
        raise JSONError(f"invalid JSON: {shown} is not a number that JSON allows", line=line, column=column) from exc
    except RecursionError as exc:
        raise JSONError(_TOO_DEEP.format(deepest)) from exc
    return value


def _decode_deep(text: str) -> t.Any:
    before = sys.getrecursionlimit()
    # The decoder in Python needs up to three calls for a level.
    sys.setrecursionlimit(before + 3 * _DEEPEST_IN_GO + 10)
    try:
        return _LAX_DECODER.decode(text)
    except RecursionError:
        if sys.version_info < (3, 12):
            raise
        # Since then the decoder in C has a limit of its own, and calls in Python do not use the stack of C.
        from json import scanner

        decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_parse_lax_int, parse_constant=_parse_constant)
        decoder.parse_array = json.decoder.JSONArray
        decoder.scan_once = scanner.py_make_scanner(decoder)
        return decoder.decode(text)
    finally:
        sys.setrecursionlimit(before)


def is_deeper(text: str, levels: int) -> bool:
    """Tell whether a JSON parser would get deeper than *levels* arrays and objects in a text, JSON or not.

    To be asked before the parser, which uses the stack: Python up to 3.11 ends the whole process if anything else, as a
    finalizer, runs deep in it while a RecursionError is on its way ("Cannot recover from stack overflow").
    """
    if text.count("[") + text.count("{") <= levels:
        return False
    data = text.encode("utf-8", "surrogatepass")
    if b"\\" in data:
        data = re.sub(rb"(?s)\\.", b"", data)
    # Without strings: first the many that are empty by now, which is fast.
    brackets = re.sub(rb'"[^"]*"?', b"", data.translate(None, _NO_BRACKET_OR_QUOTE).replace(b'""', b""))
    return max(accumulate(map(_LEVELS.__getitem__, brackets)), default=0) > levels


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        # surrogateescape makes one surrogate of each bad byte, and Go makes one U+FFFD of each.
        return re.sub(_SURROGATE, "\ufffd", data.decode("utf-8", "surrogateescape"))


def _pairs(pairs: list[tuple[str, t.Any]]) -> dict[str, t.Any]:
    out = dict(pairs)
    return out if len(out) == len(pairs) else Repeated(pairs)


def _parse_float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _BadTokenError(text)
    return value


def _parse_int(text: str) -> int | float:
    if text == "-0":
        return _NegativeZero(-0.0)
    if len(text) >= _LONGEST_INT:
        _parse_float(text)
    return int(text)


def _parse_constant(text: str) -> t.NoReturn:
    raise _BadTokenError(text)


def _parse_lax_int(text: str) -> int | float:
    return float(text) if len(text) >= _LONGEST_INT else _parse_int(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_float=_parse_float, parse_int=_parse_int, parse_constant=_parse_constant
)
_LAX_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_parse_lax_int, parse_constant=_parse_constant)


def _position(text: str, token: str) -> tuple[int, int]:
    """Return line and column of the first `token` that is outside of a string."""
    for match in re.finditer(_TOKEN, text):
        if match.group() == token:
            start = match.start()
            return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return 1, 1


def _without_surrogates(value: t.Any) -> t.Any:
    if isinstance(value, str):
        return re.sub(_SURROGATE, "\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return _pairs([(_without_surrogates(key), _without_surrogates(item)) for key, item in _members(value)])
    return value


# ---- typed reading, as Go decodes into a struct


def _members(obj: dict[str, t.Any]) -> t.Iterable[tuple[str, t.Any]]:
    return obj.pairs if isinstance(obj, Repeated) else obj.items()


def struct_items(value: t.Any, names: t.Sequence[str]) -> t.Iterator[tuple[str, t.Any]]:
    """Yield (field name, value) of the members of an object that a Go struct with these fields would take.

    Keys match regardless of case, in document order and every time they occur, so that a later one overrides an earlier
    one, which is still checked. null counts as an empty object.
    Raises `JSONError` if `value` is neither.
    """
    if value is None:
        return
    folded = {name.lower(): name for name in names}
    for key, item in _members(as_object(value, "")):
        name = folded.get(fold(key))
        if name is not None:
            yield name, item


# The same keys occur again and again.
@lru_cache(maxsize=1024)
def fold(key: str) -> str:
    """Return a key in lowercase: the same text for all keys that Go takes for one field (names of fields are ASCII)."""
    # U+017F is the one letter outside of ASCII that Go folds to ASCII and lower() does not.
    return key.lower().replace("\u017f", "s")


def _typed(value: t.Any, empty: _T, where: str, wanted: str) -> _T:
    if value is None:
        return empty
    if not isinstance(value, type(empty)):
        raise _wrong_type(value, where, wanted)
    return value


def as_object(value: t.Any, where: str) -> dict[str, t.Any]:
    """Return `value` if it is an object, {} for null. Raises `JSONError`."""
    return _typed(value, {}, where, "object")


def as_list(value: t.Any, where: str) -> list[t.Any]:
    """Return `value` if it is an array, [] for null. Raises `JSONError`."""
    return _typed(value, [], where, "array")


def as_string(value: t.Any, where: str) -> str:
    """Return `value` if it is a string, "" for null. Raises `JSONError`."""
    return _typed(value, "", where, "string")


def string_over(before: str, value: t.Any, where: str) -> str:
    """Return `value` as `as_string` does, but `before` for null, which leaves a Go string as it is."""
    return before if value is None else as_string(value, where)


def as_bool(value: t.Any, where: str) -> bool:
    """Return `value` if it is a boolean, False for null. Raises `JSONError`."""
    return _typed(value, False, where, "bool")


def as_int(value: t.Any, where: str, minimum: int = _INT64_MIN, maximum: int = _INT64_MAX) -> int:
    """Return `value` if it is an integer within the bounds, 0 for null; not 1.0, as in Go. Raises `JSONError`."""
    if value is None or (isinstance(value, _NegativeZero) and minimum < 0):
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise _wrong_type(value, where, "int" if minimum < 0 else "uint")
    return value


def pick(members: t.Mapping[str, t.Any], names: t.Sequence[str]) -> Struct:
    """Return those of `members` that are not empty (Go: omitempty), in the order of `names`."""
    return Struct((name, members[name]) for name in names if members.get(name))


def kind(value: t.Any) -> str:
    """Return what Go's error messages call a decoded value: null, bool, number, string, array or object."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


_GO_TYPES = {
    "null": "<nil>",
    "bool": "bool",
    "number": "float64",
    "string": "string",
    "array": "[]interface {}",
    "object": "map[string]interface {}",
}


def type_name(value: t.Any) -> str:
    """Return Go's `%T` of a value that was decoded into an interface{}."""
    return _GO_TYPES[kind(value)]


def _wrong_type(value: t.Any, where: str, wanted: str) -> JSONError:
    target = f"field {where}" if where else "the top-level value"
    if kind(value) == "number":
        return JSONError(f"json: cannot unmarshal number {value!r} into {target} of type {wanted}")
    return JSONError(f"json: cannot unmarshal {kind(value)} into {target} of type {wanted}")


# ---- writing

_CONSTANTS = {None: "null", True: "true", False: "false"}
_encode_string = json.JSONEncoder(ensure_ascii=False).encode


def dumps(obj: t.Any, indent: int | None = None) -> bytes:
    """Return `obj` as UTF-8 JSON, without a newline at the end; `indent`: blanks a level, as Go's MarshalIndent.

    Takes None, bool, int, float, str, list, tuple and dict with str keys. Raises `JSONError` for anything else, for
    NaN, and for numbers beyond float64.
    """
    parts: list[str] = []
    try:
        _write(obj, parts.append, None if indent is None else " " * indent, "\n")
    except RecursionError as exc:
        raise JSONError(_TOO_DEEP.format(_DEEPEST)) from exc
    text = "".join(parts)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return re.sub(_SURROGATE, "\ufffd", text).encode("utf-8")


def _write(obj: t.Any, put: t.Callable[[str], None], indent: str | None, newline: str) -> None:
    if obj is None or isinstance(obj, bool):
        put(_CONSTANTS[obj])
    elif isinstance(obj, str):
        put(_string(obj))
    elif isinstance(obj, int):
        put(_integer(obj))
    elif isinstance(obj, float):
        put(_float(obj))
    elif isinstance(obj, dict):
        colon = ":" if indent is None else ": "
        _write_all([(_string(key) + colon, obj[key]) for key in _keys(obj)], "{}", put, indent, newline)
    elif isinstance(obj, (list, tuple)):
        _write_all([("", item) for item in obj], "[]", put, indent, newline)
    else:
        raise JSONError(f"json: unsupported type: {type(obj).__name__}")


def _keys(obj: dict[str, t.Any]) -> list[str]:
    for key in obj:
        if not isinstance(key, str):
            raise JSONError(f"json: unsupported type: a key that is {type(key).__name__}")
    return list(obj) if isinstance(obj, Struct) else sorted(obj)


def _write_all(
    members: list[tuple[str, t.Any]], brackets: str, put: t.Callable[[str], None], indent: str | None, newline: str
) -> None:
    if not members:
        put(brackets)
        return
    inner = "" if indent is None else newline + indent
    put(brackets[0])
    for index, (prefix, value) in enumerate(members):
        put(("," if index else "") + inner + prefix)
        _write(value, put, indent, inner)
    put(brackets[1] if indent is None else newline + brackets[1])


def _string(text: str) -> str:
    out = _encode_string(text)
    for char, escape in _HTML_ESCAPES:
        out = out.replace(char, escape)
    return out


def _integer(value: int) -> str:
    if value.bit_length() > 1024:
        raise JSONError(f"json: unsupported value: an integer of {value.bit_length()} bits")
    return str(int(value))


def _float(value: float) -> str:
    """Return the shortest text that reads back as `value`: fixed from 1e-6 to below 1e21, else with an exponent."""
    text = repr(float(value))
    if text in ("nan", "inf", "-inf"):
        raise JSONError(f"json: unsupported value: {text}")
    sign = "-" if text.startswith("-") else ""
    mantissa, _e, exponent = text.lstrip("-").partition("e")
    whole, _dot, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or "0")
    digits = whole + fraction
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    if not digits:
        return sign + "0"
    # The value is 0.digits * 10**point.
    if -6 < point <= 21:
        if point <= 0:
            return sign + "0." + "0" * -point + digits
        if point >= len(digits):
            return sign + digits + "0" * (point - len(digits))
        return sign + digits[:point] + "." + digits[point:]
    head = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{head}e{point - 1:+d}"
