# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""CNI_ARGS as an object (Go: pkg/types/args.go)."""

from __future__ import annotations

from .errors import CNIError, JSONError, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    _Args = t.TypeVar("_Args", bound="CommonArgs")

_BOOLEANS = {"1": True, "true": True, "0": False, "false": False}


class CommonArgs:
    """The arguments that every plugin knows; a plugin's own class adds those that it takes, each with its default.

        class PodArgs(CommonArgs):
            K8S_POD_NAME = ""
            HAIRPIN = False
            IP = IPAddress("")

    The type of the default makes a value of the text: bool, str, or any class that takes a text and raises ValueError.
    """

    IgnoreUnknown = False


class IPAddress(str):
    """An address without a prefix length, in canonical form; "" for none."""

    __slots__ = ()

    def __new__(cls, text: str = "") -> IPAddress:
        """Raises ValueError unless `text` is an address or empty."""
        from .fields import decode_ip

        try:
            return super().__new__(cls, decode_ip(text, ""))
        except JSONError as exc:
            raise ValueError(exc.msg) from exc


def load_args(text: str, into: type[_Args]) -> _Args:
    """Return `text`, the value of CNI_ARGS, as an object of the class `into` (Go: types.LoadArgs).

    Raises `CNIError` for a text that is no list of pairs, for a value that its field does not take, and for an unknown
    key unless IgnoreUnknown is true in the text. Of equal keys the last one counts.
    """
    out = into()
    if not text:
        return out
    fields = _fields(into)
    unknown = []
    for pair in text.split(";"):
        parts = pair.split("=")
        if len(parts) != 2:
            raise CNIError(f"ARGS: invalid pair {quote(pair)}")
        key, value = parts
        if any(base.__name__ == key for base in into.__mro__[1:-1]):
            # Go embeds the class as a field of that name.
            raise CNIError(f"ARGS: cannot unmarshal into field '{key}': it holds other fields")
        if key not in fields:
            unknown.append(pair)
            continue
        try:
            setattr(out, key, _value(fields[key], value))
        except ValueError as exc:
            raise CNIError(f"ARGS: error parsing value of pair {quote(pair)}: {exc}") from exc
    if unknown and not out.IgnoreUnknown:
        raise CNIError(f"ARGS: unknown args [{' '.join(map(quote, unknown))}]")
    return out


def _fields(cls: type) -> dict[str, t.Any]:
    """Return field -> default."""
    return {
        name: default
        for base in reversed(cls.__mro__[:-1])
        for name, default in vars(base).items()
        if not name.startswith("_") and not callable(default) and not isinstance(default, (property, classmethod))
    }


def _value(default: t.Any, text: str) -> t.Any:
    if not isinstance(default, bool):
        return type(default)(text)
    if text.lower() not in _BOOLEANS:
        raise ValueError(f"boolean unmarshal error: invalid input {text}")
    return _BOOLEANS[text.lower()]
