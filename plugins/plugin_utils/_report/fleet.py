# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a fleet: the records of its hosts, what needs attention on them, and their totals.

Its form is in ``report.schema.json``.
"""

from __future__ import annotations

import calendar
import json
import re
import time as clock
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence

from ...module_utils._host.plan import FOREIGN
from ..lans import DIFFERENT, DUPLICATE, SHARED, HostNetworks, reasons_across
from ..untrusted import number, rows, table, text, texts
from .record import CLEAN, DRIFT, ERROR, FORMAT, STATUSES, Record, build, classes_of, leaks_of, problems_of, unusable

ATTENTION = "attention"
"""The level of a host that is clean and needs attention. The other levels are the statuses."""
LEVELS = (ERROR, DRIFT, ATTENTION, CLEAN)
"""From the worst to the best."""
MAX_AGE = 7.0
"""After how many days a record is too old, unless the caller says otherwise."""

NOT_READY, LOST, POOL_FULL, PROBLEM = "not_ready", "runtime_attachment", "pool_full", "problem"
VULNERABLE, LEAKS, CUT, STALE, GONE = "vulnerable", "leaks", "cut", "stale", "gone"
CODES = {
    NOT_READY: "not ready",
    LOST: "with a container without its network",
    DUPLICATE: "with an address that another host uses",
    POOL_FULL: "with a full pool",
    PROBLEM: "with a problem",
    SHARED: "with a range that another host uses",
    DIFFERENT: "with a network that differs from host to host",
    VULNERABLE: "vulnerable",
    LEAKS: "with leaks",
    CUT: "with a record that was cut",
    STALE: "not inspected lately",
    GONE: "no longer in the inventory",
}
"""Why a clean host needs attention, from the worst on, each with the words that follow a number of hosts."""

_TIME = "%Y-%m-%dT%H:%M:%SZ"
_FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z", re.ASCII)
_KEYS: dict[str, type | tuple[type, ...]] = {
    "host": str,
    "time": str,
    "error": (str, type(None)),
    "steps": list,
    "warnings": list,
    "problems": list,
    "confirmed": (bool, type(None)),
    "info": (dict, type(None)),
}


class BadRecord(ValueError):
    """The value is not a record; the text says why."""


def check(value: Any) -> Record:
    """Return *value* if it is a usable record; raises BadRecord."""
    if not isinstance(value, dict):
        raise BadRecord("it is not a host record, which is a mapping")
    if value.get("format") != FORMAT:
        raise BadRecord(f"its format is {value.get('format')!r:.40}, and this podwire.cni reads format {FORMAT}")
    for key, kind in _KEYS.items():
        if key not in value or not isinstance(value[key], kind):
            raise BadRecord(f"it is not a host record: {key!r} is missing, or of another type")
    if value.get("status") not in STATUSES:
        raise BadRecord("it is not a host record: 'status' is not one of clean, drift, error")
    if any(not isinstance(step, dict) or not isinstance(step.get("class"), str) for step in value["steps"]):
        raise BadRecord("it is not a host record: one of its 'steps' has no class")
    return value


def fleet(
    records: Iterable[Any],
    time: str = "",
    max_age: float = MAX_AGE,
    inventory: Sequence[str] = (),
    others: Mapping[str, str] | None = None,
) -> Record:
    """Return the report of *records*, sorted by host. A value that is not a record becomes a host with an error.

    *time* is that of the report, "" if the age of a record does not matter; *max_age* is in days, 0 for none.
    *inventory* are the sources of the inventory, for the commands of the page. *others* are hosts that it does not
    have, with their files.
    """
    hosts = []
    for index, record in enumerate(records):
        try:
            hosts.append(check(record))
        except BadRecord as error:
            hosts.append(unusable(f"record {index + 1}", str(error)))
    hosts.sort(key=lambda host: str(host["host"]))
    known = (host for host in hosts if not _is_stale(host, time, max_age))
    order, across = list(CODES), reasons_across([use for host in known for use in _networks_of(host).uses()])
    for index, host in enumerate(hosts):
        file = (others or {}).get(host["host"])
        # Until then, another run may have it in its inventory.
        if file and _is_stale(host, time, max_age):
            host = build(host["host"], {}, {}, time=host["time"])
            reasons: list[Any] = [(GONE, f"last inspected on {host['time']}; if it is gone for good, remove {file}")]
        else:
            reasons = [*reasons_of(host, time, max_age), *across.get(host["host"], ())]
        ranked = sorted(dict.fromkeys(reasons), key=lambda reason: order.index(reason[0]))
        hosts[index] = {**host, "attention": [dict(zip(("code", "message", "problem"), reason)) for reason in ranked]}
    statuses = {host["status"] for host in hosts}
    return {
        "format": FORMAT,
        "time": time,
        "inventory": texts(list(inventory)),
        # That of its worst host, or error without hosts.
        "status": next((status for status in STATUSES if status in statuses), ERROR),
        "counts": counts(hosts),
        "hosts": hosts,
    }


def level(host: Mapping[str, Any]) -> str:
    """Return the status of a host of a report, or ATTENTION for a clean one that needs it."""
    return ATTENTION if host["status"] == CLEAN and host["attention"] else str(host["status"])


def tags_of(host: Record) -> list[str]:
    """Return what a host of a report is filtered by: its level, the classes of its steps, its reasons for attention."""
    return [level(host), *classes_of(host), *dict.fromkeys(reason["code"] for reason in host["attention"])]


def counts(hosts: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many hosts there are, in all, of each status, and how many need attention for any reason."""
    statuses = [host["status"] for host in hosts]
    return {
        "hosts": len(hosts),
        **{status: statuses.count(status) for status in (CLEAN, DRIFT, ERROR)},
        "attention": sum(level(host) != CLEAN for host in hosts),
    }


def headline(counted: Mapping[str, int]) -> str:
    """Return how many hosts need attention."""
    every, needy = counted["hosts"], counted["attention"]
    if not every:
        return "No host was inspected"
    if every == 1:
        return "The host needs attention" if needy else "The host is clean"
    if not needy:
        return f"All {every:,} hosts are clean"
    return f"{needy:,} of {every:,} hosts need{'s' if needy == 1 else ''} attention"


def summary_of_fleet(report: Mapping[str, Any], named: bool = False) -> str:
    """Return the state of a fleet in a line, with some names of hosts on demand.

    A host that needs attention for several reasons counts for the worst.
    """
    worst: dict[str, list[str]] = {}
    for host in report["hosts"]:
        if level(host) != CLEAN:
            code = host["status"] if host["status"] != CLEAN else host["attention"][0]["code"]
            worst.setdefault(code, []).append(host["host"])
    words = {ERROR: "with an error", DRIFT: "with drift", **CODES}
    said = [
        f"{len(worst[code]):,} {word}" + (f" ({names_of(worst[code])})" if named else "")
        for code, word in words.items()
        if code in worst
    ]
    return headline(report["counts"]) + (f": {', '.join(said)}" if said else "")


def names_of(words: Sequence[str], most: int = 3) -> str:
    """Return the first of some names, such as those of hosts, and how many more there are."""
    more = f" and {len(words) - most:,} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def json_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield a report as JSON with a line for each host, so that two reports can be compared line by line.

    All of it at once would take much memory for a large fleet.
    """
    head = {key: value for key, value in report.items() if key != "hosts"}
    yield f'{one_line(head)[:-1]},"hosts":['
    for index, host in enumerate(report["hosts"]):
        yield f"{',' if index else ''}\n{one_line(host)}"
    yield "\n]}\n"


def one_line(value: Any) -> str:
    """Return JSON without spaces and with sorted keys; ASCII, because a host's text may have half a surrogate pair."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


# ---- what needs attention although a run would change nothing


def _networks_of(host: Record) -> HostNetworks:
    changed = {text(step.get("target")) for step in rows(host["steps"])}
    return HostNetworks(host["host"], texts(host.get("groups")), table(host["info"]), changed)


def reasons_of(record: Record, time: str, max_age: float) -> Iterator[tuple[str, ...]]:
    """Yield code and message of each reason why a host needs attention, and the code and place of a problem."""
    info = table(record["info"])
    if record["confirmed"] is False:
        obstacles = [row for row in rows(table(info.get("readiness")).get("obstacles")) if row.get("level") == "error"]
        for row in obstacles or [{"message": "a runtime has not loaded its network"}]:
            yield NOT_READY, text(row.get("message")), _problem(row)
    for step in record["steps"]:
        # What another owner has added (leave) works; what a runtime's container has lost does not.
        if step["class"] == FOREIGN and step.get("kind") == "repair":
            yield LOST, f"{text(step.get('target'))}: {text(step.get('reason'))}"
    for pool in rows(info.get("pools")):
        if 0 < number(pool.get("size")) <= number(pool.get("used")):
            yield POOL_FULL, f"{text(pool.get('network'))}: all {number(pool.get('size'))} addresses are taken"
    for problem in problems_of(record):
        if problem.get("code") == "known_vulnerability":
            # An info says that it cannot be told.
            if problem.get("level") != "info":
                yield VULNERABLE, text(problem.get("vulnerability")) or text(problem.get("message"))
        elif problem.get("level") == "error":
            yield PROBLEM, text(problem.get("message")), _problem(problem)
    leaks = leaks_of(record)
    if leaks:
        yield LEAKS, f"{leaks} leak{'' if leaks == 1 else 's'} of dead containers"
    cut = table(record.get(CUT))
    if cut:
        fields = ", ".join(f"{number(count):,} of {name}" for name, count in sorted(cut.items()))
        yield CUT, f"its record was too large or not valid; values that were left out or shortened: {fields}"
    if _is_stale(record, time, max_age):
        yield STALE, f"last inspected on {record['time']}"


def _problem(row: Mapping[str, Any]) -> str:
    return " ".join(text(row.get(key)) for key in ("code", "file", "pointer") if row.get(key))


def _is_stale(record: Record, time: str, max_age: float) -> bool:
    then, present = seconds(record["time"]), seconds(time)
    return bool(max_age) and then is not None and present is not None and present - then > max_age * 86400


# ---- times


def now() -> str:
    """Return the present as records have it."""
    return clock.strftime(_TIME, clock.gmtime())


def seconds(value: str) -> Optional[int]:
    """Return a time of a record as seconds since 1970; None for anything else."""
    try:
        return calendar.timegm(clock.strptime(value, _TIME)) if _FORM.match(value) else None
    except ValueError:
        return None


def is_future(inspected: str) -> bool:
    """Return whether a time is later than the clock of another machine can be ahead by mistake."""
    then = seconds(inspected)
    return then is not None and then - clock.time() > 86400
