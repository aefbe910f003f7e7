# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What there is to say about hosts: each error, step and reason for attention, in words; and for a fleet by cause."""

from __future__ import annotations

import hashlib
import posixpath
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from ...module_utils._host.binaries.usable import release_numbers
from ...module_utils._host.checks.advisories import ADVISORIES
from ...module_utils._host.plan import DISRUPTIVE, FOREIGN, SAFE
from ..untrusted import text, texts
from .commands import Commands
from .fleet import ATTENTION, CODES, CUT, DUPLICATE, GONE, LEAKS, LOST, NOT_READY, POOL_FULL, STALE, VULNERABLE
from .record import DRIFT, ERROR, Record, classes_of, leaks_of

FAILED, UNREACHABLE = "failed", "unreachable"

_VERBS = {
    "add": "attach",
    "del": "detach",
    "leave": "left as it is",
    "make_directory": "create the directory",
    "set_attributes": "correct its mode and owner",
    "write": "write it again",
}
_PRICES = {
    "repair": "about 1 s off the network",
    "add": "about 1 s off the network",
    "del": "takes the container off the network",
    "configure": "restarts the runtime",
    "replace": "later calls run another release, which may be older; running containers keep their networks",
    "write": "changes a network in use",
    **dict.fromkeys(("remove", "rename", "restore", "set_aside", "adopt"), "a network goes"),
}
_OF_MANY = {
    LEAKS: "leases, rules or interfaces of dead containers",
    CUT: "the record is too large, or not valid",
    STALE: "the record is too old",
    GONE: "not in the inventory, and not inspected lately; remove its record in hosts/ if it is gone for good",
}
_OF_PLUGINS = ("install", "replace")
# A step that is not safe because the plugin is not known to become newer: its kind and class.
_OTHER_RELEASE = ("replace", DISRUPTIVE)
# Containers that run have no network, or those that start get none.
_LOST_TRAFFIC = (LOST, DUPLICATE, POOL_FULL, "repair")
ALL_CLASSES = [SAFE, DISRUPTIVE]
_OFFERS = (
    (SAFE, "Repair", "no interruption"),
    (DISRUPTIVE, "Repair", "containers lose their networks for a moment"),
    (LEAKS, "Collect what dead containers left on", "no interruption"),
)
# The release without a vulnerability that is known here. What a host returns must not choose a version.
_RELEASE = max((advisory.fixed for advisory in ADVISORIES), key=release_numbers)
_ADVISED = {advisory.name for advisory in ADVISORIES}


class Finding(NamedTuple):
    """``subject: reason`` says what is wrong; ``remedy`` what a run would do, ``price`` what that costs.

    ``kind`` is the kind of a step or the code of a reason, ``what`` what it is about (the target of a step).
    ``step_class`` is "" if it is no step. ``code`` stands for reasons in which each host has values of its own.
    """

    level: str
    kind: str
    what: str
    subject: str
    reason: str
    step_class: str = ""
    remedy: str = ""
    price: str = ""
    code: str = ""

    @property
    def key(self) -> str:
        """A sentence that tells this finding from the others of its host, also in the next report."""
        # The number of leaks, the size of a record and its age change all the time.
        return f"{self.what or self.subject}: {_OF_MANY.get(self.kind) or self.reason}"

    @property
    def cause(self) -> tuple[str, ...]:
        """What it has in common with the findings of other hosts that have the same cause."""
        # A release that was installed differs in all of its plugins.
        subject = "" if self.kind in _OF_PLUGINS else self.subject
        reason = _OF_MANY.get(self.kind) or self.code or self.reason
        return (self.level, self.step_class, self.kind, subject, reason)

    @property
    def effect(self) -> int:
        """Its place in the order of effects: no network, lost traffic, not known, what a run costs, the rest."""
        if self.kind == NOT_READY:
            return 0
        if self.level and self.kind in _LOST_TRAFFIC:
            return 1
        return {ERROR: 2, DISRUPTIVE: 3, SAFE: 4}.get(self.step_class or self.level, 5)


def findings(host: Mapping[str, Any]) -> list[Finding]:
    """Return what there is to say about a host of a report, the gravest first. None of it twice."""
    told = dict.fromkeys([*_errors(host), *map(finding_of_step, host["steps"]), *_attention(host)])
    return sorted(told, key=lambda finding: finding.effect)


def subject_of(kind: str, target: str) -> str:
    """Return what a step is about, short: a file by its name, an attachment by its network."""
    if target.startswith("/"):
        name = posixpath.basename(target)
        return f"plugin {name}" if kind in _OF_PLUGINS and name else name or target
    network, slash, _rest = target.partition("/")
    return f"attachment to {network}" if slash and network else target or kind


def _errors(host: Mapping[str, Any]) -> Iterator[Finding]:
    name, why = host["host"], text(host.get("no_connection"))
    lines = [(UNREACHABLE, why)] if why else []
    told = f"{UNREACHABLE}: {why}".split("\n")
    lines += [(FAILED, line) for line in (host["error"] or "").split("\n") if line and line not in told]
    for kind, line in lines:
        # Many hosts have the same error about themselves.
        for named in (f"the host {name}", f"host {name}", name) if len(name) > 2 else ():
            line = line.replace(named, "the host")
        yield Finding(ERROR, kind, "", kind.capitalize(), line, code=UNREACHABLE if kind == UNREACHABLE else "")


def finding_of_step(step: Mapping[str, Any]) -> Finding:
    """Return what there is to say about a step of a record."""
    kind, target, step_class = text(step.get("kind")), text(step.get("target")), text(step.get("class"))
    words = kind.replace("_", " ")
    reason = text(step.get("reason")) or text(step.get("why")) or words
    level, price = DRIFT, _PRICES.get(kind, "may interrupt containers")
    if step_class == SAFE:
        price = "no interruption"
    if step_class == FOREIGN:
        # What another owner has added (leave) works; what a runtime's container has lost (repair) does not.
        level, price = (ATTENTION if kind == "repair" else ""), "a run leaves it"
    shown, code = LOST if level == ATTENTION else kind, " ".join(texts(step.get("lost"))) or text(step.get("why"))
    rest = (step_class, _VERBS.get(kind, words), price, code)
    return Finding(level, shown, target, subject_of(kind, target), reason, *rest)


def _attention(host: Mapping[str, Any]) -> Iterator[Finding]:
    for reason in host["attention"]:
        code = reason["code"]
        # It is a step, too.
        if code != LOST:
            words = CODES[code].removeprefix("with ").removeprefix("a ").removeprefix("an ")
            subject, problem = words[:1].upper() + words[1:], text(reason.get("problem"))
            yield Finding(ATTENTION, code, "", subject, reason["message"], code=problem)


class Cause:
    """Findings of several hosts that have the same cause. ``since`` is when the first of them was seen.

    ``command`` deals with them: a description and a command, which is "" if no playbook does. ``parts`` are this cause
    and others that the same command deals with.
    """

    def __init__(self, first: Finding) -> None:
        self.first = first
        self.reason = first.reason
        self.hosts: list[str] = []
        self.count = 0
        self.since = ""
        self.command = ("", "")
        self.parts = [self]
        self._subjects = {first.subject}
        # Hosts know the text, so it must not be the identity: two causes must not get one.
        self.id = "c" + hashlib.sha256(repr(first.cause).encode("utf-8", "surrogatepass")).hexdigest()[:10]

    def add(self, host: str, finding: Finding, since: str) -> None:
        self.count += 1
        self._subjects.add(finding.subject)
        if not self.hosts or self.hosts[-1] != host:
            self.hosts.append(host)
        if finding.reason != self.first.reason:
            self.reason = _OF_MANY.get(finding.kind) or f"for example: {self.first.reason}"
        self._note(since)

    def merge(self, other: Cause) -> None:
        self.parts.append(other)
        self.count += other.count
        self._note(other.since)

    def _note(self, since: str) -> None:
        self.since = min(filter(None, (self.since, since)), default="")

    @property
    def subject(self) -> str:
        several_plugins = self.first.kind in _OF_PLUGINS and len(self._subjects) > 1
        return f"{len(self._subjects)} plugins" if several_plugins else self.first.cause[3] or self.first.subject

    @property
    def rank(self) -> tuple[int, int, int, int, str, str]:
        code = list(CODES).index(self.first.kind) if self.first.kind in CODES else 0
        price = {DISRUPTIVE: 0, SAFE: 1}.get(self.first.step_class, 2)
        return self.first.effect, price, code, -len(self.hosts), self.subject, self.reason

    def dealt_with(self, commands: Commands) -> tuple[str, str]:
        """Return the description and the command."""
        kind = self.first.kind
        if self.first.step_class in ALL_CLASSES:
            what = "Replace plugins" if (kind, self.first.step_class) == _OTHER_RELEASE else "Repair"
            return what, repair(commands, self.hosts, self.first.step_class)
        if kind == LEAKS:
            return "Collect", repair(commands, self.hosts, LEAKS)
        if kind == VULNERABLE and self.first.reason in _ADVISED:
            return f"Upgrade to {_RELEASE}", commands.playbook("upgrade", self.hosts, cni_plugins_version=_RELEASE)
        if kind == NOT_READY:
            return "Explain", commands.playbook("explain", self.hosts)
        if kind == STALE or self.first.level == ERROR:
            return "Inspect again", commands.playbook("drift", self.hosts)
        return "", ""


def causes_of(
    by_host: Mapping[str, Sequence[Finding]], commands: Commands, since: Mapping[str, Mapping[str, str]]
) -> list[Cause]:
    """Return the causes of the findings of each host, the gravest first, then those of the most hosts.

    *since* says when a finding was first seen, by host and key.
    """
    causes: dict[tuple[str, ...], Cause] = {}
    for host, of_host in by_host.items():
        times = since.get(host, {})
        for finding in of_host:
            if finding.level:
                cause = causes.setdefault(finding.cause, Cause(finding))
                cause.add(host, finding, times.get(finding.key, ""))
    by_command: dict[object, Cause] = {}
    for cause in sorted(causes.values(), key=lambda cause: cause.rank):
        cause.command = cause.dealt_with(commands)
        same = by_command.setdefault(cause.command if cause.command[1] else cause.id, cause)
        if same is not cause:
            same.merge(cause)
    return list(by_command.values())


def repair(commands: Commands, hosts: Sequence[str], kind: str) -> str:
    """Return the command that makes the steps of a class and those of the cheaper ones, or collects LEAKS."""
    if kind == LEAKS:
        return commands.playbook("gc", hosts, cni_gc_apply="true")
    classes = {"cni_remediate_classes": ALL_CLASSES} if kind == DISRUPTIVE else {}
    return commands.playbook("remediate", hosts, **classes)


def repairs(hosts: Sequence[Record], commands: Commands) -> Iterator[tuple[str, str]]:
    """Yield the commands that deal with everything on *hosts*, the cheapest first, each with a description."""
    counted = {host["host"]: {**classes_of(host), LEAKS: leaks_of(host)} for host in hosts}
    for kind, what, price in _OFFERS:
        names = [name for name, counts in counted.items() if counts.get(kind)]
        steps = {(step.get("kind"), kind) for host in hosts for step in host["steps"] if step["class"] == kind}
        if steps == {_OTHER_RELEASE}:
            what, price = "Replace plugins on", _PRICES["replace"]
        command = repair(commands, names, kind)
        if command:
            yield f"{what} {several(len(names), 'host')}: {price}", command


def several(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
