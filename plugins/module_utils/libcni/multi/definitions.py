# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Configurations of networks by name: from a NetworkAttachmentDefinition, and from files."""

from __future__ import annotations

import os

from .. import conf as libcni_conf, gojson
from ..errors import ConfigError, JSONError, os_error_text
from ..fields import required_object
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

_EXTENSIONS = (".conf", ".json", ".conflist")


class NetworkDefinition:
    """A NetworkAttachmentDefinition: `namespace`, `name`, `config` (spec.config, "" if there is none)."""

    __slots__ = ("config", "name", "namespace")

    def __init__(self, namespace: str, name: str, config: str = "") -> None:
        self.namespace = namespace
        self.name = name
        self.config = config

    def configuration(self, conf_dir: str) -> bytes:
        """Return the JSON to run; without a config that of a file in `conf_dir`. Raises `NetworksError`."""
        if not self.config:
            return configuration_from_files(self.name, conf_dir)
        try:
            # Multus panics for null.
            parsed = required_object(gojson.loads(self.config), "")
        except JSONError as exc:
            raise NetworksError(exc.msg, "/spec/config", line=exc.line, column=exc.column) from exc
        if parsed.get("name", "") == "":
            parsed["name"] = self.name
            return gojson.dumps(parsed)
        return self.config.encode("utf-8", "surrogatepass")


def configuration_from_files(name: str, directory: str) -> bytes:
    """Return what `network_in_files` finds. Raises `NetworksError` if there is nothing."""
    data = network_in_files(name, directory)
    if data is None:
        raise NetworksError(f"no file in {directory} has a network {name}".rstrip())
    return data


def network_in_files(name: str, directory: str) -> bytes | None:
    """Return the content of the first file in `directory` with the network `name`, "" for the first file of all.

    `.conf`, `.json` and `.conflist` by their names, hidden ones included; drop-in folders are not added. None if no
    file has it. A broken file is an error only then, unlike in Multus. Raises `NetworksError`.
    """
    broken: NetworksError | None = None
    try:
        paths = libcni_conf.conf_files(directory, _EXTENSIONS)
    except ConfigError as exc:
        raise NetworksError(str(exc)) from exc
    for path in paths:
        try:
            network, data = _read(path)
        except NetworksError as exc:
            broken = broken or exc
            continue
        if name in ("", network):
            return data
    if broken:
        raise broken
    return None


def _read(path: str) -> tuple[str, bytes]:
    """Return name and content of a configuration file."""
    try:
        if path.endswith(".conflist"):
            conflist = libcni_conf.network_conf_from_file(path)
            return conflist.name, conflist.bytes
        conf = libcni_conf.network_plugin_conf_from_file(path)
    except ConfigError as exc:
        raise NetworksError(f"{path}: {exc}", line=exc.line, column=exc.column) from exc
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
            raise NetworksError(f"no file in {path} has a network")
        return configuration_from_files("", path)
    _name, data = _read(path)
    if path.endswith(".conflist"):
        return libcni_conf.network_conf_from_file(path, data).expanded_bytes()
    return data
