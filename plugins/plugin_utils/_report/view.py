# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What the page shows of a host: plain values from its record, every list bounded, every shape tolerated."""

from __future__ import annotations

import difflib
import json
from typing import Any, Collection, Iterator, Mapping, NamedTuple, Sequence

from ...module_utils._host.kinds import bridge_of
from ...module_utils._host.plan import DISRUPTIVE, FOREIGN, SAFE
from ..untrusted import number, rows, table, text, texts
from .commands import Commands
from .findings import Finding, finding_of_step, repairs
from .fleet import CUT, level, tags_of
from .record import Record, classes_of, leaks_of, problems_of

MOST_ROWS = 100
"""The most entries of any list of a host."""
MOST_CONTAINERS = 12
"""The most containers of a host: those with something wrong come first, and the page must stay small."""
_MOST_CHARACTERS = 100_000
"""The most characters of any list of a host."""
MOST_LINES = 120
"""The most lines of one difference. A longer one reports how many were left out."""
_MOST_READ = 500
_LONGEST_LINE = 400
_NEARLY_FULL = 80
_LEVELS = ("bad", "warn", "muted", "good")


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
    record: Record, findings: Sequence[Finding], commands: Commands, since: Mapping[str, str], identifier: str
) -> dict[str, Any]:
    """Return what the page shows of one host of a report.

    *findings* are its own, *since* says by their keys when they appeared. *identifier* is its anchor on the page.
    """
    info = table(record["info"])
    owners = {text(row.get("path")): _owner(row) for key in ("conf", "plugins") for row in rows(info.get(key))}
    planned = [finding_of_step(step) for step in record["steps"]]
    steps: list[dict[str, Any]] = [
        {"class": finding.step_class, "finding": finding, "owner": owners.get(finding.what, "")} for finding in planned
    ]
    for step, finding, row in zip(steps[:MOST_ROWS], planned, record["steps"]):
        step.update(since=since.get(finding.key, ""), diff=diff(row.get("before"), row.get("after")))
    classes = classes_of(record)
    problems = [
        {
            **_texts(row, "level", "code", "message"),
            "place": " ".join(filter(None, (text(row.get("file")), text(row.get("pointer"))))),
        }
        for row in problems_of(record)
    ]
    pools = sorted((_pool(row) for row in rows(info.get("pools"))), key=lambda pool: -pool["percent"])
    drifted = {finding.what: finding.reason for finding in planned if finding.step_class != FOREIGN}
    targets = {finding.what for finding in planned}
    # A planned repair says the same as the warning about its drift.
    problems += [
        {"level": "warning", **_texts(row, "code", "message"), "place": ""}
        for row in rows(record["warnings"])
        if row.get("code") != "drifted" or text(row.get("target")) not in targets
    ]
    unique = {tuple(problem.values()): problem for problem in problems}
    shown, runtimes = [finding for finding in findings if finding.level], Bounded(list(_runtimes(info)))
    obstacles = rows(table(info.get("readiness")).get("obstacles"))
    return {
        "id": identifier,
        "host": record["host"],
        "time": record["time"],
        "groups": texts(record.get("groups")),
        "level": level(record),
        "tags": tags_of(record),
        "error": record["error"] or "",
        "cut": next((reason["message"] for reason in record["attention"] if reason["code"] == CUT), ""),
        "first": shown[:1],
        "more": max(0, len(shown) - 1),
        "known": record["info"] is not None,
        "steps": Bounded(steps),
        "classes": classes,
        "runtimes": runtimes,
        "obstacles": Bounded([_texts(row, "level", "message", "evidence", "remedy") for row in obstacles]),
        # cni_conf and cni_info may both report one.
        "problems": Bounded(sorted(unique.values(), key=lambda problem: problem["code"] != "known_vulnerability")),
        "pools": Bounded(pools),
        "fill": pools[0]["percent"] if pools else None,
        "leaks": Bounded([_leak(row) for row in rows(info.get("garbage"))]),
        "leaked": leaks_of(record),
        "leaks_known": isinstance(info.get("garbage"), list),
        "confirmed": record["confirmed"],
        "files": Bounded(files_of(info)),
        "commands": list(repairs([record], commands)),
        "again": commands.playbook("drift", [record["host"]]),
        "containers": Bounded(containers_of(info, drifted), MOST_CONTAINERS),
        "weight": classes.get(DISRUPTIVE, 0) * 1_000_000 + classes.get(SAFE, 0) * 1000 + len(shown),
    }


def _texts(row: Mapping[str, Any], *keys: str) -> dict[str, str]:
    return {key: text(row.get(key)) for key in keys}


def _owner(row: Mapping[str, Any]) -> str:
    if row.get("managed"):
        return "podwire.cni, edited since" if row.get("edited") else "podwire.cni"
    return text(row.get("owner")) or "unmanaged"


def files_of(info: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each configuration: its bridge or master with the addresses, and how pods get its network."""
    links = {
        text(link.get("name")): texts(link.get("addresses")) for link in rows(table(info.get("kernel")).get("links"))
    }
    through = {
        text(row.get("network")): " as ".join(filter(None, (text(runtime.get("network")), text(row.get("interface")))))
        for runtime in rows(info.get("runtime"))
        for row in rows(runtime.get("through"))
    }
    files = []
    for row in rows(info.get("conf")):
        config = table(row.get("config"))
        first = (rows(config.get("plugins")) or [config])[0]
        device = bridge_of(first) or text(first.get("bridge")) or text(first.get("master"))
        shown: dict[str, Any] = {**_texts(row, "path", "network", "error"), "plugins": texts(row.get("plugins"))[:20]}
        via = through.get(shown["network"], "")
        files.append({**shown, "owner": _owner(row), "device": [device, *links.get(device, [])[:2]], "through": via})
    return files


def containers_of(info: Mapping[str, Any], drifted: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a row for each container of each network, what is wrong first.

    Containers are the attachments in the cache, and those that only host-local knows, which a runtime has attached.
    *drifted* are the targets of the plan's steps, with their reasons. What a dead container left is no live container.
    """
    cached = rows(info.get("attachments"))
    known = {_pair(row) for row in cached}
    held: dict[tuple[str, str], list[str]] = {}
    for pool in rows(info.get("pools")):
        for owner in rows(pool.get("owners")):
            # A network has a pool for each address family.
            pair = (text(pool.get("network")), text(owner.get("container_id")))
            held.setdefault(pair, []).extend(texts(owner.get("ips")))
    # A lease does not tell the interface, but a step about it does.
    ifnames = {tuple(target.split("/")[:2]): target.split("/")[2] for target in drifted if target.count("/") == 2}
    leased = [
        {"network": pair[0], "container_id": pair[1], "ifname": ifnames.get(pair, ""), "ips": ips}
        for pair, ips in held.items()
        if pair[1] and pair not in known
    ]
    dead = {_pair(row) for row in rows(info.get("garbage")) if row.get("collectable") is True}
    containers = [_container(row, drifted, dead) for row in [*cached, *leased]]
    keys = ("network", "container_id", "ifname")
    return sorted(containers, key=lambda row: (_LEVELS.index(row["level"]), *(row[key] for key in keys)))


def _pair(row: Mapping[str, Any]) -> tuple[str, str]:
    return text(row.get("network")), text(row.get("container_id"))


def _container(row: Mapping[str, Any], drifted: Mapping[str, str], dead: Collection[tuple[str, str]]) -> dict[str, Any]:
    names = _texts(row, "network", "container_id", "ifname")
    level, state = "good", "attached"
    if _pair(row) in dead:
        level, state = "muted", "dead, not cleaned up"
    elif row.get("netns_state") in ("gone", "other") or row.get("interface") is False:
        level, state = "bad", "gone"
    elif "/".join(names.values()) in drifted:
        level, state = "warn", drifted["/".join(names.values())]
    ports = [
        f"{text(port.get('hostIP')) and text(port.get('hostIP')) + ':'}{number(port.get('hostPort'))} → "
        f"{number(port.get('containerPort'))}/{text(port.get('protocol')).lower() or 'tcp'}"
        for port in rows(table(row.get("capability_args")).get("portMappings"))
    ]
    return {**names, "ips": texts(row.get("ips"))[:10], "ports": ports[:10], "level": level, "state": state}


def _runtimes(info: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for each runtime, with the part of the readiness that is about it."""
    # Handlers of a runtime share its name; one that reads no files has no directory.
    readiness: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for row in rows(table(info.get("readiness")).get("runtimes")):
        for directory in (text(row.get("conf_dir")), ""):
            readiness.setdefault((text(row.get("runtime")), text(row.get("network")), directory), row)
    obstacles = rows(table(info.get("readiness")).get("obstacles"))
    # Such a runtime works, with networks of another kind.
    unused = {text(row.get("runtime")): text(row.get("evidence")) for row in obstacles if row.get("code") == "not_cni"}
    for row in rows(info.get("runtime")):
        others = [_texts(other, "file", "reason") for other in rows(row.get("not_chosen"))]
        texts_of_row = _texts(row, "runtime", "version", "network", "file", "reason")
        why = unused.get(text(row.get("runtime")), "")
        key = tuple(_texts(row, "runtime", "network", "conf_dir").values())
        ready = _ready({} if why else readiness.get(key, {}))
        yield {**texts_of_row, "unused": why, "not_chosen": Bounded(others, 20), **ready}


def _ready(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether containers of a runtime would get their network, "" if that was not examined, and why."""
    ready = row.get("ready")
    words = "" if not row else "unknown" if not isinstance(ready, bool) else "yes" if ready else "no"
    why = [text(plugin.get("message")) for plugin in rows(row.get("status")) if plugin.get("state") == "not_ready"]
    why += [text(row.get("unknown"))] if words == "unknown" else []
    reported = table(row.get("reported"))
    said = reported.get("ready")
    if said is False:
        why.append(f"it reports that its network is not ready: {text(reported.get('message'))}")
    elif said is True:
        why.append("it reports that its network is ready")
    return {"ready": words, "why": Bounded(list(filter(None, why)), 5)}


def _pool(row: Mapping[str, Any]) -> dict[str, Any]:
    used, size = number(row.get("used")), number(row.get("size"))
    percent = min(100, -(-used * 100 // size)) if size else 0
    return {
        "network": text(row.get("network")),
        "ranges": texts(row.get("ranges"))[:10],
        "used": used,
        "free": number(row.get("free")),
        "outside": number(row.get("outside")),
        "percent": percent,
        "level": "bad" if percent >= 100 else "warn" if percent >= _NEARLY_FULL else "good",
    }


def _leak(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_texts(row, "kind", "network", "id"),
        "container": text(row.get("container_id")),
        "reason": text(row.get("reason")).replace("_", " "),
        "collectable": row.get("collectable") is True,
        "evidence": texts(row.get("evidence"))[:10],
    }


# ---- differences


class Diff(NamedTuple):
    """Lines with their sign (``+``, ``-``, `` `` or ``@`` for a gap), and how many more there are.

    ``whole`` is "+" or "-" if all of it appears or goes, so that there is nothing to compare.
    """

    lines: list[tuple[str, str]]
    more: int
    whole: str = ""


def diff(before: Any, after: Any) -> Diff:
    """Return the difference between two states; None and "" are the state of a missing object."""
    try:
        old, new = _lines_of(before), _lines_of(after)
    except RecursionError:
        return Diff([], 0)
    lines = []
    for line in list(difflib.unified_diff(old[:_MOST_READ], new[:_MOST_READ], lineterm="", n=3))[2:]:
        lines.append(("@", "") if line.startswith("@@") else (line[0], line[1:_LONGEST_LINE]))
    if lines and lines[0][0] == "@":
        del lines[0]
    unread = max(0, len(old) - _MOST_READ) + max(0, len(new) - _MOST_READ)
    whole = "" if old and new else "+" if new else "-" if old else ""
    return Diff(lines[:MOST_LINES], max(0, len(lines) - MOST_LINES) + unread, whole)


def _lines_of(state: Any) -> list[str]:
    if state is None or state == "":
        return []
    if not isinstance(state, str):
        state = json.dumps(state, indent=2, sort_keys=True, ensure_ascii=False)
    return state.split("\n")[:-1] if state.endswith("\n") else state.split("\n")
