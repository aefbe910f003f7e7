# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Controller half of cni_conf: rejects bad input, and sends only names and rendered texts to the host."""

from __future__ import annotations

from typing import Any

from ..module_utils._host.errors import HostError
from ..modules.cni_conf import ARGUMENTS
from ..plugin_utils.reading import RenderingAction
from ..plugin_utils.remedies import unsupported


class ActionModule(RenderingAction):
    MODULE = "cni_conf"

    def prepare(self, task_vars: dict[str, Any]) -> dict[str, Any]:
        arguments = dict(self._task.args)
        unknown = unsupported(arguments, ARGUMENTS, self.MODULE)
        if unknown:
            raise HostError("; ".join(unknown), "bad_argument", problems=[])
        other_work = any(arguments.get(option) is not None for option in ("configure", "ensure_effective"))
        arguments["networks"], problems = self.render(arguments, other_work, task_vars)
        arguments.pop("nads", None)
        result = self.call(arguments, task_vars)
        if isinstance(result.get("problems", []), list) and "ansible_job_id" not in result:
            result["problems"] = problems + result.get("problems", [])
        return result
