# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who needs a plugin binary: networks that name it, attachments whose DEL will run it."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, List

from ..libcni.cache import list_entries
from ..libcni.errors import CacheError
from .confdir import drop_ins, scan
from .errors import HostError
from .plugintypes import named_plugins


def users_of(names: Iterable[str], conf_dir: str, cache_dir: str) -> Dict[str, List[str]]:
    """Return, for each of *names* that is needed, who needs it, in words.

    Raises HostError ``cache_unreadable``: not to know is not the same as nobody.
    """
    found: Dict[str, List[str]] = {name: [] for name in names}

    def note(plugins: Iterable[Dict[str, Any]], user: str) -> None:
        for name in sorted({named for plugin in plugins for _pointer, named in _all_named(plugin)}):
            if name in found and user not in found[name]:
                found[name].append(user)

    for file in scan(conf_dir):
        note(file.plugins, "the network %r in %s" % (file.network, file.path))
        if file.network and not file.inlined_only:
            for drop_in in drop_ins(conf_dir, file.network):
                note(drop_in.plugins, "the network %r in %s" % (file.network, drop_in.path))
    try:
        entries = list_entries(cache_dir)
    except CacheError as error:
        raise HostError(
            "cannot tell which plugins the attachments in %s need: %s; mend that, or name another cache_dir"
            % (cache_dir, error),
            code="cache_unreadable",
        ) from error
    for entry in entries:
        user = "the attachment %s/%s/%s" % (entry.network_name, entry.container_id, entry.if_name)
        note(_cached_plugins(entry.config), user)
    return {name: users for name, users in found.items() if users}


def _all_named(plugin: Dict[str, Any]) -> List[Any]:
    named = list(named_plugins(plugin))
    # Multus' own file lists whole configurations.
    delegates = plugin.get("delegates")
    for delegate in delegates if isinstance(delegates, list) else []:
        if isinstance(delegate, dict):
            plugins = delegate.get("plugins")
            for inner in plugins if isinstance(plugins, list) else [delegate]:
                named += named_plugins(inner) if isinstance(inner, dict) else []
    return named


def _cached_plugins(config: bytes) -> List[Dict[str, Any]]:
    try:
        data = json.loads(config.decode("utf-8"))
    except ValueError:
        return []
    plugins = data.get("plugins") if isinstance(data, dict) else None
    inner = plugins if isinstance(plugins, list) else [data]
    return [plugin for plugin in inner if isinstance(plugin, dict)]


def in_use(used: Dict[str, List[str]]) -> HostError:
    """Return the error for *used* (of :func:`users_of`); its fact ``users`` lists by whom."""
    return HostError(
        "not removed, because still needed: %s. Remove the networks and attachments first, or set 'force: true' to "
        "remove the binaries all the same"
        % "; ".join("%s by %s" % (name, ", ".join(used[name])) for name in sorted(used)),
        code="plugin_in_use",
        users=[{"name": name, "users": used[name]} for name in sorted(used)],
    )
