# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Steps that put back what attachments have lost, in place: nothing is detached, connections survive."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from ..errors import HostError
from ..footprints.object_kinds import phrases_of, summarize
from ..footprints.repair import InPlaceRepair
from ..footprints.state import Drift, Owner
from ..plan import FOREIGN, SAFE, Plan, Step
from .drift import ADDED

# One lane for all: they are put back at once before any ADD, and do not depend on what else happens to a container.
_LANE = "in place"
WAY_OUT = "; if it stays so, detach the attachment (state: absent), and attach it again"


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
        """Add one step, of the class ``safe``. *note* is told its error, which ends with *way_out*."""
        before: Dict[str, List[str]] = {"drift": phrases_of(drift.lost, drift.own)}
        after: Dict[str, List[str]] = {"drift": []}
        action = partial(self._tell, drift.owner, note, way_out)
        step = Step("repair", drift.target, SAFE, before, after, action, item, _LANE, reason=reason, parts=["put_back"])
        self._plan.add(step)
        self._steps.append((step, drift))

    def leave_additions(self, drift: Drift) -> None:
        """Report what others have added: it is never removed."""
        if drift.additions:
            self.leave(drift.target, summarize(drift.additions, drift.own), ADDED)

    def leave(self, target: str, reason: str, obstacle: str) -> None:
        """Report what is not put back."""
        states = {"drift": reason}, {"drift": reason, "left": obstacle}
        self._plan.add(Step("repair", target, FOREIGN, *states, lambda: None, reason=f"{reason}; {obstacle}"))

    def put_back(self) -> None:
        """Put back everything whose step was not left out. Errors are raised by the steps."""
        drifts = [drift for step, drift in self._steps if step.state == "planned"]
        if not drifts:
            return
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
