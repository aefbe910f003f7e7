# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of a footprint in words: what an ADD makes, such as "route to 0.0.0.0/0 through 10.88.0.1 on eth0"."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, List

from ..firewall.chains import CHAIN, NFTABLES, TABLE
from ..kernel.objects import CONF4, CONF6, ObjectKey
from ..kernel.sysctls import GLOBAL
from .comparison import is_whole
from .note import Objects
from .state import CHAIN_KEY_LENGTH, LEASE, is_default_rule

# Plugins choose these names at random.
_RANDOM = re.compile(r"\bveth[0-9a-f]{8}\b")
_UP, _PROMISC, _ALLMULTI = 0x1, 0x100, 0x200
_MAIN_TABLE, _LOCAL_TABLE = 254, 255


def describe(objects: Objects) -> List[str]:
    """Return one phrase for each object, in the order of the footprint. ``veth*`` stands for a random name."""
    found: Dict[str, None] = {}
    for key, one in objects.items():
        if is_default_rule(key):
            # Every namespace has them.
            continue
        text = _phrase(key, one.value)
        found[_RANDOM.sub("veth*", text)] = None
    return list(found)


def _phrase(key: ObjectKey, value: Any) -> str:
    kind = str(key[0])
    if value is None:
        return f"removed: {' '.join(str(part) for part in key)}"
    if kind in (CHAIN, TABLE, "set", "map"):
        return _in_firewall(key)
    return _PHRASES[kind](key, value)


def _link(key: ObjectKey, value: Any) -> str:
    more = [value["kind"] or "device"]
    more += [f"MTU {value['mtu']}"] if is_whole(value) else []
    more += [f"port of {value['master']}"] if value.get("master") else []
    more += [text for flag, text in ((_PROMISC, "promiscuous"), (_ALLMULTI, "allmulti")) if value["flags"] & flag]
    return f"interface {key[1]} ({', '.join([*more, 'up' if value['flags'] & _UP else 'down'])})"


def _address(key: ObjectKey, _value: Any) -> str:
    return f"address {key[2]}/{key[3]} on {key[1]}"


def _route(key: ObjectKey, value: Any) -> str:
    _kind, family, table, target, _tos, metric, _type, device = key
    if target == "default/0":
        target = "0.0.0.0/0" if family == 2 else "::/0"
    through = f" through {value['gw']}" if value["gw"] else ""
    where = "" if table in (_MAIN_TABLE, _LOCAL_TABLE) else f" in table {table}"
    text = f"{'local ' if table == _LOCAL_TABLE else ''}route to {target}{through}{f' on {device}' if device else ''}"
    return f"{text}{where}{f' with metric {metric}' if metric else ''}"


def _routing_rule(_key: ObjectKey, value: Any) -> str:
    parts = [f"{name} {value[name]}" for name in ("from", "to") if value.get(name)]
    return " ".join(["routing rule", *parts, "to table", str(value.get("table"))])


def _mac(text: str) -> str:
    return ":".join(text[place : place + 2] for place in range(0, len(text), 2))


def _traffic(key: ObjectKey, value: Any) -> str:
    what = {"qdisc": "queueing discipline", "class": "traffic class", "filter": "traffic filter"}[str(key[0])]
    return f"{what} {value['kind']} on {key[1]}"


def _interface_sysctl(key: ObjectKey, value: Any) -> str:
    return f"sysctl net.{'ipv4' if key[0] == CONF4 else 'ipv6'}.conf.{key[1]}.{key[2]} = {value}"


def _in_firewall(key: ObjectKey) -> str:
    backend, family, table = map(str, key[1:4])
    where = f"table {table} ({backend if backend != NFTABLES else 'nftables'}, {family})"
    if key[0] == TABLE:
        return where
    if len(key) == CHAIN_KEY_LENGTH:
        return f"{key[0]} {key[4]} in {where}"
    return f"rule in the {key[0]} {key[4]} of {where}: {key[5]}"


_PHRASES: Dict[str, Callable[[ObjectKey, Any], str]] = {
    "link": _link,
    "addr": _address,
    "route": _route,
    "rule": _routing_rule,
    "neigh": lambda key, _value: f"neighbour entry {key[2]} on {key[1]}",
    "fdb": lambda key, _value: f"forwarding entry {_mac(str(key[2]))} on {key[1]}",
    "vlan": lambda key, _value: f"VLAN {key[2]} of {key[1]}",
    "qdisc": _traffic,
    "class": _traffic,
    "filter": _traffic,
    CONF4: _interface_sysctl,
    CONF6: _interface_sysctl,
    GLOBAL: lambda key, value: f"sysctl net.{str(key[1]).replace('/', '.')} = {value}",
    LEASE: lambda key, _value: f"lease of {key[3]} in {key[1]}/{key[2]}",
}
