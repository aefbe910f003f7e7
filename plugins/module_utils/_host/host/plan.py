# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a whole host: the plans of its sections, in the order in which they are applied, and its result."""

from __future__ import annotations

from typing import Any, Callable, Container, Dict, List, Optional, Sequence, Tuple

from ..attachments.request import ABSENT
from ..errors import HostError
from ..plan import FOREIGN, Plan, Step
from ..problems import rows

# The state of the host was not the planned one, so a second plan may succeed.
_STALE = ("changed_meanwhile", "host_changed")


class Part:
    """One section of the plan, or the removals of a section, which come after the attachments.

    ``plan`` is None if there is none because of ``error``. ``apply`` executes its steps. ``late``: it must not run if
    an attachment could not be detached.
    """

    def __init__(self, section: str, plan: Optional[Plan], apply: Callable[[int], None], late: bool = False) -> None:
        self.section = section
        self.plan = plan
        self.apply = apply
        self.late = late
        self.error: Optional[HostError] = plan.error if plan else None
        # Check mode shows them beside an error, because of which a run would take none of them.
        self.steps: List[Step] = list(plan.steps) if plan else []
        for step in [*self.steps, *(plan.left if plan else [])]:
            step.section = section

    @property
    def pending(self) -> bool:
        return self.error is None and self.plan is not None and self.plan.pending

    def fail(self, error: HostError) -> None:
        """Note *error*, because of which the steps that are still planned are not executed."""
        self.error = error
        for step in self.steps:
            if step.state == "planned":
                step.state = "left_out"


class HostPlan(Plan):
    """``parts`` in the order in which they are applied. *plan_again* returns the parts from one on, planned again.
    ``refused`` are the errors of attachments that are not part of the plan.

    An error in one part does not stop the others. What depends on it is planned again, on the host as it is.
    """

    def __init__(
        self, parts: List[Part], plan_again: Callable[[List[Part]], List[Part]], refused: Sequence[HostError] = ()
    ) -> None:
        super().__init__()
        self.parts = parts
        self.refused = refused
        self._plan_again = plan_again
        self._collect()

    def _collect(self) -> None:
        self.steps = [step for part in self.parts for step in part.steps]
        plans = self.plans()
        self.left = [step for plan in plans for step in plan.left]
        self.warnings = {warning: row for plan in plans for warning, row in plan.warnings.items()}

    def plans(self) -> List[Plan]:
        """Return the plan of each section that has one, once."""
        return list({id(part.plan): part.plan for part in self.parts if part.plan is not None}.values())

    def restrict(self, classes: Container[str]) -> None:
        """Do nothing: each section was restricted before the next one was planned."""

    @property
    def pending(self) -> bool:
        return any(part.pending for part in self.parts)

    def remember(self, seen: Dict[str, Any]) -> None:
        for plan in self.plans():
            plan.remember(seen)

    def apply(self, workers: int = 1) -> None:
        """Execute the parts in order. Their errors are in ``Part.error``."""
        index = 0
        while index < len(self.parts):
            self._apply_part(index, workers)
            index += 1
        self._collect()

    def _apply_part(self, index: int, workers: int) -> None:
        part = self.parts[index]
        if not part.pending:
            return
        undetached = self._undetached() if part.late else ""
        if undetached:
            part.fail(HostError(f"nothing is removed here, because {undetached}", code="attachments_exist"))
            return
        error = self._attempt(part, workers)
        if error is not None and error.code in _STALE:
            part = self._renew(index)
            error = self._attempt(part, workers) if part.pending else part.error
        if error is not None:
            part.fail(error)
            self.parts[index + 1 :] = self._plan_again(self.parts[: index + 1])

    def _renew(self, index: int) -> Part:
        """Plan the part at *index* and those after it again; return the new part, with the steps taken so far."""
        stale = self.parts[index]
        done = [step for step in stale.steps if step.state == "done"]
        self.parts[index:] = self._plan_again(self.parts[:index])
        following = self.parts[index] if index < len(self.parts) else None
        if following is None or (following.section, following.late) != (stale.section, stale.late):
            # Somebody else has done the rest.
            following = Part(stale.section, None, stale.apply, stale.late)
            self.parts.insert(index, following)
        following.steps[:0] = done
        return following

    @staticmethod
    def _attempt(part: Part, workers: int) -> Optional[HostError]:
        try:
            part.apply(workers)
        except HostError as error:
            return error
        except OSError as error:
            # From work before and after the steps.
            where = f" ({error.filename})" if error.filename else ""
            return HostError(f"cannot write to this host: {error.strerror}{where}", code="write_failed")
        return None

    def _undetached(self) -> str:
        """Return why attachments that the request removes are still there, "" if none is."""
        part = next((part for part in self.parts if part.section == "attachments"), None)
        if part is None:
            return ""
        if part.error is not None:
            return f"the section attachments has failed ({part.error.msg})"
        left = [step.target for step in part.plan.left if step.kind == "del"] if part.plan else []
        failed = [step.target for step in part.steps if step.kind == "del" and step.state in ("failed", "left_out")]
        outcomes = [o for o in getattr(part.plan, "outcomes", []) if o.wanted.state == ABSENT and o.error is not None]
        names = dict.fromkeys([*left, *failed, *(str(outcome.key) for outcome in outcomes)])
        return f"{', '.join(names)} could not be detached" if names else ""


# ---- the result: of each section, what its own module returns

Result = Dict[str, Any]


def results_of(plan: HostPlan, check_mode: bool) -> Result:
    """Return the result of every section under its name, and ``problems`` of all of them.

    Adds warnings to *plan* if a runtime has not loaded what it should.
    """
    results: Result = {}
    problems: List[Result] = []
    for part in plan.parts:
        if part.section in results:
            continue
        result = _ROWS[part.section](part.plan, check_mode) if part.plan is not None else {}
        steps = [step for other in plan.parts if other.section == part.section for step in other.steps]
        changed = any(step.step_class != FOREIGN and (check_mode or step.state == "done") for step in steps)
        results[part.section] = dict(result, changed=changed, error=None)
        problems.extend(result.get("problems", []))
    for section, error in errors_of_sections(plan):
        results[section]["error"] = results[section]["error"] or {"code": error.code, "message": error.msg}
        problems.extend(error.facts.get("problems", []))
    results["problems"] = problems
    return results


def errors_of_sections(plan: HostPlan) -> List[Tuple[str, HostError]]:
    """Return every error, with the name of its section."""
    errors = [(part.section, part.error) for part in plan.parts if part.error is not None]
    errors += [("attachments", error) for error in plan.refused]
    for part in plan.parts:
        failed = [outcome.error for outcome in getattr(part.plan, "outcomes", []) if outcome.error is not None]
        errors += [(part.section, HostError(error["message"], error["code"])) for error in failed]
        errors += [(part.section, error) for error in getattr(part.plan, "shared_errors", [])]
    return errors


def _about_runtimes(plan: Any, check_mode: bool) -> Result:
    confirmed = None
    if plan.asks_runtimes(check_mode):
        # Imported late: a run that changes nothing asks nobody.
        from ..trials.readiness import confirm_plan

        confirmed = confirm_plan(plan, ())
    return {"effective": plan.effective, "confirmed": confirmed, "problems": rows(plan.problems)}


def _attachments(plan: Any, _check_mode: bool) -> Result:
    attached = [outcome.row() for outcome in plan.outcomes]
    if not any(outcome.wanted.pod for outcome in plan.outcomes):
        return {"attachments": attached, "pods": []}
    # Imported late: most requests have no pods.
    from ..attachments.pod_unit import pod_rows

    return {"attachments": attached, "pods": pod_rows(plan.outcomes)}


_ROWS: Dict[str, Callable[[Any, bool], Result]] = {
    "plugins": lambda plan, _check_mode: {"plugins": plan.report()},
    "pod_networks": lambda plan, _check_mode: {"networks": plan.networks, "problems": rows(plan.problems)},
    "networks": lambda plan, check_mode: {"networks": plan.networks, **_about_runtimes(plan, check_mode)},
    "runtime": lambda plan, check_mode: {"configured": plan.configured, **_about_runtimes(plan, check_mode)},
    "netns": lambda plan, _check_mode: {"netns": plan.rows},
    "attachments": _attachments,
    "audit": lambda plan, _check_mode: dict(plan.rows),
}
