# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether new plugin binaries support the spec versions of the networks and attachments that will run them."""

from __future__ import annotations

import os
from itertools import chain
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ...libcni.cache import list_entries
from ...libcni.errors import CacheError
from ..addresses import objects_in
from ..confdir import read_go_json
from ..errors import HostError
from ..hostview import HostView
from .batch import INSTALL, REPLACE, PluginBatch, PluginChange
from .outcome import Where
from .store import MISSING
from .types import delegates_of, inner_plugins, types_of


class User(NamedTuple):
    """A file or attachment naming ``plugins``. ``text`` describes it, ``cni_version`` is as libcni negotiates it."""

    text: str
    cni_version: str
    plugins: List[Dict[str, Any]]


def networks_in(conf_dir: str, view: HostView) -> Iterator[User]:
    """Yield the networks of a directory, and their drop-ins as users of their own."""
    for file in view.conf_files(conf_dir):
        yield User(f"the network {file.network!r} in {file.path}", file.cni_version, file.plugins)
        for drop_in in file.drop_ins:
            yield User(f"the network {file.network!r} in {drop_in.path}", file.cni_version, drop_in.plugins)


def attachments_in(cache_dir: str, view: HostView) -> Iterator[User]:
    """Yield the attachments that stay, which need their plugins for DEL. Raises HostError ``cache_unreadable``."""
    try:
        entries = list_entries(cache_dir)
    except CacheError as error:
        raise HostError(
            f"cannot tell which plugins the attachments in {cache_dir} need: {error}; fix that, or set another "
            "cache_dir",
            code="cache_unreadable",
        ) from error
    for entry in entries:
        if view.releases((entry.network_name, entry.container_id, entry.if_name)):
            continue
        text = f"the attachment {entry.network_name}/{entry.container_id}/{entry.if_name}"
        yield User(text, *_cached(entry.config))


def _users(conf_dirs: Iterable[str], cache_dir: str, bin_dir: str, view: HostView) -> Iterator[User]:
    """Yield the networks of these directories, the attachments, and the networks that runtimes build of *bin_dir*."""
    networks = chain.from_iterable(networks_in(conf_dir, view) for conf_dir in conf_dirs)
    return chain(networks, attachments_in(cache_dir, view), map(User._make, view.built_in(view, bin_dir)))


def users_of(names: Iterable[str], view: HostView, where: Where, bin_dir: str) -> Dict[str, List[str]]:
    """Return the descriptions of the users of each of *names*, plugins in *bin_dir*, that has any.

    Raises HostError ``cache_unreadable``: an unreadable cache does not mean that there are no users.
    """
    by_plugin: Dict[str, List[str]] = {name: [] for name in names}
    for user in _users([where.conf_dir], where.cache_dir, bin_dir, view):
        for name in types_of(_with_delegates(user.plugins)):
            if name in by_plugin and user.text not in by_plugin[name]:
                by_plugin[name].append(user.text)
    return {name: users for name, users in by_plugin.items() if users}


def _with_delegates(plugins: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    networks = [network for plugin in plugins for _place, network in delegates_of(plugin)]
    return plugins + [inner for network in networks for _place, inner in inner_plugins(network)]


def _cached(config: bytes) -> Tuple[str, List[Dict[str, Any]]]:
    """Return version and plugins of a cached configuration, which may be invalid."""
    data = read_go_json(config)
    if not isinstance(data, dict):
        return "", []
    plugins = data.get("plugins")
    version = data.get("cniVersion")
    inner = plugins if isinstance(plugins, list) else [data]
    return version if isinstance(version, str) else "", objects_in(inner)


def plugin_in_use(used: Dict[str, List[str]]) -> HostError:
    """Return the error for *used* (of :func:`users_of`); its fact ``users`` has the users of each plugin."""
    needed = "; ".join(f"{name} by {', '.join(used[name])}" for name in sorted(used))
    return HostError(
        f"nothing was removed, because plugins are in use: {needed}. Remove the networks and attachments first, or set "
        "'force: true' to remove the binaries anyway",
        code="plugin_in_use",
        users=[{"name": name, "users": used[name]} for name in sorted(used)],
    )


UNSUPPORTED = "network_unsupported"


def refuse_unsupported(batch: PluginBatch, view: HostView, where: Where, warn: Callable[[str, str], None]) -> None:
    """Check the new binaries of *batch* whose versions are known.

    Raises HostError ``network_unsupported`` for users that worked with the old binary and would not work with the new
    one. Calls *warn* instead with ``force``, and for users that did not work before either.
    """
    new = {change.name: change for change in batch.changes if _is_new(change, batch.store.bin_dir, where.bin_dirs)}
    if not new:
        return
    old: Dict[str, Set[str]] = {}
    refused = []
    managed = {os.path.dirname(path) for path in batch.manifest.networks}
    users = _users(sorted(managed | {where.conf_dir}), where.cache_dir, batch.store.bin_dir, view)
    for user, change in _unsupported(new, users):
        if change.name not in old:
            old[change.name] = _old_versions(batch, change)
        text = (
            f"{user.text} has the cniVersion {_version(user)}, which the new {change.name} does not support (it "
            f"supports {', '.join(_versions(change) or [])})"
        )
        if _version(user) not in old[change.name]:
            warn(UNSUPPORTED, f"{text}; it did not work before either")
        elif where.force:
            warn(UNSUPPORTED, text)
        else:
            refused.append(text)
    if refused:
        raise HostError(
            f"nothing was installed: {'; '.join(refused)}. Write a cniVersion that both support, install another "
            "release, or set 'force: true' to install it anyway",
            code=UNSUPPORTED,
        )


def _is_new(change: PluginChange, bin_dir: str, bin_dirs: Sequence[str]) -> bool:
    """Tell whether networks will run the new binary: none of the same name comes before it in *bin_dirs*."""
    if change.kind not in (INSTALL, REPLACE) or not _versions(change):
        return False
    first = next((d for d in bin_dirs if d == bin_dir or os.path.isfile(os.path.join(d, change.name))), None)
    return first == bin_dir


def _versions(change: PluginChange) -> Optional[List[str]]:
    return (change.report or {}).get("cni_versions")


def _version(user: User) -> str:
    return user.cni_version or "0.1.0"


def _unsupported(new: Dict[str, PluginChange], users: Iterator[User]) -> Iterator[Tuple[User, PluginChange]]:
    for user in users:
        for name in types_of(user.plugins):
            if name in new and _version(user) not in (_versions(new[name]) or []):
                yield user, new[name]


def _old_versions(batch: PluginBatch, change: PluginChange) -> Set[str]:
    """Return the versions that the current binary supports; none if there is no binary, or it does not run."""
    if change.current.kind == MISSING:
        return set()
    try:
        return set(batch.store.ask(change.name, change.current))
    except HostError:
        return set()
