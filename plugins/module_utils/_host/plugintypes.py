# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which plugin binaries a configuration makes a runtime execute, its delegates included."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple


def named_plugins(plugin: Dict[str, Any], pointer: str = "") -> List[Tuple[str, str]]:
    """Return ``(JSON pointer of the place that names it, plugin type)`` for everything that *plugin* executes.

    That is its own ``type``, its ``ipam.type``, and the same of its ``delegate``. flannel delegates to bridge with
    host-local where its ``delegate`` says nothing else. Values of the wrong type count for nothing here.
    """
    found: List[Tuple[str, str]] = []
    own = _text(plugin, "type")
    if own:
        found.append((pointer + "/type", own))
    ipam = _text(_object(plugin, "ipam"), "type")
    if ipam:
        found.append((pointer + "/ipam/type", ipam))
    delegate = _object(plugin, "delegate")
    if own == "flannel":
        # Where flannel's own choice applies, the place to name is what would have to be written to change it.
        delegate = dict({"type": "bridge"}, **delegate)
        delegate["ipam"] = dict({"type": "host-local"}, **_object(delegate, "ipam"))
    if delegate:
        found.extend(named_plugins(delegate, pointer + "/delegate"))
    return found


def types_of(plugins: List[Dict[str, Any]]) -> List[str]:
    """Return the types of all that *plugins* execute, each once, sorted."""
    return sorted({name for plugin in plugins for _pointer, name in named_plugins(plugin)})


def _text(data: Dict[str, Any], key: str) -> str:
    value = _member(data, key)
    return value if isinstance(value, str) else ""


def _object(data: Dict[str, Any], key: str) -> Dict[str, Any]:
    value = _member(data, key)
    return value if isinstance(value, dict) else {}


def _member(data: Dict[str, Any], key: str) -> Any:
    """Return a member as Go does: the key in any case, the last one in document order."""
    value = None
    for name, candidate in data.items():
        if name.lower() == key:
            value = candidate
    return value
