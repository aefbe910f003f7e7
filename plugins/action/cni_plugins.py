# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Controller half of cni_plugins: validates options, fetches the archive if a host needs it, sends changed files."""

from __future__ import annotations

import contextlib
from typing import Any

from ..module_utils._host.errors import HostError, coded
from ..module_utils._host.secrets import one_line, published
from ..modules.cni_plugins import ARGUMENTS, PLUGINS_REQUIRED_IF
from ..plugin_utils.remedies import no_options
from ..plugin_utils.shipping import ShippingAction, check_version

MODULE = "podwire.cni.cni_plugins"
# _source is internal to the action plugin and the module.
OPTIONS = {name: spec for name, spec in ARGUMENTS.items() if name != "_source"}


class ActionModule(ShippingAction):
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the module's result, or a failure before any host was touched."""
        super().run(tmp, task_vars)
        try:
            result = self._run(task_vars or {})
        except HostError as error:
            # The message may quote names from an archive.
            failure = {
                "failed": True,
                "changed": False,
                "msg": coded(one_line(error.msg), error.code),
                "code": error.code,
                **error.facts,
            }
            result = published(failure)
        why = self.why_not_that_release(result, self._task.args)
        if why:
            result["msg"] = f"{result.get('msg')}{why}"
        return result

    def _run(self, task_vars: dict[str, Any]) -> dict[str, Any]:
        check_version(self._task.args.get("version"))
        unknown = no_options(self._task.args, OPTIONS)
        if unknown:
            raise HostError("; ".join(unknown), code="bad_option")
        _result, options = self.validate_argument_spec(OPTIONS, required_if=PLUGINS_REQUIRED_IF)

        def call(told: dict[str, Any] | None, in_background: bool) -> dict[str, Any]:
            return self._call(told, task_vars, in_background)

        return self.with_source(options, call)

    def _call(self, told: dict[str, Any] | None, task_vars: dict[str, Any], in_background: bool) -> dict[str, Any]:
        arguments = dict(self._task.args)
        if told is not None:
            arguments["_source"] = told
        result: dict[str, Any] = self._execute_module(
            module_name=MODULE,
            module_args=arguments,
            task_vars=task_vars,
            wrap_async=in_background and bool(self._task.async_val),
        )
        with contextlib.suppress(KeyError, TypeError, AttributeError):
            result["invocation"]["module_args"].pop("_source", None)
        return result
