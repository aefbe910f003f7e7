# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Inspecting a host in one task: what the role host would change on it, and its state.

Each task costs the controller a process for each host, whatever it does, so that the number of tasks limits the size of
a fleet. One task that needs only its own code is as cheap as a task can be.
"""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

# Imported here, and not when a host is inspected: Ansible imports this once, before it starts a process for each host.
from ..action.cni_host import ActionModule as HostAction
from .preflight import preflight
from .settings import Settings
from .values import BadValue

Result = dict[str, Any]

GATHERED = ["conf", "plugins", "attachments", "leases", "kernel", "garbage", "runtime", "readiness"]


class Inspection:
    """The results of ``host``, ``info`` and ``error``, as the option ``results`` of cni_report takes them.

    What goes wrong with one host is its error, never the end of the play.
    """

    def __init__(self, action: ActionBase, task_vars: Result) -> None:
        self._action = action
        self._task_vars = task_vars
        self.results: Result = {"host": {"skipped": True}, "error": ""}
        settings = Settings(task_vars, action._templar.template)
        try:
            self.results["error"] = preflight(task_vars, settings, Display().warning)
            if not self.results["error"]:
                self.results["host"] = self._planned(settings)
        except AnsibleConnectionFailure as error:
            self.results["host"] = {"unreachable": True, "msg": error.message}
        except BadValue as error:
            self.results["error"] = str(error)
        except AnsibleError as error:
            self.results["error"] = error.message
        if not self.planned and not self.results["host"].get("unreachable"):
            # Variables that cannot be used do not hide the state of the host.
            self.results["info"] = self._gathered(settings)

    @property
    def planned(self) -> bool:
        """Whether it is known what a run would change."""
        return isinstance(self.results["host"].get("plan"), list)

    @property
    def warnings(self) -> list[Any]:
        """The warnings of the module, in the form in which Ansible prints them."""
        found = [result.get("warnings") for result in self.results.values() if isinstance(result, dict)]
        return [warning for warnings in found if isinstance(warnings, list) for warning in warnings]

    def _planned(self, settings: Settings) -> Result:
        arguments = {
            **settings.options_of_host(),
            "gather": GATHERED,
            "audit": settings.value("cni_audit"),
        }
        if "attachments" in arguments:
            # This makes drift that CHECK finds a step of the plan. Check mode does not apply it.
            arguments["attachments"]["on_drift"] = "repair"
        task = self._action._task.copy(exclude_parent=True, exclude_tasks=True)
        task._parent = self._action._task._parent
        task.args, task.check_mode, task.diff = arguments, True, True
        plugin = HostAction(
            task=task,
            connection=self._action._connection,
            play_context=self._action._play_context,
            loader=self._action._loader,
            templar=self._action._templar,
            shared_loader_obj=self._action._shared_loader_obj,
        )
        result: Result = plugin.run(task_vars=self._task_vars)
        return result

    def _gathered(self, settings: Settings) -> Result:
        try:
            options = settings.options("common")
        except (AnsibleError, BadValue):
            options = {}
        try:
            result: Result = self._action._execute_module(
                module_name="podwire.cni.cni_info", module_args=options, task_vars=self._task_vars
            )
        except AnsibleConnectionFailure as error:
            return {"unreachable": True, "msg": error.message}
        except AnsibleError as error:
            return {"failed": True, "msg": error.message}
        return result
