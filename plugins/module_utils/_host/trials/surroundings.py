# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a chain builds on and a private host lacks: interfaces that plugins name, and bridges that exist already."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from typing import Any, Dict, Mapping

from ...libcni.kernel import CREATE, EXCLUSIVE, pack_attribute, pack_nested
from ..kernel.objects import CONF6, LINK, ROUTE, KernelObject, State, read_objects
from ..kernel.sysctls import interface_defaults, sysctl_place, write_interface
from ..kernel.writer import Writer
from ..kinds import bridge_of, lower_of
from ..netlink import MAIN_TABLE, UNICAST, Dumps

FAKE_PEER = "pwfake"
"""How the names of interfaces begin that only a private host has."""
_DEFAULT_MTU = 1500
_OFF = "disable_ipv6"


class Surroundings:
    """The interfaces of the host that the plugins of a chain build on, found there and made in a private host.

    ``parents``: names of devices -> their MTU. ``bridges``: those that exist, whoever made them. *host*: the state of
    the host's interfaces.
    """

    def __init__(self, host: State) -> None:
        self._host = host
        self._default = ""
        self._off = interface_defaults([(CONF6, _OFF)]).get((CONF6, _OFF))
        self.parents: Dict[str, int] = {}
        self.bridges: Dict[str, KernelObject] = {}

    def find(self, plugin: Dict[str, Any]) -> None:
        """Find what *plugin* builds on."""
        bridge = self._host.get(("link", bridge_of(plugin)))
        if bridge is not None and bridge.value["kind"] == "bridge":
            self.bridges[bridge_of(plugin)] = bridge
        name = lower_of(plugin, self._find_default)
        if name:
            parent = self._host.get(("link", name))
            self.parents[name] = parent.value["mtu"] if parent is not None else _DEFAULT_MTU

    def _find_default(self) -> str:
        default = ("route", socket.AF_INET, MAIN_TABLE, "default/0")
        ways_out = [key[5:] for key in self._host if key[:4] == default and key[6] == UNICAST]
        self._default = str(min(ways_out)[-1]) if ways_out else ""
        return self._default

    def make(self, addressed: bool) -> None:
        """Make them here, devices as veths with a carrier, which take macvlans. *addressed*: bridges have addresses."""
        with Dumps() as dumps:
            dumps.change(16, LINK.pack(0, 0, 1, 1, 1))
            for number, (name, mtu) in enumerate(self.parents.items()):
                index, other = 1000 + number, 2000 + number
                peer = LINK.pack(0, 0, other, 0, 0) + pack_attribute(3, f"{FAKE_PEER}{number}\0".encode())
                kind = pack_nested(18, pack_attribute(1, b"veth"), pack_nested(2, pack_nested(1, peer)))
                body = pack_attribute(3, os.fsencode(name) + b"\0") + pack_attribute(4, struct.pack("=I", mtu))
                dumps.change(16, LINK.pack(0, 0, index, 0, 0) + body + kind, CREATE | EXCLUSIVE)
                for end_index in (index, other):
                    dumps.change(16, LINK.pack(0, 0, end_index, 1, 1))
                if name == self._default:
                    route = ROUTE.pack(2, 0, 0, 0, MAIN_TABLE, 3, 253, 1, 0)
                    dumps.change(24, route + pack_attribute(4, struct.pack("=I", index)), CREATE)
        # If an ADD needs them to be up, it sets that, and the rehearsal shows it. It may refuse their first address.
        make_bridges(self.bridges)
        for name in ("default", *self.bridges) if addressed else ():
            conf = self._host.get((CONF6, name))
            off = conf.value[sysctl_place(CONF6, _OFF)] if conf is not None and conf.value else self._off
            with contextlib.suppress(OSError):
                write_interface(CONF6, name, _OFF, off or 0)
        with Writer("", {"": self._host}, {}) as writer:
            for key, address in self._host.items() if addressed else ():
                if key[0] == "addr" and key[1] in self.bridges:
                    with contextlib.suppress(OSError):
                        writer.put(key, address, None)


def make_bridges(bridges: Mapping[str, KernelObject]) -> None:
    """Make bridges of the host with their settings, which no ADD chooses, in this thread's namespace. They are down."""
    down = {"flags": 0, "master": "", "port": {}}
    made: State = {("link", name): link._replace(value={**link.value, **down}) for name, link in bridges.items()}
    for _made in range(2 if made else 0):
        # A new bridge gets its settings when it is there.
        present = read_objects()
        with Writer("", {"": made}, {}) as writer:
            for key, bridge in made.items():
                writer.put(key, bridge, present[key].value if key in present else None)
