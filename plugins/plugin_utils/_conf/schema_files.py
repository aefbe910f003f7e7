# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The schema files of the collection, read once: with references resolved, and with an index of the keys.

The files are plain JSON Schema, so that editors and other validators can use them. What JSON Schema cannot express is
in additional keywords, which other validators ignore:

x-level         how bad a violation is, if not an error
x-exact         the case of keys matters, because Go reads this object into a map
x-partial       the plugin completes the object before it passes it on, so no key is required
x-words         words that the plugin replaces before it passes the object on, and what they stand for
x-without-type  the schema, named by its type, to use if no type is set
x-since         the release of the containernetworking plugins that a key, or one of its values, came with
x-min-version   the first version of the CNI specification that the plugin supports
x-read          when the sources of another's plugin were read, at the commit in the $comment
x-outer         the schema whose keys an IPAM plugin reads from the configuration around it
"""

from __future__ import annotations

import functools
import os
import posixpath
import re
from datetime import date
from typing import Any, Iterator, Optional

from ...module_utils._host.json_text import parse_json

Schema = dict[str, Any]

# Not schemas.py beside it: Ansible would import the folder.
FOLDER = os.path.join(os.path.dirname(__file__), "schemas")
# Files that choose a schema by the configured type. They refer to each other in circles, and Python code makes the
# choice, so a reference to one of them stays a reference.
_CHOOSERS = {"plugin.json": "plugin", "ipam.json": "ipam", "network.json": "network"}


@functools.lru_cache(maxsize=None)
def document(path: str) -> Schema:
    """Return a schema file as it is; *path* is relative to ``FOLDER``."""
    with open(os.path.join(FOLDER, path), encoding="utf-8") as stream:
        data: Schema = parse_json(stream.read())
    return data


@functools.lru_cache(maxsize=None)
def types(kind: str) -> dict[str, str]:
    """Return the path of the schema file of every known type; *kind* is ``plugin`` or ``ipam``."""
    paths = {}
    for branch in document(kind + ".json")["allOf"]:
        rule = branch["if"]["properties"]["type"]
        if "$ref" in branch.get("then", {}):
            paths.update(dict.fromkeys(rule.get("enum", [rule.get("const")]), branch["then"]["$ref"]))
    return paths


@functools.lru_cache(maxsize=None)
def resolved(reference: str) -> Schema:
    """Return the schema at ``PATH`` or ``PATH#/POINTER`` with everything in it that it refers to."""
    path, _hash, pointer = reference.partition("#")
    schema: Any = document(path)
    for part in pointer.split("/")[1:]:
        schema = schema[part]
    return _resolve({key: value for key, value in schema.items() if key != "$defs"}, path)


def _resolve(schema: Any, path: str) -> Any:
    if isinstance(schema, list):
        return [_resolve(element, path) for element in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: _resolve(value, path) for key, value in schema.items() if key != "$ref"}
    if "$ref" not in schema:
        return out
    file, _hash, pointer = schema["$ref"].partition("#")
    file = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
    if file in _CHOOSERS and not pointer:
        return {"type": "object", **out, "x-choose": _CHOOSERS[file]}
    return {**resolved(f"{file}#{pointer}"), **out}


class Shape:
    """What is known about the keys of an object, or of the objects in a list: the merged parts of a schema.

    ``properties`` are the shapes of known keys, ``patterns`` those of keys that are not checked, ``rest`` the shape of
    the values of a map, ``items`` that of elements. ``closed``: the plugin certainly has no other keys. ``extra`` is
    the part of the schema that names the kind of plugin that is configured here, empty for none. ``read``: when its
    sources were read, None for the reference plugins.
    """

    def __init__(self, *schemas: Any) -> None:
        parts = [part for schema in schemas for part in _parts(schema)]
        members: dict[str, list[Schema]] = {}
        for part in parts:
            for key, schema in part.get("properties", {}).items():
                members.setdefault(key, []).append(schema)
        self.properties = {key: Shape(*member_schemas) for key, member_schemas in members.items()}
        self.by_case = {key.lower(): key for key in self.properties}
        self.patterns = [re.compile(text) for part in parts for text in part.get("patternProperties", {})]
        rest = [part["additionalProperties"] for part in parts if "additionalProperties" in part]
        self.rest: Optional[Shape] = Shape(*rest) if rest else None
        self.items = [Shape(part["items"]) for part in parts if "items" in part]
        self.closed = any(part.get("unevaluatedProperties") is False for part in parts)
        self.exact = any(part.get("x-exact") for part in parts)
        self.since: Any = next((part["x-since"] for part in parts if "x-since" in part), None)
        self.deprecated = next((part.get("description", "") for part in parts if part.get("deprecated")), "")
        self.extra: Schema = next((part for part in parts if "x-choose" in part), {})
        self.read = next((date.fromisoformat(part["x-read"]) for part in parts if "x-read" in part), None)


def _parts(schema: Any) -> Iterator[Schema]:
    if isinstance(schema, dict):
        yield schema
        for part in schema.get("allOf", []):
            yield from _parts(part)


@functools.lru_cache(maxsize=None)
def shape(reference: str) -> Shape:
    """Return the shape of what the schema at *reference* describes."""
    return Shape(resolved(reference))
