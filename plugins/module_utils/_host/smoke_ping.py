# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the host's end of a network answers to somebody in a namespace."""

from __future__ import annotations

import time
from typing import Any, List, Mapping, Optional

from . import commands, rtnetlink
from .errors import HostError
from .leases import packed
from .netns import visit

# An IPv6 address is of use some seconds after it was given only.
_DEADLINE = 5.0
_PAUSE = 0.1


def gateways(result: Mapping[str, Any]) -> List[str]:
    """Return the gateways in a result of any version, each once."""
    entries = result.get("ips")
    found = [entry.get("gateway") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    # Results before 0.3.0.
    for family in ("ip4", "ip6"):
        entry = result.get(family)
        found.append(entry.get("gateway") if isinstance(entry, dict) else None)
    return list(dict.fromkeys(address for address in found if isinstance(address, str) and packed(address)))


def on_host(addresses: List[str]) -> List[str]:
    """Return those of *addresses* that this host has. A link-local one needs an interface, and is left out."""
    here = rtnetlink.addresses()
    return [address for address in addresses if packed(address) in here and not address.lower().startswith("fe80:")]


def find() -> Optional[str]:
    """Return the path of the host's ping, None if it has none that root may run."""
    try:
        return commands.find("ping")
    except HostError:
        return None


def ping(program: str, netns: str, address: str) -> str:
    """Ping *address* from inside of *netns*; return "" for an answer, else what ping said."""
    # A thread takes its network namespace along to what it starts.
    return visit([netns], lambda: _until_answered(program, address)).get(netns, "the namespace is gone")


def _until_answered(program: str, address: str) -> str:
    deadline = time.monotonic() + _DEADLINE
    while True:
        done = commands.run([program, "-c", "1", "-W", "1", address], _DEADLINE)
        if done.rc == 0:
            return ""
        if time.monotonic() >= deadline:
            said = done.stderr or done.stdout.decode("utf-8", "replace")
            return " ".join(said.split())[-200:]
        time.sleep(_PAUSE)
