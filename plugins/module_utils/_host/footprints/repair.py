# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Puts what is missing of footprints back in place, kind by kind, without DEL and ADD.

After each kind the state is read again, because much comes back by itself: routes with their addresses, the settings
of ports with their bridge. What would be sent a second time would be a second route.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ..addresses import is_in, packed
from ..errors import HostError
from ..firewall.chains import TABLE, FoundChains
from ..firewall.change import ChainRepair, change
from ..host_routes import why_not_forward
from ..kernel.links import STACKED, NotInPlace, can_make
from ..kernel.objects import BY_KERNEL, CONF6, KernelObject, ObjectKey, State
from ..kernel.sysctls import GLOBAL
from ..kernel.writer import Writer
from ..leases import put_lease
from ..netlink import links
from ..netns import Netns, apart, visit
from .footprint import Footprint, Owner
from .object_kinds import (
    CHAIN_KEY_LENGTH,
    HOST,
    IN_FIREWALL,
    KINDS,
    LEASE,
    ORDER,
    SWITCH,
    Difference,
    is_whole,
    repair_order,
)
from .state import DEDUCED, REHEARSED, Drift, Look, compare, note_order, read_look

_FORWARDING = "ipv6/conf/all/forwarding"
_LEASE_TIMEOUT = 10.0
_PASSES = 4 * len(ORDER)
# A bridge, then its ports, then what follows from them.
_LINK_PASSES = 6


def why_not(drift: Drift) -> str:
    """Return why not all that is lost can be put back in place, "" if it can."""
    if drift.source == DEDUCED and drift.lost:
        return f"what its ADD did is only partly known: {drift.why}"
    reasons = (_why_not_one(one, drift) for one in drift.lost)
    return next((reason for reason in reasons if reason), "")


def _why_not_one(one: Difference, drift: Drift) -> str:
    kind = KINDS[str(one.key[0])]
    what = kind.name(one.key, one.was if one.was is not None else one.now)
    if one.key[0] == "link" and one.now is None:
        objects = drift.footprint.host if one.space == HOST else drift.footprint.inside
        return _why_not_made(one, objects[one.key], drift)
    # Nobody can set these.
    fixed = ("kind", "lower") if one.key[0] == "link" and is_whole(one.was) and is_whole(one.now) else ()
    if any(isinstance(one.was[part], str) and one.was[part] != one.now[part] for part in fixed):
        return f"another interface has the name {one.key[1]}"
    if one.was is None and not kind.removable:
        return f"the {what} has left the container" if one.key[0] == "link" else f"only an ADD removes the {what}"
    if one.key[0] == SWITCH:
        return f"its plugins now make rules in {one.now}"
    if one.key[0] == LEASE and one.now is not None and one.key not in drift.freed:
        return f"the address {one.key[3]} is leased to another container"
    # That of one interface takes the host's routes, too.
    forwards = one.key == (GLOBAL, _FORWARDING) or one.key[::2] == (CONF6, "forwarding")
    return why_not_forward() if one.space == HOST and forwards and str(one.was) == "1" else ""


def _why_not_made(one: Difference, lost: KernelObject, drift: Drift) -> str:
    """Return why a lost interface cannot be made again, "" if it can or has only been renamed."""
    kind, name, wanted = lost.value["kind"], one.key[1], drift.footprint
    if drift.source == REHEARSED and kind in ("veth", *STACKED) and not lost.ifindex:
        # By their indexes, both ends of a pair know each other.
        return f"{name} is gone, and only a new ADD can make it again"
    if not is_whole(lost.value):
        return f"{name} was there before the attachment"
    space = [Netns(one.space, wanted.identity)]
    present = links() if one.space == HOST else visit(space, links).get(one.space, {})
    renamed = present.get(lost.ifindex)
    if renamed is not None and renamed.kind == kind:
        return ""
    if not can_make(kind):
        return f"{name} was a {kind or 'physical'} device"
    if kind in STACKED:
        return _why_not_stacked(lost, wanted)
    others = [other for objects in (wanted.host, wanted.inside) for key, other in objects.items() if key[0] == "link"]
    ends = [other for other in others if (other.ifindex, other.peer[0]) == (lost.peer[0], lost.ifindex)]
    return f"the other end of {name} is not recorded" if kind == "veth" and not ends else ""


def _why_not_stacked(lost: KernelObject, wanted: Footprint) -> str:
    """Return why an interface cannot be made again on its lower device, "" if it can."""
    lower, host = lost.value["lower"], links()
    if not lost.peer[1]:
        # In its own namespace; it is put back before, or exists.
        return ""
    if not isinstance(lower, dict):
        recorded = any(key[0] == "link" and one.ifindex == lost.peer[0] for key, one in wanted.host.items())
        return "" if recorded or lost.peer[0] in host else "its lower device is gone"
    name, kind = lower.get("name"), lower.get("kind")
    device = next((link for link in host.values() if link.name == name), None)
    if device is None:
        return f"its lower device {name} is gone"
    if device.kind != kind:
        what = f"a {device.kind or 'physical'} device, and was a {kind or 'physical'} one"
        return f"its lower device {name} was replaced: it is {what}"
    return "" if device.up else f"its lower device {name} is down"


class InPlaceRepair:
    """Puts back at once what several owners have lost. ``errors``: owner -> why it is not as it was."""

    def __init__(self, wanted: Sequence[Drift], order: Mapping[ObjectKey, Sequence[str]]) -> None:
        self._wanted = list(wanted)
        self._order = order
        self.errors: Dict[Owner, HostError] = {}
        self._failed: Dict[Tuple[str, ObjectKey], str] = {}
        self._put_addresses: Set[Tuple[str, ObjectKey]] = set()
        self._recorded: Dict[str, State] = {HOST: {}}
        self._namespaces = {one.netns: Netns(one.netns, one.footprint.identity) for one in self._wanted if one.netns}
        for one in self._wanted:
            for space, objects in ((HOST, one.footprint.host), (one.netns, one.footprint.inside)):
                there = {key: entry for key, entry in objects.items() if entry.value is not None}
                self._recorded.setdefault(space, {}).update(there)

    def run(self) -> None:
        """Put everything back, and look whether it is. Raises HostError if the state cannot be read."""
        first = self._look()
        with contextlib.ExitStack() as stack:
            # Only some are kept open, because a process has a limit, and a firewall that was flushed concerns all.
            for space in {one.space for one in self._differences(first)} - {HOST}:
                stack.enter_context(self._namespaces[space])
            self._put_all(first)

    def _put_all(self, first: Look) -> None:
        known = {space: set(objects) for space, objects in first.spaces.items()}
        # Positions of rules are those that the chains have in the end, so the firewall comes last.
        self._put_kernel(first, known)
        self._put_leases(self._look())
        self._put_rules(self._look())
        last = self._look()
        for one in self._wanted:
            if self._missing(one, last):
                self.errors[one.owner] = self._error(one)

    def _look(self, firewall: bool = True) -> Look:
        left_out = () if firewall else IN_FIREWALL
        keys = {space: [key for key in state if key[0] not in left_out] for space, state in self._recorded.items()}
        look = read_look(keys, self._namespaces.values())
        note_order(look, self._order, [one.footprint for one in self._wanted])
        return look

    @staticmethod
    def _missing(one: Drift, look: Look) -> List[Difference]:
        compare(look, one)
        return one.lost

    def _differences(self, look: Look) -> List[Difference]:
        found = [difference for one in self._wanted for difference in self._missing(one, look)]
        unique = {(one.space, one.key): one for one in found}
        return [one for place, one in unique.items() if place not in self._failed]

    def _error(self, one: Drift) -> HostError:
        reasons = dict.fromkeys(
            self._failed[difference.space, difference.key]
            for difference in one.lost
            if (difference.space, difference.key) in self._failed
        )
        text = f"cannot put back {'/'.join(one.owner) or 'what networks share'}: {one.reason}"
        return HostError(text + (f" ({'; '.join(reasons)})" if reasons else ""), code="repair_failed")

    # ---- kernel objects

    def _put_kernel(self, look: Look, known: Mapping[str, Set[ObjectKey]]) -> None:
        rank, rounds = -1, 0
        self._remove(look)
        for _pass in range(_PASSES):
            self._drop_derived_routes(look, known)
            todo: Dict[int, List[Difference]] = {}
            for one in self._differences(look):
                place = ORDER.index(str(one.key[0]))
                if KINDS[ORDER[place]].in_kernel and one.was is not None and place >= rank:
                    todo.setdefault(place, []).append(one)
            if not todo:
                return
            rank = min(todo)
            self._put(todo[rank], look)
            if ORDER[rank] == "link" and rounds < _LINK_PASSES:
                rounds += 1
            else:
                rank += 1
            look = self._look(firewall=False)

    def _put(self, batch: Sequence[Difference], look: Look) -> None:
        spaces: Dict[str, List[Difference]] = {}
        for one in batch:
            spaces.setdefault(one.space, []).append(one)
            if one.key[0] == "addr":
                self._put_addresses.add((one.space, one.key))
        context = {
            space: {**_other_links(look, space, objects), **objects} for space, objects in self._recorded.items()
        }
        for space, differences in spaces.items():
            differences.sort(key=lambda one: repair_order(one.key, self._object(one)))
            self._inside(
                space, differences, lambda writer, one: writer.put(one.key, self._object(one), one.now), context
            )

    def _object(self, one: Difference) -> KernelObject:
        return self._recorded[one.space][one.key]

    def _inside(self, space: str, differences: Sequence[Difference], act: Any, context: Mapping[str, State]) -> None:
        """Call *act* with a writer and each difference in the namespace. What fails is noted, and not tried again."""

        def work() -> None:
            if space != HOST and not self._namespaces[space].enter():
                raise NotInPlace(f"the network namespace {space} is gone")
            with Writer(space, context, self._namespaces) as writer:
                for one in differences:
                    try:
                        act(writer, one)
                    except OSError as error:
                        self._failed[one.space, one.key] = error.strerror or str(error)
                    except (NotInPlace, HostError, ValueError) as error:
                        self._failed[one.space, one.key] = str(error)

        try:
            apart(work)
        except NotInPlace as error:
            self._failed.update({(one.space, one.key): str(error) for one in differences})

    def _remove(self, look: Look) -> None:
        """Remove what the ADD removed, and is back."""
        spaces: Dict[str, List[Difference]] = {}
        for one in self._differences(look):
            if one.was is None and KINDS[str(one.key[0])].removable:
                spaces.setdefault(one.space, []).append(one)
        for space, differences in spaces.items():
            self._drop(space, differences, look)

    def _drop_derived_routes(self, look: Look, known: Mapping[str, Set[ObjectKey]]) -> None:
        """Remove routes that the kernel made for an address that was put back, where the ADD had removed them."""
        extra: Dict[str, List[Difference]] = {}
        for space, address in self._put_addresses:
            for key, there in look.spaces.get(space, {}).items():
                if key[0] != "route" or there.derived or key in self._recorded[space] or key in known.get(space, ()):
                    continue
                target, _slash, length = str(key[3]).partition("/")
                leads_there = target == address[2] or is_in(str(address[2]), target, int(length))
                if leads_there and there.value["proto"] == BY_KERNEL and key[7] == address[1]:
                    extra.setdefault(space, []).append(Difference(space, key, None, there.value))
        for space, differences in extra.items():
            self._drop(space, differences, look)

    def _drop(self, space: str, differences: Sequence[Difference], look: Look) -> None:
        self._inside(space, differences, lambda writer, one: writer.drop(one.key, look.spaces[space][one.key]), {})

    # ---- leases and rules

    def _put_leases(self, look: Look) -> None:
        freed = {key: lease for drift in self._wanted for key, lease in drift.freed.items()}
        for one in self._differences(look):
            if one.key[0] != LEASE or one.was is None:
                continue
            _kind, data_dir, network, address = map(str, one.key)
            try:
                if not packed(address) or "/" in network or not os.path.isabs(data_dir):
                    raise HostError(
                        f"{data_dir}/{network}/{address} is not a lease of host-local", code="lease_not_written"
                    )
                put_lease(data_dir, network, address, one.was, _LEASE_TIMEOUT, freed.get(one.key))
            except HostError as error:
                self._failed[one.space, one.key] = error.msg

    def _put_rules(self, look: Look) -> None:
        lost = [one for one in self._differences(look) if one.key[0] in IN_FIREWALL and one.was is not None]
        if not lost or look.chains is None:
            return
        places = {one.key if one.key[0] == TABLE else one.key[:CHAIN_KEY_LENGTH] for one in lost}
        repairs = [self._chain_repair(place, look.chains) for place in sorted(places, key=str)]
        try:
            change(repairs, present=look.chains)
        except HostError as error:
            self._failed.update({(one.space, one.key): error.msg for one in lost})

    def _chain_repair(self, place: ObjectKey, present: FoundChains) -> ChainRepair:
        objects = self._recorded[HOST]
        wanted: List[str] = []
        for key, there in objects.items():
            if key[0] != TABLE and len(key) > CHAIN_KEY_LENGTH and key[:CHAIN_KEY_LENGTH] == place:
                wanted += [str(key[-1])] * int(there.value)
        order = list(self._order.get(place, ()))
        if not order and place in present.chains:
            # Where it is not known, rules come first in the table filter, where plugins insert, else last.
            rules = present.chains[place].rules
            order = [*wanted, *rules] if place[3] == "filter" else [*rules, *wanted]
        rank = {rule: number for number, rule in enumerate(order)}
        wanted.sort(key=lambda rule: rank.get(rule, len(rank)))
        body: Optional[Any] = objects[place].value if place in objects else None
        return ChainRepair(place, body, order or wanted, wanted)


def _other_links(look: Look, space: str, recorded: State) -> State:
    """Return the interfaces that are there now, without one that has an index of a recorded one: it was renamed."""
    indexes = {there.ifindex for key, there in recorded.items() if key[0] == "link"}
    present = look.spaces.get(space, {}).items()
    return {key: there for key, there in present if key[0] == "link" and there.ifindex not in indexes}
