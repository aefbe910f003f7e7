# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Prints a table of nox's sessions with the checks that they counted, and the closing line: summary.py RESULTS

RESULTS is a directory with nox's report (nox.json), and the counts of sessions. A session without counts is one check.
The exit status is 1 if a check failed.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path


def main(results: Path) -> int:
    try:
        sessions = json.loads((results / "nox.json").read_text())["sessions"]
    except (OSError, ValueError):
        print("\nnox ended without a report.\n0 passed, 1 failed, 0 skipped")
        return 1
    totals: dict[str, int] = defaultdict(int)
    skipped = []
    print(f"\n{'session':22} {'result':8} {'seconds':>7}  checks")
    for session in sorted(sessions, key=lambda entry: -entry.get("duration", 0)):
        # The name with the Python, under which a session counts.
        name, result = (session.get("signatures") or [session["name"]])[0], session["result"]
        counts: dict[str, int] = defaultdict(int)
        reasons: list[str] = []
        for line in _lines(results / f"{name}.counts"):
            entry = json.loads(line)
            counts["passed"] += entry["passed"]
            counts["failed"] += entry["failed"]
            reasons += entry["skipped"]
        if result == "skipped":
            reasons = reasons or [session.get("reason") or "not possible on this machine"]
        elif result == "success":
            counts["passed"] = counts["passed"] or 1
        else:
            counts["failed"] = counts["failed"] or 1
        skipped += [f"skipped: {name}: {reason}" for reason in reasons]
        counts["skipped"] = len(reasons)
        for kind in ("passed", "failed", "skipped"):
            totals[kind] += counts[kind]
        checks = ", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "failed", "skipped") if counts[kind])
        print(f"{name:22} {result:8} {session.get('duration', 0):7.0f}  {checks}")
    print("", *skipped, *sorted(_lines(results / "coverage")), sep="\n")
    print(f"{totals['passed']} passed, {totals['failed']} failed, {totals['skipped']} skipped")
    return 1 if totals["failed"] else 0


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
