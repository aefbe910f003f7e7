# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Filter cni_summary: what a playbook has done, a line for each host and some for all. Results have any shape."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils._host.plan import DISRUPTIVE, FOREIGN, SAFE
from ..module_utils._host.secrets import one_line
from ..plugin_utils._report.bounds import plain
from ..plugin_utils._report.commands import Commands
from ..plugin_utils._report.findings import several
from ..plugin_utils._report.fleet import names_of
from ..plugin_utils._report.record import first_of, in_words
from ..plugin_utils.untrusted import number, rows, table, text, texts

_MOST_NOTES = 10
_MOST_NETWORKS = 6
_LEVELS = ("error", "warning", "info")
_OF_HOSTS = {
    "leaks to collect": "with leaks to collect",
    "leaks collected": "with leaks collected",
    "no leaks to collect": "without leaks to collect",
    "no networks": "without networks",
}
"""What is said of a number of hosts, where the word for one does not fit."""
_KINDS = {
    "attachment": ("attachment", "attachments"),
    "lease": ("lease", "leases"),
    "rule": ("set of rules", "sets of rules"),
    "cache": ("cache entry", "cache entries"),
    "link": ("interface", "interfaces"),
}


def cni_summary(
    results: Any, planned: bool = False, lines: bool = True, total: bool = True, inventory: Any = ()
) -> list[str]:
    """Return the lines about *results*; see the filter's documentation."""
    if not isinstance(results, dict) or not isinstance(inventory, list | tuple):
        raise AnsibleFilterError("cni_summary: the input must be a mapping from hosts to results, inventory a list")
    try:
        shown = {host: _first(result) for host, result in plain(results).items()}
        outcomes = {host: outcome(shown[host], bool(planned)) for host in sorted(shown, key=_natural)}
        said = [f"{host}: {f'{state}: {words}' if words else state}" for host, (state, words) in outcomes.items()]
        every = [*(said if lines else []), *_notes({host: shown[host] for host in outcomes}, list(map(str, inventory)))]
    except RecursionError as error:
        raise AnsibleFilterError("cni_summary: a result is nested too deeply") from error
    return [*map(one_line, every), *([_total([state for state, _words in outcomes.values()])] if total else [])]


def _first(result: Any) -> Mapping[str, Any]:
    """Return a result. A task that takes the words of its line from it has a loop."""
    results = rows(table(result).get("results"))
    return results[0] if results and "item" in results[0] else table(result)


def _total(states: Sequence[str]) -> str:
    counted = ", ".join(f"{n} {_OF_HOSTS.get(state, state)}" for state, n in Counter(states).items())
    return f"{several(len(states), 'host')}: {counted}"


def _notes(results: Mapping[str, Mapping[str, Any]], inventory: Sequence[str]) -> list[str]:
    """Return what several hosts may have in common: obstacles, what a repair left, and warnings."""
    notes: dict[tuple[int, str], list[str]] = {}
    for host, result in results.items():
        for row in rows(table(result.get("readiness")).get("obstacles")):
            level = text(row.get("level"))
            words = f"{level}: {text(row.get('message'))} [{text(row.get('code'))}]. Seen: {text(row.get('evidence'))}"
            rank = _LEVELS.index(level) if level in _LEVELS else 0
            notes.setdefault((rank, f"{words}. Remedy: {text(row.get('remedy'))}"), []).append(host)
        left = rows(result.get("left")) if "before" in result else []
        if left:
            notes.setdefault((len(_LEVELS), f"left: {in_words(left)}"), []).append(host)
        for caution in texts(result.get("cautions")):
            notes.setdefault((len(_LEVELS) + 1, caution), []).append(host)
    ranked = sorted(notes.items(), key=lambda note: (note[0][0], -len(note[1])))
    shown = [f"{names_of(list(dict.fromkeys(hosts)))}: {words}" for (_rank, words), hosts in ranked[:_MOST_NOTES]]
    if len(ranked) > len(shown):
        shown.append(f"and {len(ranked) - len(shown)} more, in the results of the hosts (-v prints them)")
    waiting = [host for host, result in results.items() if "before" in result and rows(result.get("left"))]
    command = Commands(inventory).playbook("remediate", waiting, cni_remediate_classes=[SAFE, DISRUPTIVE])
    return [*shown, *([f"to repair what is left: {command}"] if command else [])]


def outcome(value: Any, planned: bool = False) -> tuple[str, str]:
    """Return the outcome of one result in a word or two, and what there is to say about it."""
    result = table(value)
    if result.get("unreachable"):
        return "unreachable", _short(text(result.get("msg")))
    if isinstance(result.get("collected"), list) and not result.get("failed"):
        return _leaks(result, planned)
    if isinstance(result.get("networks"), list):
        return _networks(result)
    if result.get("failed"):
        return "failed", _short(text(result.get("msg")) or "the task failed without a message")
    if isinstance(result.get("readiness"), Mapping):
        return _readiness(table(result["readiness"]))
    steps = rows(result.get("plan") if "plan" in result else result.get("actions"))
    state, words = _steps(steps, rows(result.get("left")), planned)
    tested = [
        f"{name}: {_tests(table(result[key]))}" for key, name in _TESTED.items() if isinstance(result.get(key), dict)
    ]
    return state, "; ".join(filter(None, [words, *tested]))


_TESTED = {"before": "tested before", "after": "tested after"}


def _tests(networks: Mapping[str, Any]) -> str:
    return ", ".join(f"{network} {text(status)}" for network, status in networks.items()) or "no network"


def _steps(steps: list[Mapping[str, Any]], left: list[Mapping[str, Any]], planned: bool) -> tuple[str, str]:
    taken = [step for step in steps if step.get("class") != FOREIGN and step.get("state") != "left_out"]
    words = [in_words(taken)] if taken else []
    words += [f"left: {in_words(left)}"] if left else []
    if not taken:
        return "unchanged", "; ".join(words)
    only_planned = planned or all(step.get("state") == "planned" for step in taken)
    return "would change" if only_planned else "changed", "; ".join(words)


def _leaks(result: Mapping[str, Any], planned: bool) -> tuple[str, str]:
    collected = rows(result["collected"])
    kept = {kind: number(table(result.get("kept")).get(kind)) for kind in _KINDS}
    for row in collected:
        kept[text(row.get("kind"))] = kept.get(text(row.get("kind")), 0) + 1
    inspected = ", ".join(several(kept[kind], *words) for kind, words in _KINDS.items() if kept[kind])
    spaces = number(table(result.get("live")).get("namespaces"))
    seen = f"inspected {inspected or 'nothing'} in {several(spaces, 'network namespace')}"
    dead = [row for row in collected if row.get("action") == "deleted"]
    left = [row for row in collected if row.get("action") != "deleted"]
    words = f"{seen}; left: {_leaks_in_words(left)}" if left else seen
    if not dead:
        return "no leaks to collect", words
    return f"leaks {'to collect' if planned else 'collected'}", f"{_leaks_in_words(dead)}; {words}"


def _leaks_in_words(leaks: list[Mapping[str, Any]]) -> str:
    words = []
    for row in leaks:
        network = f" of {text(row.get('network'))}" if row.get("network") else ""
        words.append(f"{text(row.get('kind'))} {text(row.get('id'))}{network} ({text(row.get('reason'))})")
    return names_of(words)


def _networks(result: Mapping[str, Any]) -> tuple[str, str]:
    networks = rows(result["networks"])
    states = {text(row.get("status")) for row in networks}
    failed = [row for row in networks if row.get("status") == "failed"]
    words = names_of([f"{text(row.get('network'))} {text(row.get('status'))}" for row in networks], _MOST_NETWORKS)
    if failed:
        message = text(table(failed[0].get("error")).get("message"))
        return "failed", _short(f"{words}: {text(failed[0].get('network'))}: {message}")
    if result.get("failed"):
        return "failed", _short(text(result.get("msg")))
    if not networks:
        return "no networks", ""
    return ("would be tested" if states <= {"planned", "skipped"} else "passed"), words


def _readiness(readiness: Mapping[str, Any]) -> tuple[str, str]:
    obstacles = rows(readiness.get("obstacles"))
    ready = readiness.get("ready")
    if ready is True:
        used = [row for row in rows(readiness.get("runtimes")) if text(row.get("network"))]
        runtimes = [f"{text(row.get('runtime'))} with {text(row.get('network'))}" for row in used]
        return "ready", _short(", ".join(runtimes))
    level = "error" if ready is False else "warning"
    messages = [text(row.get("message")) for row in obstacles if row.get("level") == level] or [
        text(row.get("message")) for row in obstacles
    ]
    return "not ready" if ready is False else "not known", _short(messages[0] if messages else "")


def _short(words: str) -> str:
    return first_of([" ".join(words.split())])


def _natural(name: str) -> list[tuple[int, int, str]]:
    parts = re.split(r"([0-9]+)", str(name))
    return [(0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part.lower()) for part in parts]


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cni_summary": cni_summary}
