# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records from the events of a job, for those who have nothing else: the folder of a report goes with its container.

ansible-runner writes a file for each event, ``artifacts/IDENT/job_events/N-UUID.json``, or prints one event a line.
AWX serves pages with lists of events, ``/api/v2/jobs/N/job_events/``. Events contain what hosts returned, so they are
data of unknown shape.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from typing import Any, Iterator, Mapping, NamedTuple, Optional

from .attention import seconds
from .record import STATUSES, Record, build_from_result, unusable
from .values import number, rows, table, text

FOLDER = "job_events"
"""The folder of the events within the artifacts of a job."""
MOST_FILES = 1_000_000
MOST_BYTES = 64 << 20
"""The most bytes of a file. A page of AWX has at most 200 events, each with at most 700,000 bytes of a result."""

_ACTIONS = ("podwire.cni.cni_report", "cni_report")
_ENDS = ("runner_on_ok", "runner_on_failed")
_UNREACHABLE = "runner_on_unreachable"
# The events of other tasks are most of them, and need not be parsed.
_WORDS = (b"cni_report", _UNREACHABLE.encode())


class BadEvents(ValueError):
    """There are no events of a job; the text says why."""


class Rebuilt(NamedTuple):
    """The records by host, and what could not be read: how many files, and why the first of them."""

    records: Mapping[str, Record]
    unusable: int
    reason: str


class _Unreadable(ValueError):
    pass


def records_of(path: str, groups: Mapping[str, list[str]]) -> Rebuilt:
    """Return the records that the events in *path*, a file or a directory, contain; *groups* are those of each host.

    If a host was inspected several times, its last record counts. Raises BadEvents and OSError.
    """
    found = _Found(groups)
    unreadable, reason = 0, ""
    for file in _files(path):
        try:
            for event in _events(file):
                found.add(event)
        except (_Unreadable, OSError) as error:
            unreadable += 1
            reason = reason or f"{file}: {getattr(error, 'strerror', None) or error}"
    records = found.records()
    if not records:
        raise BadEvents(
            f"the events in {path} have no result of podwire.cni.cni_report"
            + (f" ({unreadable} unusable, the first is {reason})" if unreadable else "")
            + "; give the events of a job that has run podwire.cni.drift or podwire.cni.remediate"
        )
    return Rebuilt(records, unreadable, reason)


def _files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    inner = os.path.join(path, FOLDER)
    directory = inner if os.path.isdir(inner) else path
    with os.scandir(directory) as entries:
        # Files whose names begin with a dot are not complete. A link could lead anywhere.
        found = [
            entry.path
            for entry in entries
            if entry.name.endswith(".json") and not entry.name.startswith(".") and entry.is_file(follow_symlinks=False)
        ]
    if not found:
        raise BadEvents(f"{directory} has no files of events, which end with .json")
    if len(found) > MOST_FILES:
        raise BadEvents(f"{directory} has {len(found):,} files, and at most {MOST_FILES:,} are read")
    return sorted(found)


def _events(path: str) -> Iterator[Mapping[str, Any]]:
    """Yield the events of a file that may matter. Raises _Unreadable and OSError."""
    if not os.path.isfile(path):
        raise _Unreadable("it is not a regular file" if os.path.exists(path) else "it does not exist")
    with open(path, "rb") as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise _Unreadable(f"it is larger than {MOST_BYTES >> 20} MiB")
    if not any(word in data for word in _WORDS):
        return
    try:
        yield from _events_in(_parsed(data))
    except (ValueError, RecursionError) as error:
        lines = data.splitlines()
        if len(lines) < 2:
            raise _Unreadable(f"it is not JSON: {error}") from error
        try:
            for line in lines:
                if any(word in line for word in _WORDS):
                    yield from _events_in(_parsed(line))
        except (ValueError, RecursionError):
            raise _Unreadable(f"it is not JSON: {error}") from error


def _parsed(data: bytes) -> Any:
    return json.loads(data.decode("utf-8"))


def _events_in(value: Any) -> list[Mapping[str, Any]]:
    """Return the events of an event, a list of events, or a page of AWX."""
    if isinstance(value, list):
        return rows(value)
    return rows(value["results"]) if isinstance(table(value).get("results"), list) else [table(value)]


class _Found:
    """What the events say about each host, whatever their order."""

    def __init__(self, groups: Mapping[str, list[str]]) -> None:
        self._groups = groups
        self._inspected: dict[str, tuple[tuple[str, int], Record]] = {}
        self._failed: dict[str, tuple[tuple[str, int], str]] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        kind, data = text(event.get("event")), table(event.get("event_data"))
        host = text(data.get("host")) or text(event.get("host_name"))
        if not host or kind not in (*_ENDS, _UNREACHABLE):
            return
        result = table(data.get("res"))
        order = text(event.get("created")), number(event.get("counter"))
        if kind == _UNREACHABLE:
            self._fail(host, order, f"unreachable: {text(result.get('msg')) or 'the reason is unknown'}")
        elif text(data.get("resolved_action")) in _ACTIONS or text(data.get("task_action")) in _ACTIONS:
            self._add_report(host, order, result, text(result.get("msg")) if kind == _ENDS[1] else "")

    def _add_report(self, host: str, order: tuple[str, int], result: Mapping[str, Any], failure: str) -> None:
        # In a loop, as the playbooks have it, each item has a result.
        results = [one for one in (*rows(result.get("results")), result) if _is_usable(one)]
        if results:
            known = self._inspected.get(host)
            if known is None or known[0] <= order:
                record = build_from_result(host, results[-1], _time(results[-1], order[0]), self._groups.get(host, ()))
                self._inspected[host] = order, record
        elif "report" not in result:
            # ansible-runner empties results of more than 700,000 bytes, and no_log hides them.
            self._fail(host, order, failure or "the events of the job lack what was found on the host")

    def _fail(self, host: str, order: tuple[str, int], why: str) -> None:
        known = self._failed.get(host)
        if known is None or known[0] <= order:
            self._failed[host] = order, why

    def records(self) -> dict[str, Record]:
        """Return the records. What failed counts only for hosts about which nothing else is known."""
        found = {
            host: {**unusable(host, why), "time": _time({}, order[0]), "groups": list(self._groups.get(host, ()))}
            for host, (order, why) in self._failed.items()
            if host not in self._inspected
        }
        return {**found, **{host: record for host, (_order, record) in self._inspected.items()}}


def _is_usable(result: Mapping[str, Any]) -> bool:
    return result.get("status") in STATUSES and isinstance(result.get("steps"), list)


def _time(result: Mapping[str, Any], created: str) -> str:
    """Return when a host was inspected: the time of its record, or else that of the event; "" if both are unknown."""
    said = text(result.get("time"))
    if seconds(said) is not None:
        return said
    when = _instant(created)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ") if when else ""


def _instant(created: str) -> Optional[datetime]:
    try:
        when = datetime.fromisoformat(created)
        return (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None
