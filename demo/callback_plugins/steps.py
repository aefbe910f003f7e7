# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible's output, reduced to the actions that the modules of this collection return."""

from __future__ import annotations

import difflib
import textwrap
from collections import Counter

from ansible import constants as C
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: steps
type: stdout
short_description: Show the steps of each task's plan
description: For the demo of this collection.
"""

SIGNS = {"create": "+", "install": "+", "add": "+", "make_directory": "+", "del": "-", "remove": "-", "delete": "-"}
COLOURS = {"+": C.COLOR_DIFF_ADD, "-": C.COLOR_DIFF_REMOVE, "~": C.COLOR_CHANGED}


def steps_of(result):
    """Return the steps of a result: cni_host has a plan, cni_report steps, the other modules actions."""
    return result.get("plan") or result.get("steps") or result.get("actions") or []


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "steps"

    def v2_runner_on_ok(self, result):
        # A loop has a result for each item.
        parts = result.result.get("results", [result.result])
        if result.task.action == "ansible.builtin.debug" and isinstance(result.result.get("msg"), str):
            self._display.display(result.result["msg"])
        if any(steps_of(part) or part.get("warnings") for part in parts):
            self._display.display(result.task.name)
        for part in parts:
            for step in steps_of(part):
                self._show_step(step)
                self._show_edits(part, (step["target"], "%(kind)s: %(reason)s" % step))
            targets = [step["target"] for step in steps_of(part)]
            self._show_warnings(
                [text for text in map(str, part.get("warnings", [])) if not self._is_told(text, targets)]
            )

    def _show_step(self, action):
        sign = SIGNS.get(action["kind"], "~")
        note = "" if action["class"] == "safe" else "  (%s)" % action["class"]
        text = "  %s %-14s %s%s" % (sign, action["kind"].replace("_", " "), action["target"], note)
        self._display.display(text, color=COLOURS[sign])
        if sign == "~":
            reason = textwrap.wrap(action["reason"], 110, initial_indent=" " * 19, subsequent_indent=" " * 19)
            self._display.display("\n".join(reason))

    def _show_edits(self, result, headers):
        """Show the difference between two texts. What is created or removed is only named by its step."""
        for entry in result.get("diff", []):
            if (entry.get("before_header"), entry.get("after_header")) != headers:
                continue
            before, after = entry.get("before"), entry.get("after")
            if isinstance(before, str) and isinstance(after, str) and before and after:
                lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
                for line in list(lines)[3:]:
                    self._display.display("      " + line, color=COLOURS.get(line[:1]))

    def _is_told(self, warning, targets):
        """Return whether a warning is about drift that a step repairs."""
        return any(warning.startswith("[drifted] %s has drifted" % target) for target in targets)

    def _show_warnings(self, warnings):
        """Count the warnings about what is missing in check mode; show the other warnings."""
        missing = Counter(text.split("]")[0].lstrip("[") for text in warnings if text.startswith("[missing_"))
        for text in warnings:
            if not text.startswith("[missing_"):
                lines = textwrap.wrap(text, 110, initial_indent="  ! ", subsequent_indent="    ")
                self._display.display("\n".join(lines), color=C.COLOR_WARN)
        if missing:
            counts = ", ".join("%s (%d)" % pair for pair in sorted(missing.items()))
            self._display.display("  ! not present yet: " + counts, color=C.COLOR_WARN)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._display.display(result.task.name)
        self._display.display("  failed: %s" % result.result.get("msg"), color=C.COLOR_ERROR)

    def v2_playbook_on_stats(self, stats):
        for host in sorted(stats.processed):
            counts = stats.summarize(host)
            self._display.display(
                "%s: ok=%d changed=%d failed=%d" % (host, counts["ok"], counts["changed"], counts["failures"])
            )
