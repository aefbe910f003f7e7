# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The users of a plugin binary: networks that name it, and attachments whose DEL runs it."""

from __future__ import annotations

from itertools import chain
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple

from ...libcni import gojson
from ...libcni.cache import list_entries
from ...libcni.errors import CacheError, JSONError
from ..confdir import drop_ins, scan_conf_dir
from ..errors import HostError
from .types import named_plugins


class User(NamedTuple):
    """A file or attachment naming ``plugins``. ``text`` describes it, ``cni_version`` is as libcni negotiates it."""

    text: str
    cni_version: str
    plugins: List[Dict[str, Any]]


def networks_in(conf_dir: str) -> Iterator[User]:
    """Yield the networks of a directory, and their drop-ins as users of their own."""
    for file in scan_conf_dir(conf_dir):
        yield User(f"the network {file.network!r} in {file.path}", file.cni_version, file.plugins)
        if file.network and not file.inlined_only:
            for drop_in in drop_ins(conf_dir, file.network):
                text = f"the network {file.network!r} in {drop_in.path}"
                yield User(text, file.cni_version, drop_in.plugins)


def attachments_in(cache_dir: str) -> Iterator[User]:
    """Yield the attachments, which need their plugins for DEL. Raises HostError ``cache_unreadable``."""
    try:
        entries = list_entries(cache_dir)
    except CacheError as error:
        raise HostError(
            f"cannot tell which plugins the attachments in {cache_dir} need: {error}; fix that, or set another "
            "cache_dir",
            code="cache_unreadable",
        ) from error
    for entry in entries:
        text = f"the attachment {entry.network_name}/{entry.container_id}/{entry.if_name}"
        yield User(text, *_cached(entry.config))


def users_of(names: Iterable[str], conf_dir: str, cache_dir: str) -> Dict[str, List[str]]:
    """Return the descriptions of the users of each of *names* that has any.

    Raises HostError ``cache_unreadable``: an unreadable cache does not mean that there are no users.
    """
    found: Dict[str, List[str]] = {name: [] for name in names}
    for user in chain(networks_in(conf_dir), attachments_in(cache_dir)):
        for name in sorted({named for plugin in user.plugins for _pointer, named in _all_named(plugin)}):
            if name in found and user.text not in found[name]:
                found[name].append(user.text)
    return {name: users for name, users in found.items() if users}


def _all_named(plugin: Dict[str, Any]) -> List[Any]:
    named = list(named_plugins(plugin))
    # The conflist of Multus contains whole configurations.
    delegates = plugin.get("delegates")
    for delegate in delegates if isinstance(delegates, list) else []:
        if isinstance(delegate, dict):
            plugins = delegate.get("plugins")
            for inner in plugins if isinstance(plugins, list) else [delegate]:
                named += named_plugins(inner) if isinstance(inner, dict) else []
    return named


def _cached(config: bytes) -> Tuple[str, List[Dict[str, Any]]]:
    """Return version and plugins of a cached configuration, which may be invalid."""
    try:
        data = gojson.loads(config)
    except JSONError:
        return "", []
    if not isinstance(data, dict):
        return "", []
    plugins = data.get("plugins")
    inner = plugins if isinstance(plugins, list) else [data]
    version = data.get("cniVersion")
    return version if isinstance(version, str) else "", [plugin for plugin in inner if isinstance(plugin, dict)]


def plugin_in_use(used: Dict[str, List[str]]) -> HostError:
    """Return the error for *used* (of :func:`users_of`); its fact ``users`` has the users of each plugin."""
    needed = "; ".join(f"{name} by {', '.join(used[name])}" for name in sorted(used))
    return HostError(
        f"nothing was removed, because plugins are in use: {needed}. Remove the networks and attachments first, or set "
        "'force: true' to remove the binaries anyway",
        code="plugin_in_use",
        users=[{"name": name, "users": used[name]} for name in sorted(used)],
    )
