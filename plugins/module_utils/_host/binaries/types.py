# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The plugin binaries that a configuration makes a runtime execute, including delegates."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

from ..kinds import delegate_of, member_of, object_of, put_member, text_of

MULTINET = "podwire-multinet"
"""The collection's own plugin for several networks in a pod."""
MULTINET_DIR = "/var/lib/cni/multinet"
"""Where it keeps its data, unless its configuration names another directory."""


def named_plugins(plugin: Dict[str, Any], pointer: str = "") -> List[Tuple[str, str]]:
    """Return ``(JSON pointer of the place that names it, plugin type)`` for everything that *plugin* executes.

    That is its own ``type``, its ``ipam.type``, and the same of its ``delegate``. flannel delegates to bridge with
    host-local unless it says otherwise. Values of the wrong type are ignored.
    """
    kind, delegate = text_of(plugin, "type"), delegate_of(plugin)
    named = [(pointer + "/type", kind)] if kind else []
    ipam = object_of(plugin, "ipam")
    if kind == "flannel":
        # For its defaults, the pointer names the place to write to change them.
        ipam = object_of(delegate, "ipam")
        put_member(delegate, "ipam", None)
    if text_of(ipam, "type"):
        named.append((pointer + "/ipam/type", text_of(ipam, "type")))
    if delegate:
        named.extend(named_plugins(delegate, pointer + "/delegate"))
    return named


def why_no_type(name: str) -> Tuple[str, str]:
    """Return why no plugin can have the type *name*, and what to write; "" if one can. libcni refuses a path."""
    base = name.rpartition("/")[2]
    if base == name and "\0" not in name and name not in (".", ".."):
        return "", ""
    remedy = f'write "{base}", and let the runtime search its directory' if base.strip(".") else "write its name"
    return f"the type {json.dumps(name)} is refused: it must be the name of a binary, not a path", remedy


def delegates_of(plugin: Dict[str, Any], pointer: str = "") -> List[Tuple[str, Dict[str, Any]]]:
    """Return ``(JSON pointer, network)`` for each network in the configuration of Multus, [] for any other plugin.

    Multus ignores them if it has a ``clusterNetwork``.
    """
    delegates = member_of(plugin, "delegates")
    if not is_multus(plugin) or not isinstance(delegates, list) or text_of(plugin, "clusternetwork"):
        return []
    named = [(f"{pointer}/delegates/{index}", network) for index, network in enumerate(delegates)]
    return [(place, network) for place, network in named if isinstance(network, dict)]


def is_multus(plugin: Dict[str, Any]) -> bool:
    """Tell whether a plugin is Multus, thin or thick, or podwire-multinet, which takes the keys of thin Multus."""
    return text_of(plugin, "type") in ("multus", "multus-shim", MULTINET)


def inner_plugins(network: Dict[str, Any], pointer: str = "") -> List[Tuple[str, Dict[str, Any]]]:
    """Return ``(JSON pointer, plugin)`` for each plugin of a network, which is a conflist or a single plugin."""
    plugins = member_of(network, "plugins")
    if text_of(network, "type") or not isinstance(plugins, list):
        return [(pointer, network)]
    named = [(f"{pointer}/plugins/{index}", plugin) for index, plugin in enumerate(plugins)]
    return [(place, plugin) for place, plugin in named if isinstance(plugin, dict)]


def types_of(plugins: List[Dict[str, Any]]) -> List[str]:
    """Return the types of everything that *plugins* execute, each once, sorted."""
    return sorted({name for plugin in plugins for _pointer, name in named_plugins(plugin)})
