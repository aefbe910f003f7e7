# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What ``cni_attach`` returns about pods, with the annotation ``k8s.v1.cni.cncf.io/network-status``."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

from ...libcni import gojson, types
from ...libcni.errors import CNIError
from ...libcni.multi.status import NETWORK_STATUS, network_status_text, network_statuses
from .outcome import Outcome
from .pod_part import PodPart
from .request import PRESENT


def pod_rows(outcomes: Sequence[Outcome]) -> List[Dict[str, Any]]:
    """Return the module's result for each pod of the request."""
    rows: Dict[int, Dict[str, Any]] = {}
    parts: Dict[int, List[Tuple[Outcome, PodPart]]] = {}
    for outcome in outcomes:
        part = outcome.wanted.pod
        if part is not None:
            unit = part.unit
            namespace, _slash, name = unit.name.partition("/")
            row: Dict[str, Any] = {
                "name": name,
                "namespace": namespace,
                "container_id": unit.container_id,
                "netns": unit.netns,
            }
            rows.setdefault(unit.entry, row)
            parts.setdefault(unit.entry, []).append((outcome, part))
    for entry, row in rows.items():
        present = [(outcome, part) for outcome, part in parts[entry] if outcome.wanted.state == PRESENT]
        row["networks"] = [_network(outcome, part) for outcome, part in present]
        statuses = _statuses(present)
        row["network_status"] = statuses
        row["annotations"] = {} if statuses is None else {NETWORK_STATUS: network_status_text(statuses)}
    return list(rows.values())


def _network(outcome: Outcome, part: PodPart) -> Dict[str, Any]:
    return {"name": part.network, "network": outcome.key.network, "ifname": outcome.key.ifname}


def _statuses(present: Sequence[Tuple[Outcome, PodPart]]) -> Optional[List[Dict[str, Any]]]:
    """Return network-status, None before all networks are attached."""
    found: List[Dict[str, Any]] = []
    for outcome, part in present:
        if outcome.failed or outcome.result is None:
            return None
        try:
            result = types.create_from_bytes(gojson.dumps(outcome.result))
            found += network_statuses(result, part.network, part.place == 0)
        except CNIError:
            # A cache entry of another program may hold a result that is none.
            return None
    return found if present else None
