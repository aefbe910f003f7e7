# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What about a host needs attention although a run would change nothing on it."""

from __future__ import annotations

import calendar
import re
import time
from typing import Any, Iterator, Mapping, Optional

from ...module_utils._host.plan import FOREIGN
from .values import number, rows, table, text

MAX_AGE = 7.0
"""After how many days a record is too old, unless the caller says otherwise."""

NOT_READY, LOST, POOL_FULL, PROBLEM, VULNERABLE, LEAKS, CUT, STALE = (
    "not_ready",
    "runtime_attachment",
    "pool_full",
    "problem",
    "vulnerable",
    "leaks",
    "cut",
    "stale",
)
CODES = {
    NOT_READY: "not ready",
    LOST: "with a container without its network",
    POOL_FULL: "with a full pool",
    PROBLEM: "with a problem",
    VULNERABLE: "vulnerable",
    LEAKS: "with leaks",
    CUT: "with a record that was cut",
    STALE: "not inspected lately",
}
"""The codes from the worst on, each with the words that follow a number of hosts."""

_TIME = "%Y-%m-%dT%H:%M:%SZ"
_FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z", re.ASCII)
_KNOWN_VULNERABILITY = "known_vulnerability"
_CVE = re.compile(r"\b(?:CVE-\d{4}-\d{4,7}|GHSA(?:-[a-z0-9]{4}){3})\b")


class Limits:
    """*now* is the time of the report, "" if the age of a record does not matter; *max_age* is in days, 0 for none."""

    def __init__(self, now: str = "", max_age: float = MAX_AGE) -> None:
        self.now = now
        self.max_age = max_age

    def is_stale(self, inspected: str) -> bool:
        then, now = seconds(inspected), seconds(self.now)
        return bool(self.max_age) and then is not None and now is not None and now - then > self.max_age * 86400


def reasons(record: Mapping[str, Any], limits: Limits) -> list[dict[str, str]]:
    """Return why a host needs attention, each with ``code`` and ``message``; the worst first, none of them twice."""
    order = list(CODES)
    found = sorted(_reasons(record, limits), key=lambda reason: order.index(reason["code"]))
    return list({(reason["code"], reason["message"]): reason for reason in found}.values())


def vulnerabilities(message: str) -> list[str]:
    """Return the names of the vulnerabilities in a message: the CVEs, or else the other ones."""
    names = list(dict.fromkeys(_CVE.findall(message)))
    return [name for name in names if name.startswith("CVE")] or names


def now() -> str:
    """Return the present as records have it."""
    return time.strftime(_TIME, time.gmtime())


def _reasons(record: Mapping[str, Any], limits: Limits) -> Iterator[dict[str, str]]:
    info = table(record["info"])
    yield from _not_ready(record, table(info.get("readiness")))
    for step in record["steps"]:
        # What another owner has added (leave) works; what a runtime's container has lost does not.
        if step["class"] == FOREIGN and step.get("kind") == "repair":
            yield _reason(LOST, f"{text(step.get('target'))}: {text(step.get('reason'))}")
    for pool in rows(info.get("pools")):
        if 0 < number(pool.get("size")) <= number(pool.get("used")):
            yield _reason(POOL_FULL, f"{text(pool.get('network'))}: all {number(pool.get('size'))} addresses are taken")
    for problem in [*rows(record["problems"]), *rows(info.get("problems"))]:
        message = text(problem.get("message"))
        if problem.get("code") == _KNOWN_VULNERABILITY:
            # An info says that it cannot be told.
            if problem.get("level") != "info":
                yield _reason(VULNERABLE, ", ".join(vulnerabilities(message)) or message)
        elif problem.get("level") == "error":
            yield _reason(PROBLEM, message)
    leaks = sum(leak.get("collectable") is True for leak in rows(info.get("garbage")))
    if leaks:
        yield _reason(LEAKS, f"{leaks} leak{'' if leaks == 1 else 's'} of dead containers")
    cut = table(record.get(CUT))
    if cut:
        told = ", ".join(f"{number(count):,} of {name}" for name, count in sorted(cut.items()))
        yield _reason(CUT, f"its record was too large or not valid; values that were left out or shortened: {told}")
    if limits.is_stale(record["time"]):
        yield _reason(STALE, f"last inspected on {record['time']}")


def is_future(inspected: str) -> bool:
    """Return whether a time is later than the clock of another machine can be ahead by mistake."""
    then = seconds(inspected)
    return then is not None and then - time.time() > 86400


def _not_ready(record: Mapping[str, Any], readiness: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    if record["confirmed"] is not False:
        return
    found = [text(row.get("message")) for row in rows(readiness.get("obstacles")) if row.get("level") == "error"]
    for message in found or ["a runtime has not loaded its network"]:
        yield _reason(NOT_READY, message)


def _reason(code: str, message: str) -> dict[str, str]:
    return {"code": code, "message": message}


def seconds(value: str) -> Optional[int]:
    """Return a time of a record as seconds since 1970; None for anything else."""
    if not _FORM.match(value):
        return None
    try:
        return calendar.timegm(time.strptime(value, _TIME))
    except ValueError:
        return None
