# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Calling a plugin from a plugin (Go: pkg/invoke/delegate.go, pkg/ipam of plugins).

The delegate is found by CNI_PATH of this process' environment and gets that environment, with another CNI_COMMAND.
"""

from __future__ import annotations

import os

from .errors import ERR_INVALID_NETWORK_CONFIG, CNIError, PluginError
from .exec import exec_plugin_with_result
from .invoke import Executor, find_in_path
from .types import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .skel import CmdArgs


def delegate_args(command: str) -> dict[str, str]:
    """Return the environment for a delegate (Go: DelegateArgs); that of this process stays as it is."""
    return {**os.environ, "CNI_COMMAND": command}


def delegate_add(plugin: str, net_conf: bytes, timeout: float | None = None) -> Result:
    """ADD; `timeout` in seconds. Raises `PluginNotFoundError`, `PluginError`, as all of these functions do."""
    return exec_plugin_with_result(_find(plugin), net_conf, delegate_args("ADD"), Executor(), timeout)


def delegate_check(plugin: str, net_conf: bytes, timeout: float | None = None) -> None:
    """CHECK."""
    _delegate("CHECK", plugin, net_conf, timeout)


def delegate_delete(plugin: str, net_conf: bytes, timeout: float | None = None) -> None:
    """DEL."""
    _delegate("DEL", plugin, net_conf, timeout)


def delegate_status(plugin: str, net_conf: bytes, timeout: float | None = None) -> None:
    """STATUS."""
    _delegate("STATUS", plugin, net_conf, timeout)


def delegate_gc(plugin: str, net_conf: bytes, timeout: float | None = None) -> None:
    """GC."""
    _delegate("GC", plugin, net_conf, timeout)


def _delegate(command: str, plugin: str, net_conf: bytes, timeout: float | None) -> None:
    Executor().exec_plugin(_find(plugin), net_conf, delegate_args(command), timeout)


def _find(plugin: str) -> str:
    return find_in_path(plugin, [path for path in os.environ.get("CNI_PATH", "").split(":") if path])


# ---- the IPAM plugin that a configuration names


def ipam_add(args: CmdArgs, timeout: float | None = None) -> Result:
    """ADD with the configuration as it is; the result has at least one address."""
    result = delegate_add(_ipam(args), args.stdin_data, timeout)
    if not result.ips:
        raise CNIError("IPAM plugin returned missing IP config")
    return result


def ipam_check(args: CmdArgs, timeout: float | None = None) -> None:
    """CHECK."""
    delegate_check(_ipam(args), args.stdin_data, timeout)


def ipam_delete(args: CmdArgs, timeout: float | None = None) -> None:
    """DEL."""
    delegate_delete(_ipam(args), args.stdin_data, timeout)


def ipam_status(args: CmdArgs, timeout: float | None = None) -> None:
    """STATUS."""
    delegate_status(_ipam(args), args.stdin_data, timeout)


def ipam_gc(args: CmdArgs, timeout: float | None = None) -> None:
    """GC."""
    delegate_gc(_ipam(args), args.stdin_data, timeout)


def _ipam(args: CmdArgs) -> str:
    plugin = args.ipam_type
    if not plugin:
        raise PluginError(ERR_INVALID_NETWORK_CONFIG, "the configuration names no IPAM plugin (ipam.type)")
    return plugin
