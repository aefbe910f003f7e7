# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""One plugin's configuration (Go: libcni/conf.go NetworkPluginConfFromBytes, pkg/types PluginConf)."""

from __future__ import annotations

from . import gojson
from .errors import ConfigError, JSONError
from .fields import decode_dns

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

_PLUGIN = "error parsing configuration: "


class PluginConfig:
    """One plugin's configuration (Go: PluginConfig, alias NetworkConfig).

    `bytes` is the JSON as it was given, `network` the same parsed. The other attributes are what libcni itself uses of
    it: `type`, `name`, `cni_version`, `capabilities`, `ipam_type`.
    """

    __slots__ = ("bytes", "capabilities", "cni_version", "ipam_type", "name", "network", "type")

    def __init__(self, data: bytes, network: dict[str, t.Any]) -> None:
        self.bytes = data
        self.network = network
        self.type = ""
        self.name = ""
        self.cni_version = ""
        self.ipam_type = ""
        self.capabilities: dict[str, bool] = {}


def network_plugin_conf_from_bytes(data: bytes) -> PluginConfig:
    """Parse one plugin's configuration. Raises `ConfigError`.

    As in Go, keys that libcni knows must have the right type even where libcni does not use them.
    """
    try:
        conf = decode_plugin_conf(gojson.loads(data), data)
    except JSONError as exc:
        raise ConfigError(f"{_PLUGIN}{exc}", line=exc.line, column=exc.column) from exc
    if not conf.type:
        raise ConfigError(_PLUGIN + "missing 'type'")
    return conf


def decode_plugin_conf(parsed: t.Any, data: bytes) -> PluginConfig:
    """Return the configuration `parsed`, the JSON of `data`, whose type may be missing. Raises `JSONError`."""
    conf = PluginConfig(data, gojson.as_object(parsed, ""))
    for field, value in gojson.struct_items(parsed, (*_STRING_FIELDS, "capabilities", "ipam", *_CHECKED_FIELDS)):
        _set_plugin_field(conf, field, value)
    return conf


def _set_plugin_field(conf: PluginConfig, field: str, value: t.Any) -> None:
    if field in _STRING_FIELDS:
        # null leaves a string as it is.
        if value is not None:
            setattr(conf, _STRING_FIELDS[field], gojson.as_string(value, field))
    elif field == "capabilities":
        if value is None:
            conf.capabilities = {}
        for key, enabled in gojson.as_object(value, field).items():
            conf.capabilities[key] = gojson.as_bool(enabled, f"{field}/{key}")
    elif field == "ipam":
        for _name, ipam_type in gojson.struct_items(gojson.as_object(value, field), ("type",)):
            conf.ipam_type = gojson.as_string(ipam_type, "ipam/type")
    else:
        _CHECKED_FIELDS[field](value, field)


def _check_attachments(value: t.Any, where: str) -> None:
    for attachment in gojson.as_list(value, where):
        for name, item in gojson.struct_items(gojson.as_object(attachment, where), ("containerID", "ifname")):
            gojson.as_string(item, f"{where}/{name}")


_STRING_FIELDS = {"cniVersion": "cni_version", "name": "name", "type": "type"}
_CHECKED_FIELDS: dict[str, t.Callable[[t.Any, str], t.Any]] = {
    "dns": decode_dns,
    "prevResult": gojson.as_object,
    "cni.dev/valid-attachments": _check_attachments,
}
