# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""host-local's reservations as candidates for ``cni_gc``."""

from __future__ import annotations

from functools import partial
from typing import List, Sequence

from .. import leases
from ..addresses import packed
from ..attachments.cache import CacheContents
from ..containers.live import LiveSet
from ..leases import Lease
from .outcome import LEASE, Candidate, GcPlan, GcSettings


def lease_candidates(
    found: Sequence[Lease], contents: CacheContents, live: LiveSet, plan: GcPlan, settings: GcSettings
) -> List[Candidate]:
    """Return the leases that do not clearly belong to a live container; the rest is counted as kept."""
    wanted = []
    for lease in found:
        if not settings.wants(lease.network):
            continue
        if lease.ifname and live.has(lease.container_id, lease.ifname):
            plan.kept[LEASE] += 1
        else:
            wanted.append(_candidate(lease, contents, settings))
    return wanted


def _candidate(lease: Lease, contents: CacheContents, settings: GcSettings) -> Candidate:
    owner = f"container {lease.container_id}, interface {lease.ifname}"
    if not lease.container_id:
        owner = "no container: the file is empty, as after a crash"
    elif not lease.ifname:
        owner = f"container {lease.container_id} (old format, without an interface)"
    if lease.container_id:
        ours = (lease.network, lease.container_id) in contents.made
    else:
        ours = (lease.network, packed(lease.ip)) in contents.made_addresses
    return Candidate(
        LEASE,
        lease.network,
        lease.ip,
        lease.path,
        # host-local holds its lock for milliseconds.
        partial(leases.remove_lease, lease, settings.timeout),
        container_id=lease.container_id,
        ifname=lease.ifname,
        addresses=[lease.ip],
        since=lease.status.st_mtime if lease.status else None,
        ours=ours,
        cause="" if lease.container_id else "empty",
        before={"container_id": lease.container_id, "ifname": lease.ifname},
        evidence=[f"{lease.path} reserves it for {owner}"],
    )
