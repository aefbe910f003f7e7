# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the page shows of a host: plain values from its record, every list bounded, every shape tolerated."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ...module_utils._host.plan import FOREIGN
from .attention import CUT, LEAKS, vulnerabilities
from .causes import repairs
from .commands import Commands
from .differences import diff
from .drawing import draw
from .findings import Finding, price, subject_of, verb
from .fleet import level
from .record import CLASSES, ERROR, Record
from .values import number, rows, table, text, texts

MOST_ROWS = 100
"""The most entries of any list of a host."""
_MOST_CHARACTERS = 100_000
"""The most characters of any list of a host."""
_NEARLY_FULL = 80


class Bounded:
    """The first entries of a list, as far as they are not too long, and how many more there are."""

    def __init__(self, entries: list[Any], most: int = MOST_ROWS) -> None:
        self.shown: list[Any] = []
        room = _MOST_CHARACTERS
        for entry in entries[:most]:
            room -= _length(entry)
            if room < 0:
                break
            self.shown.append(entry)
        self.more = len(entries) - len(self.shown)
        self.all = len(entries)


def _length(value: Any) -> int:
    """Return how many characters the page needs for a value, without its markup."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_length, value.values()))
    if isinstance(value, Bounded):
        return _length(value.shown)
    return sum(map(_length, value)) if isinstance(value, (list, tuple)) else 1


def host_view(
    record: Record,
    found: Sequence[Finding],
    commands: Commands,
    since: Mapping[str, str],
    identifier: str,
) -> dict[str, Any]:
    """Return what the page shows of one host of a report.

    *found* are its findings, *since* says by their keys when they appeared. *identifier* is its anchor on the page.
    """
    info = table(record["info"])
    owners = _owners(info)
    times = {(one.what, one.reason): since.get(one.key, "") for one in found}
    steps = [_step(step, owners, times) for step in record["steps"]]
    for step, row in zip(steps[:MOST_ROWS], record["steps"]):
        step["diff"] = diff(row.get("before"), row.get("after"))
    classes = {name: sum(step["class"] == name for step in steps) for name in CLASSES}
    problems = list(_told_once([*rows(record["problems"]), *rows(info.get("problems"))]))
    leaks = [_leak(row) for row in rows(info.get("garbage"))]
    collectable = sum(leak["collectable"] for leak in leaks)
    pools = sorted((_pool(row) for row in rows(info.get("pools"))), key=lambda pool: -pool["percent"])
    targets = {step["target"] for step in steps}
    warnings = [_warning(row) for row in rows(record["warnings"])]
    # A planned repair says the same.
    warnings = [row for row in warnings if row["code"] != "drifted" or row["message"].split(" ")[0] not in targets]
    shown = [one for one in found if one.level]
    return {
        "id": identifier,
        "host": record["host"],
        "time": record["time"],
        "groups": texts(record.get("groups")),
        "level": level(record),
        "status": record["status"],
        "error": record["error"] or "",
        "attention": record["attention"],
        "cut": next((reason["message"] for reason in record["attention"] if reason["code"] == CUT), ""),
        "found": shown[:1],
        "more": max(0, len(shown) - 1),
        "known": record["info"] is not None,
        "steps": Bounded(steps),
        "classes": {name: count for name, count in classes.items() if count},
        "effective": Bounded(_runtimes(info)).shown,
        "obstacles": Bounded([_obstacle(row) for row in rows(table(info.get("readiness")).get("obstacles"))]),
        "problems": Bounded(sorted(problems, key=lambda problem: problem["code"] != "known_vulnerability")),
        "warnings": Bounded(list({row["message"]: row for row in warnings}.values())),
        "pools": Bounded(pools),
        "fill": pools[0]["percent"] if pools else None,
        "leaks": Bounded(leaks),
        "leaked": collectable,
        "leaks_known": isinstance(info.get("garbage"), list),
        "confirmed": record["confirmed"],
        "files": Bounded([_file(row) for row in rows(info.get("conf"))]),
        "commands": repairs({record["host"]: {**classes, LEAKS: collectable}}, commands),
        "again": commands.playbook("drift", [record["host"]]),
        "drawing": draw(info, {step["target"]: step["reason"] for step in steps if step["class"] != FOREIGN}),
        "failed": record["status"] == ERROR,
        "weight": classes["disruptive"] * 1_000_000 + classes["safe"] * 1000 + len(shown),
    }


def _step(step: Mapping[str, Any], owners: Mapping[str, str], times: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    kind, target = text(step.get("kind")), text(step.get("target"))
    reason = text(step.get("reason")) or text(step.get("why"))
    return {
        "class": text(step.get("class")),
        "subject": subject_of(kind, target),
        "target": target,
        "reason": reason or kind.replace("_", " "),
        "remedy": verb(kind),
        "price": price(kind, text(step.get("class"))),
        "owner": owners.get(target, ""),
        "since": times.get((target, reason), ""),
    }


def _told_once(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return problems, each once: cni_conf and cni_info may both report one."""
    problems = [_problem(row) for row in found]
    return list({(problem["code"], problem["place"], problem["message"]): problem for problem in problems}.values())


def _obstacle(row: Mapping[str, Any]) -> dict[str, str]:
    return {key: text(row.get(key)) for key in ("level", "code", "message", "evidence", "remedy")}


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


def _runtimes(info: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each runtime, with the part of the readiness that is about it."""
    told = rows(table(info.get("readiness")).get("runtimes"))[:MOST_ROWS]
    return [{**_effective(row), **_ready(_of_runtime(row, told))} for row in rows(info.get("runtime"))]


def _of_runtime(row: Mapping[str, Any], told: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the readiness of a runtime. Its handlers share its name; one that reads no files has no directory."""
    directory = text(row.get("conf_dir"))
    same = [
        one
        for one in told
        if all(text(one.get(key)) == text(row.get(key)) for key in ("runtime", "network"))
        and directory in ("", text(one.get("conf_dir")))
    ]
    return same[0] if same else {}


def _ready(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether containers of a runtime would get their network, "" if that was not examined, and why."""
    ready = row.get("ready")
    words = "" if not row else "unknown" if not isinstance(ready, bool) else "yes" if ready else "no"
    why = [text(one.get("message")) for one in rows(row.get("status")) if one.get("state") == "not_ready"]
    why += [text(row.get("unknown"))] if words == "unknown" else []
    reported = table(row.get("reported"))
    said = reported.get("ready")
    if said is False:
        why.append(f"it reports that its network is not ready: {text(reported.get('message'))}")
    elif said is True:
        why.append("it reports that its network is ready")
    return {"ready": words, "why": Bounded([one for one in why if one], 5)}


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
    return {
        "level": text(row.get("level")),
        "code": text(row.get("code")),
        "place": place,
        "message": message,
        "names": vulnerabilities(message),
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
