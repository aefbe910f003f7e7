# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller halves of all modules have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ansible.plugins.action import ActionBase

from ..module_utils._host.errors import HostError, coded
from ..module_utils._host.secrets import one_line, published

Result = dict[str, Any]

INTERNAL = ("_source", "_refused", "_networks")
"""Options between an action plugin and its module."""


class ModuleAction(ActionBase):
    """Prepares the arguments of the module ``MODULE``, and fails before a host is touched if they are wrong."""

    MODULE = ""
    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: str | None = None, task_vars: Result | None = None) -> Result:
        """Return the module's result, or the failure that ``prepare`` raises."""
        super().run(tmp, task_vars)
        try:
            return self.prepare(task_vars or {})
        except HostError as error:
            # Configurations, definitions and archives may contain anything. Each problem of a list has a line.
            msg = error.msg if "problems" in error.facts else one_line(error.msg)
            failure = {"msg": coded(msg, error.code), "code": error.code, **error.facts}
        return published({"failed": True, "changed": False, **failure})

    @abstractmethod
    def prepare(self, task_vars: Result) -> Result:
        """Return the result of ``call`` with the arguments of the module. Raises HostError."""

    def call(self, arguments: Result, task_vars: Result, in_background: bool = True) -> Result:
        """Execute the module."""
        result: Result = self._execute_module(
            module_name=f"podwire.cni.{self.MODULE}",
            module_args=arguments,
            task_vars=task_vars,
            wrap_async=in_background and bool(self._task.async_val),
        )
        if "invocation" in result:
            result["invocation"] = _without_internal(result["invocation"])
        return result


def _without_internal(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_internal(entry) for key, entry in value.items() if key not in INTERNAL}
    return [_without_internal(entry) for entry in value] if isinstance(value, list) else value
