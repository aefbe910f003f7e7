# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether new plugin binaries support the spec versions of the networks and attachments that will run them."""

from __future__ import annotations

import os
from itertools import chain
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from ..errors import HostError
from .batch import INSTALL, REPLACE, PluginBatch, PluginChange
from .outcome import Where
from .store import MISSING, ask_version
from .types import named_plugins
from .users import User, attachments_in, networks_in

UNSUPPORTED = "network_unsupported"


def refuse_unsupported(batch: PluginBatch, where: Where, warn: Callable[[str, str], None]) -> None:
    """Check the new binaries of *batch* whose versions are known.

    Raises HostError ``network_unsupported`` for users that worked with the old binary and would not work with the new
    one. Calls *warn* instead with ``force``, and for users that did not work before either.
    """
    new = {change.name: change for change in batch.changes if _is_new(change, batch.store.bin_dir, where.bin_dirs)}
    if not new:
        return
    old: Dict[str, Set[str]] = {}
    refused = []
    for user, change in _unsupported(new, _users(batch, where)):
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


def _users(batch: PluginBatch, where: Where) -> Iterator[User]:
    ours = {os.path.dirname(path) for path in batch.manifest.networks}
    networks = chain.from_iterable(networks_in(conf_dir) for conf_dir in sorted(ours | {where.conf_dir}))
    return chain(networks, attachments_in(where.cache_dir))


def _unsupported(new: Dict[str, PluginChange], users: Iterator[User]) -> Iterator[Tuple[User, PluginChange]]:
    for user in users:
        for name in sorted({named for plugin in user.plugins for _pointer, named in named_plugins(plugin)}):
            if name in new and _version(user) not in (_versions(new[name]) or []):
                yield user, new[name]


def _old_versions(batch: PluginBatch, change: PluginChange) -> Set[str]:
    """Return the versions that the current binary supports; none if there is no binary, or it does not run."""
    if change.found.kind == MISSING:
        return set()
    known = batch.store.cni_versions(change.name, change.found)
    try:
        return set(known if known is not None else ask_version(batch.store.path(change.name)))
    except HostError:
        return set()
