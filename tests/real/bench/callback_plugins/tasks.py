# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Appends to $BENCH_OUTPUT how long each task took for all hosts, one JSON object a line.

Measured is from its start to that of the next one, so that the sum is all the time between the first task and the end.
``failed`` and ``skipped`` are numbers of hosts. ``processor`` are seconds of Ansible and its processes, without those
that the Python of hosts has written to $BENCH_TIMES; ``memory`` is the most that Ansible itself had by then, in MiB.
"""

from __future__ import annotations

import json
import os
import re
import resource
import time

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: tasks
type: notification
short_description: Write how long tasks took for all hosts to a file
description: For the benchmarks of this collection.
"""


def processor() -> float:
    """Return the processor time of this process, and of its children that have ended, without the Python of hosts."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    path = os.environ.get("BENCH_TIMES")
    hosts = 0.0
    if path and os.path.exists(path):
        with open(path, encoding="utf-8") as stream:
            # What the shell prints: 0m0.010s
            hosts = sum(int(found[0]) * 60 + float(found[1]) for found in re.findall(r"(\d+)m([\d.]+)s", stream.read()))
    return sum(one.ru_utime + one.ru_stime for one in used) - hosts


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "tasks"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args, **keywords):
        super().__init__(*args, **keywords)
        self._line = None

    def _end(self):
        path = os.environ.get("BENCH_OUTPUT")
        if self._line is not None and path:
            line = dict(self._line, seconds=time.monotonic() - self._begun, processor=processor() - self._used)
            line["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            with open(path, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
        self._line = None

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._end()
        self._line = {"task": task.name, "action": task.resolved_action or task.action, "failed": 0, "skipped": 0}
        self._used = processor()
        self._begun = time.monotonic()

    def v2_playbook_on_stats(self, stats):
        self._end()

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._line["failed"] += 1

    def v2_runner_on_unreachable(self, result):
        self._line["failed"] += 1

    def v2_runner_on_skipped(self, result):
        self._line["skipped"] += 1
