# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host is worse than when it was last inspected, which stops a rollout."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ...module_utils._host.plan import FOREIGN
from ..untrusted import rows, table, text
from .record import Record, problems_of

# Warnings about what check mode could not inspect because something else is missing.
_BLIND = "missing_"
# Everything is worse than this.
_FLAWLESS: Record = {"error": "", "confirmed": True, "problems": [], "info": {}, "warnings": [], "steps": []}


def worse(before: Record, after: Record, known: Collection[str] = ()) -> list[str]:
    """Return the ways in which *after* is worse than *before*, a sentence each; both are records of one host.

    *known* are such sentences about an even earlier record. Those that still hold are returned, too.
    """
    still = [text for text in _worse(_FLAWLESS, after) if text in known]
    return list(dict.fromkeys([*still, *_worse(before, after)]))


def _worse(before: Record, after: Record) -> Iterator[str]:
    known = set(_lines(before))
    yield from (line for line in _lines(after) if line not in known)
    if before["confirmed"] is True and after["confirmed"] is False:
        yield "the runtimes no longer have their network loaded"
    known = set(_errors(before))
    for problem in dict.fromkeys(_errors(after)):
        if problem not in known:
            yield problem
    # Steps that could not be planned before may not be new; an error hides them, too.
    if before["error"] or any(text(table(row).get("code")).startswith(_BLIND) for row in before["warnings"]):
        return
    planned = set(_steps(before))
    for kind, target in dict.fromkeys(_steps(after)):
        if (kind, target) not in planned:
            yield f"a run would now {kind.replace('_', ' ')} {target}"


def _lines(record: Record) -> list[str]:
    return [line for line in (record["error"] or "").split("\n") if line]


def _errors(record: Record) -> Iterator[str]:
    for row in problems_of(record):
        if row.get("level") == "error":
            place = ": ".join(filter(None, (text(row.get("file")), text(row.get("pointer")))))
            yield f"{place}: {text(row.get('message'))}" if place else text(row.get("message"))


def _steps(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    return (
        (text(step.get("kind")), text(step.get("target"))) for step in rows(record["steps"]) if step["class"] != FOREIGN
    )
