# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""Calling a plugin from a plugin (Go: pkg/invoke/delegate.go).

The delegate is found by CNI_PATH of this process' environment and gets that environment, with another CNI_COMMAND.
"""

from __future__ import annotations

import os

from .exec import exec_plugin_with_result
from .invoke import Executor
from .types import Result


def delegate_args(command: str) -> dict[str, str]:
    """Return the environment for a delegate (Go: DelegateArgs); that of this process stays as it is."""
    return {**os.environ, "CNI_COMMAND": command}


def delegate_add(
    plugin: str, net_conf: bytes, executor: Executor | None = None, timeout: float | None = None
) -> Result:
    """ADD. Raises `PluginNotFoundError`, `PluginError`."""
    executor = executor or Executor()
    return exec_plugin_with_result(_find(plugin, executor), net_conf, delegate_args("ADD"), executor, timeout)


def delegate_check(
    plugin: str, net_conf: bytes, executor: Executor | None = None, timeout: float | None = None
) -> None:
    """CHECK. Raises `PluginNotFoundError`, `PluginError`."""
    _delegate("CHECK", plugin, net_conf, executor, timeout)


def delegate_del(plugin: str, net_conf: bytes, executor: Executor | None = None, timeout: float | None = None) -> None:
    """DEL. Raises `PluginNotFoundError`, `PluginError`."""
    _delegate("DEL", plugin, net_conf, executor, timeout)


def delegate_status(
    plugin: str, net_conf: bytes, executor: Executor | None = None, timeout: float | None = None
) -> None:
    """STATUS. Raises `PluginNotFoundError`, `PluginError`."""
    _delegate("STATUS", plugin, net_conf, executor, timeout)


def delegate_gc(plugin: str, net_conf: bytes, executor: Executor | None = None, timeout: float | None = None) -> None:
    """GC. Raises `PluginNotFoundError`, `PluginError`."""
    _delegate("GC", plugin, net_conf, executor, timeout)


def _delegate(command: str, plugin: str, net_conf: bytes, executor: Executor | None, timeout: float | None) -> None:
    executor = executor or Executor()
    executor.exec_plugin(_find(plugin, executor), net_conf, delegate_args(command), timeout)


def _find(plugin: str, executor: Executor) -> str:
    return executor.find_in_path(plugin, [path for path in os.environ.get("CNI_PATH", "").split(":") if path])
