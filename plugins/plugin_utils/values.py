# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The value of a variable that may have been given as text, as AWX's surveys and ``-e NAME=VALUE`` do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml
from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils._host.json_text import parse_json
from ..module_utils._host.secrets import one_line

UNSET: Any = object()
"""What :func:`read_value` returns for a value that means "not set"."""

_BLOCK = re.compile(r"^\s*-(\s|$)", re.MULTILINE)


class BadValue(ValueError):
    """A value that its variable cannot have. The text says which, why, and what to write."""


class _Loader(yaml.SafeLoader):
    """Reads YAML without dates, which are not JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, expression) for tag, expression in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


_SCALARS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "bool": (boolean, "not a boolean; write true or false"),
    "int": (int, "not an integer; write digits only, such as 60"),
    "float": (float, "not a number; write digits only, such as 60"),
}


def read_value(name: str, given: Any, spec: Mapping[str, Any]) -> Any:
    """Return the value of the variable *name* in the type of its argument specification, or UNSET.

    Text is converted: an empty text is UNSET; a list is lines, words with commas, JSON or YAML; a structure is JSON or
    YAML. A value that is no text is left to the module that gets it. Raises BadValue.
    """
    if isinstance(given, str):
        given = given.strip()
    kind = spec.get("type", "str")
    # Empty, and no value of its own type: what is left of a variable that was emptied.
    if given is None or given == "" or (given == [] and kind != "list") or (given == {} and kind != "dict"):
        return UNSET
    value = given
    if kind == "list":
        value = _list(name, given, spec)
    elif kind == "dict" and not isinstance(given, dict):
        if not isinstance(given, str):
            raise BadValue(f"{name}: {_short(str(given))} is not a mapping; write a mapping, as JSON or YAML")
        value = _structure(name, given, dict)
    elif kind == "bool" or (kind in _SCALARS and isinstance(given, str)):
        convert, needed = _SCALARS[kind]
        try:
            value = convert(given)
        except (TypeError, ValueError):
            raise BadValue(f"{name}: {_short(str(given))} is {needed}") from None
    choices, pattern = spec.get("choices"), spec.get("pattern")
    for entry in value if isinstance(value, list) else [value]:
        if choices and isinstance(entry, str) and entry not in choices:
            raise BadValue(
                f"{name}: {_short(entry)} is not one of its values, which are {', '.join(map(str, choices))}"
            )
        if pattern and value is not UNSET and not re.fullmatch(pattern, str(entry)):
            raise BadValue(
                f"{name}: {_short(str(entry))} is not a number of hosts; write numbers or percentages: 1,10%,25%"
            )
    return value


def _list(name: str, given: Any, spec: Mapping[str, Any]) -> Any:
    entries = given
    if isinstance(given, str):
        if spec.get("elements") == "dict" or given.startswith("[") or _BLOCK.match(given):
            entries = _structure(name, given, list)
        else:
            entries = re.split(r"[\n,]", given)
    elif isinstance(given, (int, float)) and not isinstance(given, bool):
        entries = [given]
    if not isinstance(entries, (list, tuple)):
        raise BadValue(f"{name}: {_short(str(given))} is not a list; write a list, or words with commas")
    entries = [entry.strip() if isinstance(entry, str) else entry for entry in entries]
    filled = [entry for entry in entries if entry != ""]
    # A list with nothing but an empty text is what became of an empty text.
    return UNSET if entries and not filled else filled


def _structure(name: str, given: str, kind: type) -> Any:
    word, shape = ("list", "[...]") if kind is list else ("mapping", "{...}")
    try:
        # JSON's own parser, because YAML's does not know every JSON.
        value = parse_json(given)
    except ValueError:
        try:
            value = yaml.load(given, Loader=_Loader)  # It is a SafeLoader.
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
            why = one_line(f"{place}{getattr(error, 'problem', None) or error}")
            raise BadValue(f"{name}: the text is neither JSON nor YAML: {why}") from None
    except RecursionError:
        raise BadValue(f"{name}: the text is nested too deeply") from None
    if not isinstance(value, kind):
        raise BadValue(f"{name}: the text is not a {word}; write JSON, such as {shape}, or YAML, found {_short(given)}")
    return value


def _short(given: str) -> str:
    shown = one_line(given)
    return repr(shown if len(shown) <= 60 else f"{shown[:59]}\u2026")
