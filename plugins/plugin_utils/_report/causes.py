# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The findings of a fleet by their cause, and the commands that deal with them."""

from __future__ import annotations

import hashlib
from typing import Mapping, Sequence

from ...module_utils._host.checks.advisories import ADVISORIES, numbers
from ...module_utils._host.plan import DISRUPTIVE, SAFE
from .attention import CODES, LEAKS, STALE, VULNERABLE, vulnerabilities
from .commands import Commands
from .findings import UNREACHABLE, Finding
from .fleet import ATTENTION
from .record import DRIFT, ERROR

ALL_CLASSES = [SAFE, DISRUPTIVE]
# The release without a vulnerability that is known here. What a host returns must not choose a version.
_RELEASE = max((advisory.fixed for advisory in ADVISORIES), key=numbers)
_ADVISED = {name for advisory in ADVISORIES for name in vulnerabilities(advisory.name)}
_WEIGHT = {ERROR: 0, DRIFT: 1, ATTENTION: 2}


class Cause:
    """Findings of several hosts that have the same cause. ``since`` is when the first of them was seen."""

    def __init__(self, found: Finding) -> None:
        self.first = found
        self.level = found.level
        self.step_class = found.step_class
        self.price = found.price
        self.subject = found.cause[3]
        self.reason = found.reason
        self.hosts: list[str] = []
        self.count = 0
        self.since = ""
        self.command = ("", "")
        # Hosts know the text, so it must not be the identity: two causes must not get one.
        self.id = "c" + hashlib.sha256(repr(found.cause).encode("utf-8", "surrogatepass")).hexdigest()[:10]

    def add(self, host: str, found: Finding, since: str) -> None:
        self.count += 1
        if not self.hosts or self.hosts[-1] != host:
            self.hosts.append(host)
        if found.reason != self.reason:
            self.reason = found.cause[4]
        if since and (not self.since or since < self.since):
            self.since = since

    @property
    def rank(self) -> tuple[int, int, int, str, str]:
        code = list(CODES).index(self.first.kind) if self.first.kind in CODES else 0
        return _WEIGHT[self.level], code, -len(self.hosts), self.subject, self.reason


def causes_of(
    found: Sequence[tuple[str, Sequence[Finding]]], commands: Commands, since: Mapping[str, Mapping[str, str]]
) -> list[Cause]:
    """Return the causes of the findings of each host, the gravest first, then those of the most hosts.

    *since* says when a finding was first seen, by host and key.
    """
    causes: dict[tuple[str, ...], Cause] = {}
    for host, findings in found:
        times = since.get(host, {})
        for finding in findings:
            if finding.level:
                cause = causes.setdefault(finding.cause, Cause(finding))
                cause.add(host, finding, times.get(finding.key, ""))
    ranked = sorted(causes.values(), key=lambda cause: cause.rank)
    for cause in ranked:
        cause.command = _command(cause, commands)
    return ranked


def repairs(hosts: Mapping[str, Mapping[str, int]], commands: Commands) -> list[tuple[str, str]]:
    """Return the commands that deal with everything, each with a description.

    *hosts* has for each host how much there is of what a command deals with: steps by class, and LEAKS.
    """
    by_kind = {kind: [host for host, counted in hosts.items() if counted.get(kind)] for kind in (*ALL_CLASSES, LEAKS)}
    wanted = [
        ("Make the safe repairs, without any interruption", commands.playbook("remediate", by_kind[SAFE])),
        (
            "Make all repairs; containers lose their networks for a moment",
            commands.playbook("remediate", by_kind[DISRUPTIVE], cni_remediate_classes=ALL_CLASSES),
        ),
        ("Collect the leaks of dead containers", commands.playbook("gc", by_kind[LEAKS], cni_gc_apply="true")),
    ]
    return [(what, command) for what, command in wanted if command]


def _command(cause: Cause, commands: Commands) -> tuple[str, str]:
    """Return what deals with a cause: a description and a command, which is "" if no playbook does."""
    hosts = cause.hosts
    if cause.step_class == SAFE:
        return "Repair", commands.playbook("remediate", hosts)
    if cause.step_class == DISRUPTIVE:
        return "Repair", commands.playbook("remediate", hosts, cni_remediate_classes=ALL_CLASSES)
    kind = cause.first.kind
    if kind == LEAKS:
        return "Collect", commands.playbook("gc", hosts, cni_gc_apply="true")
    if kind == VULNERABLE and _ADVISED.issuperset(vulnerabilities(cause.first.reason)):
        return f"Upgrade to {_RELEASE}", commands.playbook("upgrade", hosts, cni_plugins_version=_RELEASE)
    if kind == "not_ready":
        return "Explain", commands.playbook("explain", hosts)
    if kind in (STALE, UNREACHABLE) or cause.level == ERROR:
        return "Inspect again", commands.playbook("drift", hosts)
    return "", ""
