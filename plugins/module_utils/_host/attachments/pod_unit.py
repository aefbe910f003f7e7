# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of a request as units: which of their networks go, what a failure takes back, and what is returned."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ...libcni import gojson, types
from ...libcni.conf import NetworkConfigList
from ...libcni.errors import CNIError
from ...libcni.multi.status import NETWORK_STATUS, network_status_text, network_statuses
from ..binaries.types import is_multus
from ..errors import HostError
from ..plan import Step
from ..struct import grouped
from .outcome import LEFT, ROLLED_BACK, Outcome
from .pod_part import PodPart, PodRoutes
from .request import ABSENT, PRESENT, WantedAttachment
from .store import AttachmentStore

# Plugins that answer the annotation themselves, beside Multus.
_ANSWERING = ("podwire-multinet",)


def with_members(
    request: Sequence[WantedAttachment], store: AttachmentStore, load: Callable[[str], NetworkConfigList]
) -> List[WantedAttachment]:
    """Return the request with what its pods have and no longer ask for, to be detached.

    *load* returns a network of the host. If that of a pod answers annotations itself, the pod asks for no others.
    """
    groups = grouped((wanted.pod.unit.entry if wanted.pod else wanted.key, wanted) for wanted in request).values()
    for parts in groups:
        if len(parts) > 1 and parts[0].state == PRESENT and _answers(parts[0], load):
            del parts[1:]
    kept = [wanted for parts in groups for wanted in parts]
    members = store.of_pods({wanted.key.container_id for wanted in kept if wanted.pod}, [wanted.key for wanted in kept])
    for parts in groups:
        unit = parts[0].pod.unit if parts[0].pod else None
        for key, attached in members.pop(unit.container_id, {}).items() if unit else ():
            if unit and attached.pod:
                part = PodPart(unit, attached.pod.place, attached.pod.network)
                parts.append(WantedAttachment(key, attached.netns, state=ABSENT, pod=part))
    return [wanted for parts in groups for wanted in parts]


def _answers(first: WantedAttachment, load: Callable[[str], NetworkConfigList]) -> bool:
    if first.pod is None or first.pod.config is not None or first.pod.conf_dir:
        return False
    try:
        plugins = load(first.key.network).plugins
    except HostError:
        # It is an error of that network.
        return False
    return any(is_multus(plugin.network) or plugin.type in _ANSWERING for plugin in plugins)


class PodTransaction:
    """What a plan has done for one pod so far. If a part fails, the rest is taken back, in reverse."""

    def __init__(self) -> None:
        self._done: List[Tuple[Outcome, str, Callable[[], object]]] = []
        self.steps: List[Tuple[Outcome, Step]] = []

    def done(self, outcome: Outcome, what: str, undo: Callable[[], object]) -> None:
        """Note that a part succeeded. *what* is what *undo* does, as a phrase."""
        self._done.append((outcome, what, undo))

    def fail(self, outcome: Outcome, error: HostError) -> HostError:
        """Take everything back, because the part *outcome* failed. Returns the error that tells all of it."""
        undone: List[str] = []
        failed: List[str] = []
        for other, what, undo in reversed(self._done):
            try:
                undo()
            except HostError as second:
                failed.append(f"{what} {other.key}: {second.msg}")
            else:
                undone.append(f"{what} {other.key}")
                other.ended = ROLLED_BACK
        for other, step in self.steps:
            if other is not outcome and (other.todo or other.reroutes) and step.state == "planned":
                other.ended = LEFT
            elif other.action == "rolled_back" and step.state == "done":
                step.state = "rolled_back"
        text = error.msg
        if undone:
            text += f"; rolled back the rest of the pod: {', '.join(undone)}"
        if failed:
            text += f"; rolling back the rest of the pod failed, too: {'; '.join(failed)}"
        return HostError(text, code="cleanup_failed" if failed else error.code, **error.facts)


def gains_route(outcome: Outcome) -> bool:
    """Tell whether a network gets a default route by the change of its default routes, and loses none."""
    member, part = outcome.attached.pod if outcome.attached else None, outcome.wanted.pod
    before, wanted = member.routes if member else PodRoutes(), part.routes if part else PodRoutes()
    if set(before.gateways).difference(wanted.gateways):
        return False
    lost = set(before.families).difference(wanted.families)
    return bool(lost or set(wanted.gateways).difference(before.gateways))


def routes_states(outcome: Outcome) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Return what was asked for the default routes of a network, and what is, as the diff shows it."""
    before = outcome.attached.pod.routes if outcome.attached and outcome.attached.pod else None
    return _routes_state(before), _routes_state(outcome.wanted.pod.routes if outcome.wanted.pod else None)


def _routes_state(routes: Optional[PodRoutes]) -> Dict[str, Any]:
    families = {"4": "IPv4", "6": "IPv6"}
    gateways = routes.gateways if routes else []
    lost = [families[family] for family in (routes.families if routes else [])]
    return {"default_routes_of_another_network": [] if gateways else lost, "default_route": gateways}


# ---- the result of the module, with the annotation k8s.v1.cni.cncf.io/network-status


def pod_rows(outcomes: Sequence[Outcome]) -> List[Dict[str, Any]]:
    """Return the module's result for each pod of the request."""
    parts = [(outcome, outcome.wanted.pod) for outcome in outcomes if outcome.wanted.pod is not None]
    rows: List[Dict[str, Any]] = []
    for of_pod in grouped((part.unit.entry, (outcome, part)) for outcome, part in parts).values():
        unit = of_pod[0][1].unit
        namespace, _slash, name = unit.name.partition("/")
        present = [(outcome, part) for outcome, part in of_pod if outcome.wanted.state == PRESENT]
        statuses = _statuses(present)
        row: Dict[str, Any] = {
            "name": name,
            "namespace": namespace,
            "container_id": unit.container_id,
            "netns": unit.netns,
            "networks": [
                {"name": part.network, "network": outcome.key.network, "ifname": outcome.key.ifname}
                for outcome, part in present
            ],
            "network_status": statuses,
            "annotations": {} if statuses is None else {NETWORK_STATUS: network_status_text(statuses)},
        }
        rows.append(row)
    return rows


def _statuses(present: Sequence[Tuple[Outcome, PodPart]]) -> Optional[List[Dict[str, Any]]]:
    """Return network-status, None before all networks are attached."""
    statuses: List[Dict[str, Any]] = []
    for outcome, part in present:
        if outcome.failed or outcome.result is None:
            return None
        try:
            result = types.create_from_bytes(gojson.dumps(outcome.result))
            statuses += network_statuses(result, part.network, part.place == 0)
        except CNIError:
            # A cache entry of another program may hold a result that is none.
            return None
    return statuses if present else None
