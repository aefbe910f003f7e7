# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Capability arguments that have no effect although no plugin complains: no plugin reads them, or a port is taken."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple

from ...libcni.cache import DEFAULT_DIR
from ...libcni.conf import NetworkConfigList
from ..addresses import packed
from ..errors import HostError
from ..kinds import member_of, text_of
from .caches import read_cache
from .outcome import ADD, RENEW, Outcome
from .request import PRESENT, Key

Note = Tuple[Outcome, str, str]


class _Port(NamedTuple):
    """A mapped port of the host. ``address`` is packed, b"" for all addresses of both families."""

    number: float
    protocol: str
    address: bytes
    key: Key
    target: Tuple[str, Any]

    def clashes(self, other: _Port) -> bool:
        """Tell whether a packet to the host could go to either."""
        # Two networks of one container lead to the same port of the same container.
        return self.target != other.target and (
            _covers(self.address, other.address) or _covers(other.address, self.address)
        )


_Taken = Dict[Tuple[float, str], List[_Port]]


def notes(outcomes: Sequence[Outcome], cache_dir: str) -> Iterator[Note]:
    """Yield (outcome, code, message) for arguments of *outcomes* that have no effect, or not the expected one.

    Ports are compared within the request. Those of new attachments are also compared with everything in *cache_dir* and
    in the runtimes' cache.
    """
    present = [
        (outcome, outcome.config, list(_ports(outcome.key, outcome.config, outcome.wanted.capability_args)))
        for outcome in outcomes
        if outcome.wanted.state == PRESENT and outcome.config is not None and not outcome.failed
    ]
    taken: _Taken = {}
    if any(ports and outcome.todo in (ADD, RENEW) for outcome, _config, ports in present):
        known = {outcome.key for outcome in outcomes}
        for directory in sorted({cache_dir, DEFAULT_DIR}):
            for port in _ports_of_others(directory, known):
                taken.setdefault((port.number, port.protocol), []).append(port)
    for outcome, config, ports in present:
        yield from _unread(outcome, config)
        for port in ports:
            others = taken.setdefault((port.number, port.protocol), [])
            other = next((other for other in others if port.clashes(other)), None)
            if other is not None:
                where = "twice" if other.key == outcome.key else f"for {other.key} as well"
                text = (
                    f"{outcome.key}: the host port {port.number:g}/{port.protocol} is mapped {where}, and only one of "
                    "the mappings receives packets; give one of them another hostPort or hostIP"
                )
                yield outcome, "host_port_twice", text
            others.append(port)


def _unread(outcome: Outcome, config: NetworkConfigList) -> Iterator[Note]:
    declared = {name for plugin in config.plugins for name, on in plugin.capabilities.items() if on}
    part = outcome.wanted.pod
    for name in sorted(name for name, value in outcome.wanted.capability_args.items() if value):
        # What a pod as a whole is given reaches those of its networks that take it.
        of_pod = part is not None and name not in part.asked
        if name not in declared and not of_pod:
            text = (
                f"{outcome.key}: no plugin of the network declares the capability {name}, so nothing reads "
                f'capability_args.{name} (declared: {", ".join(sorted(declared)) or "none"}); add "capabilities": '
                f'{{"{name}": true}} to the plugin that takes it, or remove the argument'
            )
            yield outcome, "capability_unread", text


def _ports(key: Key, config: NetworkConfigList, arguments: Mapping[str, Any]) -> Iterator[_Port]:
    """Yield the ports that reach a plugin. Malformed mappings are skipped."""
    mappings = arguments.get("portMappings")
    if not isinstance(mappings, list) or not any(plugin.capabilities.get("portMappings") for plugin in config.plugins):
        return
    for entry in mappings:
        number = member_of(entry, "hostport") if isinstance(entry, dict) else None
        if isinstance(number, (int, float)):
            address = text_of(entry, "hostip")
            target = (key.container_id, member_of(entry, "containerport"))
            yield _Port(number, text_of(entry, "protocol").lower(), packed(address), key, target)


def _covers(address: bytes, other: bytes) -> bool:
    """Tell whether a mapping for *address* takes packets for *other*."""
    # The unspecified address stands for all addresses of its family.
    return not address or address == other or (address[:1] == other[:1] and not any(address[1:]))


def _ports_of_others(cache_dir: str, known: Set[Key]) -> Iterator[_Port]:
    try:
        entries = read_cache(cache_dir).entries
    except HostError:
        # It is reported where the request's own entries are read.
        return
    for attached in (entry.attached for entry in entries if entry.has_entry):
        # An entry from before a reboot holds no port.
        if attached and attached.key not in known and attached.capability_args and os.path.exists(attached.netns):
            yield from _ports(attached.key, attached.config, attached.capability_args)
