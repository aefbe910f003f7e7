# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What earlier runs have found: since when each finding is there, and the difference between two runs.

A run inspects each host at most once. So a report with new records begins a new run if one of these hosts was inspected
in the last run already, or if that run is long over; otherwise it continues the last run, as the slices of an inventory
and the batches of a repair do.
"""

from __future__ import annotations

import os
import re
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from ...module_utils._host.json_text import parse_json
from ..untrusted import table, text
from .findings import Finding
from .fleet import level, one_line, seconds
from .record import FORMAT

RUNS = "runs"
"""The folder of the runs, within that of the report."""
KEEP = 30
"""How many runs are kept, unless the caller says otherwise."""
PREVIOUS = "previous"

_PAUSE = 3600
"""After how many seconds without a new record a run is over."""
_NAME = re.compile(r"(\d{4}-\d\d-\d\dT)(\d\d)-(\d\d)-(\d\d)Z\.json\Z")
_MAX_SIZE = 256 << 20


class Run(NamedTuple):
    """*begin* and *end* are the times of its first and last report.

    ``hosts`` has for each host its ``time``, its ``level``, ``run`` (the beginning of the run that inspected it), and
    ``found``: since when each of its findings is there.
    """

    begin: str
    end: str
    hosts: Mapping[str, Mapping[str, Any]]

    @property
    def since(self) -> dict[str, Mapping[str, str]]:
        return {name: host["found"] for name, host in self.hosts.items()}


class Change(NamedTuple):
    """How a host differs between two runs; a level is "" if it was not inspected."""

    host: str
    before: str
    after: str
    new: list[str]
    gone: list[str]


class NoRun(ValueError):
    """There is no such run; the text says so."""


def run_of(report: Mapping[str, Any], by_host: Mapping[str, Sequence[Finding]], last: Run | None) -> Run:
    """Return the run of a report: *last* continued, or a new one.

    Records may come from other machines, so their times say only whether a record is a new one.
    """
    now = report["time"]
    times = {host["host"]: host["time"] for host in report["hosts"]}
    known = last.hosts if last else {}
    fresh = {name for name, time in times.items() if name not in known or time != known[name]["time"]}
    begin = last.begin if last and _continues(last, fresh, now) else now
    levels = {host["host"]: level(host) for host in report["hosts"]}
    hosts = {}
    for name, findings in by_host.items():
        before = table(known[name]["found"]) if name in known else {}
        # A record cannot be of the future.
        when = times[name] if seconds(times[name]) is not None and times[name] <= now else now
        appeared = {finding.key: before.get(finding.key, when) for finding in findings if finding.level}
        inspected = begin if name in fresh else known[name]["run"]
        hosts[name] = {"time": times[name], "level": levels[name], "run": inspected, "found": appeared}
    return Run(begin, now if fresh or not last else last.end, hosts)


def _continues(last: Run, fresh: Iterable[str], now: str) -> bool:
    if any(last.hosts[name]["run"] == last.begin for name in fresh if name in last.hosts):
        return False
    ended, present = seconds(last.end), seconds(now)
    return not fresh or (ended is not None and present is not None and 0 <= present - ended <= _PAUSE)


def differences(before: Run, after: Run) -> list[Change]:
    """Return the hosts that differ between two runs, sorted by name."""
    changes = []
    for name in sorted({*before.hosts, *after.hosts}):
        old, new = (run.hosts.get(name, {"level": "", "found": {}}) for run in (before, after))
        change = Change(
            name,
            old["level"],
            new["level"],
            [key for key in new["found"] if key not in old["found"]],
            [key for key in old["found"] if key not in new["found"]],
        )
        if change.new or change.gone or change.before != change.after:
            changes.append(change)
    return changes


def summary_of_differences(before: Run, changes: Sequence[Change]) -> str:
    """Return the difference between two runs in a line."""
    # Hosts are counted: an upgrade is one event, with a finding for each plugin.
    counts = {
        "new findings": sum(bool(change.new) for change in changes),
        "findings gone": sum(bool(change.gone) for change in changes),
    }
    said = [f"{what} on {count:,} host{'s'[: count != 1]}" for what, count in counts.items() if count]
    return f"since {before.begin[:16].replace('T', ' ')}: {', '.join(said) or 'nothing changed'}"


# ---- the folder


def name_of(run: Run) -> str:
    """Return the name of a run's file."""
    return f"{run.begin.replace(':', '-')}.json"


def to_json(run: Run) -> str:
    """Return a run as JSON, with one line for each host."""
    head = {"format": FORMAT, "begin": run.begin, "end": run.end}
    hosts = ",\n".join(f"{one_line(name)}:{one_line(host)}" for name, host in run.hosts.items())
    return f'{one_line(head)[:-1]},"hosts":{{\n{hosts}\n}}}}\n'


def names(folder: str) -> list[str]:
    """Return the names of the files of the runs in a report's folder, the oldest first."""
    try:
        return sorted(filter(_NAME.match, os.listdir(os.path.join(folder, RUNS))))
    except OSError:
        return []


def read(path: str) -> Run:
    """Return the run in a file. Raises NoRun."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _MAX_SIZE:
            raise NoRun(f"{path} is not a regular file, or is larger than 256 MiB")
        with open(path, encoding="utf-8") as stream:
            return _checked(parse_json(stream.read()))
    except OSError as error:
        raise NoRun(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise NoRun(f"{path} is not the file of a run: {error}") from error


def last(folder: str) -> Run | None:
    """Return the last usable run in a report's folder."""
    for name in reversed(names(folder)):
        try:
            return read(os.path.join(folder, RUNS, name))
        except NoRun:
            continue
    return None


def find(folder: str, against: str, present: Run) -> Run:
    """Return the run that *against* names: PREVIOUS, a time as a prefix (``2026-11-25``), or a path. Raises NoRun.

    A prefix names the last run that it fits. *present* is the run of the report itself, which is none of them.
    """
    if "/" in against:
        return read(os.path.abspath(against))
    others = [name for name in names(folder) if name != name_of(present)]
    if against == PREVIOUS:
        others = [name for name in others if name < name_of(present)]
    else:
        others = [name for name in others if name.startswith(against.replace(":", "-"))]
    if not others:
        if against == PREVIOUS:
            raise NoRun(f"no run before {present.begin} in {folder}/{RUNS}")
        begins = ", ".join(_NAME.sub(r"\1\2:\3:\4Z", name) for name in names(folder))
        raise NoRun(f"no other run in {folder}/{RUNS} begins at {against}; there are {begins}")
    return read(os.path.join(folder, RUNS, others[-1]))


def _checked(value: Any) -> Run:
    run = table(value)
    begin, end = text(run.get("begin")), text(run.get("end"))
    if run.get("format") != FORMAT or seconds(begin) is None or seconds(end) is None:
        raise NoRun("it has another format, or does not say when the run was")
    hosts = {
        name: {
            **{key: text(table(host).get(key)) for key in ("time", "run", "level")},
            "found": {key: text(when) for key, when in table(table(host).get("found")).items()},
        }
        for name, host in table(run.get("hosts")).items()
    }
    return Run(begin, end, hosts)
