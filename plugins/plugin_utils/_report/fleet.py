# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a fleet: the records of its hosts, and their totals. Its form is in ``report.schema.json``."""

from __future__ import annotations

import json
from typing import Any, Iterable, Mapping

from .record import CLEAN, DRIFT, ERROR, FORMAT, STATUSES, Record, unusable

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


def fleet(records: Iterable[Any]) -> Record:
    """Return the report of *records*, sorted by host. A value that is not a record becomes a host with an error."""
    hosts = []
    for index, record in enumerate(records):
        try:
            hosts.append(check(record))
        except BadRecord as error:
            hosts.append(unusable(f"record {index + 1}", str(error)))
    hosts.sort(key=lambda host: str(host["host"]))
    return {"format": FORMAT, "status": worst(hosts), "counts": counts(hosts), "hosts": hosts}


def worst(hosts: Iterable[Mapping[str, Any]]) -> str:
    """Return the status of a fleet: that of its worst host, or error without hosts."""
    found = {host["status"] for host in hosts}
    return next((status for status in STATUSES if status in found), ERROR)


def counts(hosts: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many hosts there are, in all and of each status."""
    found = [host["status"] for host in hosts]
    return {"hosts": len(found), **{status: found.count(status) for status in (CLEAN, DRIFT, ERROR)}}


def summary_of_fleet(counted: Mapping[str, int]) -> str:
    """Return the counts of a fleet in a line."""
    hosts = f"{counted['hosts']} host{'' if counted['hosts'] == 1 else 's'}"
    return f"{hosts}: " + ", ".join(f"{counted[status]} {status}" for status in (CLEAN, DRIFT, ERROR))


def to_json(report: Mapping[str, Any]) -> str:
    """Return a report as JSON with one line for each host, so that two reports can be compared line by line."""
    head = {key: value for key, value in report.items() if key != "hosts"}
    hosts = ",\n".join(one_line(host) for host in report["hosts"])
    return f'{one_line(head)[:-1]},"hosts":[\n{hosts}\n]}}\n'


def one_line(value: Any) -> str:
    """Return JSON without spaces and with sorted keys; ASCII, because a host's text may have half a surrogate pair."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
