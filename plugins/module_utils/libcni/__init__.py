# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""A port of Go's libcni to Python, standard library only.

Nothing is imported here, so that importing one submodule loads (and ships) only that one. The public names are
found on demand: `libcni.CNIConfig` imports `libcni.api`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

_HOMES = {
    "api": ("CNIConfig", "NetworkAttachment", "RuntimeConf"),
    "conf": (
        "NetworkConfigList",
        "PluginConfig",
        "conf_files",
        "conf_list_from_conf",
        "inject_conf",
        "load_conf",
        "load_network_conf",
        "network_conf_from_bytes",
        "network_conf_from_file",
        "network_plugin_conf_from_bytes",
        "network_plugin_conf_from_file",
        "network_plugin_confs_from_files",
    ),
    "delegate": (
        "delegate_add",
        "delegate_check",
        "delegate_delete",
        "delegate_gc",
        "delegate_status",
        "ipam_add",
        "ipam_check",
        "ipam_delete",
        "ipam_gc",
        "ipam_status",
    ),
    "errors": (
        "CNIError",
        "CacheError",
        "CheckNotSupportedError",
        "ConfigError",
        "JSONError",
        "MultiError",
        "NoConfigsFoundError",
        "NotFoundError",
        "PluginError",
        "PluginListError",
        "PluginNotFoundError",
        "ResultError",
        "ValidationError",
        "VersionError",
    ),
    "fields": ("DNS", "IPConfig", "Interface", "Route"),
    "invoke": ("Executor", "find_in_path"),
    "netns": ("Link", "LinkError", "NamespaceError"),
    "plugin_args": ("CommonArgs", "IPAddress", "load_args"),
    "skel": ("CmdArgs", "plugin_main"),
    "types": ("Result", "create", "create_from_bytes", "parse_prev_result"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> t.Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module("." + home, __name__), name)


def __dir__() -> list[str]:
    return sorted(_HOME_OF)
