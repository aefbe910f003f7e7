# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which attachments of a cache are alive, by the network namespaces of the host: a source of live containers."""

from __future__ import annotations

import os
from typing import Dict, FrozenSet, Optional, Set

from ..attachments.cache import CacheContents, CachedAttachment
from .live import Answer
from .namespaces import Namespaces


def place_of(entry: CachedAttachment, namespaces: Namespaces) -> str:
    """Say where the namespace of the ADD still is, "" if it is nowhere.

    One that nobody noted the identity of counts. So does one that nothing leads to, while the host's end of a veth
    is there: both ends go with the namespace of either.
    """
    if entry.record is not None and entry.record.identity is not None:
        here = namespaces.alive(entry.record.identity)
    else:
        here = next(filter(None, map(namespaces.at, entry.paths)), None)
    if here is not None:
        return here.name
    end = next((name for name in entry.host_ends if name in namespaces.away), "")
    return f"the namespace that {end} leads to" if end else ""


def seen_from_here(entry: CachedAttachment, namespaces: Namespaces) -> bool:
    """Whether the paths of the ADD mean here what they meant there; all of them end with the boot."""
    then = entry.record.identity if entry.record else None
    here = namespaces.host.identity if namespaces.host else {}
    return then is not None and (
        then["boot_id"] != here.get("boot_id") or then.get("processes") == here.get("processes", 0)
    )


def death_of(entry: CachedAttachment) -> str:
    """Say what became of the namespace, for an entry that has none any more."""
    if entry.record is not None and entry.record.identity is not None:
        if os.path.exists(entry.netns):
            return f"{entry.netns} is not the namespace of its ADD any more"
        return f"the namespace of its ADD, {entry.netns}, is gone"
    return f"there is no namespace {entry.netns}" if entry.netns else "nothing says which namespace it was in"


def answer_of(contents: CacheContents, namespaces: Namespaces) -> Answer:
    """Return the attachments whose namespace is still the one of the ADD, as a source."""
    found: Dict[str, Set[str]] = {}
    for entry in contents.entries:
        if entry.key is not None and entry.key.container_id and place_of(entry, namespaces):
            found.setdefault(entry.key.container_id, set()).add(entry.key.ifname)
    containers: Dict[str, Optional[FrozenSet[str]]] = {name: frozenset(names) for name, names in found.items()}
    asked = f"the attachments in {contents.cache_dir} whose namespace is that of their ADD"
    return Answer(contents.source, containers, asked=asked)
