# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The result of ``cni_host``: of each section, what its own module returns."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from ..errors import HostError
from ..plan import FOREIGN
from ..problems import rows
from .plan import HostPlan

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
        found = _ROWS[part.section](part.plan, check_mode) if part.plan is not None else {}
        results[part.section] = dict(found, changed=_has_changed(plan, part.section, check_mode), error=None)
        problems.extend(found.get("problems", []))
    for section, error in errors_of_sections(plan):
        results[section]["error"] = results[section]["error"] or {"code": error.code, "message": error.msg}
        problems.extend(error.facts.get("problems", []))
    results["problems"] = problems
    return results


def errors_of_sections(plan: HostPlan) -> List[Tuple[str, HostError]]:
    """Return every error, with the name of its section."""
    found = [(part.section, part.error) for part in plan.parts if part.error is not None]
    found += [("attachments", error) for error in plan.refused]
    for part in plan.parts:
        for outcome in getattr(part.plan, "outcomes", []):
            if outcome.error is not None:
                found.append((part.section, HostError(outcome.error["message"], outcome.error["code"])))
    return found


def _has_changed(plan: HostPlan, section: str, check_mode: bool) -> bool:
    steps = [step for part in plan.parts if part.section == section for step in part.steps]
    return any(step.step_class != FOREIGN and (check_mode or step.state == "done") for step in steps)


def _plugins(plan: Any, _check_mode: bool) -> Result:
    return {"plugins": plan.report()}


def _networks(plan: Any, check_mode: bool) -> Result:
    return {"networks": plan.networks, **_about_runtimes(plan, check_mode)}


def _pod_networks(plan: Any, _check_mode: bool) -> Result:
    return {"networks": plan.networks, "problems": rows(plan.problems)}


def _runtime(plan: Any, check_mode: bool) -> Result:
    return {"configured": plan.configured, **_about_runtimes(plan, check_mode)}


def _about_runtimes(plan: Any, check_mode: bool) -> Result:
    confirmed = plan.confirm((), check_mode)
    return {"effective": plan.effective, "confirmed": confirmed, "problems": rows(plan.problems)}


def _netns(plan: Any, _check_mode: bool) -> Result:
    return {"netns": plan.rows}


def _attachments(plan: Any, _check_mode: bool) -> Result:
    attached = [outcome.row() for outcome in plan.outcomes]
    if not any(outcome.wanted.pod for outcome in plan.outcomes):
        return {"attachments": attached, "pods": []}
    # Imported late: most requests have no pods.
    from ..attachments.pod_unit import pod_rows

    return {"attachments": attached, "pods": pod_rows(plan.outcomes)}


def _audit(plan: Any, _check_mode: bool) -> Result:
    return dict(plan.rows)


_ROWS = {
    "plugins": _plugins,
    "pod_networks": _pod_networks,
    "networks": _networks,
    "runtime": _runtime,
    "netns": _netns,
    "attachments": _attachments,
    "audit": _audit,
}
