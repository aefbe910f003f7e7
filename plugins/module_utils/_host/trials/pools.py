# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The pools that host-local takes addresses from: which are used up, and by whom."""

from __future__ import annotations

import functools
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from ..errors import HostError
from ..kinds import lease_dir, object_of
from ..leases import Lease, lease_stores, read_leases
from ..problems import WARNING, Finding, obstacle
from ..ranges import Range, leases_in, range_of, range_sets
from ..runtimes.asking import ANSWER
from ..runtimes.runtime import Network, Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..containers.namespaces import Namespaces

# The most leases and owners that are listed.
_MOST = 10


class Pools:
    """The pools of a host with *runtimes*. Asks podman, and reads network namespaces, once, and if needed."""

    def __init__(self, runtimes: Sequence[Runtime]) -> None:
        self._podman: Any = next((runtime for runtime in runtimes if runtime.name == "podman"), Runtime("podman"))

    def of(self, network: Network) -> Iterator[Finding]:
        """Yield the sets of ranges of *network* without a free address: a container needs one of each."""
        for plugin in network.plugins:
            data_dir = lease_dir(plugin)
            leases = read_leases(data_dir, network.name)[0] if data_dir else []
            for _pointer, entries in range_sets(object_of(plugin, "ipam")) if data_dir else ():
                ranges = [part for part in map(range_of, entries) if part is not None]
                # What host-local refuses, an experiment shows.
                if len(ranges) == len(entries):
                    for finding in self._full(ranges, leases):
                        yield finding._replace(network=network.name, file=network.file.path)

    def _full(self, ranges: Sequence[Range], leases: Sequence[Lease]) -> Iterator[Finding]:
        inside = leases_in(ranges, leases)
        size = sum(part.size for part in ranges)
        if not ranges or len(inside) < size:
            return
        spaces = self._namespaces
        unused = [lease for lease in inside if spaces is not None and spaces.holder(lease.ip) is None]
        text = f"host-local has no free address in {', '.join(part.text for part in ranges)}"
        evidence, remedy = f"{len(inside)} of {size} addresses are reserved", "configure a larger range"
        if unused:
            evidence += f"; no network namespace has {len(unused)} of them, those of {self._owners(unused)}"
        used = [lease for lease in inside if lease not in unused]
        if used:
            evidence += f"; {self._owners(used)} {'have the others' if unused else 'have them'}"
        if unused or spaces is None:
            remedy = f"collect what dead containers have left (podwire.cni.cni_gc), or {remedy}"
        yield obstacle("pool_full", text, evidence, remedy)

    def _owners(self, leases: Sequence[Lease]) -> str:
        """Return the owners of leases in words, stopped containers first."""
        owners = {lease.container_id for lease in leases}
        stopped = [f"{self._stopped[owner]} (stopped)" for owner in owners if owner in self._stopped]
        names = sorted(stopped) + sorted(owner or "(nobody)" for owner in owners if owner not in self._stopped)
        more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
        return ", ".join(names[:_MOST]) + more

    def of_stopped(self, networks: Sequence[Network]) -> List[Finding]:
        """Return the leases that keep podman from starting a stopped container again, with the same ID.

        podman frees them when a container stops. After a crash of the host it has forgotten that there is anything to
        free, and host-local gives no container two leases of a network.
        """
        stores = lease_stores([(network.name, plugin) for network in networks for plugin in network.plugins])
        leases = [lease for store in stores for lease in read_leases(*store)[0]]
        held = [lease for lease in leases if lease.container_id in self._stopped]
        # Whoever asks it may be the first to do so since the boot.
        boot = self._podman.booted if held else 0
        files = {network.name: network.file.path for network in networks}
        old = [lease for lease in held if lease.status is not None and lease.status.st_mtime < boot]
        return [_of_stopped(lease, self._stopped[lease.container_id], files) for lease in old[:_MOST]]

    @functools.cached_property
    def _stopped(self) -> Dict[str, str]:
        """The names of podman's stopped containers by ID, as far as it answers."""
        try:
            return self._podman.stopped(ANSWER) if self._podman.can_be_asked else {}
        except HostError:
            return {}

    @functools.cached_property
    def _namespaces(self) -> Optional[Namespaces]:
        from ..containers.namespaces import read_namespaces

        try:
            return read_namespaces([])
        except HostError:
            return None


def _of_stopped(lease: Lease, name: str, files: Mapping[str, str]) -> Finding:
    text = f"podman cannot start its stopped container {name}, because host-local has a lease for it: {lease.path}"
    owner = f"{lease.ifname or 'an interface'} of {lease.container_id}"
    evidence = f"it reserves {lease.ip} for {owner} since before this boot"
    evidence += ", and host-local gives no container two leases of a network"
    remedy = f"remove {lease.path}, and start it (podman start {name}); cni_gc keeps leases of stopped containers"
    finding = obstacle("lease_of_stopped", text, evidence, remedy, WARNING, files.get(lease.network, lease.path))
    return finding._replace(network=lease.network)
