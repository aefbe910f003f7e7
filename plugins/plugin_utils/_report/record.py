# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a host: what a run would change on it, and its state. Its form is in ``report.schema.json``."""

from __future__ import annotations

import re
from typing import Any, Iterator, Mapping, Optional, Sequence

from ...module_utils._host.plan import DISRUPTIVE, FOREIGN, SAFE
from ...module_utils._host.secrets import mask, one_line
from .sections import HOST, failure_of_call, results_of_sections
from .values import rows, text

Record = dict[str, Any]

FORMAT = 1
CLEAN, DRIFT, ERROR = "clean", "drift", "error"
STATUSES = (ERROR, DRIFT, CLEAN)
"""From the worst to the best."""
CLASSES = (SAFE, DISRUPTIVE, FOREIGN)

MODULES = {
    "plugins": "cni_plugins",
    "networks": "cni_conf",
    "runtime": "cni_conf",
    "netns": "cni_netns",
    "attachments": "cni_attach",
}
"""The results of the roles of single sections, in the order of a run, and their modules."""
_SECTIONS = {**MODULES, "audit": "cni_host"}
RESULTS = (HOST, *MODULES)
"""The results from which a record is built."""
GATHERED = (
    "conf",
    "aside",
    "plugins",
    "attachments",
    "leases",
    "pools",
    "garbage",
    "runtime",
    "kernel",
    "readiness",
    "problems",
)
"""The keys of the result of cni_info that the record contains."""

_DRIFTED = " has drifted: "
_WARNING = re.compile(r"\[(?P<code>[a-z0-9_]+)\] (?P<message>.*)", re.DOTALL)


def build(
    host: str,
    results: Mapping[str, Any],
    info: Any,
    errors: Sequence[str] = (),
    time: str = "",
    groups: Sequence[str] = (),
) -> Record:
    """Return the record of *host*.

    *results* are what tasks registered, by the names in ``RESULTS``; *info* is the result of cni_info, *errors* are
    sentences about other failures. Everything that comes from the host is data of unknown shape. *groups* are those of
    the host in the inventory.
    """
    wrong = [error for error in errors if error]
    steps: list[Record] = []
    warnings: list[Record] = []
    problems: list[Any] = []
    confirmed: Optional[bool] = None
    whole = results.get(HOST)
    if isinstance(whole, Mapping) and not whole.get("skipped"):
        wrong.extend(failure_of_call(whole))
        warnings.extend(_warnings("cni_host", whole))
        problems.extend(rows(whole.get("problems")))
        results = {**results, **results_of_sections(whole, _SECTIONS)}
        if isinstance(whole.get("info"), Mapping):
            info = whole["info"]
    for role, module in _SECTIONS.items():
        result = results.get(role)
        if not isinstance(result, Mapping) or result.get("skipped"):
            continue
        wrong.extend(_failure(result))
        steps.extend(_steps(module, result))
        warnings.extend(_warnings(module, result))
        problems.extend(rows(result.get("problems")))
        if confirmed is None:
            confirmed = _confirmed(result)
    gathered = None
    if isinstance(info, Mapping):
        wrong.extend(_failure(info))
        warnings.extend(_warnings("cni_info", info))
        if not info.get("failed") and not info.get("unreachable"):
            gathered = {key: info.get(key) for key in GATHERED}
            confirmed = _with_readiness(confirmed, info.get("readiness"))
    # The playbooks join the errors of several roles, which are in the results, too.
    errors = list(dict.fromkeys(line for error in wrong for line in error.split("\n")))
    return {
        "format": FORMAT,
        "host": host,
        "time": time,
        "groups": list(groups),
        "status": status_of(steps, errors),
        "error": "\n".join(errors) or None,
        "steps": steps,
        "warnings": warnings,
        "problems": mask(problems),
        "confirmed": confirmed,
        "info": mask(gathered),
    }


def unusable(host: str, why: str) -> Record:
    """Return the record of a host whose state is unknown."""
    return build(host, {}, None, [why])


RETURNED = ("status", "error", "steps", "time", "problems", "confirmed")
"""The keys of a record in the result of cni_report."""


def summary_of(record: Record) -> str:
    """Return the status of a host in a line: how many steps of each class a run would take, and the first error."""
    classes = [step["class"] for step in record["steps"]]
    counted = [f"{classes.count(name)} {name}" for name in CLASSES if name in classes]
    found = str(record["status"])
    if classes:
        found += f": {len(classes)} step{'s' if len(classes) > 1 else ''} ({', '.join(counted)})"
    if record["error"]:
        first, *more = record["error"].split("\n")
        found += f": {first if len(first) <= 200 else first[:199] + '…'}" + (f" (and {len(more)} more)" if more else "")
    return one_line(found)


def status_of(steps: Sequence[Mapping[str, Any]], errors: Sequence[str]) -> str:
    """Return the status of a host. Steps of the class foreign are reported and left, so they are no drift."""
    if errors:
        return ERROR
    return DRIFT if any(step["class"] != FOREIGN for step in steps) else CLEAN


def _failure(result: Mapping[str, Any]) -> Iterator[str]:
    if result.get("unreachable"):
        yield "unreachable: " + (text(result.get("msg")) or "the reason is unknown")
    elif result.get("failed"):
        yield text(result.get("msg")) or "the task failed without a message"


def _steps(module: str, result: Mapping[str, Any]) -> Iterator[Record]:
    """Yield the plan's steps, each with its part of the diff, which lacks those without a difference."""
    diff: dict[str, list[Mapping[str, Any]]] = {}
    for entry in rows(result.get("diff")):
        diff.setdefault(text(entry.get("before_header")), []).append(entry)
    codes = {_key(row): text(row.get("reason")) for row in rows(result.get("attachments"))}
    planned = set()
    for action in rows(result.get("actions")):
        kind, target, step_class = (text(action.get(key)) for key in ("kind", "target", "class"))
        # An unknown class must not count as a harmless one.
        step = {"module": module, "kind": kind, "target": target}
        step["class"] = step_class if step_class in CLASSES else DISRUPTIVE
        if text(action.get("reason")):
            step["reason"] = mask(text(action.get("reason")))
        if codes.get(target):
            step["why"] = codes[target]
        entry = _taken(diff.get(target, []), kind)
        if entry:
            step.update(before=mask(entry.get("before")), after=mask(entry.get("after")))
        planned.add(target)
        yield step
    for row in rows(result.get("attachments")):
        # With on_drift: report, drift is not a step of the plan.
        if row.get("action") == "drifted" and _key(row) not in planned:
            step = {"module": module, "kind": "repair", "target": _key(row), "class": DISRUPTIVE}
            yield {**step, **_drift(row), "why": text(row.get("reason"))}


def _taken(entries: list[Mapping[str, Any]], kind: str) -> Mapping[str, Any]:
    """Remove and return the first of *entries* about a step of *kind*; its second header is the kind and the reason."""
    for index, entry in enumerate(entries):
        if text(entry.get("after_header")).startswith(f"{kind}: "):
            return entries.pop(index)
    return {}


def _drift(row: Mapping[str, Any]) -> Record:
    """Return the reason of drift that was only reported, from its warning; {} if there is none."""
    messages = [text(warning.get("message")) for warning in rows(row.get("warnings"))]
    found = [message.partition(_DRIFTED)[2] for message in messages if _DRIFTED in message]
    return {"reason": mask(found[0])} if found else {}


def _key(row: Mapping[str, Any]) -> str:
    return "/".join(text(row.get(key)) for key in ("network", "container_id", "ifname"))


def _warnings(module: str, result: Mapping[str, Any]) -> Iterator[Record]:
    found = result.get("warnings")
    for warning in found if isinstance(found, list) else []:
        match = _WARNING.match(text(warning))
        code, message = match.group("code", "message") if match else ("", text(warning))
        yield {"module": module, "code": code, "message": message}


def _with_readiness(confirmed: Optional[bool], readiness: Any) -> Optional[bool]:
    """Return whether a container would get its network, from what the tasks confirmed and from cni_info's readiness.

    The readiness considers more, so it decides where it was gathered, except that no failed confirmation is forgotten.
    """
    if confirmed is False or not isinstance(readiness, Mapping):
        return confirmed
    ready = readiness.get("ready")
    return ready if isinstance(ready, bool) else None


def _confirmed(result: Mapping[str, Any]) -> Optional[bool]:
    """Return whether the runtimes report that they have loaded their network; None if none of them answered."""
    if isinstance(result.get("confirmed"), bool):
        return bool(result["confirmed"])
    said = [row["ready"] for row in rows(result.get("configured")) if isinstance(row.get("ready"), bool)]
    return all(said) if said else None
