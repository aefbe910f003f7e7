# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The networks of a pod: each with its configuration, what it is asked for, and the name of its interface."""

from __future__ import annotations

from .. import gojson
from ..conf import decode_plugin_conf
from ..errors import JSONError
from .errors import NetworksError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from .selection import NetworkSelection


class Delegate:
    """One network of a pod (Go: DelegateNetConf).

    `data`: the JSON to run, of a conflist (`is_list`) or of a single plugin. `network`: the name in it. `name`: the
    name in network-status, NAMESPACE/NAME for a NetworkAttachmentDefinition. `type`: the plugin's type, "" for a
    conflist. `first`: it is the pod's own network, which gets CNI_IFNAME. `selection`: what the pod asks this network
    for, None if nothing. `device_id`: of its request.
    """

    __slots__ = (
        "data",
        "device_id",
        "first",
        "is_list",
        "name",
        "network",
        "selection",
        "type",
    )

    def __init__(self, data: bytes, network: str, plugin_type: str, selection: NetworkSelection | None) -> None:
        self.data = data
        self.network = network
        self.name = network
        self.type = plugin_type
        self.is_list = not plugin_type
        self.selection = selection
        self.first = False
        self.device_id = selection.device_id if selection else ""

    def interface(self, index: int, ifname: str) -> str:
        """Return the name of its interface: the requested one, `ifname` for the first network, else netN.

        `index`: its place in the pod, counted from 0, so a request can collide with netN: `pod` has the rule.
        """
        requested = self.selection.interface if self.selection else ""
        return requested or (ifname if self.first else f"net{index}")

    @property
    def default_route(self) -> list[str] | None:
        """The gateways that the pod asks for, None if it does not ask."""
        return self.selection.default_route if self.selection else None


def load_delegate(data: bytes, selection: NetworkSelection | None = None) -> Delegate:
    """Return the network with the configuration `data`, a conflist or a single plugin. Raises `NetworksError`.

    Each plugin gets `cni-args` of the pod in args.cni, merged one level deep.
    """
    try:
        parsed = gojson.loads(data)
        conf = decode_plugin_conf(parsed, data)
    except JSONError as exc:
        raise NetworksError(exc.msg, line=exc.line, column=exc.column) from exc
    if not conf.type:
        _check_list(parsed)
    delegate = Delegate(data, conf.name, conf.type, selection)
    if selection is not None and selection.cni_args is not None:
        for plugin, where in _plugins(parsed, delegate.is_list):
            _merge_cni_args(plugin, selection.cni_args, where)
        delegate.data = gojson.dumps(parsed)
    if selection is not None and selection.name:
        delegate.name = f"{selection.namespace}/{selection.name}"
    return delegate


def _check_list(parsed: dict[str, t.Any]) -> None:
    """Raise unless `parsed` is a conflist whose first plugin has a type; Multus looks at no further one."""
    plugins: list[str] | None = None
    where = ""
    try:
        for name, value in gojson.struct_items(parsed, ("plugins", "disableCheck", "disableGC")):
            where = "/" + name
            if name != "plugins":
                gojson.as_bool(value, name)
            elif value is not None:
                plugins = []
                for index, plugin in enumerate(gojson.as_list(value, name)):
                    where = f"/{name}/{index}"
                    plugins.append(_typed(plugin))
    except JSONError as exc:
        raise NetworksError(exc.msg, where) from exc
    if plugins is None:
        raise NetworksError("write a conflist with plugins, or a single plugin with a type")
    if not plugins:
        raise NetworksError("write at least one plugin", "/plugins")
    if not plugins[0]:
        raise NetworksError("write the plugin's type", "/plugins/0")


def _typed(plugin: t.Any) -> str:
    """Return the type of a conflist's plugin, "" if it has none. Raises `JSONError`."""
    if plugin is None:
        # Multus panics, here or when it merges cni-args.
        raise JSONError("a plugin is null; write an object with a type")
    return decode_plugin_conf(plugin, b"").type


def _plugins(parsed: dict[str, t.Any], is_list: bool) -> t.Iterator[tuple[dict[str, t.Any], str]]:
    """Yield each plugin of a configuration, and its pointer."""
    if not is_list:
        yield parsed, ""
        return
    # Here the case of the key matters, unlike where libcni reads it.
    plugins = parsed.get("plugins")
    if not isinstance(plugins, list):
        raise NetworksError("write the key plugins in lower case")
    for index, plugin in enumerate(plugins):
        yield plugin, f"/plugins/{index}"


def _merge_cni_args(plugin: dict[str, t.Any], cni_args: dict[str, t.Any], where: str) -> None:
    target = plugin
    for key in ("args", "cni"):
        where = f"{where}/{key}"
        target = target.setdefault(key, {})
        if not isinstance(target, dict):
            # Multus panics.
            text = f"cannot add cni-args of the pod to {gojson.type_name(target)}; write an object"
            raise NetworksError(text, where)
    target.update(cni_args)
