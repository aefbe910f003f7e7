# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of cni_report, which runs on the controller and needs a connection to a host only to inspect it.

A host is inspected in one task: each costs the controller a process for each host, whatever it does, so that the number
of tasks limits the size of a fleet.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import yaml
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..module_utils._host.plan import FOREIGN
from ..module_utils._host.secrets import one_line
from ..modules.cni_report import DOCUMENTATION
from ..plugin_utils._report import fleet, folder, history
from ..plugin_utils._report.artifact import artifact, goes_with_the_container
from ..plugin_utils._report.bounds import bounded, reduced
from ..plugin_utils._report.compare import worse
from ..plugin_utils._report.record import (
    CLEAN,
    DRIFT,
    ERROR,
    GATHERED,
    RETURNED,
    Record,
    build,
    first_of,
    in_words,
    problems_of,
    summary_of,
)
from ..plugin_utils.preflight import preflight
from ..plugin_utils.settings import Settings
from ..plugin_utils.values import BadValue

# Imported here, and not when a host is inspected: Ansible imports this once, before it starts a process for each host.
from .cni_host import Procedure, cautions_of

Result = dict[str, Any]

_OPTIONS = yaml.safe_load(DOCUMENTATION)["options"]
_OPTIONS["results"]["options"] = _OPTIONS["results"].pop("suboptions")
_FAILING = {"never": (), "false": (), ERROR: (ERROR,), DRIFT: (ERROR, DRIFT), "true": (ERROR, DRIFT)}
"""The statuses of a host that fail the playbook drift, for each value of cni_drift_fail."""


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _supports_check_mode = True

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _spec, given = self.validate_argument_spec(_OPTIONS)
        variables = task_vars or {}
        if given["results"] is not None and given["inspect"]:
            raise AnsibleActionFail("cni_report: 'results' and 'inspect' exclude each other; set one of them")
        if given["results"] is None and not (given["inspect"] or given["render"]):
            raise AnsibleActionFail("cni_report: nothing to do; set 'results', 'inspect: true' or 'render: true'")
        if given["compare"] and given["results"] is None and not given["inspect"]:
            raise AnsibleActionFail(
                "cni_report: 'compare' needs 'results' or 'inspect' to compare with the previous record of the host"
            )
        self._path = os.path.abspath(given["dir"])
        try:
            # Check mode also writes the report, because that changes no host.
            if given["inspect"]:
                # With --diff, every step is printed with what it would change.
                result["_ansible_verbose_always"] = bool(self._task.diff)
                repairs = self._templar.template(variables.get("__cni_report_repairs"))
                result.update(
                    self._repaired(variables) if repairs else self._looked(variables, given["compare"], given["known"])
                )
            elif given["results"] is not None:
                result.update(self._written(given["results"], variables, given["compare"], given["known"])[0])
            if given["render"]:
                result["report"] = _rendered(self._path, given, variables)
                if "__cni_report_stats" in variables:
                    # The artifacts of a job in AWX, as set_stats sets them: the folder may go with the job's container.
                    more = self._templar.template(variables["__cni_report_stats"])
                    data = {"cni_drift": result["report"]["artifact"], **more}
                    result["ansible_stats"] = {"data": data, "per_host": False, "aggregate": False}
        except history.NoRun as error:
            raise AnsibleActionFail(f"cni_report: cannot compare: {error}") from error
        except OSError as error:
            raise AnsibleActionFail(
                f"cni_report: cannot write to {error.filename or self._path} on the controller: {error.strerror}"
            ) from error
        return {"changed": False, **result}

    def _written(
        self, results: Result, variables: Result, compare: bool, known: Sequence[str]
    ) -> tuple[Result, Record]:
        """Write the record of a host, and return what the result says about it, and the record itself."""
        record = self._record(results, variables)
        said: Result = {}
        if compare:
            said["worse"] = worse(folder.read_record(self._path, record["host"]), record, known)
        said["path"] = folder.write_record(self._path, record)
        attention = [message for _code, message, *_problem in fleet.reasons_of(record, record["time"], fleet.MAX_AGE)]
        said.update({key: record[key] for key in RETURNED}, summary=summary_of(record, attention))
        return {**said, "problems": problems_of(record)}, record

    def _looked(self, variables: Result, compare: bool, known: Sequence[str] = ()) -> Result:
        """Inspect a host, and return what the result says about it."""
        results = self._inspected(variables)
        said, record = self._written(results, variables, compare, known)
        said["cautions"] = [
            text for entry in results.values() if isinstance(entry, dict) for text in cautions_of(entry)
        ]
        said["planned"] = isinstance(results["host"].get("plan"), list)
        fails = record["status"] in _FAILING[self._fail_of(variables)]
        return {**said, "fail": (record["error"] or said["summary"]) if fails else ""}

    def _fail_of(self, variables: Result) -> str:
        try:
            return str(Settings(variables, self._templar.template).value("cni_drift_fail")).lower()
        except (AnsibleError, BadValue):
            # It is an error of the record.
            return ERROR

    def _repaired(self, variables: Result) -> Result:
        """Repair what is allowed on a host that has drifted, and inspect it before and after."""
        before = self._looked(variables, False)
        # A host for which nothing can be planned is not touched at all.
        if not before["planned"] or before["status"] == CLEAN:
            return {**before, "fail": before["error"] or ""}
        repair, errors = self._repair(variables)
        after = before if self._task.check_mode else self._looked(variables, True)
        if after.get("worse") and not errors:
            # What was changed while the repair ran is repaired as well, but only once: somebody may be at work here.
            repair, errors = self._repair(variables)
            after = self._looked(variables, True, after["worse"])
        # An error that existed before is not reported again.
        errors = [error for error in errors if error not in (before["error"] or "").split("\n")]
        wrong = list(dict.fromkeys([*errors, *(after.get("worse") or [])]))
        left = repair.get("left") or [] if self._task.check_mode else after["steps"]
        left = [step for step in left if step["class"] != FOREIGN]
        said = {
            **after,
            "before": before["steps"],
            "changed": bool(repair.get("changed")),
            "summary": self._summary_of_repair(repair, left, after["error"]),
            "fail": after["error"] or "",
            "left": left,
        }
        if not wrong:
            return said
        # Ansible prints all that a failed task returns.
        return {"failed": True, "msg": "; ".join(wrong), "changed": said["changed"], "summary": said["summary"]}

    def _summary_of_repair(self, repair: Result, left: list[Result], error: str | None) -> str:
        """Return what is repaired on a host, and what is left, in a line."""
        check, plan = bool(self._task.check_mode), repair.get("plan")
        state = "planned" if check else "done"
        steps = [step for step in plan if step.get("state") == state] if isinstance(plan, list) else []
        words = [f"{'would repair' if check else 'repaired'}: {in_words(steps)}"] if steps else []
        words += [f"{'would leave' if check else 'left'}: {in_words(left)}"] if left else []
        words += [f"error: {first_of(error.splitlines())}"] if error else []
        return one_line("; ".join(words) or "nothing to repair")

    def _repair(self, variables: Result) -> tuple[Result, list[str]]:
        """Repair what is allowed; return the result, and each error of a section or an attachment."""
        settings = Settings(variables, self._templar.template)
        decided = {
            "cni_attachments_on_drift": "repair",
            "cni_classes": settings.value("cni_remediate_classes"),
            "cni_host_audit": settings.value("cni_audit"),
        }
        procedure = Procedure(self, variables, **decided)
        try:
            result = procedure.result_of(Procedure.host)
        except AnsibleConnectionFailure as error:
            return {}, [f"unreachable: {error.message}"]
        if not result.get("failed"):
            return result, []
        errors = build("", {"host": {**result, "failed": False}}, None)["error"] or ""
        return result, [*(errors.split("\n") if errors else []), *procedure.errors] or [str(result.get("msg"))]

    def _inspected(self, variables: Result) -> Result:
        """Return ``host``, ``info`` and ``error`` as the option ``results`` takes them.

        They are what the role host would change, and the state of the host. What goes wrong is the error of this host,
        never the end of the play.
        """
        results: Result = {"host": {"skipped": True}, "error": ""}
        settings = Settings(variables, self._templar.template)
        try:
            results["error"] = preflight(variables, settings, Display().warning)
            if not results["error"]:
                results["host"] = self._planned(settings, variables)
        except AnsibleConnectionFailure as error:
            results["host"] = {"unreachable": True, "msg": error.message}
        except BadValue as error:
            results["error"] = str(error)
        except AnsibleError as error:
            results["error"] = error.message
        if not isinstance(results["host"].get("plan"), list) and not results["host"].get("unreachable"):
            # Variables that cannot be used do not hide the state of the host.
            results["info"] = self._gathered(settings, variables)
        return results

    def _planned(self, settings: Settings, variables: Result) -> Result:
        arguments = {**settings.options_of_host(), "gather": GATHERED, "audit": settings.value("cni_audit")}
        if "attachments" in arguments:
            # This makes drift that CHECK finds a step of the plan. Check mode does not apply it.
            arguments["attachments"]["on_drift"] = "repair"
        return Procedure(self, variables).planned(arguments, True, True)

    def _gathered(self, settings: Settings, variables: Result) -> Result:
        try:
            options = settings.options("common")
        except (AnsibleError, BadValue):
            options = {}
        try:
            result: Result = self._execute_module("podwire.cni.cni_info", module_args=options, task_vars=variables)
        except AnsibleConnectionFailure as error:
            return {"unreachable": True, "msg": error.message}
        except AnsibleError as error:
            return {"failed": True, "msg": error.message}
        return result

    @staticmethod
    def _record(given: dict[str, Any], variables: Mapping[str, Any]) -> Record:
        host = str(variables["inventory_hostname"])
        results, cut = reduced(given)
        error = results.pop("error", None)
        info = results.pop("info", None)
        groups = [str(name) for name in variables.get("group_names") or []]
        record = build(host, results, info, [str(error)] if error else [], fleet.now(), groups)
        return bounded({**record, fleet.CUT: cut})


def _rendered(path: str, given: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Make the report of a folder, and return what the result says about it."""
    groups = {str(name): [str(host) for host in hosts] for name, hosts in (variables.get("groups") or {}).items()}
    written = folder.write_report(
        path,
        max_age=given["max_age"],
        inventory=_inventory(variables),
        groups=groups,
        keep=given["keep"],
        against=given["against"],
        prometheus=os.path.abspath(given["prometheus"]) if given["prometheus"] else "",
    )
    report, before = written.report, written.before
    return {
        "json": os.path.join(path, folder.JSON_NAME),
        "html": os.path.join(path, folder.HTML_NAME),
        "status": report["status"],
        "counts": report["counts"],
        "summary": fleet.summary_of_fleet(report, named=True),
        "lost_with_container": goes_with_the_container(path),
        "artifact": artifact(report),
        "since": before.begin if before else "",
        "changes": [change._asdict() for change in written.changes],
        "changes_summary": history.summary_of_differences(before, written.changes) if before else "",
    }


def _inventory(variables: Mapping[str, Any]) -> list[str]:
    """Return the sources of the inventory, none if it has no hosts: the default one need not exist."""
    if not (variables.get("groups") or {}).get("all"):
        return []
    return [str(source) for source in variables.get("ansible_inventory_sources") or []]
