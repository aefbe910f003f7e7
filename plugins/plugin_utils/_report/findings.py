# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What there is to say about a host: each error, each step and each reason for attention, in words."""

from __future__ import annotations

import posixpath
import re
from typing import Any, Iterator, Mapping, NamedTuple

from ...module_utils._host.plan import FOREIGN, SAFE
from .attention import CUT, LEAKS, LOST, STALE
from .fleet import ATTENTION
from .record import DRIFT, ERROR
from .values import text

UNREACHABLE = "unreachable"
_INSTEAD = "…"
# Addresses with or without a prefix, MACs, digests and container IDs, and names that plugins choose at random.
_OWN = re.compile(
    r"\b\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?\b"
    r"|(?<![\w:])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?:/\d{1,3})?(?![\w:])"
    r"|\b(?=[a-f]*\d)[0-9a-f]{12,}\b"
    r"|\b(?:veth|cali|cnvl|lxc)[0-9a-f]{4,}\b"
    r"|\b\d{4}-\d\d-\d\dT[\d:]+Z\b"
)

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
    "write": "changes a network in use",
}
# Each host has a number or a time of its own in these reasons.
_OF_MANY = {
    LEAKS: "leases, rules or interfaces of dead containers",
    CUT: "the record is too large, or not valid",
    STALE: "the record is too old",
}
_NETWORK_GOES = ("remove", "rename", "restore", "set_aside", "adopt")


class Finding(NamedTuple):
    """``subject: reason`` says what is wrong; ``remedy`` what a run would do, ``price`` what that costs.

    ``kind`` is the kind of a step or the code of a reason, ``what`` what it is about (the target of a step).
    ``step_class`` is "" if it is no step.
    """

    level: str
    kind: str
    what: str
    subject: str
    reason: str
    step_class: str = ""
    remedy: str = ""
    price: str = ""

    @property
    def key(self) -> str:
        """What tells this finding from the others of its host, also in the next report."""
        # The number of leaks, the size of a record and its age change all the time.
        return self.kind if self.kind in _OF_MANY else f"{self.kind} {self.what}: {self.reason}"

    @property
    def cause(self) -> tuple[str, ...]:
        """What it has in common with the findings of other hosts that have the same cause."""
        reason = _OF_MANY.get(self.kind) or _OWN.sub(_INSTEAD, self.reason)
        return (self.level, self.step_class, self.kind, _OWN.sub(_INSTEAD, self.subject), reason)


def findings(host: Mapping[str, Any]) -> list[Finding]:
    """Return what there is to say about a host of a report, the errors first. None of it twice."""
    return list(dict.fromkeys([*_errors(host), *_steps(host), *_attention(host)]))


def price(kind: str, step_class: str) -> str:
    """Return what a step costs the containers of the host."""
    if step_class == FOREIGN:
        return "a run leaves it"
    if step_class == SAFE:
        return "no interruption"
    if kind in _NETWORK_GOES:
        return "a network goes"
    return _PRICES.get(kind, "may interrupt containers")


def verb(kind: str) -> str:
    """Return what a run would do, in words."""
    return _VERBS.get(kind, kind.replace("_", " "))


def subject_of(kind: str, target: str) -> str:
    """Return what a step is about, short: a file by its name, an attachment by its network."""
    if target.startswith("/"):
        name = posixpath.basename(target)
        return f"plugin {name}" if kind in ("install", "replace") and name else name or target
    network, slash, _rest = target.partition("/")
    return f"attachment to {network}" if slash and network else target or kind


def words_of_key(key: str) -> str:
    """Return the key of a finding, see :attr:`Finding.key`, as the sentence that the page has for it."""
    kind, _blank, rest = key.partition(" ")
    what, colon, reason = rest.partition(": ")
    if kind in _SUBJECTS or kind == UNREACHABLE:
        subject = _SUBJECTS.get(kind, "Unreachable")
        return f"{subject}: {reason or _OF_MANY.get(kind, '')}"
    if kind == "failed":
        return f"Failed: {reason}"
    return f"{subject_of(kind, what)}: {reason}" if colon and what else key


def _without_name(line: str, host: str) -> str:
    """Return an error with "the host" in place of its name."""
    return re.sub(rf"(?:(?:\bthe )?\bhost )?{re.escape(host)}", "the host", line) if len(host) > 2 else line


def _errors(host: Mapping[str, Any]) -> Iterator[Finding]:
    for line in (host["error"] or "").split("\n"):
        if not line:
            continue
        # Many hosts have the same error about themselves.
        words = _without_name(line, host["host"])
        first, colon, rest = words.partition(": ")
        if first == UNREACHABLE:
            yield Finding(level=ERROR, kind=UNREACHABLE, what="", subject="Unreachable", reason=rest)
        elif colon and len(first) < 100:
            subject = posixpath.basename(first) or first
            yield Finding(level=ERROR, kind="failed", what="", subject=subject, reason=rest)
        else:
            yield Finding(level=ERROR, kind="failed", what="", subject="Failed", reason=words)


def _steps(host: Mapping[str, Any]) -> Iterator[Finding]:
    for step in host["steps"]:
        kind, target, step_class = text(step.get("kind")), text(step.get("target")), step["class"]
        reason = text(step.get("reason")) or text(step.get("why")) or kind.replace("_", " ")
        level = DRIFT if step_class != FOREIGN else ATTENTION if kind == "repair" else ""
        if level == ATTENTION:
            kind = LOST
        cost = price(kind, step_class)
        yield Finding(level, kind, target, subject_of(kind, target), reason, step_class, verb(kind), cost)


def _attention(host: Mapping[str, Any]) -> Iterator[Finding]:
    for reason in host["attention"]:
        # It is a step, too.
        if reason["code"] != LOST:
            yield Finding(
                ATTENTION, reason["code"], "", _SUBJECTS.get(reason["code"], reason["code"]), reason["message"]
            )


_SUBJECTS = {
    "not_ready": "Not ready",
    "pool_full": "Pool full",
    "problem": "Problem",
    "vulnerable": "Vulnerable",
    LEAKS: "Leaks",
    CUT: "Record cut",
    STALE: "Not inspected lately",
}
