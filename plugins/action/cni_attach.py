# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Controller half of cni_attach: finds the networks of pods, and refuses bad annotations before a host is touched."""

from __future__ import annotations

from typing import Any

from ..plugin_utils.reading import ReadingAction


class ActionModule(ReadingAction):
    MODULE = "cni_attach"

    def prepare(self, task_vars: dict[str, Any]) -> dict[str, Any]:
        arguments = dict(self._task.args)
        options = arguments.pop("nads", None)
        if arguments.get("attachments") is not None:
            arguments["attachments"] = self.resolve(arguments["attachments"], options)
        return self.call(arguments, task_vars)
