# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of objects that a footprint has: what one is called, when it is the same, what it goes with, its repair.

A value may have fewer members than the present one, if less is known of the object: only these are compared.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from ..firewall.chains import CHAIN, NFTABLES, TABLE
from ..kernel.objects import CONF4, CONF6, KernelObject, ObjectKey, follows
from ..kernel.sysctls import GLOBAL
from ..netlink import LOCAL_TABLE, MAIN_TABLE, UP
from ..struct import grouped
from .footprint import Objects

HOST = ""
"""The space of the host. Other spaces are paths of namespaces."""
LEASE = "lease"
SWITCH = "switch"
"""The kind of a difference: plugins use another backend of iptables than the one that the rules are in."""
IN_FIREWALL = (CHAIN, TABLE, "set", "map")
# A chain's key has this length, that of a rule in it one more.
CHAIN_KEY_LENGTH = 5
LINK = "link"
MISPLACED = "misplaced"
"""The present value of a rule that is there, but on the other side of rules that it stood before or behind."""
_REFUSALS: Dict[Any, str] = {6: "blackhole ", 7: "unreachable ", 8: "prohibit "}
_PROMISC, _ALLMULTI = 0x100, 0x200
_FLAGS = ((0x80, "the flag NOARP"), (_PROMISC, "promiscuous mode"), (_ALLMULTI, "reception of all multicast"))
_SETTINGS = (("mtu", "MTU"), ("mac", "MAC"), ("txqlen", "queue length"), ("alias", "alias"), ("group", "group"))
# The kernel's routing rules for the tables local, main and default.
_DEFAULT_RULES = (0, 32766, 32767)
_MASTERS = ("bridge", "vrf")
_MANY = 6
# Plugins choose these names at random.
_RANDOM = re.compile(r"\bveth[0-9a-f]{8}\b")
# Whose rules they are, by the chain or table that they are in; see firewall.owners.
_OWN_RULES = (
    (re.compile(r"CNI-(DN|SN|HOSTPORT)-|cni_hostport"), "the rules of its port mappings are gone"),
    (re.compile(r"CNI-FORWARD"), "its rules in the chain CNI-FORWARD are gone"),
    (re.compile(r"cni-br-iface-|macspoofchk"), "its rules against MAC spoofing are gone"),
    (re.compile(r"CNI-[0-9a-f]{24}|cni_plugins_masquerade"), "its masquerading rules are gone"),
)


class Difference(NamedTuple):
    """One object that differs: where (``space``), which, its recorded value and the present one.

    ``was`` None: an object that the ADD removed, which has to go. ``foreign``: what others have added or set.
    """

    space: str
    key: ObjectKey
    was: Any
    now: Any
    foreign: bool = False


Need = Tuple[Any, ...]


def _is_equal(_space: str, was: Any, now: Any) -> bool:
    if isinstance(was, dict) and isinstance(now, dict):
        return all(name in now and now[name] == value for name, value in was.items())
    return bool(was == now)


def _needs_link(key: ObjectKey, _value: Any) -> List[Need]:
    return [(LINK, key[1])]


def _needs_nothing(_key: ObjectKey, _value: Any) -> List[Need]:
    return []


def _has_another_value(difference: Difference) -> List[str]:
    return [f"is {difference.now}, want {difference.was}"]


class ObjectKind(NamedTuple):
    """One kind of objects.

    ``name``: what an object is called, from its key and value, and ``detail``: more about it. ``same``: whether the
    present value is as good as the recorded one, from the space and both. ``needs``: what an object is gone with: keys,
    and others as in :func:`_gone_with`. ``changed``: phrases about another value, which follow the name. ``in_kernel``:
    whether kernel.writer puts one back. ``removable``: one that an ADD has removed, and that is back, can be removed
    again.
    """

    name: Callable[[ObjectKey, Any], str]
    detail: Callable[[ObjectKey, Any], str] = lambda _key, _value: ""
    same: Callable[[str, Any, Any], bool] = _is_equal
    needs: Callable[[ObjectKey, Any], List[Need]] = _needs_link
    changed: Callable[[Difference], List[str]] = lambda _difference: ["has changed"]
    in_kernel: bool = True
    removable: bool = False


# ---- names


def text_of_mac(text: str) -> str:
    """Return a MAC as people write it."""
    return ":".join(text[place : place + 2] for place in range(0, len(text), 2))


def destination_of(key: ObjectKey) -> str:
    """Return the destination of a route."""
    if key[3] == "default/0":
        return "0.0.0.0/0" if key[1] == 2 else "::/0"
    return str(key[3])


def _name_of_route(key: ObjectKey, value: Any) -> str:
    through = f" through {value['gw']}" if value.get("gw") else ""
    table = f" in table {key[2]}" if key[2] not in (MAIN_TABLE, LOCAL_TABLE) else ""
    what = "local " if key[2] == LOCAL_TABLE else _REFUSALS.get(key[6], "")
    return f"{what}route to {destination_of(key)}{through}{f' on {key[7]}' if key[7] else ''}{table}"


def _name_of_routing_rule(_key: ObjectKey, value: Any) -> str:
    parts = [f"{name} {value.get(name)}" for name in ("from", "to") if value.get(name)]
    return " ".join(["routing rule", *parts, "to table", str(value.get("table"))])


def _name_of_traffic(key: ObjectKey, value: Any) -> str:
    what = {"qdisc": "queueing discipline", "class": "traffic class", "filter": "traffic filter"}[str(key[0])]
    return f"{what} {value['kind']} on {key[1]}"


def _name_in_firewall(key: ObjectKey, _value: Any) -> str:
    backend, family, table = map(str, key[1:4])
    where = f"table {table} ({backend if backend != NFTABLES else 'nftables'}, {family})"
    if key[0] == TABLE:
        return where
    what = "rule of the " if len(key) > CHAIN_KEY_LENGTH else ""
    return f"{what}{key[0]} {key[4]} of the {where}"


# ---- details


def _detail_of_link(_key: ObjectKey, value: Any) -> str:
    more = [value["kind"] or "device"]
    more += [f"MTU {value['mtu']}"] if is_whole(value) else []
    more += [f"port of {value['master']}"] if value.get("master") else []
    more += [text for flag, text in ((_PROMISC, "promiscuous"), (_ALLMULTI, "allmulti")) if value["flags"] & flag]
    return f" ({', '.join([*more, 'up' if value['flags'] & UP else 'down'])})"


def _value_of_sysctl(_key: ObjectKey, value: Any) -> str:
    return f" = {value}"


# ---- what is the same


def is_whole(link: Any) -> bool:
    """Tell whether the value of an interface has all settings: of one that the host had, only flags are recorded."""
    return link is not None and "mtu" in link and "data" in link


def _is_same_link(space: str, was: Any, now: Any) -> bool:
    if not is_whole(was) and was["flags"] & ~now["flags"]:
        return False
    compared = [name for name in was if is_whole(was) or name not in ("kind", "flags")]
    return all(was[name] == now.get(name) for name in compared if not follows(space, name, dict(now, **was)))


# ---- what has changed


def _changes_of_link(difference: Difference) -> List[str]:
    was, now = dict(difference.now, **difference.was), difference.now
    flipped = was["flags"] ^ now["flags"] if is_whole(difference.was) else was["flags"] & ~now["flags"]
    phrases = [f"is {'up' if now['flags'] & UP else 'down'}"] if flipped & UP else []
    phrases += [f"has {text} {'on' if now['flags'] & flag else 'off'}" for flag, text in _FLAGS if flipped & flag]
    if was["master"] != now["master"] and not now["master"]:
        phrases.append(f"is no longer a port of {was['master']}")
    elif was["master"] != now["master"]:
        phrases.append(f"is a port of {now['master']}{' instead of ' if was['master'] else ''}{was['master']}")
    for name, text in _SETTINGS:
        if was[name] != now[name] and not follows(difference.space, name, was):
            values = (text_of_mac(value[name]) if name == "mac" else value[name] for value in (now, was))
            phrases.append("has the {} {} instead of {}".format(text, *values))
    if was["data"] != now["data"]:
        phrases.append("has other settings")
    if was["port"] != now["port"] and was["master"] == now["master"]:
        phrases.append(f"has other settings as a port of {was['master']}")
    return phrases or ["has changed"]


# ---- the table


def _needs_of_route(key: ObjectKey, value: Any) -> List[Need]:
    # The kernel makes some routes with the address.
    source = [("source", value["src"])] if value and value.get("src") else []
    return [(LINK, key[7]), ("up", key[7]), *source]


_TRAFFIC = ObjectKind(_name_of_traffic)
_INTERFACE_SYSCTL = ObjectKind(
    lambda key, _value: f"sysctl net.{'ipv4' if key[0] == CONF4 else 'ipv6'}.conf.{key[1]}.{key[2]}",
    _value_of_sysctl,
    changed=_has_another_value,
)
_IN_FIREWALL = ObjectKind(
    _name_in_firewall,
    lambda key, _value: f": {key[5]}" if len(key) > CHAIN_KEY_LENGTH else "",
    needs=lambda key, _value: [(TABLE, *key[1:4]), *([key[:CHAIN_KEY_LENGTH]] if len(key) > CHAIN_KEY_LENGTH else [])],
    in_kernel=False,
)

KINDS: Dict[str, ObjectKind] = {
    GLOBAL: ObjectKind(
        lambda key, _value: f"sysctl net.{str(key[1]).replace('/', '.')}",
        _value_of_sysctl,
        needs=_needs_nothing,
        changed=_has_another_value,
    ),
    LINK: ObjectKind(
        lambda key, _value: f"interface {key[1]}", _detail_of_link, _is_same_link, _needs_nothing, _changes_of_link
    ),
    CONF4: _INTERFACE_SYSCTL,
    CONF6: _INTERFACE_SYSCTL,
    "vlan": ObjectKind(lambda key, _value: f"VLAN {key[2]} on {key[1]}"),
    "addr": ObjectKind(lambda key, _value: f"address {key[2]}/{key[3]} on {key[1]}", removable=True),
    "neigh": ObjectKind(lambda key, _value: f"neighbour entry {key[2]} on {key[1]}"),
    "fdb": ObjectKind(lambda key, _value: f"forwarding entry {text_of_mac(str(key[2]))} on {key[1]}"),
    "rule": ObjectKind(_name_of_routing_rule, needs=_needs_nothing, removable=True),
    "route": ObjectKind(
        _name_of_route,
        lambda key, _value: f" with metric {key[5]}" if key[5] else "",
        needs=_needs_of_route,
        removable=True,
    ),
    # An answer of the kernel's: nobody puts it back.
    "way": ObjectKind(lambda key, _value: f"way to {key[1]}", needs=_needs_nothing, changed=_has_another_value),
    "qdisc": _TRAFFIC,
    "class": _TRAFFIC,
    "filter": _TRAFFIC,
    LEASE: ObjectKind(
        lambda key, _value: f"lease of {key[3]} in {key[1]}/{key[2]}",
        needs=_needs_nothing,
        changed=lambda _difference: ["belongs to another container"],
        in_kernel=False,
    ),
    # A table's comment cannot be changed, and nft 1.0 does not show it.
    TABLE: _IN_FIREWALL._replace(same=lambda _space, _was, _now: True, needs=_needs_nothing),
    CHAIN: _IN_FIREWALL._replace(
        # More rules than recorded are somebody else's.
        same=lambda _space, was, now: was == now or (isinstance(was, int) and isinstance(now, int) and now >= was)
    ),
    "set": _IN_FIREWALL,
    "map": _IN_FIREWALL,
    SWITCH: ObjectKind(
        lambda _key, _value: "backend of its rules",
        needs=_needs_nothing,
        changed=lambda difference: [f"was {difference.was}, and is now {difference.now}"],
        in_kernel=False,
    ),
}
"""All kinds, in the order in which they are put back: what later ones need comes first."""


def repair_order(key: ObjectKey, recorded: KernelObject) -> int:
    """Return where an object comes among others of its kind that are put back.

    A master comes before its ports, even if it is one itself (a bridge in a VRF), and a route without a gateway before
    others.
    """
    if key[0] == LINK:
        return int(bool(recorded.value.get("master"))) if recorded.value["kind"] in _MASTERS else 2
    return int(key[0] == "route" and bool(recorded.value["gw"]))


def rules_by_chain(objects: Iterable[Objects]) -> Dict[ObjectKey, List[str]]:
    """Return the rules of *objects* by their chains."""
    entries = [entry for recorded_objects in objects for entry in recorded_objects.items()]
    rules = [key for key, entry in entries if key[0] == CHAIN and len(key) > CHAIN_KEY_LENGTH and entry.value]
    return grouped((key[:CHAIN_KEY_LENGTH], str(key[-1])) for key in rules)


def is_default_rule(key: ObjectKey) -> bool:
    """Tell whether a routing rule is one that a namespace has from the beginning, and all its traffic needs."""
    return key[0] == "rule" and key[2] in _DEFAULT_RULES


def without_consequences(differences: Sequence[Difference]) -> List[Difference]:
    """Leave out what is gone only because something else is: what was on a lost interface, or in a lost chain."""
    gone = {place for difference in differences for place in _gone_with(difference)}
    return [
        difference
        for difference in differences
        if not any((difference.space, place) in gone for place in KINDS[str(difference.key[0])].needs(*difference[1:3]))
    ]


def _gone_with(difference: Difference) -> Iterator[Tuple[str, Need]]:
    """Yield what is gone with an object: its key, the ``source`` of routes, an interface that was ``up``."""
    space, key, was, now, _foreign = difference
    if now is None:
        yield space, key
        if key[0] == "addr":
            yield space, ("source", key[2])
    elif key[0] == LINK and was is not None and was["flags"] & ~now["flags"] & UP:
        yield space, ("up", key[1])


# ---- in words


def summarize(differences: Sequence[Difference], own: bool) -> str:
    """Return what differs as one phrase. *own*: it is one attachment's; else it is shared by several."""
    phrases = phrases_of(differences, own)
    more = len(phrases) - _MANY
    return "; ".join(phrases[:_MANY] + ([f"and {more} more"] if more > 0 else []))


def kinds_of(differences: Sequence[Difference]) -> List[str]:
    """Return the kinds of the objects that differ, without mere consequences."""
    return sorted({str(difference.key[0]) for difference in without_consequences(differences)})


def phrases_of(differences: Sequence[Difference], own: bool) -> List[str]:
    """Return one phrase for each object that is not only a consequence; the rules of one plugin are one.

    Phrases have no full stop, such as "the address 10.88.0.2/16 on eth0 is gone".
    """
    phrases = (phrase for difference in without_consequences(differences) for phrase in _phrases(difference, own))
    return list(dict.fromkeys(phrases))


def _phrases(difference: Difference, own: bool) -> List[str]:
    space, key, was, now, foreign = difference
    kind = KINDS[str(key[0])]
    whose = "host's " if kind.in_kernel and space == HOST else ""
    name = f"the {whose}{kind.name(key, now if was is None else was)}"
    if own and key[0] in IN_FIREWALL and was is not None and now != MISPLACED:
        text = " ".join(map(str, key[3:]))
        phrases = (phrase for pattern, phrase in _OWN_RULES if pattern.search(text))
        return [next(phrases, f"{name} {'is gone' if now is None else 'has changed'}")]
    if was is None:
        return [f"{name} was added"] if foreign else [f"{name}, which the ADD removed, is back"]
    if now is None:
        return [f"{name} is gone"]
    if now == MISPLACED:
        return [f"{name} is out of order"]
    return [f"{name} {phrase}" for phrase in kind.changed(difference)]


def describe(objects: Objects) -> List[str]:
    """Return one phrase for each object of a footprint, in its order, such as "route to 0.0.0.0/0 on eth0".

    ``veth*`` stands for a random name. Routing rules that every namespace has are left out.
    """
    phrases: Dict[str, None] = {}
    for key, recorded in objects.items():
        kind = KINDS[str(key[0])]
        text = f"removed: {' '.join(map(str, key))}"
        if recorded.value is not None:
            text = f"{kind.name(key, recorded.value)}{kind.detail(key, recorded.value)}"
        if not is_default_rule(key):
            phrases[_RANDOM.sub("veth*", text)] = None
    return list(phrases)
