# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The report as one self-contained HTML page, on which everything from a host is only text."""

from __future__ import annotations

import base64
import functools
import hashlib
import os
from collections import Counter
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from ...module_utils._host.plan import DISRUPTIVE, SAFE
from ...module_utils._host.secrets import visible
from .commands import Commands
from .findings import Finding, causes_of, findings, repairs, several
from .fleet import ATTENTION, CODES, LEVELS, headline, level, summary_of_fleet, tags_of
from .history import Change, Run, summary_of_differences
from .record import CLEAN, DRIFT, ERROR, Record
from .view import Bounded, host_view

FOLDER = os.path.join(os.path.dirname(__file__), "templates")
MOST_CAUSES = 7
"""The causes that are shown at once; the others are behind a click."""
_ALL_CAUSES = 200
MOST_HOSTS = 1000
"""The hosts of a page. A browser opens it in less than three seconds."""
_STYLE, _SCRIPT = "style.css", "script.js"
_MOST_CHANGES = 20
_TILES = {ERROR: "With an error", DRIFT: "With drift", ATTENTION: "Clean, need attention", CLEAN: "Clean"}


class Written(NamedTuple):
    """A report and what earlier runs tell: since when findings are there; the run *before*, and how hosts differ."""

    report: Record
    since: Mapping[str, Mapping[str, str]]
    before: Run | None = None
    changes: Sequence[Change] = ()


def findings_by_host(report: Mapping[str, Any]) -> dict[str, list[Finding]]:
    """Return the findings of each host of a report."""
    return {host["host"]: findings(host) for host in report["hosts"]}


def page_name(index: int) -> str:
    """Return the name of the file of a page."""
    return f"report-{index + 1}.html" if index else "report.html"


def pages(
    written: Written, by_host: Mapping[str, Sequence[Finding]], commands: Commands, most: int = MOST_HOSTS
) -> Iterator[str]:
    """Yield the pages of a report, each with *most* hosts, the worst first. All of them tell about the whole fleet.

    A page is made when it is asked for, because those of a large fleet take much memory.
    """
    report, since, before, changes = written
    effects = {name: [finding.effect for finding in findings[:1]] for name, findings in by_host.items()}
    ranked = sorted(report["hosts"], key=lambda host: (LEVELS.index(level(host)), effects[host["host"]]))
    levels = [level(host) for host in ranked]
    causes = causes_of(by_host, commands, since)
    causes_of_host: dict[str, list[str]] = {}
    for cause in causes:
        for name in cause.hosts:
            causes_of_host.setdefault(name, []).append(cause.id)
    times = sorted(host["time"] for host in ranked if host["time"])
    needy = [host["host"] for host, name in zip(ranked, levels) if name != CLEAN]
    again = f"Inspect {several(len(needy), 'host')} again", commands.playbook("drift", needy)
    shared = {
        "report": report,
        "headline": headline(report["counts"]),
        "level": levels[0] if levels else ERROR,
        "tiles": [("", "Hosts", len(levels)), *((name, words, levels.count(name)) for name, words in _TILES.items())],
        "tags": _tags(ranked),
        "causes": causes[:MOST_CAUSES],
        "other_causes": Bounded(causes[MOST_CAUSES:], _ALL_CAUSES),
        "summary": summary_of_fleet(report).partition(": ")[2],
        "command": next(repairs(ranked, commands), again),
        "before": summary_of_differences(before, changes) if before else "",
        "changes": Bounded(list(changes), _MOST_CHANGES),
        "first": times[0] if times else "",
        "last": times[-1] if times else "",
        "style": Markup(_asset(_STYLE)),
        "script": Markup(_asset(_SCRIPT)),
        "policy": _policy(),
        "several": several,
        "shorten": lambda text, most: text if len(text) <= most else text[: most - 1] + "\u2026",
        # Without its T and its seconds.
        "day": lambda time: f"{time[:10]} {time[11:16]}" if len(time) == len("2026-11-25T00:00:00Z") else time,
    }
    starts = range(0, len(ranked), most) if ranked else [0]
    names = [page_name(index) for index in range(len(starts))]
    for number, start in enumerate(starts):
        hosts = []
        for index, record in enumerate(ranked[start : start + most], start):
            name = record["host"]
            host = host_view(record, by_host[name], commands, since.get(name, {}), f"h{index}")
            hosts.append({**host, "causes": causes_of_host.get(name, []), "alone": len(ranked) == 1})
        yield _template().render(hosts=hosts, start=start, number=number, pages=names, **shared)


@functools.lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    return environment.get_template("page.html.j2")


@functools.lru_cache(maxsize=None)
def _asset(name: str) -> str:
    with open(os.path.join(FOLDER, name), encoding="utf-8") as stream:
        return stream.read()


@functools.lru_cache(maxsize=1)
def _policy() -> str:
    """Return the Content-Security-Policy: only the style and the script of the page, by their digests."""
    rules = ["default-src 'none'", f"style-src {_hash(_STYLE)}", f"script-src {_hash(_SCRIPT)}"]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _hash(name: str) -> str:
    digest = hashlib.sha256(_asset(name).encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _visible(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def _tags(hosts: Sequence[Record]) -> list[tuple[str, str, int]]:
    """Return how many hosts have steps of a class, or another reason for attention; each is a filter, none is empty."""
    labels = {**{name: f"With {name} steps" for name in (SAFE, DISRUPTIVE)}, **CODES}
    count = Counter(tag for host in hosts for tag in tags_of(host))
    return [(tag, f"{label[:1].upper()}{label[1:]}", count[tag]) for tag, label in labels.items() if count[tag]]
