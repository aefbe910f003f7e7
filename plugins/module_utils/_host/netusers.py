# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is attached to a network, by libcni's cache."""

from __future__ import annotations

from typing import List

from ..libcni.cache import list_entries
from ..libcni.errors import CacheError
from .errors import HostError


def attachments_of(cache_dir: str, network: str) -> List[str]:
    """Return the attachments of *network* that *cache_dir* knows, as ``container_id/ifname``.

    Raises HostError ``cache_unreadable``: not to know is not the same as nobody.
    """
    try:
        entries = list_entries(cache_dir)
    except CacheError as error:
        raise HostError(
            "cannot tell whether the network %r is in use: %s; mend that, or name another cache_dir" % (network, error),
            code="cache_unreadable",
        ) from error
    return ["%s/%s" % (entry.container_id, entry.if_name) for entry in entries if entry.network_name == network]
