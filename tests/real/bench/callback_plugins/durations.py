# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Appends the duration of each task, and what it printed, to $BENCH_DIR/durations, one JSON object a line.

Measured is from the start of the task to its result, inside one running ansible-playbook: no start-up is in it.
"""

from __future__ import annotations

import json
import os
import time

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: durations
type: notification
short_description: Write how long tasks took to a file
description: For the benchmarks of this collection.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "durations"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._begun = time.monotonic()

    def v2_runner_on_ok(self, result):
        seconds = time.monotonic() - self._begun
        line = {"task": result.task.name, "seconds": seconds, "stdout": result.result.get("stdout", "")}
        line["changed"] = bool(result.result.get("changed"))
        with open(os.path.join(os.environ["BENCH_DIR"], "durations"), "a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
