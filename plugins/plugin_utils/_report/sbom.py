# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugins of a fleet and the Go modules in them, as a software bill of materials of CycloneDX 1.5 in JSON.

What hosts say is untrusted: only values of the expected form get in, and the numbers of entries are bounded.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from typing import Any, Mapping, Optional
from urllib.parse import quote

from ...module_utils._host.secrets import visible
from .values import rows, table, text, texts

MOST_BINARIES = 5_000
"""The most different binaries of a fleet."""
MOST_LIBRARIES = 20_000
MOST_HOSTS = 1_000
"""The most hosts that a binary names."""
_MOST_MODULES = 1_000
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PATH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9._~-]+)*")
_VERSION = re.compile(r"v[0-9][0-9A-Za-z.+-]{0,100}")
_GO = re.compile(r"go([0-9]+\.[0-9]+(\.[0-9]+|[a-z]+[0-9]+)?)\b")
_LONGEST = 300


def sbom(report: Mapping[str, Any]) -> str:
    """Return the bill of a report. The same plugins make the same bill."""
    bill = _Bill()
    for host in report["hosts"]:
        for row in rows(table(host["info"]).get("plugins")):
            bill.add(str(host["host"]), row)
    content = bill.content()
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8")).hexdigest()
    metadata: dict[str, Any] = {
        "tools": {"components": [{"type": "application", "name": "podwire.cni"}]},
        "component": {"type": "application", "bom-ref": "fleet", "name": "CNI plugins"},
    }
    if report["time"]:
        metadata["timestamp"] = report["time"]
    head = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "version": 1,
        "metadata": metadata,
    }
    return json.dumps({**head, **content}, indent=1) + "\n"


class _Bill:
    def __init__(self) -> None:
        self._binaries: dict[str, dict[str, Any]] = {}
        self._libraries: dict[str, dict[str, str]] = {}
        self._needs: dict[str, list[str]] = {}
        self._left_out = 0

    def add(self, host: str, row: Mapping[str, Any]) -> None:
        digest = text(row.get("sha256"))
        if not text(row.get("kind")) or not _SHA256.fullmatch(digest):
            return
        found = self._binaries.get(digest)
        if found is None:
            if len(self._binaries) >= MOST_BINARIES:
                self._left_out += 1
                return
            found = self._binaries[digest] = self._binary(digest, row)
        place = (_shown(host), _shown(text(row.get("path"))))
        if len(found["places"]) < MOST_HOSTS:
            found["places"].setdefault(place)
        else:
            self._left_out += place not in found["places"]

    def _binary(self, digest: str, row: Mapping[str, Any]) -> dict[str, Any]:
        built = table(row.get("go"))
        entry: dict[str, Any] = {
            "type": "application",
            "bom-ref": f"sha256:{digest}",
            "name": _shown(text(row.get("name"))) or "unknown",
            "hashes": [{"alg": "SHA-256", "content": digest}],
        }
        main = _module(text(built.get("module")))
        if main:
            entry["version"] = main[1]
            entry["purl"] = _purl(*main, _below(main[0], text(built.get("path"))))
        libraries = [_module(one) for one in texts(built.get("modules"))[:_MOST_MODULES]]
        go = _GO.match(text(built.get("version")))
        # The name by which databases of vulnerabilities know Go's own packages.
        libraries.append(("stdlib", go.group(1)) if go else None)
        self._needs[entry["bom-ref"]] = sorted({ref for one in libraries if one and (ref := self._library(*one))})
        return {"entry": entry, "places": {}}

    def _library(self, path: str, version: str) -> str:
        """Return the reference of a library, "" if there are too many."""
        purl = _purl(path, version)
        if purl not in self._libraries:
            if len(self._libraries) >= MOST_LIBRARIES:
                self._left_out += 1
                return ""
            self._libraries[purl] = {
                "type": "library",
                "bom-ref": purl,
                "name": path,
                "version": version,
                "purl": purl,
            }
        return purl

    def content(self) -> dict[str, Any]:
        components = []
        for _digest, found in sorted(self._binaries.items(), key=lambda one: (one[1]["entry"]["name"], one[0])):
            places = [{"name": "podwire.cni:file", "value": f"{host}:{path}"} for host, path in sorted(found["places"])]
            components.append({**found["entry"], "properties": places})
        refs = [component["bom-ref"] for component in components]
        content: dict[str, Any] = {
            "components": [*components, *(library for _purl, library in sorted(self._libraries.items()))],
            "dependencies": [
                {"ref": "fleet", "dependsOn": refs},
                *({"ref": ref, "dependsOn": self._needs[ref]} for ref in refs),
            ],
        }
        if self._left_out:
            content["properties"] = [{"name": "podwire.cni:left_out", "value": str(self._left_out)}]
        return content


def _shown(value: str) -> str:
    return visible(value)[:_LONGEST]


def _module(value: str) -> Optional[tuple[str, str]]:
    """Return path and version of ``PATH@VERSION``, or of what replaces it; None if a version is not known."""
    given, _arrow, other = value.partition(" => ")
    for one in (other, given):
        path, _at, version = one.rpartition("@")
        if len(path) <= _LONGEST and _PATH.fullmatch(path) and _VERSION.fullmatch(version):
            return path, version
    return None


def _below(module: str, package: str) -> str:
    """Return the path of *package* below its module, "" for the module itself."""
    inside = package[len(module) + 1 :] if package.startswith(module + "/") else ""
    return inside if len(inside) <= _LONGEST and _PATH.fullmatch(inside) else ""


def _purl(path: str, version: str, inside: str = "") -> str:
    found = f"pkg:golang/{quote(path, safe='/')}@{quote(version, safe='')}"
    return f"{found}#{quote(inside, safe='/')}" if inside else found
