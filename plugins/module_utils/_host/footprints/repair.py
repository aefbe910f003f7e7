# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Puts what is missing of footprints back in place, kind by kind, without DEL and ADD.

After each kind the state is read again, because much comes back by itself: routes with their addresses, the settings
of ports with their bridge. What would be sent a second time would be a second route.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Dict, List, Mapping, Sequence, Set, Tuple

from ..addresses import is_in, packed
from ..errors import HostError
from ..firewall.chains import TABLE, FoundChains
from ..firewall.change import ChainRepair, change
from ..host_routes import why_not_forward
from ..kernel.links import MAKEABLE, STACKED, NotInPlace
from ..kernel.objects import BY_KERNEL, CONF6, KernelObject, ObjectKey, State
from ..kernel.sysctls import GLOBAL
from ..kernel.writer import Writer
from ..leases import put_lease
from ..netlink import links
from ..netns import Netns, apart, visit
from ..struct import grouped
from .footprint import Footprint, Owner
from .object_kinds import (
    CHAIN_KEY_LENGTH,
    HOST,
    IN_FIREWALL,
    KINDS,
    LEASE,
    LINK,
    SWITCH,
    Difference,
    is_whole,
    repair_order,
)
from .state import DEDUCED, REHEARSED, Drift, Reading, compare, note_order, read_spaces

_FORWARDING = "ipv6/conf/all/forwarding"
_LEASE_TIMEOUT = 10.0
# A bridge, then its ports, then what follows from them.
_LINK_ROUNDS = 7


def why_not(drift: Drift) -> str:
    """Return why not all that is lost can be put back in place, "" if it can."""
    if drift.source == DEDUCED and drift.lost:
        return f"what its ADD did is only partly known: {drift.why}"
    return next(filter(None, (_why_not_put(difference, drift) for difference in drift.lost)), "")


def _why_not_put(difference: Difference, drift: Drift) -> str:
    space, key, was, now, _foreign = difference
    kind = KINDS[str(key[0])]
    if key[0] == LINK and now is None:
        objects = drift.footprint.host if space == HOST else drift.footprint.inside
        return _why_not_made(difference, objects[key], drift)
    # Nobody can set these.
    fixed = ("kind", "lower") if key[0] == LINK and is_whole(was) and is_whole(now) else ()
    if any(isinstance(was[part], str) and was[part] != now[part] for part in fixed):
        return f"another interface has the name {key[1]}"
    if was is None and not kind.removable:
        what = kind.name(key, now)
        return f"the {what} has left the container" if key[0] == LINK else f"only an ADD removes the {what}"
    if key[0] == SWITCH:
        return f"its plugins now make rules in {now}"
    if key[0] == LEASE and now is not None and key not in drift.freed:
        return f"the address {key[3]} is leased to another container"
    # That of one interface takes the host's routes, too.
    forwards = key == (GLOBAL, _FORWARDING) or key[::2] == (CONF6, "forwarding")
    return why_not_forward() if space == HOST and forwards and str(was) == "1" else ""


def _why_not_made(difference: Difference, lost: KernelObject, drift: Drift) -> str:
    """Return why a lost interface cannot be made again, "" if it can or has only been renamed."""
    kind, name, wanted = lost.value["kind"], difference.key[1], drift.footprint
    if drift.source == REHEARSED and kind in ("veth", *STACKED) and not lost.ifindex:
        # By their indexes, both ends of a pair know each other.
        return f"{name} is gone, and only a new ADD can make it again"
    if not is_whole(lost.value):
        return f"{name} was there before the attachment"
    inside = visit([Netns(drift.netns, wanted.identity)], links).get(drift.netns, {}) if drift.netns else {}
    present, opposite = (links(), inside) if difference.space == HOST else (inside, links())
    renamed = present.get(lost.ifindex)
    if renamed is not None and renamed.kind == kind:
        return ""
    if kind == "veth" and lost.peer[0] in opposite:
        return f"{name} has left for another namespace"
    if kind not in MAKEABLE:
        return f"{name} was a {kind or 'physical'} device"
    if kind in STACKED:
        return _why_not_stacked(lost, wanted)
    others = [other for objects in (wanted.host, wanted.inside) for key, other in objects.items() if key[0] == LINK]
    ends = [other for other in others if (other.ifindex, other.peer[0]) == (lost.peer[0], lost.ifindex)]
    return f"the other end of {name} is not recorded" if kind == "veth" and not ends else ""


def _why_not_stacked(lost: KernelObject, wanted: Footprint) -> str:
    """Return why an interface cannot be made again on its lower device, "" if it can."""
    lower, host = lost.value["lower"], links()
    if not lost.peer[1]:
        # In its own namespace; it is put back before, or exists.
        return ""
    if not isinstance(lower, dict):
        recorded = any(key[0] == LINK and link.ifindex == lost.peer[0] for key, link in wanted.host.items())
        return "" if recorded or lost.peer[0] in host else "its lower device is gone"
    name, kind = lower.get("name"), lower.get("kind")
    device = next((link for link in host.values() if link.name == name), None)
    if device is None:
        return f"its lower device {name} is gone"
    if device.kind != kind:
        what = f"a {device.kind or 'physical'} device, and was a {kind or 'physical'} one"
        return f"its lower device {name} was replaced: it is {what}"
    if device.mtu < lost.value["mtu"]:
        return f"its lower device {name} has the MTU {device.mtu}"
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
        self._namespaces = {lost.netns: Netns(lost.netns, lost.footprint.identity) for lost in wanted if lost.netns}
        for drift in self._wanted:
            for space, objects in ((HOST, drift.footprint.host), (drift.netns, drift.footprint.inside)):
                existing = {key: entry for key, entry in objects.items() if entry.value is not None}
                self._recorded.setdefault(space, {}).update(existing)

    def run(self) -> None:
        """Put everything back, and look whether it is. Raises HostError if the state cannot be read."""
        first = self._read_drift()
        with contextlib.ExitStack() as stack:
            # Only some are kept open, because a process has a limit, and a firewall that was flushed concerns all.
            for space in {difference.space for difference in self._differences()} - {HOST}:
                stack.enter_context(self._namespaces[space])
            # Positions of rules are those that the chains have in the end, so the firewall comes last.
            self._put_kernel(first, {space: set(objects) for space, objects in first.spaces.items()})
            self._read_drift()
            self._put_leases()
            self._put_rules(self._read_drift())
            self._read_drift()
        self.errors = {drift.owner: self._error(drift) for drift in self._wanted if drift.lost}

    def _read_drift(self, firewall: bool = True) -> Reading:
        """Read the present state, and note in each drift how it differs."""
        left_out = () if firewall else IN_FIREWALL
        keys = {space: [key for key in state if key[0] not in left_out] for space, state in self._recorded.items()}
        reading = read_spaces(keys, self._namespaces.values())
        note_order(reading, self._order, [drift.footprint for drift in self._wanted])
        for drift in self._wanted:
            compare(reading, drift)
        return reading

    def _differences(self) -> List[Difference]:
        unique = {difference[:2]: difference for drift in self._wanted for difference in drift.lost}
        return [difference for place, difference in unique.items() if place not in self._failed]

    def _error(self, drift: Drift) -> HostError:
        reasons = dict.fromkeys(filter(None, (self._failed.get(difference[:2]) for difference in drift.lost)))
        text = f"cannot put back {'/'.join(drift.owner) or 'what networks share'}: {drift.reason}"
        return HostError(text + (f" ({'; '.join(reasons)})" if reasons else ""), code="repair_failed")

    # ---- kernel objects

    def _put_kernel(self, reading: Reading, known: Mapping[str, Set[ObjectKey]]) -> None:
        returned = [lost for lost in self._differences() if lost.was is None and KINDS[str(lost.key[0])].removable]
        self._drop(returned, reading)
        for kind in [name for name, kind in KINDS.items() if kind.in_kernel]:
            for _round in range(_LINK_ROUNDS if kind == LINK else 1):
                batch = [lost for lost in self._differences() if lost.key[0] == kind and lost.was is not None]
                if not batch:
                    break
                self._put(batch, reading)
                reading = self._read_drift(firewall=False)
                self._drop_derived_routes(reading, known)

    def _put(self, batch: Sequence[Difference], reading: Reading) -> None:
        self._put_addresses.update(difference[:2] for difference in batch if difference.key[0] == "addr")
        context = {space: _context(reading, space, objects) for space, objects in self._recorded.items()}
        for space, differences in grouped((difference.space, difference) for difference in batch).items():
            differences.sort(key=lambda lost: repair_order(lost.key, self._recorded[lost.space][lost.key]))
            self._inside(space, differences, self._put_object, context)

    def _put_object(self, writer: Writer, difference: Difference) -> None:
        writer.put(difference.key, self._recorded[difference.space][difference.key], difference.now)

    def _inside(self, space: str, differences: Sequence[Difference], act: Any, context: Mapping[str, State]) -> None:
        """Call *act* with a writer and each difference in the namespace. What fails is noted, and not tried again."""

        def work() -> None:
            if space != HOST and not self._namespaces[space].enter():
                raise NotInPlace(f"the network namespace {space} is gone")
            with Writer(space, context, self._namespaces) as writer:
                for difference in differences:
                    try:
                        act(writer, difference)
                    except OSError as error:
                        self._failed[difference.space, difference.key] = error.strerror or str(error)
                    except (NotInPlace, HostError, ValueError) as error:
                        self._failed[difference.space, difference.key] = str(error)

        try:
            apart(work)
        except NotInPlace as error:
            self._failed.update({(difference.space, difference.key): str(error) for difference in differences})

    def _drop_derived_routes(self, reading: Reading, known: Mapping[str, Set[ObjectKey]]) -> None:
        """Remove routes that the kernel made for an address that was put back, where the ADD had removed them."""
        extra: List[Difference] = []
        for space, address in self._put_addresses:
            for key, route in reading.spaces.get(space, {}).items():
                if key[0] != "route" or route.derived or key in self._recorded[space] or key in known.get(space, ()):
                    continue
                target, _slash, length = str(key[3]).partition("/")
                leads_there = target == address[2] or is_in(str(address[2]), target, int(length))
                if leads_there and route.value["proto"] == BY_KERNEL and key[7] == address[1]:
                    extra.append(Difference(space, key, None, route.value))
        self._drop(extra, reading)

    def _drop(self, added: Sequence[Difference], reading: Reading) -> None:
        def drop(writer: Writer, difference: Difference) -> None:
            writer.drop(difference.key, reading.spaces[difference.space][difference.key])

        for space, differences in grouped((difference.space, difference) for difference in added).items():
            self._inside(space, differences, drop, {})

    # ---- leases and rules

    def _put_leases(self) -> None:
        freed = {key: lease for drift in self._wanted for key, lease in drift.freed.items()}
        for difference in self._differences():
            if difference.key[0] != LEASE or difference.was is None:
                continue
            _kind, data_dir, network, address = map(str, difference.key)
            try:
                if not packed(address) or "/" in network or not os.path.isabs(data_dir):
                    text = f"{data_dir}/{network}/{address} is not a lease of host-local"
                    raise HostError(text, code="lease_not_written")
                put_lease(data_dir, network, address, difference.was, _LEASE_TIMEOUT, freed.get(difference.key))
            except HostError as error:
                self._failed[difference.space, difference.key] = error.msg

    def _put_rules(self, reading: Reading) -> None:
        lost = [entry for entry in self._differences() if entry.key[0] in IN_FIREWALL and entry.was is not None]
        # One that cannot be put back fails the transaction, which holds back no other table then.
        for table in sorted({difference.key[1:4] for difference in lost}, key=str):
            parts = [difference for difference in lost if difference.key[1:4] == table]
            places = sorted({difference.key[:CHAIN_KEY_LENGTH] for difference in parts}, key=str)
            try:
                change([self._chain_repair(place, reading.chains) for place in places], present=reading.chains)
            except HostError as error:
                self._failed.update({(difference.space, difference.key): error.msg for difference in parts})

    def _chain_repair(self, place: ObjectKey, present: FoundChains) -> ChainRepair:
        objects = self._recorded[HOST]
        wanted: List[str] = []
        for key, entry in objects.items():
            if key[0] != TABLE and len(key) > CHAIN_KEY_LENGTH and key[:CHAIN_KEY_LENGTH] == place:
                wanted += [str(key[-1])] * int(entry.value)
        order = list(self._order.get(place, ()))
        if not order and place in present.chains:
            # Where it is not known, rules come first in the table filter, where plugins insert, else last.
            rules = present.chains[place].rules
            order = [*wanted, *rules] if place[3] == "filter" else [*rules, *wanted]
        rank = {rule: number for number, rule in enumerate(order)}
        wanted.sort(key=lambda rule: rank.get(rule, len(rank)))
        return ChainRepair(place, objects[place].value if place in objects else None, order or wanted, wanted)


def _context(reading: Reading, space: str, recorded: State) -> State:
    """Return what is *recorded*, and the present routes and interfaces, without those of a recorded index: renamed."""
    indexes = {link.ifindex for key, link in recorded.items() if key[0] == LINK}
    present = {key: entry for key, entry in reading.spaces.get(space, {}).items() if key[0] in (LINK, "route")}
    kept = {key: entry for key, entry in present.items() if key[0] == "route" or entry.ifindex not in indexes}
    return {**kept, **recorded}
