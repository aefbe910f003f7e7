# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""The configuration of the plugin `multus`, with its defaults (Go: NetConf)."""

from __future__ import annotations

from .. import gojson, types
from ..errors import JSONError, ResultError
from ..plugin_conf import decode_plugin_conf
from ..validate import GO_SPACES
from .delegates import Delegate, load_delegate
from .errors import NetworksError
from .requests import decode_strings
from .runtime import decode_runtime_config

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

_STRINGS = {
    "binDir": "bin_dir",
    "confDir": "conf_dir",
    "cniDir": "cni_dir",
    "clusterNetwork": "cluster_network",
    "kubeconfig": "kubeconfig",
    "multusNamespace": "multus_namespace",
    "readinessindicatorfile": "readiness_file",
    "auxiliaryCNIChainName": "auxiliary_chain",
    "logFile": "log_file",
    "logLevel": "log_level",
    "globalNamespaces": "",
}
_BOOLEANS = {
    "namespaceIsolation": "namespace_isolation",
    "retryDeleteOnError": "retry_delete",
    "logToStderr": "log_to_stderr",
}
_LISTS = {"defaultNetworks": "default_networks", "systemNamespaces": "system_namespaces"}
_OTHERS = ("delegates", "runtimeConfig", "prevResult", "logOptions")


class MultusConf:
    """What the plugin `multus` is told. Attributes have Multus' defaults where the key is missing.

    `delegates` is empty where `cluster_network` is set: then `pod` finds them. `global_namespaces` is a list.
    """

    def __init__(self, name: str, cni_version: str, capabilities: dict[str, bool]) -> None:
        self.name = name
        self.cni_version = cni_version
        self.capabilities = capabilities
        self.delegates: list[Delegate] = []
        self.cluster_network = ""
        self.default_networks: list[str] = []
        self.kubeconfig = ""
        self.bin_dir = "/opt/cni/bin"
        self.conf_dir = "/etc/cni/multus/net.d"
        self.cni_dir = "/var/lib/cni/multus"
        self.multus_namespace = "kube-system"
        self.namespace_isolation = False
        self.global_namespaces = ["default"]
        self.system_namespaces = ["kube-system"]
        self.readiness_file = ""
        self.retry_delete = False
        self.auxiliary_chain = ""
        self.log_file = ""
        self.log_level = ""
        self.log_to_stderr = True
        self.runtime_config: gojson.Struct | None = None
        self.prev_result: types.Result | None = None


def load_multus_conf(data: bytes) -> MultusConf:
    """Return the configuration that the plugin `multus` gets on stdin. Raises `NetworksError`."""
    raw: dict[str, t.Any] = dict.fromkeys(_OTHERS)
    try:
        parsed = gojson.loads(data)
        plugin = decode_plugin_conf(parsed, data)
        conf = MultusConf(plugin.name, plugin.cni_version, plugin.capabilities)
        for key, value in gojson.struct_items(parsed, (*_STRINGS, *_BOOLEANS, *_LISTS, *_OTHERS)):
            _set(conf, raw, key, value)
    except JSONError as exc:
        text = f"LoadNetConf: failed to load netconf: {exc.msg}"
        raise NetworksError(text, line=exc.line, column=exc.column) from exc
    if raw["prevResult"] is not None:
        conf.prev_result = _prev_result(conf.cni_version, raw["prevResult"])
    if not raw["delegates"] and not conf.cluster_network:
        text = "LoadNetConf: at least one delegate/clusterNetwork must be specified"
        raise NetworksError(text, rule="write delegates or clusterNetwork")
    if not conf.cluster_network:
        conf.delegates = [_delegate(index, value) for index, value in enumerate(raw["delegates"])]
        conf.delegates[0].first = True
    return conf


def _set(conf: MultusConf, raw: dict[str, t.Any], key: str, value: t.Any) -> None:
    if key in _BOOLEANS:
        if value is not None:
            setattr(conf, _BOOLEANS[key], gojson.as_bool(value, key))
    elif key in _LISTS:
        setattr(conf, _LISTS[key], decode_strings(value, key) or [])
    elif key == "delegates":
        # As in Go, each is an object before anything else is known of it.
        raw[key] = [gojson.as_object(item, f"{key}/{at}") for at, item in enumerate(gojson.as_list(value, key))]
    elif key == "runtimeConfig":
        conf.runtime_config = decode_runtime_config(value)
    elif key in ("prevResult", "logOptions"):
        raw[key] = None if value is None else gojson.as_object(value, key)
    elif value is not None:
        text = gojson.as_string(value, key)
        if key != "globalNamespaces":
            setattr(conf, _STRINGS[key], text)
        elif text:
            # It replaces the default, and an empty item stays: no namespace has that name.
            blanks = "".join(GO_SPACES)
            conf.global_namespaces = [item.strip(blanks) for item in text.split(",")]


def _prev_result(cni_version: str, raw: dict[str, t.Any]) -> types.Result:
    try:
        return types.create(cni_version, gojson.dumps(raw)).as_version("1.0.0")
    except (JSONError, ResultError) as exc:
        raise NetworksError(f"LoadNetConf: could not parse prevResult: {exc}", "/prevResult") from exc


def _delegate(index: int, value: dict[str, t.Any]) -> Delegate:
    try:
        return load_delegate(gojson.dumps(value))
    except NetworksError as exc:
        text = f"LoadNetConf: failed to load delegate {index} config: {exc.msg}"
        raise NetworksError(text, f"/delegates/{index}{exc.pointer}", exc.rule) from exc
