# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The configuration of the plugin `multus`, with its defaults (Go: NetConf)."""

from __future__ import annotations

from .. import gojson
from ..conf import decode_plugin_conf
from ..errors import JSONError
from ..validate import GO_SPACES
from .delegates import Delegate, load_delegate
from .errors import NetworksError
from .selection import decode_strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

_STRINGS = {
    "confDir": "conf_dir",
    "cniDir": "cni_dir",
    "clusterNetwork": "cluster_network",
    "multusNamespace": "multus_namespace",
    "readinessindicatorfile": "readiness_file",
    "auxiliaryCNIChainName": "auxiliary_chain",
}
_LISTS = {"defaultNetworks": "default_networks", "systemNamespaces": "system_namespaces"}
_ISOLATION, _GLOBAL = "namespaceIsolation", "globalNamespaces"


class MultusConf:
    """What a configuration of the plugin `multus` says about networks; a key that is missing has Multus' default.

    `delegates` is empty where `cluster_network` is set: then `pod` finds them. `global_namespaces` is a list.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.delegates: list[Delegate] = []
        self.cluster_network = ""
        self.default_networks: list[str] = []
        self.conf_dir = "/etc/cni/multus/net.d"
        self.cni_dir = "/var/lib/cni/multus"
        self.multus_namespace = "kube-system"
        self.namespace_isolation = False
        self.global_namespaces = ["default"]
        self.system_namespaces = ["kube-system"]
        self.readiness_file = ""
        self.auxiliary_chain = ""


def load_multus_conf(data: bytes) -> MultusConf:
    """Return the configuration that the plugin `multus` gets on stdin. Raises `NetworksError`."""
    delegates: list[t.Any] = []
    try:
        parsed = gojson.loads(data)
        conf = MultusConf(decode_plugin_conf(parsed, data).name)
        for key, value in gojson.struct_items(parsed, (*_STRINGS, *_LISTS, _ISOLATION, _GLOBAL, "delegates")):
            if key == "delegates":
                items = enumerate(gojson.as_list(value, key))
                # As in Go, each is an object before anything else is known of it.
                delegates = [gojson.as_object(item, f"{key}/{at}") for at, item in items]
            else:
                _set(conf, key, value)
    except JSONError as exc:
        raise NetworksError(exc.msg, line=exc.line, column=exc.column) from exc
    if not delegates and not conf.cluster_network:
        raise NetworksError("there is no network; write delegates or clusterNetwork")
    if not conf.cluster_network:
        conf.delegates = [_delegate(index, value) for index, value in enumerate(delegates)]
        conf.delegates[0].first = True
    return conf


def _set(conf: MultusConf, key: str, value: t.Any) -> None:
    if key in _LISTS:
        setattr(conf, _LISTS[key], decode_strings(value, key) or [])
    elif value is None:
        return
    elif key == _ISOLATION:
        conf.namespace_isolation = gojson.as_bool(value, key)
    elif key != _GLOBAL:
        setattr(conf, _STRINGS[key], gojson.as_string(value, key))
    elif gojson.as_string(value, key):
        # It replaces the default, and an empty item stays: no namespace has that name.
        blanks = "".join(GO_SPACES)
        conf.global_namespaces = [item.strip(blanks) for item in value.split(",")]


def _delegate(index: int, value: dict[str, t.Any]) -> Delegate:
    try:
        return load_delegate(gojson.dumps(value))
    except NetworksError as exc:
        raise NetworksError(exc.msg, f"/delegates/{index}{exc.pointer}") from exc
