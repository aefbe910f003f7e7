# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of a report on the controller: ``hosts/NAME.json``, ``report.json``, ``report.html``, and earlier runs.

Several runs may use one folder at once (slices of an inventory), even from several machines. So each host has its own
file, every file is complete when it gets its name, and rendering holds a lock while it reads and writes: the last run
includes all hosts.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time as clock
from typing import Iterable, Iterator, Mapping, Sequence

from ...module_utils._host.json_text import parse_json
from ..archive_cache import locked
from ..untrusted import table, texts
from . import history
from .bounds import bounded
from .commands import LIMITS, Commands
from .fleet import MAX_AGE, BadRecord, check, fleet, json_lines, now, one_line
from .metrics import metrics_of
from .page import Written, findings_by_host, page_name, pages
from .record import Record, unusable

HOSTS, JSON_NAME, HTML_NAME, _LOCK = "hosts", "report.json", "report.html", ".lock"
_SAFE = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,99}\Z")
_PAGE = re.compile(r"report-\d{1,6}\.html\Z")
MAX_SIZE = 64 << 20
"""The most bytes of a record. One that was written here is much smaller, see ``bounds``."""
_LONGEST_HEAD = 1 << 20
_WEEK = 7 * 86400


def file_name(host: str) -> str:
    """Return the name of a host's file. Inventory names may contain anything, even path separators."""
    if _SAFE.match(host):
        return host + ".json"
    digest = hashlib.sha256(host.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', host)[:60]}~{digest}.json"


def write_record(folder: str, record: Record) -> str:
    """Write the file of a host and return its path. Raises OSError."""
    hosts = os.path.join(folder, HOSTS)
    # One after the other, because the mode applies only to the last folder of a path.
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.makedirs(hosts, mode=0o700, exist_ok=True)
    path = os.path.join(hosts, file_name(record["host"]))
    _write(path, one_line(record) + "\n")
    return path


def read_record(folder: str, host: str) -> Record:
    """Return the record in the file of a host; an error record if the file is missing or unusable."""
    name = file_name(host)
    return _read(os.path.join(folder, HOSTS, name), name)


def write_report(
    folder: str,
    time: str = "",
    max_age: float = MAX_AGE,
    inventory: Sequence[str] = (),
    groups: Mapping[str, Sequence[str]] | None = None,
    keep: int = history.KEEP,
    against: str = "",
    prometheus: str = "",
) -> Written:
    """Render the records in a folder, and return the report. Raises OSError, and NoRun for *against*.

    *time* is the present, if it is not said. *inventory* and *groups* (with their hosts) are those of this run, for the
    commands; without an inventory that has one of the report's hosts, the commands keep that of the last report. *keep*
    is the number of runs to keep, *against* the run to compare with, see ``history.find``; "" is the previous run, if
    there is one. *prometheus* is the path of a file with metrics, or "".
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with locked(os.path.join(folder, _LOCK)):
        records = list(read_records(folder))
        # A run that only joins records may have any inventory, for example the default one of its user.
        hosts = None if groups is None else set(groups.get("all", ()))
        if not inventory or (hosts is not None and hosts.isdisjoint(record["host"] for record in records)):
            inventory, groups, hosts = _last_inventory(folder), None, None
        names = [str(record["host"]) for record in records if hosts is not None and record["host"] not in hosts]
        others = {name: os.path.join(folder, HOSTS, file_name(name)) for name in names}
        report = fleet(records, time or now(), max_age, inventory, others)
        by_host = findings_by_host(report)
        run = history.run_of(report, by_host, history.last(folder))
        before = _before(folder, against, run)
        changes = history.differences(before, run) if before else []
        commands = Commands(report["inventory"], groups, folder)
        _write_run(folder, run, keep)
        written = Written(report, run.since, before, changes)
        _write(os.path.join(folder, JSON_NAME), json_lines(report))
        made = set()
        for index, page in enumerate(pages(written, by_host, commands)):
            # The page names them, so they must be there first.
            _write_limits(folder, commands.files)
            _write(os.path.join(folder, page_name(index)), page)
            made.add(page_name(index))
        # A larger fleet may have had more pages.
        for name in filter(_PAGE.match, os.listdir(folder)):
            if name not in made:
                os.unlink(os.path.join(folder, name))
        if prometheus:
            # A collector of metrics reads it.
            _write(prometheus, metrics_of(report), 0o644)
    return written


def _before(folder: str, against: str, run: history.Run) -> history.Run | None:
    """Return the run to compare with. Raises NoRun if *against* names none."""
    try:
        return history.find(folder, against or history.PREVIOUS, run)
    except history.NoRun:
        if against:
            raise
        return None


def _write_run(folder: str, run: history.Run, keep: int) -> None:
    runs = os.path.join(folder, history.RUNS)
    os.makedirs(runs, mode=0o700, exist_ok=True)
    _write(os.path.join(runs, history.name_of(run)), history.to_json(run))
    for name in history.names(folder)[: -max(1, keep)]:
        os.unlink(os.path.join(runs, name))


def _write_limits(folder: str, files: Mapping[str, str]) -> None:
    """Write the files with the hosts of commands. Earlier ones stay for a week: somebody may have the command."""
    limits = os.path.join(folder, LIMITS)
    os.makedirs(limits, mode=0o700, exist_ok=True)
    for name, content in files.items():
        _write(os.path.join(limits, name), content)
    for entry in os.scandir(limits):
        if entry.name not in files and clock.time() - entry.stat(follow_symlinks=False).st_mtime > _WEEK:
            os.unlink(entry.path)


def _last_inventory(folder: str) -> list[str]:
    """Return the inventory in the first line of the last report. Hosts cannot write to that file."""
    try:
        with open(os.path.join(folder, JSON_NAME), encoding="utf-8") as stream:
            head = parse_json(f"{stream.readline(_LONGEST_HEAD).rstrip()}]}}")
    except (OSError, ValueError):
        return []
    return texts(table(head).get("inventory"))


def read_records(folder: str) -> Iterator[Record]:
    """Yield the record of each host's file in a folder; an unusable file yields an error record."""
    hosts = os.path.join(folder, HOSTS)
    for name in sorted(os.listdir(hosts)) if os.path.isdir(hosts) else []:
        if name.endswith(".json") and not name.startswith("."):
            yield _read(os.path.join(hosts, name), name)


def _read(path: str, name: str) -> Record:
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > MAX_SIZE:
            raise BadRecord("it is not a regular file, or is larger than 64 MiB")
        with open(path, encoding="utf-8") as stream:
            record = check(bounded(parse_json(stream.read(), parse_constant=_no_number)))
        if file_name(record["host"]) != name:
            raise BadRecord(f"it is the record of the host {record['host']!r}, whose file has another name")
    except OSError as error:
        return unusable(name[: -len(".json")], f"its file {name} cannot be read: {error.strerror}")
    # Invalid text and deeply nested JSON are errors of the file, too.
    except ValueError as error:
        return unusable(name[: -len(".json")], f"its file {name} is unusable: {error}")
    return record


def _no_number(word: str) -> None:
    raise BadRecord(f"it contains {word}, which is not JSON")


def _write(path: str, content: str | Iterable[str], mode: int = 0o600) -> None:
    """Write a file atomically, from a text or its parts.

    Its default mode is for its owner only, because it contains addresses of the fleet.
    """
    fd, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".new-")
    try:
        # Half of a surrogate pair, which JSON can contain, cannot be encoded.
        with open(fd, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.writelines([content] if isinstance(content, str) else content)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
