# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Controller half of cni_plugins: validates options, fetches the archive if a host needs it, sends changed files."""

from __future__ import annotations

from ..module_utils._host.errors import HostError
from ..modules.cni_plugins import ARGUMENTS, PLUGINS_REQUIRED_IF
from ..plugin_utils._conf.spelling import unsupported
from ..plugin_utils.module_action import INTERNAL, Result
from ..plugin_utils.shipping import ShippingAction, check_version, explain_release

OPTIONS = {name: spec for name, spec in ARGUMENTS.items() if name not in INTERNAL}


class ActionModule(ShippingAction):
    MODULE = "cni_plugins"

    def run(self, tmp: str | None = None, task_vars: Result | None = None) -> Result:
        result = super().run(tmp, task_vars)
        explain_release(result, result, self._task.args)
        return result

    def prepare(self, task_vars: Result) -> Result:
        check_version(self._task.args.get("version"))
        unknown = unsupported(self._task.args, OPTIONS, self.MODULE)
        if unknown:
            raise HostError("; ".join(unknown), code="bad_option")
        _result, options = self.validate_argument_spec(OPTIONS, required_if=PLUGINS_REQUIRED_IF)
        return self.with_source(options, self._task.args, task_vars)
