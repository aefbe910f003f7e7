# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences in words: phrases without a full stop, such as "the interface eth0 has lost its address 10.88.0.2/16"."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterable, List, Sequence

from ..firewall.chains import CHAIN, NFTABLES, TABLE
from ..kernel.objects import CONF4, CONF6, follows
from ..kernel.sysctls import GLOBAL
from .comparison import MISPLACED, Difference, is_whole, without_consequences
from .state import CHAIN_KEY_LENGTH, HOST, LEASE, SWITCH

_MANY = 6
_UP = 1
_FLAGS = ((0x80, "ARP"), (0x100, "promiscuous mode"), (0x200, "reception of all multicast"))
# Whose rules they are, by the chain or table that they are in; see firewall.ownership.
_RULES = (
    (re.compile(r"CNI-(DN|SN|HOSTPORT)-|cni_hostport"), "the rules of its port mappings are gone"),
    (re.compile(r"CNI-FORWARD"), "its rules in the chain CNI-FORWARD are gone"),
    (re.compile(r"cni-br-iface-|macspoofchk"), "its rules against MAC spoofing are gone"),
    (re.compile(r"CNI-[0-9a-f]{24}|cni_plugins_masquerade"), "its masquerading rules are gone"),
)


def summarize(differences: Sequence[Difference], own: bool) -> str:
    """Return what differs as one phrase. *own*: it is one attachment's; else it is shared by several."""
    phrases = phrases_of(without_consequences(differences) or differences, own)
    more = len(phrases) - _MANY
    return "; ".join(phrases[:_MANY] + ([f"and {more} more"] if more > 0 else []))


def phrases_of(differences: Iterable[Difference], own: bool) -> List[str]:
    """Return one phrase for each object; the rules of one plugin are one."""
    found: Dict[str, None] = {}
    for one in differences:
        for phrase in _of(one, own):
            found[phrase] = None
    return list(found)


def _of(one: Difference, own: bool) -> List[str]:
    whose = "" if one.space != HOST else "host's "
    kind = str(one.key[0])
    if kind == "link":
        return _link(one, whose)
    if kind in (CHAIN, TABLE, "set", "map"):
        return [_rules(one, own)]
    return [_WORDS[kind](one, whose)]


def _link(one: Difference, whose: str) -> List[str]:
    name = one.key[1]
    what = f"the {whose}interface {name}"
    if one.was is None:
        return [f"{what}, which the ADD took, is back"]
    if one.now is None:
        return [f"{what} is gone"]
    found: List[str] = []
    whole = is_whole(one.was)
    flipped = one.was["flags"] ^ one.now["flags"] if whole else one.was["flags"] & ~one.now["flags"]
    if flipped & _UP:
        found.append(f"{what} is {'down' if one.was['flags'] & _UP else 'up'}")
    found += [
        f"{text} of {what} is {'on' if one.now['flags'] & flag else 'off'}" for flag, text in _FLAGS if flipped & flag
    ]
    if not whole:
        return found
    if one.was["master"] != one.now["master"]:
        found.append(_port(what, one))
    for key, text in (
        ("mtu", "MTU"),
        ("mac", "MAC"),
        ("txqlen", "queue length"),
        ("alias", "alias"),
        ("group", "group"),
    ):
        if one.was[key] != one.now[key] and not follows(one.space, key, one.was):
            now, was = (_mac(value[key]) if key == "mac" else value[key] for value in (one.now, one.was))
            found.append(f"{what} has the {text} {now} instead of {was}")
    if one.was["data"] != one.now["data"]:
        found.append(f"settings of {what} have changed")
    if one.was["port"] != one.now["port"] and one.was["master"] == one.now["master"]:
        found.append(f"settings of {what} as a port of {one.was['master']} have changed")
    return found or [f"{what} has changed"]


def _port(what: str, one: Difference) -> str:
    was, now = one.was["master"], one.now["master"]
    if not now:
        return f"{what} is no longer a port of {was}"
    return f"{what} is a port of {now}{f' instead of {was}' if was else ''}"


def _mac(text: str) -> str:
    return ":".join(text[place : place + 2] for place in range(0, len(text), 2))


def _address(one: Difference, whose: str) -> str:
    what, address = f"the {whose}interface {one.key[1]}", f"{one.key[2]}/{one.key[3]}"
    if one.was is None:
        return f"{what} has another address {address}"
    return (
        f"{what} has lost its address {address}" if one.now is None else f"the address {address} of {what} has changed"
    )


def _route(one: Difference, whose: str) -> str:
    target = _destination(one)
    value = one.was or one.now
    through = f" through {value['gw']}" if value["gw"] else ""
    table = f" in table {one.key[2]}" if one.key[2] not in (254, 255) else ""
    text = f"the {whose}{'local ' if one.key[2] == 255 else ''}route to {target}{through}{table}"
    if one.was is None:
        return f"{text} is there, which the ADD removed" if one.key[3] != "default/0" else f"{text} takes precedence"
    return f"{text} is gone" if one.now is None else f"{text} has changed"


def _destination(one: Difference) -> str:
    if one.key[3] == "default/0":
        return "0.0.0.0/0" if one.key[1] == 2 else "::/0"
    return str(one.key[3])


def _routing_rule(one: Difference, whose: str) -> str:
    value = one.was or one.now
    parts = [f"{name} {value.get(name)}" for name in ("from", "to") if value.get(name)]
    text = f"the {whose}routing rule {' '.join([*parts, 'to table', str(value.get('table'))])}"
    return f"{text} is there, which the ADD removed" if one.was is None else f"{text} is gone"


def _neighbour(one: Difference, whose: str) -> str:
    return _simple(one, f"the {whose}neighbour entry {one.key[2]} on {one.key[1]}")


def _forwarding(one: Difference, whose: str) -> str:
    return _simple(one, f"the {whose}forwarding entry {_mac(str(one.key[2]))} on {one.key[1]}")


def _vlan(one: Difference, whose: str) -> str:
    return _simple(one, f"VLAN {one.key[2]} of the {whose}interface {one.key[1]}")


def _traffic(one: Difference, whose: str) -> str:
    what = {"qdisc": "queueing discipline", "class": "traffic class", "filter": "traffic filter"}[str(one.key[0])]
    return _simple(one, f"the {what} {(one.was or one.now)['kind']} of the {whose}interface {one.key[1]}")


def _interface_sysctl(one: Difference, whose: str) -> str:
    family = "ipv4" if one.key[0] == CONF4 else "ipv6"
    text = f"the {whose}sysctl net.{family}.conf.{one.key[1]}.{one.key[2]}"
    return f"{text} is gone" if one.now is None else f"{text} is {one.now}, want {one.was}"


def _sysctl(one: Difference, whose: str) -> str:
    text = f"the {whose}sysctl net.{str(one.key[1]).replace('/', '.')}"
    return f"{text} is gone" if one.now is None else f"{text} is {one.now}, want {one.was}"


def _lease(one: Difference, _whose: str) -> str:
    place = f"the lease of {one.key[3]} in {one.key[1]}/{one.key[2]}"
    return f"{place} is gone" if one.now is None else f"{place} belongs to another container"


def _switch(one: Difference, _whose: str) -> str:
    return f"its rules are in {one.was}, iptables is now {one.now}"


def _simple(one: Difference, what: str) -> str:
    if one.was is None:
        return f"{what} is there, which the ADD removed"
    return f"{what} is gone" if one.now is None else f"{what} has changed"


def _rules(one: Difference, own: bool) -> str:
    text = " ".join(map(str, one.key[3:]))
    if own and one.now != MISPLACED:
        for pattern, phrase in _RULES:
            if pattern.search(text):
                return phrase
    backend, family, table = map(str, one.key[1:4])
    where = f"table {table} ({backend if backend != NFTABLES else 'nftables'}, {family})"
    if one.key[0] == TABLE:
        return f"the {where} is gone"
    name = one.key[4]
    if one.key[0] != CHAIN:
        return f"the {one.key[0]} {name} of the {where} is {'gone' if one.now is None else 'changed'}"
    if len(one.key) == CHAIN_KEY_LENGTH:
        return f"the chain {name} of the {where} is {'gone' if one.now is None else 'changed'}"
    return f"a rule of the chain {name} of the {where} is {'out of order' if one.now == MISPLACED else 'gone'}"


_WORDS: Dict[str, Callable[[Difference, str], str]] = {
    "addr": _address,
    "route": _route,
    "rule": _routing_rule,
    "neigh": _neighbour,
    "fdb": _forwarding,
    "vlan": _vlan,
    "qdisc": _traffic,
    "class": _traffic,
    "filter": _traffic,
    CONF4: _interface_sysctl,
    CONF6: _interface_sysctl,
    GLOBAL: _sysctl,
    LEASE: _lease,
    SWITCH: _switch,
}


def rows(differences: Iterable[Difference], own: bool) -> List[Dict[str, Any]]:
    """Return differences as data: ``{object, was, is, text}``."""
    return [
        {
            "object": " ".join(map(str, one.key[: CHAIN_KEY_LENGTH + 1])),
            "was": one.was,
            "is": one.now,
            "text": "; ".join(_of(one, own)),
        }
        for one in differences
    ]
