# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Filter cni_summary: what a playbook has done, in a line for each host and one for all. Results may have any shape."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils._host.plan import DISRUPTIVE, FOREIGN, SAFE
from ..module_utils._host.secrets import one_line
from ..plugin_utils._report.bounds import plain
from ..plugin_utils._report.values import number, rows, table, text

_LONGEST = 200
_OF_HOSTS = {
    "leaks to collect": "with leaks to collect",
    "leaks collected": "with leaks collected",
    "no leaks to collect": "without leaks to collect",
    "no networks": "without networks",
    "not known": "of which it is not known",
}
"""What is said of a number of hosts, where the word for one does not fit."""
_KINDS = {
    "attachment": ("attachment", "attachments"),
    "lease": ("lease", "leases"),
    "rule": ("set of rules", "sets of rules"),
    "cache": ("cache entry", "cache entries"),
    "link": ("interface", "interfaces"),
}


def cni_summary(results: Any, active: Any = None, planned: bool = False) -> list[str]:
    """Return the lines about *results*; see the filter's documentation."""
    if not isinstance(results, dict):
        raise AnsibleFilterError("cni_summary: the input must be a mapping from hosts to results")
    if active is not None and not isinstance(active, list):
        raise AnsibleFilterError("cni_summary: active must be a list of hosts")
    try:
        return summaries(plain(results), active, bool(planned))
    except RecursionError as error:
        raise AnsibleFilterError("cni_summary: a result is nested too deeply") from error


def summaries(results: Mapping[str, Any], active: Collection[str] | None = None, planned: bool = False) -> list[str]:
    """Return a line for each host, in the natural order of their names, and one for all.

    *results* are what a task has registered, by host. *active* are the hosts that have not failed, None for all.
    *planned* tells that nothing was changed.
    """
    found = {}
    for host in sorted(results, key=_natural):
        found[host] = outcome(results[host], planned)
        if active is not None and host not in active and found[host][0] not in ("failed", "unreachable"):
            found[host] = "failed", "see the errors above"
    lines = [f"{host}: {f'{state}: {words}' if words else state}" for host, (state, words) in found.items()]
    states = Counter(state for state, _words in found.values())
    total = f"{len(found)} host{'' if len(found) == 1 else 's'}"
    counted = ", ".join(f"{n} {_OF_HOSTS.get(state, state)}" for state, n in states.items())
    return [*map(one_line, lines), f"{total}: {counted}"]


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
    return _steps(steps, rows(result.get("left")), planned)


def _steps(steps: list[Mapping[str, Any]], left: list[Mapping[str, Any]], planned: bool) -> tuple[str, str]:
    taken = [step for step in steps if step.get("class") != FOREIGN and step.get("state") != "left_out"]
    classes = Counter(step["class"] if step.get("class") in (SAFE, DISRUPTIVE) else DISRUPTIVE for step in taken)
    counted = ", ".join(f"{n} {name}" for name, n in classes.items())
    words = [f"{_several(len(taken), 'step')} ({counted})"] if taken else []
    words += [f"{_several(len(left), 'step')} left"] if left else []
    if not taken:
        return "unchanged", ", ".join(words)
    only_planned = planned or all(step.get("state") == "planned" for step in taken)
    return "would change" if only_planned else "changed", ", ".join(words)


def _leaks(result: Mapping[str, Any], planned: bool) -> tuple[str, str]:
    found = rows(result["collected"])
    kept = {kind: number(table(result.get("kept")).get(kind)) for kind in _KINDS}
    for row in found:
        kept[text(row.get("kind"))] = kept.get(text(row.get("kind")), 0) + 1
    looked = ", ".join(_several(kept[kind], *words) for kind, words in _KINDS.items() if kept[kind])
    spaces = number(table(result.get("live")).get("namespaces"))
    seen = f"looked at {looked or 'nothing'} in {_several(spaces, 'network namespace')}"
    dead = [row for row in found if row.get("action") == "deleted"]
    left = [row for row in found if row.get("action") != "deleted"]
    words = f"{seen}; {_several(len(left), 'leak')} left" if left else seen
    if not dead:
        return "no leaks to collect", words
    return f"leaks {'to collect' if planned else 'collected'}", f"{_several(len(dead), 'leak')}; {words}"


def _networks(result: Mapping[str, Any]) -> tuple[str, str]:
    found = rows(result["networks"])
    states = Counter(text(row.get("status")) for row in found)
    failed = [row for row in found if row.get("status") == "failed"]
    tried = ", ".join(f"{n} {state}" for state, n in states.items())
    words = f"{_several(len(found), 'network')}" + (f" ({tried})" if tried else "")
    if failed:
        message = text(table(failed[0].get("error")).get("message"))
        return "failed", _short(f"{words}: {text(failed[0].get('network'))}: {message}")
    if result.get("failed"):
        return "failed", _short(text(result.get("msg")))
    if not found:
        return "no networks", ""
    return ("would be tested" if set(states) <= {"planned", "skipped"} else "passed"), words


def _readiness(readiness: Mapping[str, Any]) -> tuple[str, str]:
    obstacles = rows(readiness.get("obstacles"))
    ready = readiness.get("ready")
    if ready is True:
        return "ready", ""
    level = "error" if ready is False else "warning"
    messages = [text(row.get("message")) for row in obstacles if row.get("level") == level] or [
        text(row.get("message")) for row in obstacles
    ]
    return "not ready" if ready is False else "not known", _short(messages[0] if messages else "")


def _several(count: int, word: str, many: str = "") -> str:
    return f"{count} {word if count == 1 else many or word + 's'}"


def _short(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _natural(name: str) -> list[tuple[int, int, str]]:
    return list(_parts(str(name)))


def _parts(name: str) -> Iterator[tuple[int, int, str]]:
    for part in re.split(r"([0-9]+)", name):
        yield (0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part.lower())


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cni_summary": cni_summary}
