# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""JSON in this collection's layout: two spaces, keys in the user's order, numbers as the user wrote them."""

from __future__ import annotations

import json
from typing import Any

from ...module_utils._host.json_text import parse_json


class Number(str):
    """A number as it was typed, such as ``1500.0``."""

    __slots__ = ()


def parse(text: str) -> Any:
    """Return *text*, which must be valid JSON, with every number as a :class:`Number`."""
    return parse_json(text, parse_int=Number, parse_float=Number)


def render(value: Any) -> str:
    """Return *value* as JSON text with a newline at the end.

    *value* consists of the types of JSON and of :class:`Number`; keys must be strings.
    """
    return _render(value, "\n") + "\n"


def _render(value: Any, newline: str) -> str:
    inner = newline + "  "
    if isinstance(value, dict) and value:
        members = [f"{_scalar(key)}: {_render(member, inner)}" for key, member in value.items()]
        return "{" + inner + ("," + inner).join(members) + newline + "}"
    if isinstance(value, list) and value:
        elements = [_render(element, inner) for element in value]
        return "[" + inner + ("," + inner).join(elements) + newline + "]"
    return str(value) if isinstance(value, Number) else _scalar(value)


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
