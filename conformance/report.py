# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The report on one plugin: its text, and what it means for the exit status."""

from __future__ import annotations

import typing as t

from .clauses import CLAUSES, MUST

Report = t.Dict[str, t.Any]

KEPT, VIOLATED, USAGE, NOT_JUDGED = 0, 1, 2, 3


def exit_status(report: Report, strict: bool = False) -> int:
    """Return 1 if a `must` is violated (with *strict* also a `should`), 3 if parts could not be judged, else 0."""
    failed = [entry for entry in report["verdicts"] if entry["status"] == "failed"]
    if any(strict or entry["level"] == MUST for entry in failed):
        return VIOLATED
    return NOT_JUDGED if report["problem"] else KEPT


def as_text(report: Report) -> str:
    """Return a table of the clauses, and each failure with the commands that repeat it."""
    lines = [
        f"{report['plugin']}: {report['kind'] or 'unknown'} plugin",
        f"supports {', '.join(report['supported']) or 'nothing'}",
        f"judged by {', '.join(report['versions']) or 'nothing'}",
        "",
    ]
    counts = {"passed": 0, "failed": 0, "not run": 0}
    for entry in merged(report):
        counts[entry["status"]] += 1
        versions = f" ({', '.join(entry['versions'])})" if entry["status"] == "failed" else ""
        shown = "FAILED" if entry["status"] == "failed" else entry["status"]
        lines.append(f"{shown:8} {entry['level']:6} {entry['clause']:23} {CLAUSES[entry['clause']].text}{versions}")
        if entry["status"] != "passed" and entry["message"]:
            lines.append(f"{'':16}{entry['message']}")
        if entry["status"] == "failed":
            lines.append(f"{'':16}repeat: {entry['repeat']}")
    if report["problem"]:
        lines += ["", f"not judged completely: {report['problem']}"]
    lines += ["", ", ".join(f"{count} {status}" for status, count in counts.items())]
    return "\n".join(map(_printable, lines)) + "\n"


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in line)


def merged(report: Report) -> t.List[t.Dict[str, t.Any]]:
    """Return one entry for each clause, in the order of the specification: the worst of all versions."""
    worst = []
    order = ("failed", "passed", "not run")
    for name in CLAUSES:
        entries = [entry for entry in report["verdicts"] if entry["clause"] == name]
        if entries:
            status = min((entry["status"] for entry in entries), key=order.index)
            chosen = [entry for entry in entries if entry["status"] == status]
            worst.append({**chosen[0], "versions": [entry["version"] for entry in chosen]})
    return worst
