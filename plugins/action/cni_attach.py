# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Controller half of cni_attach: finds the networks of pods, and refuses bad annotations before a host is touched."""

from __future__ import annotations

import contextlib
from typing import Any, Optional

from ..module_utils._host.errors import HostError, coded
from ..module_utils._host.secrets import one_line, published
from ..plugin_utils.reading import ReadingAction


class ActionModule(ReadingAction):
    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        try:
            options = arguments.pop("nads", None)
            arguments["attachments"] = self.resolve(arguments.get("attachments"), options)
        except HostError as error:
            failure = {"msg": coded(one_line(error.msg), error.code), "code": error.code, **error.facts}
            result.update(published({"failed": True, "changed": False, **failure}))
            return result
        if arguments["attachments"] is None:
            del arguments["attachments"]
        result.update(
            self._execute_module(
                module_name="podwire.cni.cni_attach",
                module_args=arguments,
                task_vars=task_vars,
                wrap_async=self._task.async_val,
            )
        )
        with contextlib.suppress(KeyError, TypeError, AttributeError):
            for entry in result["invocation"]["module_args"]["attachments"]:
                entry.pop("_networks", None)
        return result
