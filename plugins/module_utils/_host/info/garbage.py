# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What ``cni_info`` reports on garbage: the plan of ``cni_gc``, never applied."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..attachments.caches import HostStores
from ..errors import HostError
from ..garbage.candidate import DELETED, SCOPES, GcSettings
from ..garbage.planner import plan_gc
from ..problems import WARNING, Finding, unreadable

_MEMBERS = ("kind", "network", "id", "container_id", "ifname", "evidence", "collectable", "reason")


def garbage(
    conf_dir: str, bin_dirs: Sequence[str], stores: HostStores
) -> Tuple[Optional[List[Dict[str, Any]]], List[Finding]]:
    """Return a row for each object that seems to have no owner, None if that cannot be determined; and the problems.

    Age is ignored here: it would make the result depend on the time of the call.
    """
    settings = GcSettings(
        conf_dir, bin_dirs, stores.cache_dir, scope=list(SCOPES), min_age=0, allow_empty=True, check_mode=True
    )
    try:
        plan = plan_gc(settings, stores)
    except HostError as error:
        return None, [unreadable(error, before="cannot determine what cni_gc would find: ")]
    rows = [dict(candidate.row(), collectable=candidate.action == DELETED) for candidate in plan.candidates]
    return [{name: row[name] for name in _MEMBERS} for row in rows], [
        Finding(WARNING, code, message) for code, message in plan.warnings
    ]
