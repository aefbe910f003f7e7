# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the drift of attachments, and of what their networks share, and puts it back in place.

What an attachment needs is recorded at its ADD. If it is not, a rehearsal of the ADD shows it, and where that is not
possible, the result of the ADD implies the most important objects.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ...libcni.cache import cache_path
from ..errors import HostError
from ..firewall.chains import CHAIN, switched_backends
from ..footprints.footprint import SHARED, Footprint, Owner, SharedFootprints
from ..footprints.object_kinds import Difference, kinds_of, phrases_of, summarize
from ..footprints.state import DEDUCED, REHEARSED, Drift, Reading, compare, note_order, read_spaces, wanted_keys
from ..netns import Netns, inspect_paths, same
from ..plan import DISRUPTIVE, FOREIGN, SAFE, Plan, Step
from .request import Key
from .store import Attached, AttachmentStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..footprints.rehearsed import Rehearsed
    from ..kernel.objects import ObjectKey
    from ..leases import Lease

ADDED = "others did that, so it is left"


class Present(NamedTuple):
    """An attachment whose namespace exists: what that is now, and when the cache entry was written (None: not yet)."""

    attached: Attached
    identity: Mapping[str, Any]
    written: Optional[float]


Rehearse = Callable[[Sequence[Present]], Mapping[Key, Union["Rehearsed", HostError]]]
"""Rehearses the ADDs of attachments, see trials.rehearsal. Raises HostError if the host cannot be read."""
FindFreed = Callable[[Mapping["ObjectKey", Key]], Mapping["ObjectKey", "Lease"]]
"""Returns those leases in the place of attachments' own whose owner is dead, see garbage.freed."""


def present_in(cache_dir: str, entries: Iterable[Attached], identities: Mapping[str, Any]) -> List[Present]:
    """Return those of *entries* whose namespace exists. *identities*: path of a namespace -> what it is now."""
    by_key = {attached.key: attached for attached in entries if identities.get(attached.netns)}
    return [Present(attached, identities[attached.netns], _written(cache_dir, key)) for key, attached in by_key.items()]


def _written(cache_dir: str, key: Key) -> float:
    try:
        return os.stat(cache_path(cache_dir, *key)).st_mtime
    except OSError:
        return 0.0


class Drifts:
    """What attachments and their networks need, and what of it has drifted: ``by_owner``.

    *shared*: what was recorded of what they share. *rehearse*: None if no plugin may run. *find_freed*: None if every
    lease counts as a live container's. Raises HostError if the present state cannot be read.

    ``order``: that of the rules in chains. ``problems``: sentences about what could not be read, so that drift of it
    goes undetected. ``damages``: sentences about records that could not be used. ``reading``: what was read.
    """

    def __init__(
        self,
        attachments: Sequence[Present] = (),
        shared: Optional[SharedFootprints] = None,
        rehearse: Optional[Rehearse] = None,
        find_freed: Optional[FindFreed] = None,
    ) -> None:
        self.by_owner: Dict[Owner, Drift] = {}
        self.reading = Reading({})
        self.order: Dict[Tuple[Any, ...], List[str]] = {}
        self.problems: List[str] = []
        self.damages: List[str] = []
        self._present = {present.attached.key: present for present in attachments}
        self._shared = shared or SharedFootprints()
        self._rehearse = rehearse
        self._rehearsed: Dict[Key, Rehearsed] = {}
        self._obstacles: Dict[Key, str] = {}
        if attachments:
            self._find()
        if find_freed is not None:
            self._note_freed(find_freed)

    def of(self, key: Key) -> Optional[Drift]:
        """Return the drift of an attachment; None if its namespace is gone."""
        return self.by_owner.get(key)

    @property
    def any(self) -> bool:
        """Whether anything has drifted."""
        return any(drift.differences for drift in self.by_owner.values())

    @property
    def attachments(self) -> List[Drift]:
        return [drift for drift in self.by_owner.values() if drift.own]

    @property
    def shared(self) -> List[Drift]:
        """What networks share, and all of them, as far as it has drifted."""
        drifts = [drift for drift in self.by_owner.values() if drift.differences and not drift.own]
        return sorted(drifts, key=lambda drift: drift.owner)

    def shared_rows(self) -> List[Dict[str, Any]]:
        """Return what is shared and has drifted as data."""
        return [
            {"network": "".join(drift.owner), "differences": phrases_of(drift.differences, False)}
            for drift in self.shared
        ]

    def _find(self) -> None:
        missing = self._take_recorded()
        unknown = self._unknown(missing)
        if unknown:
            self._rehearse_all(unknown)
        reading = self.reading = self._read()
        if self._rehearsed:
            self._take_rehearsed(reading, missing)
        self._deduce(reading)
        self._compare(reading)
        self._tell_damages()

    # ---- what they need

    def _take_recorded(self) -> List[Owner]:
        """Take what was recorded; return the owners of what is shared and is not known."""
        drifts, footprints = self.by_owner, self._shared.footprints
        for key, present in self._present.items():
            footprint = present.attached.footprint
            if footprint is not None and same(footprint.identity, present.identity):
                drifts[key] = Drift(key, footprint, present.attached.netns)
        self.order = dict(self._shared.order)
        shared: List[Owner] = [*dict.fromkeys(key[:1] for key in self._present), SHARED]
        drifts.update({owner: Drift(owner, footprints[owner]) for owner in shared if owner in footprints})
        return [owner for owner in shared if owner not in footprints]

    def _unknown(self, missing: Sequence[Owner]) -> List[Present]:
        """Return the attachments that have to be rehearsed, one for each network whose shared objects are not known."""
        first = {key.network: key for key in reversed(self._present)}
        keys = {key for network, key in first.items() if () in missing or (network,) in missing}
        return [present for key, present in self._present.items() if key in keys or key not in self.by_owner]

    def _rehearse_all(self, unknown: Sequence[Present]) -> None:
        if self._rehearse is None:
            return
        for key, outcome in self._rehearse(unknown).items():
            if isinstance(outcome, HostError):
                self._obstacles[key] = outcome.msg
            else:
                self._rehearsed[key] = outcome

    def _read(self) -> Reading:
        """Read what all of it is about."""
        drifts = self.by_owner
        footprints = [(drift.netns, drift.footprint) for drift in drifts.values()]
        for key, rehearsed in self._rehearsed.items():
            netns = self._present[key].attached.netns
            footprints += [(netns, Footprint(objects)) for objects in rehearsed.owned.values()]
            footprints.append((netns, Footprint({}, rehearsed.inside)))
        wanted = wanted_keys(footprints)
        deduced = [present for key, present in self._present.items() if key not in {*drifts, *self._rehearsed}]
        if deduced:
            # Imported late, as below: nearly all attachments have footprints.
            from .deduce import made_rules

            rules = [(CHAIN,)] if any(made_rules(present.attached) for present in deduced) else []
            wanted[""].extend(rules)
            for present in deduced:
                wanted.setdefault(present.attached.netns, [])
        namespaces = {present.attached.netns: present.identity for present in self._present.values()}
        return read_spaces(wanted, [Netns(path, identity) for path, identity in namespaces.items()])

    def _take_rehearsed(self, reading: Reading, missing: Sequence[Owner]) -> None:
        from ..footprints.rehearsed import order_rules, shared_by

        drifts = self.by_owner
        newest = sorted(self._rehearsed, key=lambda key: -(self._present[key].written or 0.0))
        for key in newest:
            present, rehearsed = self._present[key], self._rehearsed[key]
            if key not in drifts:
                host = rehearsed.settled(rehearsed.owned.get(tuple(key), {}), reading, "")
                inside = rehearsed.settled(rehearsed.inside, reading, present.attached.netns)
                footprint = Footprint(host, inside, present.identity)
                drifts[key] = Drift(key, footprint, present.attached.netns, REHEARSED, rehearsed.partly)
        for owner, objects in shared_by([self._rehearsed[key] for key in newest], reading).items():
            if owner in missing:
                drifts.setdefault(owner, Drift(owner, Footprint(objects), "", REHEARSED))
        self.order.update(order_rules(reading, [add.order for add in self._rehearsed.values()]))

    def _deduce(self, reading: Reading) -> None:
        for key, present in self._present.items():
            if key not in self.by_owner and present.attached.netns in reading.spaces:
                from .deduce import deduce

                why = self._obstacles.get(key, "its ADD was not recorded")
                footprint = deduce(present.attached, present.identity, reading)
                self.by_owner[key] = Drift(key, footprint, present.attached.netns, DEDUCED, why)

    # ---- how it differs

    def _compare(self, reading: Reading) -> None:
        drifts = self.by_owner.values()
        note_order(reading, self.order, [drift.footprint for drift in drifts])
        reading.switched = switched_backends(key for drift in drifts if drift.own for key in drift.footprint.host)
        for drift in drifts:
            compare(reading, drift)
        self.problems = list(dict.fromkeys(text for drift in drifts for text in drift.unread))

    def _note_freed(self, find_freed: FindFreed) -> None:
        taken = {place: Key(*drift.owner) for drift in self.attachments for place in drift.taken}
        freed = find_freed(taken) if taken else {}
        for drift in self.attachments:
            drift.freed = {place: freed[place] for place in drift.taken if place in freed}

    def _tell_damages(self) -> None:
        damages: Dict[Owner, str] = {key: present.attached.damage for key, present in self._present.items()}
        for owner, problem in {**damages, (): self._shared.damage}.items():
            if not problem:
                continue
            drift = self.by_owner.get(owner)
            rest = "a rehearsal of its ADD takes its place"
            if drift is None or drift.source == DEDUCED:
                reasons = (why for key, why in self._obstacles.items() if owner in (key, (key.network,), ()))
                because = "; ".join(dict.fromkeys(reasons)) or "no plugin runs now"
                rest = f"only results of ADDs are compared, because {because}"
            self.damages.append(f"{problem}; {rest}; remove the file, or attach again, to end this warning")


def find_recorded_drift(cache_dir: str, entries: Sequence[Attached]) -> Drifts:
    """Compare *entries* of a cache directory with the present state, by what was recorded there. No plugin runs."""
    seen = inspect_paths({attached.netns: () for attached in entries if attached.netns})
    identities = {path: namespace.identity for path, namespace in seen.items()}
    return Drifts(present_in(cache_dir, entries, identities), AttachmentStore(cache_dir).read_shared())


# ---- repair in place

WAY_OUT = "; if it fails again, detach the attachment (state: absent), and attach it again"


class InPlaceSteps:
    """Adds steps of the kind ``repair`` to a plan. *order*: that of rules in chains."""

    def __init__(self, plan: Plan, order: Mapping[Tuple[Any, ...], Sequence[str]]) -> None:
        self._order = order
        self._plan = plan
        self._steps: List[Tuple[Step, Drift]] = []
        self._errors: Dict[Owner, HostError] = {}

    def add(
        self,
        drift: Drift,
        reason: str,
        item: object,
        note: Callable[[HostError], None] = lambda _error: None,
        way_out: str = "",
    ) -> None:
        """Add one step, in a lane of its own. *note* is told its error, which ends with *way_out*."""
        before: Dict[str, List[str]] = {"drift": phrases_of(drift.lost, drift.own)}
        after: Dict[str, List[str]] = {"drift": []}
        action = partial(self._tell, drift.owner, note, way_out)
        step_class, lane = DISRUPTIVE if drift.diversions else SAFE, f"in place {drift.target}"
        reason = "; ".join([reason, *drift.diversions])
        more = (item, lane, ["put_back"], kinds_of(drift.lost))
        step = Step("repair", drift.target, step_class, before, after, action, reason, *more)
        self._plan.add(step)
        self._steps.append((step, drift))

    def add_all(self, drifts: Iterable[Drift]) -> None:
        """Add steps for all that is lost, and report what cannot be put back and what others have added."""
        from ..footprints.repair import why_not

        for drift in drifts:
            self.leave_additions(drift)
            obstacle = why_not(drift)
            if obstacle:
                self.leave(drift.target, drift.reason, obstacle, drift.lost)
            elif drift.lost:
                self.add(drift, drift.reason, drift.owner if drift.own else ("shared", drift.target))

    def leave_additions(self, drift: Drift) -> None:
        """Report what others have added: it is never removed."""
        if drift.additions:
            self.leave(drift.target, summarize(drift.additions, drift.own), ADDED, drift.additions)

    def leave(self, target: str, reason: str, obstacle: str, differences: Sequence[Difference]) -> None:
        """Report what is not put back."""
        states = {"drift": reason}, {"drift": reason, "left": obstacle}
        reason, lost = f"{reason}; {obstacle}", kinds_of(differences)
        self._plan.add(Step("repair", target, FOREIGN, *states, lambda: None, reason, lost=lost))

    def put_back(self) -> None:
        """Put back everything whose step was not left out. Errors are raised by the steps."""
        drifts = [drift for step, drift in self._steps if step.state == "planned"]
        if not drifts:
            return
        # Imported late: needed only if something is repaired.
        from ..footprints.repair import InPlaceRepair

        repair = InPlaceRepair(drifts, self._order)
        try:
            repair.run()
        except HostError as error:
            self._errors = {drift.owner: error for drift in drifts}
        else:
            self._errors = repair.errors

    def _tell(self, owner: Owner, note: Callable[[HostError], None], way_out: str) -> None:
        error = self._errors.get(owner)
        if error is not None:
            error = HostError(f"{error.msg}{way_out}", code=error.code)
            note(error)
            raise error
