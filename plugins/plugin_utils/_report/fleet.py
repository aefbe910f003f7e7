# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a fleet: the records of its hosts, and their totals. Its form is in ``report.schema.json``."""

from __future__ import annotations

import json
from typing import Any, Iterable, Iterator, Mapping, Sequence

from . import attention
from .record import CLEAN, DRIFT, ERROR, FORMAT, STATUSES, Record, unusable
from .values import texts

ATTENTION = "attention"
"""The level of a host that is clean and needs attention. The other levels are the statuses."""
LEVELS = (ERROR, DRIFT, ATTENTION, CLEAN)
"""From the worst to the best."""

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
        raise BadRecord(
            f"its format is {value.get('format')!r:.40}, but this release of podwire.cni reads format {FORMAT}"
        )
    for key, kind in _KEYS.items():
        if key not in value or not isinstance(value[key], kind):
            raise BadRecord(f"it is not a host record: {key!r} is missing, or of another type")
    if value.get("status") not in STATUSES:
        raise BadRecord("it is not a host record: 'status' is not one of clean, drift, error")
    if any(not isinstance(step, dict) or not isinstance(step.get("class"), str) for step in value["steps"]):
        raise BadRecord("it is not a host record: one of its 'steps' has no class")
    return value


def fleet(records: Iterable[Any], limits: attention.Limits | None = None, inventory: Sequence[str] = ()) -> Record:
    """Return the report of *records*, sorted by host. A value that is not a record becomes a host with an error.

    *inventory* are the sources of the inventory, for the commands of the page.
    """
    hosts = []
    for index, record in enumerate(records):
        try:
            hosts.append(check(record))
        except BadRecord as error:
            hosts.append(unusable(f"record {index + 1}", str(error)))
    hosts.sort(key=lambda host: str(host["host"]))
    limits = limits or attention.Limits()
    hosts = [{**host, "attention": attention.reasons(host, limits)} for host in hosts]
    return {
        "format": FORMAT,
        "time": limits.now,
        "inventory": texts(list(inventory)),
        "status": worst(hosts),
        "counts": counts(hosts),
        "hosts": hosts,
    }


def level(host: Mapping[str, Any]) -> str:
    """Return the status of a host of a report, or ATTENTION for a clean one that needs it."""
    return ATTENTION if host["status"] == CLEAN and host["attention"] else str(host["status"])


def worst(hosts: Iterable[Mapping[str, Any]]) -> str:
    """Return the status of a fleet: that of its worst host, or error without hosts."""
    found = {host["status"] for host in hosts}
    return next((status for status in STATUSES if status in found), ERROR)


def counts(hosts: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many hosts there are, in all, of each status, and how many need attention for any reason."""
    found = [host["status"] for host in hosts]
    needy = sum(level(host) != CLEAN for host in hosts)
    return {
        "hosts": len(found),
        **{status: found.count(status) for status in (CLEAN, DRIFT, ERROR)},
        "attention": needy,
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


def summary_of_fleet(report: Mapping[str, Any]) -> str:
    """Return the state of a fleet in a line. A host that needs attention for several reasons counts for the worst."""
    worst_of = [
        host["status"] if host["status"] != CLEAN else host["attention"][0]["code"]
        for host in report["hosts"]
        if level(host) != CLEAN
    ]
    words = {ERROR: "with an error", DRIFT: "with drift", **attention.CODES}
    said = ", ".join(f"{worst_of.count(code):,} {word}" for code, word in words.items() if code in worst_of)
    return headline(report["counts"]) + (f": {said}" if said else "")


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
