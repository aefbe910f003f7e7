# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plugins that another program has added to a managed conflist, as Istio and Linkerd do. They are kept."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Optional, Tuple

from ...libcni import gojson
from ...libcni.errors import JSONError


def injected(current: Optional[bytes], wanted: bytes, of_others: Callable[[str], bool]) -> List[Dict[str, Any]]:
    """Return the plugins of the conflist *current* that *wanted* does not have and whose type *of_others* accepts."""
    asked = {plugin.get("type") for plugin in _plugins(wanted)}
    return [
        plugin
        for plugin in _plugins(current or b"")
        if isinstance(plugin.get("type"), str) and plugin["type"] not in asked and of_others(plugin["type"])
    ]


def with_injected(wanted: bytes, plugins: List[Dict[str, Any]]) -> bytes:
    """Return the conflist *wanted* with *plugins* at the end of its chain, where their owners put them."""
    data = json.loads(wanted.decode("utf-8"))
    data["plugins"] = data["plugins"] + plugins
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def split(text: bytes, of_others: Callable[[str], bool]) -> Tuple[Any, List[Dict[str, Any]]]:
    """Return the parsed conflist *text* without the plugins whose type *of_others* accepts, and those plugins.

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
