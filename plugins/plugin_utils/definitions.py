# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""NetworkAttachmentDefinitions for the controller: from variables, from files, and from the API of a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import yaml

from ..module_utils._host.errors import HostError
from ..module_utils._host.networks.request import NETWORKS_ARGUMENTS
from ..module_utils._host.problems import error_of, errors_of
from ..module_utils.libcni import gojson
from ..module_utils.libcni.multi.definitions import API_VERSION, KIND, NetworkDefinition
from ._conf.nads import CheckedNads
from ._conf.spelling import unsupported

Manifest = dict[str, Any]

# Manifests of thousands of networks are common, and the loader in Python is ten times slower.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
LEVELS = ("syntax", "schema")
_FILE = b'{"plugins":[{"type":"in-a-file-of-the-host"}],"name":'


class Sources(NamedTuple):
    """How the controller reads: *file* returns path and content of a file, *api* manifests of a cluster.

    *file* raises ValueError. *api* is called with kubeconfig, context and namespace, and raises HostError.
    """

    file: Callable[[str], tuple[str, bytes]]
    api: Callable[[str, str, str], Sequence[Manifest]]


class FileDefinition(NetworkDefinition):
    """A definition without a config: its network is in a file of the host, which the host reads."""

    def configuration(self, conf_dir: str) -> bytes:
        del conf_dir
        return _FILE + json.dumps(self.name).encode() + b"}"


class Definitions:
    """The definitions that the options of *given* name: ``manifests``, ``src``, ``kubeconfig`` with ``context``.

    Everything is read when it is asked for first; of a cluster, the namespaces that are asked for.
    """

    def __init__(self, given: Mapping[str, Any], sources: Sources) -> None:
        self._given = given
        self._sources = sources
        self._found: dict[tuple[str, str], Manifest] = {}
        self._read = False
        self._namespaces: set[str] = set()

    def find(self, namespace: str, name: str) -> Optional[Manifest]:
        """Return a manifest, None if there is none. Raises HostError ``bad_definitions`` or what the API's error is."""
        self._read_all()
        key = (namespace, name)
        if key not in self._found and self._given.get("kubeconfig") and namespace not in self._namespaces:
            self._namespaces.add(namespace)
            self._read_cluster(namespace)
        return self._found.get(key)

    def every(self, namespace: str) -> list[Manifest]:
        """Return all manifests of a namespace, of every one for "". Raises HostError as ``find``."""
        self._read_all()
        if self._given.get("kubeconfig"):
            self._read_cluster(namespace)
        return [manifest for (place, _name), manifest in self._found.items() if namespace in ("", place)]

    def _read_cluster(self, namespace: str) -> None:
        kubeconfig, context = str(self._given["kubeconfig"]), str(self._given.get("context") or "")
        for manifest in self._sources.api(kubeconfig, context, namespace):
            self._add(manifest, f"the cluster of {kubeconfig}")

    def definition(self, namespace: str, name: str) -> NetworkDefinition:
        """Return a manifest that ``find`` has found, and that is valid, as the rules of Multus take it."""
        manifest = self._found[namespace, name]
        config = (manifest.get("spec") or {}).get("config") or ""
        kind = NetworkDefinition if config else FileDefinition
        return kind(namespace, name, str(config))

    def _read_all(self) -> None:
        if self._read:
            return
        self._read = True
        for manifest in _documents(self._given.get("manifests"), "nads.manifests"):
            self._add(manifest, "nads.manifests")
        src = self._given.get("src") or []
        for name in [src] if isinstance(src, str) else src:
            try:
                path, data = self._sources.file(str(name))
                text = data.decode("utf-8")
            except ValueError as error:
                raise HostError(f"nads.src: {error}", code="bad_definitions") from error
            for manifest in _documents(text, path):
                self._add(manifest, path)

    def _add(self, manifest: Any, where: str) -> None:
        if isinstance(manifest, dict) and manifest.get("kind", KIND) != KIND:
            # A file may hold other objects, too.
            return
        metadata = manifest.get("metadata") if isinstance(manifest, dict) and "kind" in manifest else None
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            raise HostError(
                f"{where}: {manifest!r:.60} is not a NetworkAttachmentDefinition; write apiVersion: {API_VERSION}, "
                f"kind: {KIND} and metadata.name",
                code="bad_definitions",
            )
        # The first one counts, so that variables stand before files, and both before a cluster.
        self._found.setdefault((str(metadata.get("namespace") or "default"), str(metadata["name"])), manifest)


def check_nads(options: Any, known: Mapping[str, Any]) -> Manifest:
    """Return what is set of the option ``nads``, whose options are *known*. Raises HostError ``bad_option``."""
    if not isinstance(options, dict):
        raise HostError(f"nads is a mapping, not {options!r:.60}", code="bad_option")
    wrong = unsupported(options, known, section="nads.")
    if wrong:
        raise HostError(wrong[0], code="bad_option")
    return {name: value for name, value in options.items() if value is not None}


def networks_of_nads(options: Any, sources: Sources) -> list[dict[str, Any]]:
    """Return entries of cni_networks for the definitions that the option ``nads`` names, sorted by name.

    A file is found by the name of its network, so each gets the name of its manifest. A definition without a config
    is left out: its network is in a file already. Raises HostError with all problems of the manifests.
    """
    given = check_nads(options, NETWORKS_ARGUMENTS["nads"]["options"])
    namespace = str(given.get("namespace") or "")
    manifests = Definitions(given, sources).every(namespace)
    problems = errors_of(CheckedNads(manifests, LEVELS).problems)
    if problems:
        raise error_of(problems)
    networks = []
    for manifest in manifests:
        config = (manifest.get("spec") or {}).get("config")
        if config:
            name = str(manifest["metadata"]["name"])
            network = {**gojson.loads(str(config)), "name": name}
            networks.append({"name": name, "content": gojson.dumps(network, 2).decode("utf-8")})
    return sorted(networks, key=lambda entry: str(entry["name"]))


def _documents(given: Any, where: str) -> Iterator[Any]:
    """Yield the manifests of a text, a mapping or a list; those of a List one by one."""
    if given is None or given == "":
        return
    if isinstance(given, str):
        try:
            given = [document for document in yaml.load_all(given, Loader=_LOADER) if document is not None]
        except yaml.YAMLError as error:
            raise HostError(f"{where}: this is not YAML: {error}", code="bad_definitions") from error
    if isinstance(given, dict):
        given = [given]
    if not isinstance(given, (list, tuple)):
        raise HostError(f"{where} is {given!r:.60}; write manifests, or their text", code="bad_definitions")
    for document in given:
        if isinstance(document, str):
            yield from _documents(document, where)
        elif isinstance(document, dict) and isinstance(document.get("items"), list):
            yield from document["items"]
        else:
            yield document
