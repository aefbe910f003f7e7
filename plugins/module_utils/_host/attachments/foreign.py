# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attachments whose network differs from theirs by what a running daemon has put into it: they are left."""

from __future__ import annotations

from typing import Dict

from ...libcni import gojson
from ..networks.injected import split
from ..networks.owners import Living, Owners
from .request import Key


def injectors(now: bytes, then: bytes, owners: Owners) -> Dict[str, Living]:
    """Return the running daemons, by their plugins, that are why two lists differ; {} if something else differs, too.

    *now* is the list as it is configured, *then* that of the ADD. A daemon may have added its plugin, changed it, or
    taken it away.
    """

    def of_others(kind: str) -> bool:
        return owners.injector(kind) is not None

    ours_now, theirs_now = split(now, of_others)
    ours_then, theirs_then = split(then, of_others)
    if gojson.dumps(ours_now) != gojson.dumps(ours_then):
        return {}
    found: Dict[str, Living] = {}
    for plugin in [*theirs_now, *theirs_then]:
        living = owners.injector(plugin["type"])
        if living is not None and (plugin in theirs_now) != (plugin in theirs_then):
            found[plugin["type"]] = living
    return found


def foreign_text(key: Key, found: Dict[str, Living]) -> str:
    """Say why an attachment is not made anew although its network is another one now."""
    named = " and ".join(
        "%s (plugin %s; %s, process %d)" % (living.owner.name, kind, living.process, living.pid)
        for kind, living in found.items()
    )
    return (
        f"{key}: {named} changed the network after the attachment was made, and is running; the attachment stays as it "
        "is, and follows the network when it is made anew for another reason, or with force"
    )
