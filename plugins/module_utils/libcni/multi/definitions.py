# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""Configurations of networks by name: from a NetworkAttachmentDefinition, and from files."""

from __future__ import annotations

import os

from .. import conf as libcni_conf
from .. import gojson
from ..errors import ConfigError, JSONError, os_error_text
from .errors import NetworksError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    class Definitions(t.Protocol):
        """NetworkAttachmentDefinitions by (namespace, name), such as a dict."""

        def get(self, key: t.Tuple[str, str], /) -> t.Optional[NetworkDefinition]:
            """Return a definition, None if there is none."""


API_VERSION = "k8s.cni.cncf.io/v1"
KIND = "NetworkAttachmentDefinition"
RESOURCE_NAME = "k8s.v1.cni.cncf.io/resourceName"

_EXTENSIONS = (".conf", ".json", ".conflist")


class NetworkDefinition:
    """A NetworkAttachmentDefinition: `namespace`, `name`, `config` (spec.config, "" if there is none).

    `resource_name`: the resource of a device plugin that its annotation names, "" if none.
    """

    __slots__ = ("config", "name", "namespace", "resource_name")

    def __init__(self, namespace: str, name: str, config: str = "", resource_name: str = "") -> None:
        self.namespace = namespace
        self.name = name
        self.config = config
        self.resource_name = resource_name

    def configuration(self, conf_dir: str) -> bytes:
        """Return the JSON to run; without a config that of the file in `conf_dir` with this name.

        Raises `NetworksError`.
        """
        try:
            if not self.config:
                return configuration_from_files(self.name, conf_dir)
            return _named(self.config, self.name)
        except NetworksError as exc:
            source = "getCNIConfigFromSpec" if self.config else "GetCNIConfigFromFile"
            exc.msg = f"GetCNIConfig: err in {source}: {exc.msg}"
            exc.args = (exc.msg,)
            raise


def _named(config: str, name: str) -> bytes:
    """Return the configuration `config`. If it has no name or an empty one, it gets `name`."""
    try:
        parsed = gojson.loads(config)
        if parsed is None:
            # Multus panics.
            raise JSONError("the configuration is null")
        parsed = gojson.as_object(parsed, "")
    except JSONError as exc:
        raise NetworksError(
            f"failed to unmarshal Spec.Config: {exc.msg}", "/spec/config", exc.msg, line=exc.line, column=exc.column
        ) from exc
    if parsed.get("name", "") == "":
        parsed["name"] = name
        return gojson.dumps(parsed)
    return config.encode("utf-8", "surrogatepass")


def configuration_from_files(name: str, directory: str) -> bytes:
    """Return the content of the first file in `directory` with the network `name`, "" for the first file of all.

    `.conf`, `.json` and `.conflist` by their names, hidden ones included; drop-in folders are not added. A broken file
    that sorts before is an error. Raises `NetworksError`.
    """
    try:
        paths = libcni_conf.conf_files(directory, _EXTENSIONS)
    except ConfigError:
        paths = []
    if not paths:
        raise NetworksError(f"No networks found in {directory}")
    for path in paths:
        found, data = _read(path, "Error")
        if name in ("", found):
            return data
    raise NetworksError(f"no network available in the name {name} in cni dir {directory}")


def network_in_files(name: str, directory: str) -> bytes | None:
    """Return the content of the first file in `directory` with the network `name`, None if there is none.

    Unlike `configuration_from_files`, a broken file is an error only if no other file has the network. Raises
    `NetworksError`.
    """
    broken: NetworksError | None = None
    try:
        paths = libcni_conf.conf_files(directory, _EXTENSIONS)
    except ConfigError as exc:
        raise NetworksError(str(exc)) from exc
    for path in paths:
        try:
            found, data = _read(path, "error")
        except NetworksError as exc:
            broken = broken or exc
            continue
        if found == name:
            return data
    if broken:
        raise broken
    return None


def _read(path: str, error: str) -> tuple[str, bytes]:
    """Return name and content of a configuration file."""
    is_list = path.endswith(".conflist")
    try:
        if is_list:
            conflist = libcni_conf.network_conf_from_file(path)
            return conflist.name, conflist.bytes
        conf = libcni_conf.network_plugin_conf_from_file(path)
    except ConfigError as exc:
        kind = "conflist" if is_list else "config"
        text = f"{error} loading CNI {kind} file {path}: {exc}"
        raise NetworksError(text, line=exc.line, column=exc.column) from exc
    return conf.name, conf.bytes


def configuration_at(path: str) -> bytes:
    """Return the configuration that a path leads to: a file with its drop-ins, or the first file of a directory.

    Raises `NetworksError`.
    """
    try:
        is_directory = os.path.isdir(path)
        os.stat(path)
    except OSError as exc:
        raise NetworksError(os_error_text("stat", path, exc)) from exc
    if is_directory:
        if not libcni_conf.conf_files(path, (".conf", ".conflist")):
            raise NetworksError(f"getNetDelegate: cannot find network: {path}")
        return configuration_from_files("", path)
    _name, data = _read(path, "error")
    if path.endswith(".conflist"):
        return libcni_conf.network_conf_from_file(path, data).expanded_bytes()
    return data


def find_definition(definitions: Definitions, namespace: str, name: str) -> NetworkDefinition:
    """Return a NetworkAttachmentDefinition. Raises `NetworksError` if there is none."""
    found = definitions.get((namespace, name))
    if found is None:
        raise NetworksError(
            f"getKubernetesDelegate: cannot find a network-attachment-definition ({name}) in namespace ({namespace}): "
            f'network-attachment-definitions.k8s.cni.cncf.io "{name}" not found',
            rule=f"there is no NetworkAttachmentDefinition {namespace}/{name}",
        )
    return found
