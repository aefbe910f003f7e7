# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a host: what a run would change on it, and its state. Its form is in ``report.schema.json``."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

from ...module_utils._host.plan import DISRUPTIVE, FOREIGN, SAFE
from ...module_utils._host.secrets import mask, one_line
from ...module_utils._module import SETS
from ..untrusted import rows, table, text, texts

Record = dict[str, Any]

FORMAT = 1
CLEAN, DRIFT, ERROR = "clean", "drift", "error"
STATUSES = (ERROR, DRIFT, CLEAN)
"""From the worst to the best."""
CLASSES = (SAFE, DISRUPTIVE, FOREIGN)

MODULES = {
    "plugins": "cni_plugins",
    "pod_networks": "cni_conf",
    "networks": "cni_conf",
    "runtime": "cni_conf",
    "netns": "cni_netns",
    "attachments": "cni_attach",
    "audit": "cni_host",
}
"""The module of each section of a host."""
HOST = "host"
SINGLE = ("plugins", "networks", "runtime", "netns", "attachments")
"""The results of modules of single sections, in the order of a run."""
RETURNED = ("status", "error", "steps", "time", "problems", "confirmed")
"""The keys of a record in the result of cni_report."""
GATHERED = [name for name in SETS if name != "audit"]
"""What of a host is gathered for its record."""
INFO_KEYS = (*GATHERED, "aside", "pools", "problems")
"""The keys of the result of cni_info that the record contains."""
_MOST_NAMED = 3
_NO_MESSAGE = "the task failed without a message"


def build(
    host: str,
    results: Mapping[str, Any],
    info: Any,
    errors: Sequence[str] = (),
    time: str = "",
    groups: Sequence[str] = (),
) -> Record:
    """Return the record of *host*.

    *results* are what tasks registered, by the names HOST and ``SINGLE``. *info* is the result of cni_info, *errors*
    are sentences about other failures. Everything that comes from the host is data of unknown shape. *groups* are those
    of the host in the inventory.
    """
    record = _Record()
    record.errors.extend(errors)
    whole = results.get(HOST)
    if isinstance(whole, Mapping) and not whole.get("skipped"):
        record.add_host(whole)
        info = whole["info"] if isinstance(whole.get("info"), Mapping) else info
    else:
        for section in SINGLE:
            result = table(results.get(section))
            if not result.get("skipped"):
                record.add_result(section, result)
    gathered = record.add_info(table(info)) if isinstance(info, Mapping) else None
    # The playbooks join the errors of several roles, which are in the results, too.
    lines = list(dict.fromkeys(line for error in record.errors if error for line in error.split("\n")))
    return {
        "format": FORMAT,
        "host": host,
        "time": time,
        "groups": list(groups),
        "status": status_of(record.steps, lines),
        "error": "\n".join(lines) or None,
        "unreachable": bool(record.unreachable),
        "no_connection": record.unreachable or None,
        "steps": record.steps,
        "warnings": record.warnings,
        "problems": mask(record.problems),
        "confirmed": record.confirmed,
        "info": mask(gathered),
    }


def problems_of(record: Record) -> list[Mapping[str, Any]]:
    """Return the problems that the tasks and cni_info have found."""
    return [*rows(record["problems"]), *rows(table(record["info"]).get("problems"))]


def classes_of(record: Record) -> dict[str, int]:
    """Return how many steps of each class a run would take, without the classes that have none."""
    classes = [step["class"] for step in record["steps"]]
    return {name: classes.count(name) for name in CLASSES if name in classes}


def leaks_of(record: Record) -> int:
    """Return how many leaks can be collected."""
    return sum(leak.get("collectable") is True for leak in rows(table(record["info"]).get("garbage")))


def unusable(host: str, why: str) -> Record:
    """Return the record of a host whose state is unknown."""
    return build(host, {}, None, [why])


class _Record:
    """What the results of a host say, one after another."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.unreachable = ""
        self.steps: list[Record] = []
        self.warnings: list[Record] = []
        self.problems: list[Any] = []
        self.confirmed: Optional[bool] = None

    def add_host(self, result: Mapping[str, Any]) -> None:
        """Add the result of cni_host, whose sections have what the modules of the sections would have returned."""
        if result.get("unreachable") or not isinstance(result.get("plan"), list):
            self._fail({**result, "failed": True})
        sections = {name: table(result.get(name)) for name in MODULES}
        attachments = [row for section in sections.values() for row in rows(section.get("attachments"))]
        self._add_steps(rows(result.get("plan")), result, attachments)
        for name, section in sections.items():
            # Of several attachments that fail, the section has the first error only.
            for row in [section, *(rows(section.get("attachments")) if name == "attachments" else [])]:
                if row.get("error"):
                    self.errors.append(text(table(row["error"]).get("message")) or _NO_MESSAGE)
            self._confirm(section)
        self._add_findings("cni_host", result)

    def add_result(self, section: str, result: Mapping[str, Any]) -> None:
        """Add the result of a module of one section."""
        self._fail(result)
        actions = [{**row, "section": section} for row in rows(result.get("actions"))]
        self._add_steps(actions, result, rows(result.get("attachments")))
        self._confirm(result)
        self._add_findings(MODULES[section], result)

    def add_info(self, info: Mapping[str, Any]) -> Optional[Record]:
        """Add the result of cni_info, and return what the record has of it."""
        self._fail(info)
        if info.get("failed") or info.get("unreachable"):
            return None
        ready = table(info.get("readiness")).get("ready")
        # It considers more than the tasks did, but no failed confirmation is forgotten.
        if self.confirmed is not False and isinstance(info.get("readiness"), Mapping):
            self.confirmed = ready if isinstance(ready, bool) else None
        return {key: info.get(key) for key in INFO_KEYS}

    def _fail(self, result: Mapping[str, Any]) -> None:
        if result.get("unreachable"):
            self.unreachable = text(result.get("msg")) or "the reason is unknown"
            self.errors.append(f"unreachable: {self.unreachable}")
        elif result.get("failed"):
            self.errors.append(text(result.get("msg")) or _NO_MESSAGE)

    def _add_steps(
        self, plan: Sequence[Mapping[str, Any]], result: Mapping[str, Any], attachments: Sequence[Mapping[str, Any]]
    ) -> None:
        """Add the steps of a plan, each with its part of the diff, which lacks those without a difference."""
        diff = {entry["step"]: entry for entry in rows(result.get("diff")) if isinstance(entry.get("step"), int)}
        reasons = {_key(row): text(row.get("reason")) for row in attachments}
        for place, row in enumerate(plan):
            target, step_class = text(row.get("target")), text(row.get("class"))
            step: Record = {
                "module": MODULES.get(text(row.get("section")), "cni_host"),
                "kind": text(row.get("kind")),
                "target": target,
                # An unknown class must not count as a harmless one.
                "class": step_class if step_class in CLASSES else DISRUPTIVE,
            }
            if text(row.get("reason")):
                step["reason"] = mask(text(row.get("reason")))
            codes = {"why": reasons.get(target), "lost": texts(row.get("lost"))}
            step.update((key, value) for key, value in codes.items() if value)
            if place in diff:
                step.update(before=mask(diff[place].get("before")), after=mask(diff[place].get("after")))
            self.steps.append(step)
        planned = {step["target"] for step in self.steps}
        for row in attachments:
            # With on_drift: report, drift is not a step of the plan.
            if row.get("action") == "drifted" and _key(row) not in planned:
                step = {"module": "cni_attach", "kind": "repair", "target": _key(row), "class": DISRUPTIVE}
                drift = {"reason": mask(text(row.get("drift")))} if text(row.get("drift")) else {}
                self.steps.append({**step, **drift, "why": text(row.get("reason"))})

    def _add_findings(self, module: str, result: Mapping[str, Any]) -> None:
        for row in rows(result.get("findings")):
            finding = {key: text(row.get(key)) for key in ("code", "message", "target")}
            self.warnings.append({"module": module, **finding})
            if row.get("level") == "error":
                # Only check mode tolerates it, in which a host is inspected.
                self.errors.append(finding["message"])
        self.problems.extend(rows(result.get("problems")))

    def _confirm(self, result: Mapping[str, Any]) -> None:
        """Note whether the runtimes report that they have loaded their network; the first section that knows counts."""
        said = [row["ready"] for row in rows(result.get("configured")) if isinstance(row.get("ready"), bool)]
        confirmed = result.get("confirmed")
        if self.confirmed is None:
            self.confirmed = confirmed if isinstance(confirmed, bool) else all(said) if said else None


def summary_of(record: Record, attention: Sequence[str] = ()) -> str:
    """Return the status of a host in a line: what a run would change, and the first error.

    *attention* are the reasons why a clean host needs it.
    """
    words = str(record["status"])
    if record["steps"]:
        words += f": {in_words(record['steps'])}"
    if record["error"]:
        words += f": {first_of(record['error'].split(chr(10)))}"
    elif record["status"] == CLEAN and attention:
        words += f", but needs attention: {first_of(attention)}"
    return one_line(words)


def first_of(sentences: Sequence[str]) -> str:
    """Return the first of some sentences, in at most 200 characters, and how many more there are."""
    first, *more = sentences
    return (first if len(first) <= 200 else f"{first[:199]}…") + (f" (and {len(more)} more)" if more else "")


def in_words(steps: Sequence[Mapping[str, Any]]) -> str:
    """Return what steps do to which objects: three of them, the disruptive ones first, and how many more there are."""
    ranked = sorted(steps, key=lambda step: (step.get("class") == FOREIGN, step.get("class") == SAFE))
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for number, step in enumerate(ranked):
        # A release is one event.
        one_event = step.get("kind") in ("install", "replace", "restore") and _module_of(step) == "cni_plugins"
        same = (step.get("class"), step.get("kind"), text(step.get("reason"))) if one_event else number
        groups.setdefault(same, []).append(step)
    words = [_steps_in_words(group) for group in list(groups.values())[:_MOST_NAMED]]
    classes = [str(step.get("class")) for group in list(groups.values())[_MOST_NAMED:] for step in group]
    counted = ", ".join(f"{classes.count(name)} {name}" for name in dict.fromkeys(classes))
    return ", ".join([*words, f"and {len(classes)} more ({counted})"] if classes else words)


def _steps_in_words(steps: Sequence[Mapping[str, Any]]) -> str:
    step = steps[0]
    target, note = text(step.get("target")), "" if step.get("class") == SAFE else f" ({step.get('class')})"
    kind = text(step.get("kind")).replace("_", " ")
    if len(steps) > 1:
        return f"{kind} {len(steps)} plugins" + (f": {text(step.get('reason'))}" if kind == "replace" else "") + note
    # The directory of plugins and networks says nothing new; that of a runtime's file does.
    if kind != "configure" and _module_of(step) in ("cni_plugins", "cni_conf"):
        target = target.rpartition("/")[2] or target
    return f"{kind} {target}{note}"


def _module_of(step: Mapping[str, Any]) -> str:
    return text(MODULES.get(text(step.get("section")), step.get("module")))


def status_of(steps: Sequence[Mapping[str, Any]], errors: Sequence[str]) -> str:
    """Return the status of a host. Steps of the class foreign are reported and left, so they are no drift."""
    if errors:
        return ERROR
    return DRIFT if any(step["class"] != FOREIGN for step in steps) else CLEAN


def _key(row: Mapping[str, Any]) -> str:
    return "/".join(text(row.get(key)) for key in ("network", "container_id", "ifname"))
