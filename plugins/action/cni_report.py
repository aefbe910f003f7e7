# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of cni_report, which runs only on the controller and needs no connection to hosts."""

from __future__ import annotations

import os
import time
from typing import Any, Optional

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..plugin_utils._report import folder
from ..plugin_utils._report.compare import worse
from ..plugin_utils._report.fleet import summary_of_fleet
from ..plugin_utils._report.record import RESULTS, Record, build, summary_of, unusable


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _spec, given = self.validate_argument_spec(
            {
                "dir": {"type": "path", "required": True},
                "results": {"type": "dict", "options": {name: {"type": "raw"} for name in (*RESULTS, "info", "error")}},
                "compare": {"type": "bool", "default": False},
                "render": {"type": "bool", "default": False},
            },
        )
        if given["results"] is None and not given["render"]:
            raise AnsibleActionFail("cni_report: nothing to do; set 'results', or 'render: true'")
        if given["compare"] and given["results"] is None:
            raise AnsibleActionFail(
                "cni_report: 'compare' needs 'results' to compare with the previous record of the host"
            )
        path = os.path.abspath(given["dir"])
        try:
            # Check mode also writes the report, because that changes no host.
            if given["results"] is not None:
                record = self._record(given["results"], (task_vars or {})["inventory_hostname"])
                if given["compare"]:
                    result["worse"] = worse(folder.read_record(path, record["host"]), record)
                result["path"] = folder.write_record(path, record)
                result.update(status=record["status"], error=record["error"], steps=record["steps"])
                result["summary"] = summary_of(record)
            if given["render"]:
                report = folder.write_report(path)
                result["report"] = {
                    "json": os.path.join(path, folder.JSON_NAME),
                    "html": os.path.join(path, folder.HTML_NAME),
                    "status": report["status"],
                    "counts": report["counts"],
                    "summary": summary_of_fleet(report["counts"]),
                }
        except OSError as error:
            raise AnsibleActionFail(
                f"cni_report: cannot write to {error.filename or path} on the controller: {error.strerror}"
            ) from error
        result["changed"] = False
        return result

    @staticmethod
    def _record(given: dict[str, Any], host: str) -> Record:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            results = folder.plain(given)
            error = results.pop("error", None)
            info = results.pop("info", None)
            return build(str(host), results, info, [str(error)] if error else [], now)
        except RecursionError:
            return unusable(str(host), "what the host returned is nested too deeply")
