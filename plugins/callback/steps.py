# Copyright (c) 2026 the podwire.cni authors; GNU General Public License v3.0+
# SPDX-License-Identifier: GPL-3.0-or-later
"""Callback steps: Ansible's output, reduced to what the modules of this collection change."""

from __future__ import annotations

DOCUMENTATION = """
name: steps
type: stdout
short_description: Show the steps that the modules of this collection take or plan
version_added: 1.0.0
author:
  - podwire.cni authors (@podwire)
description:
  - Shows each step of a task in a line, with what it changes, its class unless that is C(safe), and why something that
    exists is changed. With C(--diff), shows the lines of a file that differ.
  - Shows messages, warnings, failures, and the totals of each host. Tasks of other collections that change nothing or
    succeed are not shown.
  - It is off by default.
requirements:
  - C(stdout_callback = podwire.cni.steps) in the section C([defaults]) of C(ansible.cfg), or
    C(ANSIBLE_STDOUT_CALLBACK=podwire.cni.steps).
options:
  width:
    description: Where long texts are wrapped.
    type: int
    default: 110
    env:
      - name: PODWIRE_STEPS_WIDTH
    ini:
      - section: callback_steps
        key: width
seealso:
  - module: podwire.cni.cni_host
"""

EXAMPLES = """
- name: Show the steps of bootstrap
  # ANSIBLE_STDOUT_CALLBACK=podwire.cni.steps ansible-playbook -i inventory podwire.cni.bootstrap -e cni_hosts=web1
  #
  #   Bring the host to its desired state (web1)
  #     + install        /opt/cni/bin/bridge
  #     ~ write          /etc/cni/net.d/10-pods.conflist  (disruptive)
  #                      bridge: mtu 1500, want 1400
  #   web1: ok=2 changed=1 unreachable=0 failed=0
  ansible.builtin.import_playbook: podwire.cni.bootstrap
"""

import difflib
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from ansible import constants as C
from ansible.plugins.callback import CallbackBase

from ..plugin_utils.untrusted import rows

SIGNS = {
    **dict.fromkeys(("create", "install", "add", "make_directory"), "+"),
    **dict.fromkeys(("del", "remove", "delete"), "-"),
}
COLOURS = {"+": C.COLOR_DIFF_ADD, "-": C.COLOR_DIFF_REMOVE, "~": C.COLOR_CHANGED}  # type: ignore[attr-defined]
MESSAGES = ("ansible.builtin.debug", "debug")
_INDENT = " " * 19


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "podwire.cni.steps"

    def v2_runner_on_ok(self, result: Any) -> None:
        returned, task = result.result, result.task
        if task.action in MESSAGES and "msg" in returned:
            lines = returned["msg"] if isinstance(returned["msg"], list) else [returned["msg"]]
            self._display.display("\n".join(map(str, lines)))
        # A loop has a result for each item.
        parts = rows(returned.get("results", [returned]))
        if any(_steps_of(part) or part.get("warnings") for part in parts):
            self._display.display(f"{task.name} ({result.host.get_name()})")
        for part in parts:
            for step in _steps_of(part):
                self._show_step(step)
                for line in _edits(part, step):
                    self._display.display(f"      {line}", color=COLOURS.get(line[:1]))
            for warning in part.get("warnings") or []:
                self._show("! ", str(warning), C.COLOR_WARN)  # type: ignore[attr-defined]

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._display.display(f"{result.task.name} ({result.host.get_name()})")
        failed = [part for part in result.result.get("results", []) if part.get("failed")] or [result.result]
        for part in failed:
            self._show("failed: ", str(part.get("msg")), C.COLOR_ERROR)  # type: ignore[attr-defined]

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._display.display(f"{result.task.name} ({result.host.get_name()})")
        self._show("unreachable: ", str(result.result.get("msg")), C.COLOR_UNREACHABLE)  # type: ignore[attr-defined]

    def v2_playbook_on_stats(self, stats: Any) -> None:
        for host in sorted(stats.processed):
            counts = stats.summarize(host)
            names = {"ok": "ok", "changed": "changed", "unreachable": "unreachable", "failures": "failed"}
            self._display.display(f"{host}: " + " ".join(f"{name}={counts[key]}" for key, name in names.items()))

    def _show_step(self, step: Mapping[str, Any]) -> None:
        sign, note = SIGNS.get(str(step.get("kind")), "~"), f"  ({step.get('class')})"
        text = f"  {sign} {str(step.get('kind')).replace('_', ' '):<14} {step.get('target')}"
        self._display.display(text + (note if step.get("class") != "safe" else ""), color=COLOURS[sign])
        if sign == "~" and step.get("reason"):
            self._show(_INDENT, str(step["reason"]))

    def _show(self, begin: str, text: str, color: str | None = None) -> None:
        """Show a text that may be long, after two spaces unless it is the reason of a step."""
        first = begin if begin == _INDENT else f"  {begin}"
        rest = begin if begin == _INDENT else "    "
        lines = textwrap.wrap(text, self.get_option("width"), initial_indent=first, subsequent_indent=rest)
        self._display.display("\n".join(lines), color=color)


def _steps_of(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the steps of a result: cni_host has a plan, cni_report steps, and the other modules have actions."""
    return rows(result.get("plan") or result.get("steps") or result.get("actions"))


def _edits(result: Mapping[str, Any], step: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a text that a step changes. What is created or removed is only named by its step."""
    headers = (step.get("target"), f"{step.get('kind')}: {step.get('reason')}")
    for entry in rows(result.get("diff")):
        if (entry.get("before_header"), entry.get("after_header")) != headers:
            continue
        before, after = entry.get("before"), entry.get("after")
        if isinstance(before, str) and isinstance(after, str) and before and after:
            yield from list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))[3:]
