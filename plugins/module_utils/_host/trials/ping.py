# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the host's end of a network answers pings from inside a namespace."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from .. import commands, netlink
from ..addresses import packed
from ..errors import HostError
from ..netns import visit

# An IPv6 address is usable only some seconds after it was assigned.
_DEADLINE = 5.0
_PAUSE = 0.1


class Target(NamedTuple):
    """A ``gateway``, and the container's address (``source``) that uses it."""

    gateway: str
    source: str


def targets(result: Mapping[str, Any]) -> List[Target]:
    """Return the gateways in a result of any version, each once."""
    ips = result.get("ips")
    entries = [entry for entry in ips if isinstance(entry, dict)] if isinstance(ips, list) else []
    # Results before 0.3.0.
    old = [entry for entry in (result.get("ip4"), result.get("ip6")) if isinstance(entry, dict)]
    found: Dict[str, Target] = {}
    for entry in entries + old:
        gateway, own = entry.get("gateway"), entry.get("address", entry.get("ip"))
        if isinstance(gateway, str) and isinstance(own, str):
            source = own.partition("/")[0]
            if packed(gateway) and packed(source):
                found.setdefault(gateway, Target(gateway, source))
    return list(found.values())


def gateways_on_host(found: List[Target]) -> List[Target]:
    """Return those whose gateway is an address of this host. Link-local ones need an interface and are left out."""
    here = netlink.host_addresses()
    return [one for one in found if packed(one.gateway) in here and not one.gateway.lower().startswith("fe80:")]


def find_ping() -> Optional[str]:
    """Return the path of the host's ping, None if it has none that root may run."""
    try:
        return commands.find_command("ping")
    except HostError:
        return None


def ping(program: str, netns: str, target: Target) -> str:
    """Ping from inside *netns*; return "" for an answer, else the error of ping."""
    # A process that a thread starts inherits the thread's network namespace.
    return visit([netns], lambda: _until_answered(program, target)).get(netns, "the namespace is gone")


def _until_answered(program: str, target: Target) -> str:
    deadline = time.monotonic() + _DEADLINE
    while True:
        # sbr routes packets by their source.
        done = commands.run_command([program, "-c", "1", "-W", "1", "-I", target.source, target.gateway], _DEADLINE)
        if done.rc == 0:
            return ""
        if time.monotonic() >= deadline:
            said = done.stderr or done.stdout.decode("utf-8", "replace")
            return " ".join(said.split())[-200:]
        time.sleep(_PAUSE)
