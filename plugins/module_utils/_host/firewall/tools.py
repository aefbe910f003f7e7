# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which of the commands ``iptables``, ``nft`` and ``firewalld`` an ADD needs, and whether a plugin would find them.

Without its command, bridge fails only after it has created or removed the interface. So the commands are checked
before any plugin runs.
"""

from __future__ import annotations

import os
import shutil
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..errors import HostError
from ..kinds import member_of, object_of, text_of
from ..problems import ERROR, WARNING, Finding, obstacle
from ..trust import check_trusted
from .kinds import FIREWALL, IPMASQ, MACSPOOFCHK, PORTMAP, made_by

Plugins = Sequence[Mapping[str, Any]]
BinDirs = Optional[Sequence[str]]
IPTABLES, NFT, FIREWALLD = "iptables", "nft", "firewalld"
# Arguments that list what the plugins change.
_NAT = ("-w", "5", "-t", "nat", "-S", "POSTROUTING")
_TABLES = ("list", "tables")
_LISTING: Dict[str, Dict[str, Tuple[str, ...]]] = {
    IPTABLES: {IPMASQ: _NAT, PORTMAP: _NAT, FIREWALL: ("-w", "5", "-t", "filter", "-S", "FORWARD")},
    NFT: {IPMASQ: _TABLES, PORTMAP: _TABLES, MACSPOOFCHK: _TABLES},
}
_TIMEOUT = 10.0
_BUS = "/run/dbus/system_bus_socket"
# The plugins that can use nftables, by the option that selects it and the table that only they name.
_BACKENDS = {IPMASQ: ("ipmasqbackend", b"cni_plugins_masquerade"), PORTMAP: ("backend", b"cni_hostport")}


def tool_obstacles(plugins: Plugins, capability_args: Mapping[str, Any], bin_dirs: BinDirs) -> Iterator[Finding]:
    """Yield the obstacle of the first plugin whose command is not in PATH, a warning if it is only for ports."""
    always = missing_tool(plugins, {}, bin_dirs)
    missing = always or missing_tool(plugins, capability_args, bin_dirs)
    if missing:
        text = f"plugin {missing[0]} needs {missing[1]}, which is not in PATH{'' if always else ', to publish ports'}"
        remedy = f"install it (package {'nftables' if missing[1] == NFT else missing[1]})"
        evidence = f"PATH is {os.environ.get('PATH', '')}"
        yield obstacle("missing_tool", text, evidence, remedy, ERROR if always else WARNING)


def try_tools(what: str, plugins: Plugins, capability_args: Mapping[str, Any], bin_dirs: BinDirs) -> None:
    """Raise HostError ``tool_failed``, which begins with *what*, if a command of one of *plugins* fails."""
    for plugin in plugins:
        for kind in _kinds(plugin, capability_args, bin_dirs):
            path = next(filter(None, map(shutil.which, _tools(kind, plugin, bin_dirs))), "")
            arguments = _LISTING.get(os.path.basename(path), {}).get(kind)
            failure = _run(path, arguments) if arguments else ""
            # A table with rules made by nft cannot be listed, but rules can still be added to it.
            if failure and "incompatible" not in failure:
                name = text_of(plugin, "type")
                text = f"{what}: plugin {name} needs {path}, which fails ({failure}); nothing was detached"
                raise HostError(f"{text}; fix the command and run again", code="tool_failed")


def _run(path: str, arguments: Tuple[str, ...]) -> str:
    """Run a command as plugins do. Returns what went wrong, "" if nothing. Raises HostError ``unsafe_permissions``."""
    check_trusted(os.path.abspath(path))
    from ...libcni.process import run_program

    ended = run_program(path, [path, *arguments], b"", os.environ, _TIMEOUT)
    said = " ".join(ended.stderr.decode("utf-8", "replace").split())[-200:]
    return ended.failure and f"{ended.failure}: {said}".strip(": ")


def missing_tool(plugins: Plugins, capability_args: Mapping[str, Any], bin_dirs: BinDirs) -> Optional[Tuple[str, str]]:
    """Return (plugin, command) for the first plugin whose command is not in PATH, None if all are there."""
    for plugin in plugins:
        for tools in [_tools(kind, plugin, bin_dirs) for kind in _kinds(plugin, capability_args, bin_dirs)]:
            if tools and not any(map(shutil.which, tools)):
                return text_of(plugin, "type"), tools[0]
    return None


def _kinds(plugin: Mapping[str, Any], capability_args: Mapping[str, Any], bin_dirs: BinDirs) -> List[str]:
    """Return what the plugin needs commands for."""
    if text_of(plugin, "type") == "firewall":
        return [FIREWALL]
    if text_of(plugin, "type") == "portmap":
        # Where it would choose nft, it refuses conditions of iptables, even without ports.
        refused = _is_for_iptables(plugin) and shutil.which(NFT) and not shutil.which(IPTABLES)
        refuses = refused and _names("portmap", _BACKENDS[PORTMAP][1], bin_dirs)
        if refuses or member_of(object_of(plugin, "runtimeconfig"), "portmappings"):
            return [PORTMAP]
    return made_by(plugin, capability_args)


def _is_for_iptables(plugin: Mapping[str, Any]) -> bool:
    """Tell whether conditions of portmap are those of iptables, and no backend is named."""
    conditions = [member_of(plugin, name) for name in ("conditionsv4", "conditionsv6")]
    first = [str(words[0]) for words in conditions if isinstance(words, list) and words]
    return not text_of(plugin, "backend") and any(word.startswith(("-", "!")) for word in first)


def _tools(kind: str, plugin: Mapping[str, Any], bin_dirs: BinDirs) -> List[str]:
    """Return the commands, of which one suffices, the preferred one first; [] if none is needed."""
    if kind == MACSPOOFCHK:
        return [NFT]
    if kind == FIREWALL:
        return _tools_of_firewall(plugin)
    if kind == IPMASQ and text_of(plugin, "type") == "bridge" and not object_of(plugin, "ipam"):
        return []
    option, table = _BACKENDS[kind]
    backend = text_of(plugin, option)
    # Most hosts have iptables, and then the binary is not read.
    default = not backend and (shutil.which(IPTABLES) is not None or _is_for_iptables(plugin))
    if default or not _names(text_of(plugin, "type"), table, bin_dirs):
        return [IPTABLES]
    return {"iptables": [IPTABLES], "nftables": [NFT]}.get(backend, [IPTABLES, NFT])


def _tools_of_firewall(plugin: Mapping[str, Any]) -> List[str]:
    backend = text_of(plugin, "backend")
    if text_of(plugin, "ingresspolicy") in ("same-bridge", "isolated"):
        return [IPTABLES]
    if backend == FIREWALLD:
        return [FIREWALLD]
    # With any other value of backend, firewalld is used if it runs.
    return [IPTABLES, FIREWALLD] if backend != IPTABLES and os.path.exists(_BUS) else [IPTABLES]


def _names(plugin: str, text: bytes, bin_dirs: BinDirs) -> bool:
    """Tell whether the binary of *plugin* contains *text*. Releases before 1.6 and 1.7 know iptables only.

    It may, if *bin_dirs* is None: the binary is not there yet.
    """
    if bin_dirs is None:
        return True
    from ...libcni.errors import PluginNotFoundError
    from ...libcni.invoke import find_in_path

    try:
        with open(find_in_path(plugin, bin_dirs), "rb") as stream:
            return text in stream.read()
    except (OSError, PluginNotFoundError):
        return False
