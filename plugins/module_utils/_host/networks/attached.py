# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The attachments of each network, as libcni's cache has them."""

from __future__ import annotations

from typing import Dict, List

from ...libcni.cache import Entry, list_entries
from ...libcni.errors import CacheError
from ..errors import HostError


def attached(cache_dir: str) -> Dict[str, List[Entry]]:
    """Return the attachments in *cache_dir*, by network.

    Raises HostError ``cache_unreadable``: an unreadable cache does not mean that nothing is attached.
    """
    try:
        entries = list_entries(cache_dir)
    except CacheError as error:
        raise HostError(
            f"cannot tell which networks are in use: {error}; fix that, or set another cache_dir",
            code="cache_unreadable",
        ) from error
    found: Dict[str, List[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.network_name, []).append(entry)
    return found
