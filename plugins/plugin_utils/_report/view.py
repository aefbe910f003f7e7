# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the page shows of a host: plain values from its record, every list bounded, every shape tolerated."""

from __future__ import annotations

import re
from typing import Any, Mapping

from . import commands
from .differences import diff
from .drawing import draw
from .record import CLASSES, ERROR, Record
from .values import number, rows, table, text, texts

MOST_ROWS = 100
"""The most entries of any list of a host."""
_CVE = re.compile(r"\b(?:CVE-\d{4}-\d{4,7}|GHSA(?:-[a-z0-9]{4}){3})\b")
_NEARLY_FULL = 80


class Bounded:
    """The first entries of a list, and how many more there are."""

    def __init__(self, entries: list[Any], most: int = MOST_ROWS) -> None:
        self.shown = entries[:most]
        self.more = max(0, len(entries) - most)
        self.all = len(entries)


def host_view(record: Record, number_of_host: int, alone: bool) -> dict[str, Any]:
    """Return what the page shows of one host; *alone* if it is the only one."""
    info = table(record["info"])
    owners = _owners(info)
    steps = [_step(step, owners) for step in record["steps"]]
    classes = {name: sum(step["class"] == name for step in steps) for name in CLASSES}
    problems = [_problem(row) for row in [*rows(record["problems"]), *rows(info.get("problems"))]]
    leaks = [_leak(row) for row in rows(info.get("garbage"))]
    collectable = sum(leak["collectable"] for leak in leaks)
    pools = sorted((_pool(row) for row in rows(info.get("pools"))), key=lambda pool: -pool["percent"])
    return {
        "id": f"h{number_of_host}",
        "host": record["host"],
        "alone": alone,
        "time": record["time"],
        "status": record["status"],
        "error": record["error"] or "",
        "known": record["info"] is not None,
        "steps": Bounded(steps),
        "classes": {name: count for name, count in classes.items() if count},
        "effective": [_effective(row) for row in rows(info.get("runtime"))],
        "vulnerable": [problem for problem in problems if problem["code"] == "known_vulnerability"],
        "problems": Bounded([problem for problem in problems if problem["code"] != "known_vulnerability"]),
        "warnings": Bounded([_warning(row) for row in rows(record["warnings"])]),
        "pools": Bounded(pools),
        "fill": pools[0]["percent"] if pools else None,
        "outside": sum(pool["outside"] for pool in pools),
        "leaks": Bounded(leaks),
        "leaked": collectable,
        "leaks_known": isinstance(info.get("garbage"), list),
        "confirmed": record["confirmed"],
        "files": Bounded([_file(row) for row in rows(info.get("conf"))]),
        "commands": commands.repairs(record["host"], classes, collectable),
        "again": commands.playbook("drift", record["host"]),
        "drawing": draw(info, {step["target"] for step in steps}),
        "failed": record["status"] == ERROR,
    }


def _step(step: Mapping[str, Any], owners: Mapping[str, str]) -> dict[str, Any]:
    target = text(step.get("target"))
    return {
        "class": text(step.get("class")),
        "module": text(step.get("module")),
        "kind": text(step.get("kind")).replace("_", " "),
        "target": target,
        "reason": text(step.get("reason")) or text(step.get("why")),
        "owner": owners.get(target, ""),
        "diff": diff(step.get("before"), step.get("after")),
    }


def _owners(info: Mapping[str, Any]) -> dict[str, str]:
    """Return the owner of each file, in words, by path."""
    return {text(row.get("path")): _owner(row) for key in ("conf", "plugins") for row in rows(info.get(key))}


def _owner(row: Mapping[str, Any]) -> str:
    if row.get("managed"):
        return "podwire.cni, edited since" if row.get("edited") else "podwire.cni"
    return text(row.get("owner")) or "unmanaged"


def _file(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "path": text(row.get("path")),
        "network": text(row.get("network")),
        "plugins": texts(row.get("plugins"))[:20],
        "owner": _owner(row),
        "error": text(row.get("error")),
    }


def _effective(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "runtime": text(row.get("runtime")),
        "version": text(row.get("version")),
        "network": text(row.get("network")),
        "file": text(row.get("file")),
        "reason": text(row.get("reason")),
        "not_chosen": Bounded(
            [
                {key: text(other.get(key)) for key in ("file", "network", "reason")}
                for other in rows(row.get("not_chosen"))
            ],
            20,
        ),
    }


def _problem(row: Mapping[str, Any]) -> dict[str, Any]:
    message = text(row.get("message"))
    place = " ".join(part for part in (text(row.get("file")), text(row.get("pointer"))) if part)
    names = list(dict.fromkeys(_CVE.findall(message)))
    return {
        "level": text(row.get("level")),
        "code": text(row.get("code")),
        "place": place,
        "message": message,
        "names": [name for name in names if name.startswith("CVE")] or names,
    }


def _warning(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"code": text(row.get("code")), "message": text(row.get("message"))}


def _pool(row: Mapping[str, Any]) -> dict[str, Any]:
    used, size = number(row.get("used")), number(row.get("size"))
    percent = min(100, -(-used * 100 // size)) if size else 0
    return {
        "network": text(row.get("network")),
        "ranges": texts(row.get("ranges"))[:10],
        "used": used,
        "size": size,
        "free": number(row.get("free")),
        "outside": number(row.get("outside")),
        "percent": percent,
        "part": -(-percent // 5) * 5,
        "level": "bad" if percent >= 100 else "warn" if percent >= _NEARLY_FULL else "good",
    }


def _leak(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": text(row.get("kind")),
        "network": text(row.get("network")),
        "id": text(row.get("id")),
        "container": text(row.get("container_id")),
        "reason": text(row.get("reason")).replace("_", " "),
        "collectable": row.get("collectable") is True,
        "evidence": texts(row.get("evidence"))[:10],
    }
