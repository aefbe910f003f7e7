# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plugins that a daemon has put into a list of ours, as Istio and Linkerd do: they are kept."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Optional, Tuple

from ...libcni import gojson
from ...libcni.errors import JSONError


def injected(current: Optional[bytes], wanted: bytes, of_others: Callable[[str], bool]) -> List[Dict[str, Any]]:
    """Return the plugins of the list *current* that *wanted* has not and whose type *of_others* says yes to."""
    asked = {plugin.get("type") for plugin in _plugins(wanted)}
    return [
        plugin
        for plugin in _plugins(current or b"")
        if isinstance(plugin.get("type"), str) and plugin["type"] not in asked and of_others(plugin["type"])
    ]


def with_injected(wanted: bytes, plugins: List[Dict[str, Any]]) -> bytes:
    """Return the list *wanted* with *plugins* at the end of its chain, where their daemons put them."""
    data = json.loads(wanted.decode("utf-8"))
    data["plugins"] = data["plugins"] + plugins
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def split(text: bytes, of_others: Callable[[str], bool]) -> Tuple[Any, List[Dict[str, Any]]]:
    """Return the parsed list *text* without the plugins whose type *of_others* says yes to, and those plugins.

    Raises JSONError.
    """
    data = gojson.loads(text)
    found = [plugin for plugin in _objects(data) if isinstance(plugin.get("type"), str) and of_others(plugin["type"])]
    if found:
        data["plugins"] = [plugin for plugin in data["plugins"] if plugin not in found]
    return data, found


def _plugins(text: bytes) -> List[Dict[str, Any]]:
    try:
        data = gojson.loads(text)
    except JSONError:
        return []
    return _objects(data)


def _objects(data: Any) -> List[Dict[str, Any]]:
    plugins = data.get("plugins") if isinstance(data, dict) else None
    return [plugin for plugin in plugins if isinstance(plugin, dict)] if isinstance(plugins, list) else []
