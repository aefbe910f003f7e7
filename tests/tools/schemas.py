# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The schemas for editors and other validators: each in one file, with everything in it that it refers to.

The files of the collection refer to each other by relative paths. One file with an address of its own works in an
editor by this address, and in every validator from a local copy, without a network.
"""

from __future__ import annotations

import json
import posixpath
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "plugins" / "plugin_utils" / "_conf" / "schemas"
ADDRESS = "https://raw.githubusercontent.com/podwire/podwire.cni/main/docs/schemas/"
NAD = "network-attachment-definition.json"

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"


class Bundle:
    """A schema file with the others that it needs in its ``$defs``, each under its path with dots."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._needed: dict[str, Any] = {}
        document = self._read(path)
        head = {"$schema": document.pop("$schema"), "$id": ADDRESS + path}
        # Whether files have to be kept together is no question here.
        document.pop("$comment", None)
        self.document = {**head, **document, "$defs": dict(sorted(self._needed.items()))}

    def _read(self, path: str) -> Any:
        document = json.loads((SOURCE / path).read_text(encoding="utf-8"))
        return self._rewritten(document, path)

    def _rewritten(self, schema: Any, path: str) -> Any:
        if isinstance(schema, list):
            return [self._rewritten(element, path) for element in schema]
        if not isinstance(schema, dict):
            return schema
        out = {key: self._rewritten(value, path) for key, value in schema.items()}
        if isinstance(schema.get("$ref"), str):
            out["$ref"] = self._reference(schema["$ref"], path)
        return out

    def _reference(self, reference: str, path: str) -> str:
        file, _hash, pointer = reference.partition("#")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
        name = file.removesuffix(".json").replace("/", ".")
        if name not in self._needed:
            # Files refer to each other in circles.
            self._needed[name] = None
            document = self._read(file)
            document.pop("$schema", None)
            self._needed[name] = document
        return f"#/$defs/{name}{pointer}"


def manifest() -> dict[str, Any]:
    """Return the schema of a NetworkAttachmentDefinition. JSON Schema cannot look into ``config``, a string."""
    name = {"type": "string", "maxLength": 253, "pattern": rf"^{_LABEL}(\.{_LABEL})*$"}
    config = {
        "type": "string",
        "description": "The network, as JSON in a string: write config: | and the JSON below it.",
        "contentMediaType": "application/json",
        "contentSchema": {"$ref": ADDRESS + "conflist.json"},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ADDRESS + NAD,
        "title": "NetworkAttachmentDefinition",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata"],
        "properties": {
            "apiVersion": {"const": "k8s.cni.cncf.io/v1"},
            "kind": {"const": "NetworkAttachmentDefinition"},
            "metadata": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {**name, "description": "The name that pods request."},
                    "namespace": {"type": "string", "maxLength": 63, "pattern": f"^{_LABEL}$"},
                },
            },
            "spec": {
                "type": "object",
                "properties": {"config": config},
                "additionalProperties": False,
                "description": "Multus reads config only. Without it, Multus looks for the network in its confDir.",
            },
        },
    }


def published() -> dict[str, str]:
    """Return the content of each file in docs/schemas."""
    documents = {path: Bundle(path).document for path in ("conflist.json", "conf.json")}
    documents[NAD] = manifest()
    return {name: json.dumps(document, indent=2, ensure_ascii=False) + "\n" for name, document in documents.items()}
