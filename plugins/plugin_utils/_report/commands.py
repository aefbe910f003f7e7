# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The commands in a report, safe to paste into a shell."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from typing import Iterable, Mapping, Sequence

MOST_NAMES = 12
"""The most hosts that a command names one by one. More of them are in a file, if they are no group."""
LIMITS = "limits"
"""The folder of these files, within that of the report."""

# Ansible reads a name with other characters as a pattern or as several words.
_SIMPLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")
# It takes the value of --limit apart at commas, colons, brackets and spaces.
_PATH = re.compile(r"/[A-Za-z0-9_./+~=-]*\Z")
_RESERVED = ("all", "ungrouped")


class Commands:
    """Makes commands for the hosts of one report.

    *inventory* are the sources of the inventory, *groups* its groups with their hosts, *folder* the absolute path of
    the report. Each may be empty. ``files`` are the files that the commands need in LIMITS: their content by name.
    """

    def __init__(
        self,
        inventory: Sequence[str] = (),
        groups: Mapping[str, Iterable[str]] | None = None,
        folder: str = "",
    ) -> None:
        self._inventory = list(inventory)
        self._folder = folder
        self._members = set((groups or {}).keys())
        self._groups = {
            frozenset(hosts): name
            for name, hosts in sorted((groups or {}).items(), reverse=True)
            if _SIMPLE.match(name) and name != "ungrouped"
        }
        self.files: dict[str, str] = {}

    def playbook(self, name: str, hosts: Sequence[str], **variables: object) -> str:
        """Return the command that runs a playbook of the collection for these hosts; "" if they cannot be named."""
        chosen = self.limit(hosts)
        if not chosen:
            return ""
        # What differs between commands comes first, because the rest of a long one may be out of sight.
        words = ["ansible-playbook", f"podwire.cni.{name}", "--limit", chosen, *_extra(variables)]
        for source in self._inventory:
            words += ["-i", source]
        if self._folder and name in ("drift", "remediate"):
            words += _extra({"cni_report_dir": self._folder})
        return " ".join(map(shlex.quote, words))

    def limit(self, hosts: Sequence[str]) -> str:
        """Return a value of --limit for these hosts and no others; "" if there is none.

        A host with the name of a group cannot be named.
        """
        if not hosts or any(host in self._members or host in _RESERVED for host in hosts):
            return ""
        if len(hosts) > 1 and frozenset(hosts) in self._groups:
            return self._groups[frozenset(hosts)]
        patterns = [pattern(host) for host in hosts]
        if len(patterns) <= MOST_NAMES or not _PATH.match(self._folder):
            return ",".join(patterns)
        # The name depends on the content, so a command that somebody has copied never gets other hosts.
        content = "\n".join(patterns) + "\n"
        name = f"{len(patterns)}-hosts-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
        self.files[name] = content
        return f"@{self._folder}/{LIMITS}/{name}"


def pattern(host: str) -> str:
    """Return a pattern that matches this host only: its name, or a regular expression with other characters escaped."""
    return host if _SIMPLE.match(host) else f"~^{re.sub('[^A-Za-z0-9_-]', _escaped, host)}$"


def _extra(variables: Mapping[str, object]) -> list[str]:
    """Return the options that set variables."""
    words = []
    for key, value in variables.items():
        plain = isinstance(value, str) and re.match(r"[A-Za-z0-9_./+~-]+\Z", value)
        words += ["-e", f"{key}={value}" if plain else json.dumps({key: value})]
    return words


def _escaped(character: re.Match[str]) -> str:
    number = ord(character.group())
    return f"\\x{number:02x}" if number < 1 << 8 else f"\\U{number:08x}"
