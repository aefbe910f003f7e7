# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands in a report, safe to paste into a shell."""

from __future__ import annotations

import re
import shlex
from typing import Mapping

from ...module_utils._host.plan import DISRUPTIVE, SAFE

# Ansible reads a name with other characters as a pattern or as several words.
_SIMPLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")


def playbook(name: str, host: str, *options: str) -> str:
    """Return the command that runs a playbook of the collection for one host."""
    # Ansible decodes escapes in the value of an extra variable.
    chosen = pattern(host).replace("\\", "\\\\")
    words = ["ansible-playbook", f"podwire.cni.{name}", "-e", f"cni_hosts={chosen}"]
    for option in options:
        words += ["-e", option]
    return " ".join(shlex.quote(word) for word in words)


def pattern(host: str) -> str:
    """Return a pattern that matches this host only: its name, or a regular expression with other characters escaped."""
    return host if _SIMPLE.match(host) else f"~^{re.sub('[^A-Za-z0-9_-]', _escaped, host)}$"


def _escaped(found: re.Match[str]) -> str:
    number = ord(found.group())
    return f"\\x{number:02x}" if number < 1 << 8 else f"\\U{number:08x}"


def repairs(host: str, classes: Mapping[str, int], garbage: int) -> list[tuple[str, str]]:
    """Return the commands for repairs, each with a description."""
    found = []
    if classes.get(SAFE):
        found.append(("Make the safe repairs", playbook("remediate", host)))
    if classes.get(DISRUPTIVE):
        found.append(
            (
                "Make all repairs; containers lose their networks for a moment",
                playbook("remediate", host, '{"cni_remediate_classes": ["safe", "disruptive"]}'),
            )
        )
    if garbage:
        found.append(("Collect the leaks of dead containers", playbook("gc", host, "cni_gc_apply=true")))
    return found
