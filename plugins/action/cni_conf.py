# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Controller half of cni_conf: rejects bad input, and sends only names and rendered texts to the host."""

from __future__ import annotations

from typing import Any, Optional

from ..module_utils._host.errors import coded
from ..module_utils._host.secrets import published
from ..modules.cni_conf import ARGUMENTS
from ..plugin_utils.remedies import no_options
from ..plugin_utils.rendering import Refused, RenderingAction


class ActionModule(RenderingAction):
    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        other_work = any(arguments.get(option) is not None for option in ("configure", "ensure_effective"))
        try:
            unknown = no_options(arguments, ARGUMENTS)
            if unknown:
                raise Refused("bad_argument", "; ".join(unknown), [])
            arguments["networks"], problems = self.render(arguments, may_be_empty=other_work)
            arguments.pop("nads", None)
        except Refused as refused:
            # Generated or downloaded configurations may contain anything.
            failure = {"code": refused.code, "msg": coded(refused.message, refused.code), "problems": refused.problems}
            result.update(published({"failed": True, "changed": False, **failure}))
            return result
        result.update(
            self._execute_module(
                module_name="podwire.cni.cni_conf",
                module_args=arguments,
                task_vars=task_vars,
                wrap_async=self._task.async_val,
            )
        )
        if isinstance(result.get("problems", []), list) and "ansible_job_id" not in result:
            result["problems"] = problems + result.get("problems", [])
        return result
