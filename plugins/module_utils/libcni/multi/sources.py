# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Where a host without a cluster has annotations and NetworkAttachmentDefinitions: in the call, and in files.

Files are JSON. A file is found by its path, so no other file can break it, and the number of files costs nothing.
"""

from __future__ import annotations

import os
import re

from .. import gojson
from ..errors import JSONError, quote
from ..files import read_file
from .definitions import KIND, NetworkDefinition, network_in_files
from .errors import NetworksError
from .selection import DEFAULT_NETWORK, NETWORKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    _Check = t.Callable[[str], None]

POD_ANNOTATIONS = "io.kubernetes.cri.pod-annotations"
_ANNOTATIONS = (NETWORKS, DEFAULT_NETWORK)
_LARGEST = 4 * 1024 * 1024
# Names of Kubernetes, and of containers of podman.
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"


def is_name(text: str) -> bool:
    """Tell whether a text can be the name of a file, and leads nowhere else."""
    return len(text) <= 250 and re.fullmatch(_NAME, text) is not None


def _loaded(path: str, check: _Check) -> dict[str, t.Any] | None:
    """Return the object in a file, None if there is none. *check* raises if the file cannot be trusted."""
    try:
        data = read_file(path, _LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise NetworksError(f"{path} cannot be read: {exc.strerror}") from exc
    check(path)
    try:
        return gojson.as_object(gojson.loads(data), "")
    except JSONError as exc:
        raise NetworksError(f"{path}: {exc.msg}", line=exc.line, column=exc.column) from exc


# ---- annotations


def call_annotations(capabilities: t.Mapping[str, t.Any], config: t.Mapping[str, t.Any]) -> dict[str, str]:
    """Return the annotations about networks that a call brings: from runtimeConfig, else from `args.cni` of `config`.

    `capabilities`: from `runtime.decode_capabilities`. Raises `NetworksError`.
    """
    args = config.get("args")
    annotations = _texts(args.get("cni") if isinstance(args, dict) else None, "/args/cni")
    # containerd writes null for a pod without annotations.
    sent = next((value for key, value in capabilities.items() if key.lower() == POD_ANNOTATIONS), None)
    return {**annotations, **_texts(sent, f"/runtimeConfig/{POD_ANNOTATIONS}")}


def _texts(value: t.Any, where: str) -> dict[str, str]:
    """Return the annotations in an object. In a file, a list needs not be a text."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NetworksError(f"expected an object of annotations, found {gojson.kind(value)}", where)
    annotations = {}
    for name in _ANNOTATIONS:
        item = value.get(name)
        if isinstance(item, (list, dict)):
            annotations[name] = gojson.dumps(item).decode("utf-8")
        elif isinstance(item, str):
            annotations[name] = item
        elif item is not None:
            raise NetworksError(f"expected a text or a list of networks, found {gojson.kind(item)}", annotation=name)
    return annotations


def file_annotations(directory: str, container_id: str, namespace: str, name: str, check: _Check) -> dict[str, str]:
    """Return the annotations in the file of a pod: DIRECTORY/CONTAINER_ID.json, else DIRECTORY/NAMESPACE/NAME.json.

    Raises `NetworksError` for a file that cannot be used.
    """
    paths = [os.path.join(directory, f"{container_id}.json")] if is_name(container_id) else []
    if is_name(namespace) and is_name(name):
        paths.append(os.path.join(directory, namespace, f"{name}.json"))
    for path in paths:
        document = _loaded(path, check)
        if document is not None:
            return _texts(document, path)
    return {}


# ---- definitions


class DefinitionFiles:
    """The NetworkAttachmentDefinitions in DIRECTORY/NAMESPACE/NAME.json, for `pod.pod_networks`.

    A name that `namespace` has no file for is looked up in the configuration files in `conf_dir`: each counts as a
    definition in the namespace of every pod.
    """

    def __init__(self, directory: str, namespace: str, conf_dir: str, check: _Check) -> None:
        self.directory = directory
        self._namespace = namespace
        self._conf_dir = conf_dir
        self._check = check

    def get(self, key: tuple[str, str]) -> NetworkDefinition | None:
        """Return a definition by (namespace, name), None if there is none. Raises `NetworksError`."""
        namespace, name = key
        if not (is_name(namespace) and is_name(name)):
            return None
        path = os.path.join(self.directory, namespace, f"{name}.json")
        manifest = _loaded(path, self._check)
        if manifest is not None:
            return _definition(manifest, namespace, name, path)
        data = network_in_files(name, self._conf_dir) if namespace == self._namespace else None
        return None if data is None else NetworkDefinition(namespace, name, data.decode("utf-8", "replace"))


def _definition(manifest: dict[str, t.Any], namespace: str, name: str, path: str) -> NetworkDefinition:
    try:
        if gojson.as_string(manifest.get("kind"), "kind") != KIND:
            raise JSONError(f"expected kind {KIND}, found {manifest.get('kind')!r}")
        metadata = gojson.as_object(manifest.get("metadata"), "metadata")
        for key, wanted in (("name", name), ("namespace", namespace)):
            told = gojson.as_string(metadata.get(key), f"metadata/{key}") or wanted
            if told != wanted:
                raise JSONError(f"metadata/{key} is {quote(told)}, and the file's path says {quote(wanted)}")
        spec = gojson.as_object(manifest.get("spec"), "spec")
        config = spec.get("config")
        # In a file, the configuration needs not be a text.
        text = gojson.dumps(config).decode() if isinstance(config, dict) else gojson.as_string(config, "spec/config")
    except JSONError as exc:
        raise NetworksError(f"{path}: {exc}") from exc
    return NetworkDefinition(namespace, name, text)
