# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Calling a plugin from a plugin (Go: pkg/invoke/delegate.go, pkg/ipam of plugins).

The delegate is found by CNI_PATH of this process' environment and gets that environment, with another CNI_COMMAND.
"""

from __future__ import annotations

import os
from functools import partial

from .errors import ERR_INVALID_NETWORK_CONFIG, CNIError, PluginError
from .invoke import Executor, find_in_path
from .types import Result, exec_plugin_with_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .skel import CmdArgs


def delegate_args(command: str) -> dict[str, str]:
    """Return the environment for a delegate (Go: DelegateArgs); that of this process stays as it is."""
    return {**os.environ, "CNI_COMMAND": command}


def delegate_add(plugin: str, net_conf: bytes, timeout: float | None = None) -> Result:
    """ADD; `timeout` in seconds. Raises `PluginNotFoundError`, `PluginError`, as all of these functions do."""
    return exec_plugin_with_result(_find(plugin), net_conf, delegate_args("ADD"), Executor(), timeout)


def _delegate(command: str, plugin: str, net_conf: bytes, timeout: float | None = None) -> None:
    Executor().exec_plugin(_find(plugin), net_conf, delegate_args(command), timeout)


# Each takes the plugin, its configuration, and a timeout.
delegate_check, delegate_delete = partial(_delegate, "CHECK"), partial(_delegate, "DEL")
delegate_status, delegate_gc = partial(_delegate, "STATUS"), partial(_delegate, "GC")


def _find(plugin: str) -> str:
    return find_in_path(plugin, [path for path in os.environ.get("CNI_PATH", "").split(":") if path])


# ---- the IPAM plugin that a configuration names


def ipam_add(args: CmdArgs, timeout: float | None = None) -> Result:
    """ADD with the configuration as it is; the result has at least one address."""
    result = delegate_add(_ipam(args), args.stdin_data, timeout)
    if not result.ips:
        raise CNIError("IPAM plugin returned missing IP config")
    return result


def _delegate_ipam(command: str, args: CmdArgs, timeout: float | None = None) -> None:
    _delegate(command, _ipam(args), args.stdin_data, timeout)


# Each takes what the callback got, and a timeout.
ipam_check, ipam_delete = partial(_delegate_ipam, "CHECK"), partial(_delegate_ipam, "DEL")
ipam_status, ipam_gc = partial(_delegate_ipam, "STATUS"), partial(_delegate_ipam, "GC")


def _ipam(args: CmdArgs) -> str:
    plugin = args.ipam_type
    if not plugin:
        raise PluginError(ERR_INVALID_NETWORK_CONFIG, "the configuration names no IPAM plugin (ipam.type)")
    return plugin
