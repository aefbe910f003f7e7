# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Steps that put back what attachments have lost, in place: nothing is detached, connections survive."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from ..errors import HostError
from ..footprints.object_kinds import Difference, phrases_of
from ..footprints.repair import InPlaceRepair, Owner, Wanted
from ..plan import SAFE, Plan, Step
from .drift import LostParts
from .outcome import AttachPlan
from .request import Key

# One lane for all: they are put back at once before any ADD, and do not depend on what else happens to a container.
_LANE = "in place"
_WAY_OUT = "; if it stays so, detach the attachment (state: absent), and attach it again"
Order = Mapping[Tuple[Any, ...], Sequence[str]]


def add_lost(lost: LostParts, plan: AttachPlan) -> Callable[[], None]:
    """Add the steps that put back what is *lost* to a plan. Returns what carries all of them out."""
    steps = InPlaceSteps(plan, lambda: lost.order)
    for shared, reason in lost.shared:
        owner = (shared.network,) if shared.network else ()
        wanted = Wanted(owner, shared.footprint)
        steps.add(shared.target, reason, wanted, shared.compared.lost, Key(shared.network, "", ""))
    for outcome, mine in lost.attachments:
        outcome.action = "repaired"
        wanted = Wanted(outcome.key, mine.footprint, mine.netns)
        steps.add(str(outcome.key), outcome.why(), wanted, mine.differences, outcome.key, outcome.fail, _WAY_OUT)
    return steps.put_back


class InPlaceSteps:
    """Adds steps of the kind ``repair`` and the class ``safe`` to a plan. *order* returns that of rules in chains."""

    def __init__(self, plan: Plan, order: Callable[[], Order]) -> None:
        self._order = order
        self._plan = plan
        self._steps: List[Tuple[Step, Wanted]] = []
        self._errors: Dict[Owner, HostError] = {}

    def add(
        self,
        target: str,
        reason: str,
        wanted: Wanted,
        differences: Sequence[Difference],
        item: object,
        note: Callable[[HostError], None] = lambda _error: None,
        way_out: str = "",
    ) -> None:
        """Add one step. *note* is told its error, which ends with *way_out*."""
        before: Dict[str, List[str]] = {"drift": phrases_of(differences, len(wanted.owner) > 1)}
        after: Dict[str, List[str]] = {"drift": []}
        action = partial(self._tell, wanted.owner, note, way_out)
        step = Step("repair", target, SAFE, before, after, action, item, _LANE, reason=reason, parts=["put_back"])
        self._plan.add(step)
        self._steps.append((step, wanted))

    def put_back(self) -> None:
        """Put back everything whose step was not left out. Errors are raised by the steps."""
        wanted = [one for step, one in self._steps if step.state == "planned"]
        if not wanted:
            return
        repair = InPlaceRepair(wanted, self._order())
        try:
            repair.run()
        except HostError as error:
            self._errors = {one.owner: error for one in wanted}
        else:
            self._errors = repair.errors

    def _tell(self, owner: Owner, note: Callable[[HostError], None], way_out: str) -> None:
        error = self._errors.get(owner)
        if error is not None:
            error = HostError(f"{error.msg}{way_out}", code=error.code)
            note(error)
            raise error
