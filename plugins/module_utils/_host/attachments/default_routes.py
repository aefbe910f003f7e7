# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Default routes of the networks of a pod: in the kernel, in the cache entry, in the result and in the footprint.

Multus documents that ``default-route`` moves the default routes of the families that are asked for, and does something
else (multus-cni#1552). What is documented is done here.
"""

from __future__ import annotations

from typing import Any, Callable, Collection, Dict, List, Optional, Sequence, Set, Tuple

from ...libcni import gojson, netns as kernel_netns, types
from ...libcni.errors import CNIError
from ...libcni.fields import Route
from ...libcni.multi.routes import DEFAULTS, family_of, with_default_routes
from ..errors import HostError
from ..footprints.footprint import Footprint
from ..kernel.objects import read_objects
from ..netns import Netns, visit
from ..struct import field, struct
from .outcome import Outcome
from .pod_part import PodMember, PodPart, PodRoutes
from .store import ATTACHED, Attached, AttachmentStore
from .verbs import Failed, Verbs, living_netns


def apply_routes(
    store: AttachmentStore, routes: Optional[PodRoutes], taken: Collection[str], attached: Attached, container: Netns
) -> Attached:
    """Give an attachment the default routes that its pod asks for; None: those that its plugins made.

    They change in the kernel and in its cache entry; returned is the attachment as it is then. *taken*: families whose
    routes it does not get back. Raises HostError ``netns_replaced``, ``cache_unwritable``, or
    ``default_route_failed``; then the kernel has what it had before.
    """
    key, asked, before = attached.key, routes or PodRoutes(), attached.pod or PodMember(0, attached.key.network)
    made = before.result if before.routes else attached.result
    container.require(f"cannot change the default routes of {key}")

    def begin(own: List[Dict[str, Any]]) -> None:
        # If this run is killed, the next one knows the routes that the kernel may lack.
        if attached.state:
            begun = PodMember(before.place, before.network, asked or before.routes, made, own, moving=True)
            store.write(attached.changed(pod=begun))

    try:
        removed = visit([container], _Move(key.ifname, before, asked, taken, begin).run)[container.path]
    except CNIError as error:
        if attached.state:
            store.write(attached)
        remedy = "default-route must name a gateway in a subnet of the network"
        text = f"cannot change the default routes of {key}: {error}; {remedy}"
        raise HostError(text, code="default_route_failed") from error
    member = PodMember(before.place, before.network, asked, made if asked else None, removed)
    changed = attached.changed(result=changed_result(made or {}, asked), pod=member)
    try:
        store.write_entry(changed)
    except CNIError as error:
        raise HostError(f"cannot write the cache entry of {key}: {error}", "cache_unwritable") from error
    return changed


def reroute(outcome: Outcome, others: Sequence[Outcome], verbs: Verbs) -> Tuple[Optional[Failed], Callable[[], None]]:
    """Give an attachment that exists the default routes that its pod asks for. *others* are all of the plan.

    A route that an earlier network of the pod gets back stays away. Returns the failure of a CHECK that cannot pass,
    and what changes the routes back. Raises HostError.
    """
    before, part = outcome.attached, outcome.wanted.pod
    if before is None or part is None:
        return None, lambda: None
    container = living_netns(before, outcome.wanted.netns)
    taken = {family for other in others if _is_before(other, part) for family in _families_back(other)}

    def change(attached: Attached, routes: Optional[PodRoutes], taken: Collection[str]) -> Tuple[Attached, Any]:
        with container:
            changed = apply_routes(verbs.store, routes, taken, attached, container)
            # A CHECK that fails now, as with some plugins after an ADD, never works.
            failure = verbs.check_new(changed, container)
            if changed.state:
                changed.state, changed.check = ATTACHED, failure.kept() if failure else None
                renew_footprint(changed, container)
                verbs.store.write(changed)
        return changed, failure

    changed, failure = change(before, part.routes, taken)
    outcome.made = changed.result

    def undo() -> None:
        outcome.attached = change(changed, before.pod.routes if before.pod else None, ())[0]

    return failure, undo


def _is_before(other: Outcome, part: PodPart) -> bool:
    other_part = other.wanted.pod
    return other.reroutes and other_part is not None and other_part.unit is part.unit and other_part.place < part.place


def _families_back(outcome: Outcome) -> Set[str]:
    """Return the families of the default routes that a network gets back."""
    member = outcome.attached.pod if outcome.attached else None
    wanted = outcome.wanted.pod.routes.families if outcome.wanted.pod else []
    return {family_of(route["dst"]) for route in (member.removed if member else [])}.difference(wanted)


def changed_result(result: Dict[str, Any], routes: PodRoutes) -> Dict[str, Any]:
    """Return the result of an ADD with the default routes that *routes* ask for, in its own version."""
    if not routes:
        return result
    made = types.create_from_bytes(gojson.dumps(result))
    out: Dict[str, Any] = with_default_routes(made, routes.families, routes.gateways).to_dict()
    return out


@struct
class _Move:
    """The change in the kernel, in the namespace of this thread. First, ``begin`` gets all routes that it may lose."""

    _ifname: str
    _before: PodMember
    _wanted: PodRoutes
    _taken: Collection[str]
    begin: Callable[[List[Dict[str, Any]]], None]
    _undo: List[Any] = field(default_factory=list)

    def run(self) -> List[Dict[str, Any]]:
        """Make the change. Returns the routes that were removed and belong to the network."""
        try:
            return self._run()
        except CNIError:
            for function, route in reversed(self._undo):
                function(route, self._ifname)
            raise

    def _run(self) -> List[Dict[str, Any]]:
        then, now, own = self._before.routes, self._wanted, [Route(**row) for row in self._before.removed]
        routes = [route for route in kernel_netns.routes(self._ifname) if route.dst in DEFAULTS.values()]
        lost = [route for route in routes if family_of(route.dst) in now.families and route.gw not in now.gateways]
        own += [route for route in lost if route.gw not in then.gateways and route not in own]
        self.begin([dict(route.to_dict()) for route in own])
        gateways = set(then.gateways).difference(now.gateways)
        for route in [*lost, *(route for route in routes if route.gw in gateways and route not in lost)]:
            self._delete(route)
        for gateway in now.gateways:
            self._add(Route(DEFAULTS[family_of(gateway)], gateway))
        for route in own:
            # As with the plugins, the first network that has a default route keeps it.
            present = [(other.dst, other.priority) for other in kernel_netns.routes()]
            if family_of(route.dst) not in (*now.families, *self._taken) and (route.dst, route.priority) not in present:
                self._add(route)
        return [dict(route.to_dict()) for route in own if family_of(route.dst) in now.families]

    def _delete(self, route: Route) -> None:
        if kernel_netns.delete_route(Route(route.dst, route.gw, priority=route.priority), self._ifname):
            self._undo.append((kernel_netns.add_route, route))

    def _add(self, route: Route) -> None:
        if kernel_netns.add_route(route, self._ifname):
            self._undo.append((kernel_netns.delete_route, route))


def renew_footprint(attached: Attached, container: Netns) -> None:
    """Note the default routes that the interface has now in the footprint, so that their change is no drift."""
    footprint, ifname = attached.footprint, attached.key.ifname
    present = visit([container], read_objects).get(container.path)
    if footprint is None or present is None:
        return

    def is_default(key: Any) -> bool:
        return bool(key[0] == "route" and key[3] == "default/0" and key[7] == ifname)

    kept = {key: kernel_object for key, kernel_object in footprint.inside.items() if not is_default(key)}
    kept.update((key, route) for key, route in present.items() if is_default(key) and not route.derived)
    attached.footprint = Footprint(footprint.host, kept, footprint.identity)
