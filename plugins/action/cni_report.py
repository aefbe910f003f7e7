# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of cni_report, which runs on the controller and needs a connection to a host only to inspect it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Optional

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..plugin_utils._report import fleet, folder, history
from ..plugin_utils._report.artifact import artifact, goes_with_the_container
from ..plugin_utils._report.bounds import bounded, reduced
from ..plugin_utils._report.compare import worse
from ..plugin_utils._report.record import RESULTS, RETURNED, Record, build, problems_of, summary_of
from ..plugin_utils.inspection import Inspection


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _supports_check_mode = True

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _spec, given = self.validate_argument_spec(
            {
                "dir": {"type": "path", "required": True},
                "results": {"type": "dict", "options": {name: {"type": "raw"} for name in (*RESULTS, "info", "error")}},
                "inspect": {"type": "bool", "default": False},
                "compare": {"type": "bool", "default": False},
                "known": {"type": "list", "elements": "str", "default": []},
                "render": {"type": "bool", "default": False},
                "max_age": {"type": "float", "default": fleet.MAX_AGE},
                "keep": {"type": "int", "default": history.KEEP},
                "against": {"type": "str", "default": ""},
                "prometheus": {"type": "path"},
            },
        )
        variables = task_vars or {}
        if given["results"] is not None and given["inspect"]:
            raise AnsibleActionFail("cni_report: 'results' and 'inspect' exclude each other; set one of them")
        if given["results"] is None and not (given["inspect"] or given["render"]):
            raise AnsibleActionFail("cni_report: nothing to do; set 'results', 'inspect: true' or 'render: true'")
        if given["compare"] and given["results"] is None and not given["inspect"]:
            raise AnsibleActionFail(
                "cni_report: 'compare' needs 'results' or 'inspect' to compare with the previous record of the host"
            )
        path = os.path.abspath(given["dir"])
        if given["inspect"]:
            inspection = Inspection(self, variables)
            given["results"] = inspection.results
            result.update(planned=inspection.planned, warnings=inspection.warnings)
            # With --diff, every step is printed with what it would change.
            result["_ansible_verbose_always"] = bool(self._task.diff)
        try:
            # Check mode also writes the report, because that changes no host.
            if given["results"] is not None:
                record = self._record(given["results"], variables)
                if given["compare"]:
                    result["worse"] = worse(folder.read_record(path, record["host"]), record, given["known"])
                result["path"] = folder.write_record(path, record)
                result.update({key: record[key] for key in RETURNED}, summary=summary_of(record))
                result["problems"] = problems_of(record)
            if given["render"]:
                result["report"] = _rendered(path, given, variables)
        except history.NoRun as error:
            raise AnsibleActionFail(f"cni_report: cannot compare: {error}") from error
        except OSError as error:
            raise AnsibleActionFail(
                f"cni_report: cannot write to {error.filename or path} on the controller: {error.strerror}"
            ) from error
        result["changed"] = False
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
        "summary": fleet.summary_of_fleet(report),
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
