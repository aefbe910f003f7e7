# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Messages for errors of jsonschema: what is wrong, the rule, and what to write instead."""

from __future__ import annotations

import json
import re
from typing import Any, Iterator, Optional

from ...module_utils._host.secrets import MASK, is_secret, mask
from .spelling import meant
from .syntax import shown

_KINDS = {
    "boolean": "true or false, without quotes",
    "integer": "a whole number, without quotes",
    "string": "a string, in quotes",
    "array": "a list",
    "object": "an object",
}
_FLAGS = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}
_RULES = {
    "minItems": ("it must have at least", " entries"),
    "maxItems": ("it may have", " entries at most"),
    "minLength": ("it must have at least", " characters"),
    "maxLength": ("it may have", " characters at most"),
    "minimum": ("the minimum is", ""),
    "maximum": ("the maximum is", ""),
    "exclusiveMinimum": ("it must be more than", ""),
    "pattern": ("it must match", ""),
}


def message_of(error: Any, owner: str) -> str:
    """Return the message for a ``jsonschema.ValidationError`` in the configuration of *owner*."""
    return f"{owner}: {'; '.join(_clauses(error, tuple(error.absolute_path)))}"


def _clauses(error: Any, path: tuple[Any, ...]) -> Iterator[str]:
    schema, keyword, rule, value = error.schema, error.validator, error.validator_value, error.instance
    subject = _subject(path)
    if "propertyNames" in error.absolute_schema_path:
        subject = f"a key of {subject}"
    if "errorMessage" in schema:
        yield f"{subject}: {schema['errorMessage']}" if path else schema["errorMessage"]
        return
    if keyword == "pattern" and "patternErrorMessage" in schema:
        yield f"{subject} is {_given(path, value)}"
        yield schema["patternErrorMessage"]
        return
    if keyword == "required":
        # jsonschema reports one error for each missing key, and names the key only in the message.
        for missing in [key for key in rule if error.message.startswith(repr(key))]:
            yield f"{_member(subject, missing)} is missing"
            yield from _example(schema.get("properties", {}).get(missing, {}), missing)
        return
    given = _given(path, value)
    if keyword == "format":
        yield f"{subject} is {given}, which {error.cause}"
        if "write" not in str(error.cause):
            yield from _example(schema)
        return
    yield f"{subject} is {given}"
    if keyword == "type":
        if "enum" in schema:
            yield from _choice(schema["enum"], value)
            return
        kinds = [kind for kind in ([rule] if isinstance(rule, str) else rule) if kind != "null"]
        yield f"it must be {' or '.join(_KINDS[kind] for kind in kinds)}"
        form = schema.get("pattern", "^$" if "format" in schema else "")
        fits = re.search(form, json.dumps(value)) and "/" not in str(schema.get("examples"))
        if given != MASK and (meant := _meant(kinds, value, bool(fits))) is not None:
            yield f"write {meant}"
            return
    elif keyword in ("enum", "const"):
        yield from _choice(rule if keyword == "enum" else [rule], value)
        return
    elif keyword == "dependentRequired":
        missing_keys = {key for keys in rule.values() for key in keys} - set(value)
        yield f"it also needs {', '.join(sorted(missing_keys))}"
    elif keyword in ("minItems", "minLength") and rule == 1:
        yield "it must not be empty"
    else:
        before, after = _RULES.get(keyword, ("it breaks the rule", ""))
        yield f"{before} {rule if keyword in _RULES else repr(keyword)}{after}"
    yield from _example(schema)


def _given(path: tuple[Any, ...], value: Any) -> str:
    if any(isinstance(part, str) and is_secret(part, value) for part in path):
        return MASK
    return shown(mask(value))


def _choice(values: list[Any], value: Any) -> Iterator[str]:
    allowed = [item for item in values if item != ""]
    yield f"it must be one of {', '.join(json.dumps(item) for item in allowed)}"
    if isinstance(value, str):
        near = meant(value, map(str, allowed))
        if near:
            yield f"did you mean {near}?"


def _meant(kinds: list[str], value: Any, fits: bool) -> Optional[str]:
    """Return the JSON text that a value of the wrong type probably means, None if unknown; *fits*: as a string."""
    if isinstance(value, str):
        if "integer" in kinds and re.fullmatch(r"-?[0-9]{1,20}", value):
            return str(int(value))
        if "boolean" in kinds and value.lower() in _FLAGS:
            return _FLAGS[value.lower()]
    elif "boolean" in kinds and value in (0, 1) and not isinstance(value, bool):
        return "true" if value else "false"
    elif "string" in kinds and isinstance(value, (bool, int)) and fits:
        return f'"{json.dumps(value)}"'
    return None


def _example(schema: dict[str, Any], key: str = "") -> Iterator[str]:
    for example in schema.get("examples", [])[:1]:
        text = json.dumps(example)
        example = f'"{key}": {text}' if key else text
        yield f"write, for example, {example}"


def _subject(path: tuple[Any, ...]) -> str:
    out = ""
    for part in path:
        out = f"{out}[{part}]" if isinstance(part, int) else _member(out, part)
    return out or "the configuration"


def _member(owner: str, key: str) -> str:
    return key if owner in ("", "the configuration") else f"{owner}.{key}"
