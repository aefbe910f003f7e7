# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Ranges of networks on a LAN that several hosts of a play get from one place, such as a line of group_vars.

Ansible knows where each value was written, so a value can be the same for two hosts, and not only equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

from ..module_utils._host.json_text import parse_json
from ..module_utils._host.problems import WARNING, Finding
from ._conf.positions import origin_of
from ._conf.yaml_text import values
from .lans import REMEDY, SHARED, ranges_on_lans

# The most hosts whose variables are read: usually the first one has the value already, or none has it.
_MOST = 20
Place = tuple[str, int, Optional[int]]


class Neighbours:
    """The hosts of a play: *variables* are those of a task for one of them, *task* is how the task is written."""

    def __init__(self, variables: Mapping[str, Any], task: Any) -> None:
        self._hostvars = variables.get("hostvars")
        self._host = variables.get("inventory_hostname")
        self._others = [name for name in variables.get("ansible_play_hosts_all") or [] if name != self._host][:_MOST]
        self._of_task = set(_written(task))
        self._of_hosts: dict[Any, set[tuple[Place, str]]] = {}

    def share(self, values: Sequence[Any]) -> bool:
        """Tell whether another host gets all of *values*, too, and none of them is the result of a template."""
        if self._hostvars is None or not self._others or not self._has(self._host, values):
            return False
        return any(self._has(name, values) for name in self._others)

    def _has(self, host: Any, values: Sequence[Any]) -> bool:
        if host not in self._of_hosts:
            self._of_hosts[host] = self._of_task.union(_written(self._hostvars.raw_get(host)))  # type: ignore[union-attr]
        return all((_place(value), str(value)) in self._of_hosts[host] for value in values)


def _place(value: Any) -> Any:
    """Return where a value was written, None if that is not known."""
    origin = origin_of(value)
    return (origin.path, origin.line_num, origin.col_num) if origin else None


def _written(value: Any) -> Iterator[tuple[Place, str]]:
    """Yield every string inside of raw variables, and where it was written."""
    for _pointer, member in values(value):
        if isinstance(member, str) and _place(member):
            yield _place(member), str(member)


def shared_ranges(
    given: Sequence[Any], rendered: Sequence[Mapping[str, Any]], neighbours: Neighbours
) -> Iterator[Finding]:
    """Yield a problem for each range of a network on a LAN that several hosts get; *rendered* are *given*, checked."""
    for entry, network in zip(given, rendered):
        if network["state"] != "present":
            continue
        conflist, text = entry.get("conflist"), entry.get("content") or entry.get("src")
        config = conflist if isinstance(conflist, dict) else parse_json(network["content"])
        for shared in ranges_on_lans(config):
            values = shared.values if isinstance(conflist, dict) else [text]
            if neighbours.share(values):
                path, line, column = _place(values[0])
                what = f"the network {network['name']!r} is on a LAN, and several hosts assign {shared.words} of it"
                yield Finding(WARNING, SHARED, what, REMEDY, path or "", shared.pointer, line, column)
