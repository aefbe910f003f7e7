# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schemas that are shipped with the collection, and validation by them through jsonschema."""

from __future__ import annotations

import difflib
import functools
import json
import os
from typing import Any, Iterator, Optional

from ansible_collections.podwire.cni.plugins.module_utils._host.problems import ERROR, INFO, WARNING
from ansible_collections.podwire.cni.plugins.module_utils._host.secrets import MASK, is_secret

from .formats import FORMATS
from .source import Finding
from .syntax import shown

# Imported with the action plugin, in Ansible's main process: workers are forked from it and do not import it again.
MISSING: Optional[ImportError] = None
try:
    import jsonschema
except ImportError as _error:
    MISSING = _error

_FOLDER = os.path.join(os.path.dirname(__file__), "schemas")
_KINDS = {
    "boolean": "true or false, without quotes",
    "integer": "a whole number, without quotes",
    "string": "a string, in quotes",
    "array": "a list",
    "object": "an object",
}


@functools.lru_cache(maxsize=None)
def names(kind: str) -> frozenset[str]:
    """Return the plugin types that have a schema; *kind* is ``plugins`` or ``ipam``."""
    return frozenset(name[: -len(".json")] for name in os.listdir(os.path.join(_FOLDER, kind)))


@functools.lru_cache(maxsize=None)
def load(kind: str, name: str) -> dict[str, Any]:
    """Return a schema: of the list (``("", "list")``), of what all plugins share (``("", "plugin")``), of a plugin or
    IPAM plugin. A plugin's has the shared keys, too."""
    with open(os.path.join(_FOLDER, kind, name + ".json"), encoding="utf-8") as stream:
        schema: dict[str, Any] = json.load(stream)
    if kind == "plugins":
        common = load("", "plugin")
        schema = {
            **schema,
            "required": common["required"] + schema.get("required", []),
            "properties": {**common["properties"], **schema["properties"]},
            "$defs": {**common["$defs"], **schema.get("$defs", {})},
        }
    return schema


@functools.lru_cache(maxsize=None)
def _validator(kind: str, name: str) -> Any:
    checker = jsonschema.FormatChecker(formats=())
    for word, function in FORMATS.items():
        checker.checks(word, raises=ValueError)(_check(function))
    return jsonschema.Draft202012Validator(load(kind, name), format_checker=checker)


def _check(function: Any) -> Any:
    def check(value: Any) -> bool:
        # A value of another type is the keyword `type`'s affair.
        if isinstance(value, str):
            function(value)
        return True

    return check


class Folded:
    """A value as Go's decoder sees it: keys in the schema's spelling, members that are null left out.

    ``findings`` has what was noticed on the way: keys in another case, and keys that the schema does not know.
    """

    def __init__(self, value: Any, schema: dict[str, Any], owner: str, at: tuple[Any, ...]) -> None:
        self.findings: list[Finding] = []
        self._owner = owner
        self._at = at
        self._root = schema
        self._written: dict[tuple[Any, ...], str] = {}
        self.value = self._fold(value, schema, ())

    def pointer(self, path: Any) -> tuple[Any, ...]:
        """Return where *path* of the folded value stands in the original."""
        out = list(self._at)
        for index, part in enumerate(path):
            out.append(self._written.get((*path[:index], part), part))
        return tuple(out)

    def _fold(self, value: Any, schema: dict[str, Any], path: tuple[Any, ...]) -> Any:
        if "$ref" in schema:
            schema = self._root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
        if isinstance(value, dict):
            return self._fold_object(value, schema, path)
        if isinstance(value, list):
            items = schema.get("items", {})
            return [self._fold(element, items, (*path, index)) for index, element in enumerate(value)]
        return value

    def _fold_object(self, value: dict[str, Any], schema: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
        known = schema.get("properties", {})
        by_case = {key.lower(): key for key in known}
        rest = schema.get("additionalProperties")
        out = {}
        for written, member in value.items():
            key = written if written in known else by_case.get(written.lower(), written)
            if key != written:
                self._written[(*path, key)] = written
            if key in known and key != written:
                text = "%s takes %r for %r, since Go does not mind the case; write %r" % (
                    self._owner,
                    written,
                    key,
                    key,
                )
                self.findings.append(Finding(INFO, "key_case", text, self.pointer((*path, key)), key=True))
            if key not in known and rest is None and "properties" in schema:
                self._note_unknown(written, list(known), (*path, key))
            if member is not None:
                inner = known.get(key, rest if isinstance(rest, dict) else {})
                out[key] = self._fold(member, inner, (*path, key))
        return out

    def _note_unknown(self, key: str, known: list[str], path: tuple[Any, ...]) -> None:
        # By custom such keys are comments, and those with a slash or dot belong to somebody else.
        if key.startswith(("_", "#", "$")) or "/" in key or "." in key:
            return
        near = difflib.get_close_matches(key, known, 1, 0.6)
        advice = "did you mean %r?" % near[0] if near else "remove it, or look up its name"
        text = "%s has no key %r and ignores it; %s" % (self._owner, key, advice)
        self.findings.append(Finding(WARNING, "unknown_key", text, self.pointer(path), key=True))


def validate(kind: str, name: str, value: Any, owner: str, at: tuple[Any, ...]) -> tuple[Any, list[Finding]]:
    """Return the folded *value* and the findings on it. *owner* is the subject of the messages, *at* its pointer."""
    folded = Folded(value, load(kind, name), owner, at)
    findings = list(folded.findings)
    for error in _validator(kind, name).iter_errors(folded.value):
        findings.append(_finding(error, folded, owner))
    return folded.value, findings


def _finding(error: Any, folded: Folded, owner: str) -> Finding:
    path = tuple(error.absolute_path)
    level = error.schema.get("x-level", ERROR)
    text = "%s: %s" % (owner, "; ".join(_clauses(error, path)))
    return Finding(level, "schema", text, folded.pointer(path))


def _clauses(error: Any, path: tuple[Any, ...]) -> Iterator[str]:
    """Yield what is wrong, the rule, and what to write instead."""
    schema = error.schema
    keyword, rule, value = error.validator, error.validator_value, error.instance
    subject = _subject(path)
    if keyword == "required":
        # One error for each missing key, which is named in the message only.
        for missing in [key for key in rule if error.message.startswith(repr(key))]:
            yield "%s is missing" % _member(subject, missing)
            yield from _example(schema.get("properties", {}).get(missing, {}), missing)
        return
    if "x-message" in schema:
        yield "%s: %s" % (subject, schema["x-message"]) if path else schema["x-message"]
        return
    given = MASK if path and is_secret(str(path[-1]), value) else shown(value)
    if keyword == "type":
        kinds = [rule] if isinstance(rule, str) else rule
        yield "%s is %s" % (subject, given)
        yield "it must be %s" % " or ".join(_KINDS[kind] for kind in kinds)
    elif keyword == "format":
        yield "%s is %s, which %s" % (subject, given, error.cause)
        if "write" in str(error.cause):
            return
    elif keyword in ("enum", "const"):
        allowed = [item for item in (rule if keyword == "enum" else [rule]) if item != ""]
        yield "%s is %s" % (subject, given)
        yield "it must be one of %s" % ", ".join(json.dumps(item) for item in allowed)
        near = difflib.get_close_matches(str(value), [str(item) for item in allowed], 1, 0.5)
        if near:
            yield "did you mean %s?" % near[0]
        return
    elif keyword in ("minimum", "maximum"):
        yield "%s is %s" % (subject, given)
        yield "the %s is %d" % (keyword, rule)
    else:
        yield "%s is %s" % (subject, given)
        yield _plain_rule(keyword, rule)
    yield from _example(schema, "")


def _plain_rule(keyword: str, rule: Any) -> str:
    rules = {
        "dependentRequired": "the keys %s go together",
        "minItems": "it must have at least %s entries",
        "minLength": "it must have at least %s characters",
        "maxLength": "it may have %s characters at most",
    }
    return rules[keyword] % (rule,)


def _example(schema: dict[str, Any], key: str) -> Iterator[str]:
    for example in schema.get("examples", [])[:1]:
        text = json.dumps(example)
        yield "write, for example, %s" % ('"%s": %s' % (key, text) if key else text)


def _subject(path: tuple[Any, ...]) -> str:
    out = ""
    for part in path:
        out = "%s[%d]" % (out, part) if isinstance(part, int) else _member(out, part)
    return out or "the configuration"


def _member(owner: str, key: str) -> str:
    return key if owner in ("", "the configuration") else "%s.%s" % (owner, key)
