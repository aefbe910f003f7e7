# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The shape of capability arguments, as the plugins read them from ``runtimeConfig``.

A plugin that cannot parse them fails ADD, and then DEL as well. So nothing runs before they are sound. Recorded ones
that are unsound are not passed to DEL, because no ADD can have used them.

Sources: CONVENTIONS.md of the specification; plugins/meta/portmap/main.go, plugins/meta/bandwidth/main.go,
plugins/ipam/host-local/backend/allocator, plugins/ipam/static/main.go.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from ...libcni.conf import NetworkConfigList
from ..addresses import packed
from ..errors import HostError
from ..kinds import object_of
from ..ranges import Range, interface_of, ip_of, range_of, ranges_of

Check = Callable[[Any, str], Any]

_MAC = re.compile(
    r"([0-9a-f]{2}([:-])[0-9a-f]{2}(\2[0-9a-f]{2}){4})|[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}", re.IGNORECASE
)
_GUID = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){7}", re.IGNORECASE)
# bandwidth: a burst is counted in bits, and the kernel takes at most 2^32 - 1 bytes.
_LARGEST_BURST = 8 * (2**32 - 1) - 1


def _unsound(text: str) -> HostError:
    """Return the error of an argument that a plugin could not read: its place, what was expected and what was found."""
    return HostError(text, code="bad_capability_args")


def check_capability_args(arguments: Mapping[str, Any], where: str) -> None:
    """Raise HostError ``bad_capability_args`` for the first unsound argument. Unknown capabilities are not checked."""
    for capability, value in arguments.items():
        _check(capability, value, f"{where}.{capability}")


def check_ranges(config: NetworkConfigList, arguments: Mapping[str, Any], what: str) -> None:
    """Raise HostError ``bad_capability_args`` if ranges overlap those of the network, which host-local refuses."""
    given = ranges_of({"ranges": arguments.get("ipRanges")})
    for plugin in config.plugins:
        configured = ranges_of(object_of(plugin.network, "ipam")) if plugin.capabilities.get("ipRanges") else []
        for ip_range in given:
            for other in configured:
                if ip_range.overlaps(other):
                    text = f"{what}: ipRanges: {ip_range.text} overlaps {other.text}, which is a range of the "
                    raise _unsound(f"{text}network itself")


def sound(arguments: Mapping[str, Any]) -> Dict[str, Any]:
    """Return *arguments* without the unsound ones."""
    kept = {}
    for capability, value in arguments.items():
        try:
            _check(capability, value, capability)
        except HostError:
            continue
        kept[capability] = value
    return kept


def _check(capability: str, value: Any, where: str) -> None:
    # Go reads null as a missing value.
    if value is not None and capability in _CAPABILITIES:
        _CAPABILITIES[capability](value, where)


def _refuse(where: str, expected: str, value: Any, advice: str = "") -> None:
    description = {dict: "a mapping", list: "a list", type(None): "null"}.get(type(value)) or json.dumps(value)[:80]
    raise _unsound(f"{where}: expected {expected}, found {description}{advice}")


def _number(lowest: int, highest: int, value: Any, where: str) -> None:
    whole = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value // 1
    if not (whole and lowest <= value <= highest):
        plain = isinstance(value, str) and value.isdigit()
        # Ansible before 2.19 turns the value of a template into a string.
        advice = f"; write {value} without quotes (in a template: jinja2_native, or ansible-core 2.19)" if plain else ""
        _refuse(where, f"a whole number from {lowest} to {highest}", value, advice)


def _text(is_sound: Callable[[str], Any], expected: str, value: Any, where: str) -> None:
    if not isinstance(value, str) or not is_sound(value):
        _refuse(where, expected, value)


def _private(value: Any, where: str) -> None:
    # Its values may be secrets.
    if not isinstance(value, str):
        raise _unsound(f"{where}: expected a string, found a value of another type; put it into quotes")


def _mac(value: Any, where: str) -> None:
    _text(lambda text: not text or _MAC.fullmatch(text), "a MAC address such as c2:b0:57:49:47:f1", value, where)
    digits = re.sub("[^0-9a-f]", "", value.lower())
    if digits and (int(digits[1], 16) & 1 or not int(digits, 16)):
        _refuse(where, "the MAC address of one interface, neither a multicast address nor all zeros", value)


def _optional_address(value: Any, where: str) -> None:
    if value not in (None, ""):
        _ADDRESS(value, where)


def _list(item: Check, value: Any, where: str) -> None:
    if not isinstance(value, list):
        _refuse(where, "a list", value)
    for index, entry in enumerate(value):
        item(entry, f"{where}[{index}]")


def _mapping(item: Check, value: Any, where: str) -> None:
    if not isinstance(value, dict):
        _refuse(where, "a mapping", value)
    for key, entry in value.items():
        item(entry, f"{where}.{key}")


def _object(required: Sequence[str], members: Mapping[str, Check], value: Any, where: str) -> Dict[str, Any]:
    """Return the members that are not null, by the names in *members*."""
    if not isinstance(value, dict):
        _refuse(where, "a mapping", value)
    names = {name.lower(): name for name in members}
    by_name: Dict[str, Any] = {}
    for key, entry in value.items():
        # As in Go; containerd writes HostPort.
        name = names.get(str(key).lower())
        if name is None:
            # Plugins would ignore it, and leave a port open on all addresses or a container without its limit.
            raise _unsound(f"{where}: unknown key {json.dumps(key)[:80]}; known keys: {', '.join(members)}")
        if name in by_name:
            raise _unsound(f"{where}: {name} is given twice")
        if entry is not None:
            members[name](entry, f"{where}.{key}")
            by_name[name] = entry
    for key in required:
        if key not in by_name:
            raise _unsound(f"{where}: {key} is missing")
    return by_name


def _bandwidth(value: Any, where: str) -> None:
    rate, burst, subnets = partial(_number, 0, 2**64 - 1), partial(_number, 0, _LARGEST_BURST), partial(_list, _SUBNET)
    members = {"ingressRate": rate, "ingressBurst": burst, "egressRate": rate, "egressBurst": burst}
    bandwidth = _object((), dict(members, unshapedSubnets=subnets, shapedSubnets=subnets), value, where)
    for way in ("ingress", "egress"):
        if bool(bandwidth.get(f"{way}Rate")) != bool(bandwidth.get(f"{way}Burst")):
            raise _unsound(f"{where}: {way}Rate and {way}Burst go together; set both (greater than 0) or neither")


def _ip_ranges(value: Any, where: str) -> None:
    _list(partial(_list, partial(_object, ("subnet",), _RANGE)), value, where)
    ranges: List[Tuple[str, Range]] = []
    for index, entries in enumerate(value):
        if not entries:
            _refuse(f"{where}[{index}]", "at least one range", entries)
        first = len(ranges)
        for at, entry in enumerate(entries):
            place = f"{where}[{index}][{at}]"
            ranges.append((place, _range(_object((), _RANGE, entry, place), place)))
        if len({ip_range.subnet.version for _where, ip_range in ranges[first:]}) > 1:
            remedy = "give each family its own set"
            raise _unsound(f"{where}[{index}]: the ranges of a set must have one address family; {remedy}")
    for at, (place, ip_range) in enumerate(ranges):
        for other_place, other in ranges[:at]:
            if ip_range.overlaps(other):
                text = f"{place}: {ip_range.text} overlaps {other.text} of {other_place}"
                raise _unsound(f"{text}, which host-local refuses")


def _range(entry: Mapping[str, Any], where: str) -> Range:
    """Return a range whose members were checked one by one. Raises HostError if host-local would refuse it."""
    whole = range_of({"subnet": entry["subnet"]})
    if whole is None:
        raise _unsound(f"{where}.subnet: {entry['subnet']} is too small to assign addresses from")
    if getattr(interface_of(entry["subnet"]), "ip", None) != whole.subnet.network_address:
        raise _unsound(f"{where}.subnet: {entry['subnet']} has host bits set; write {whole.subnet}")
    for key in ("rangeStart", "rangeEnd"):
        ip = ip_of(entry.get(key) or "")
        if ip and ip not in whole.subnet:
            raise _unsound(f"{where}.{key}: {entry[key]} is not in the subnet {whole.subnet}")
    ip_range = range_of(entry)
    if ip_range is None:
        raise _unsound(f"{where}: rangeEnd {entry.get('rangeEnd')} is before the start of the range")
    return ip_range


_ANY_TEXT = partial(_text, lambda _text: True, "a string")
_ADDRESS = partial(_text, packed, "an IP address")
_ADDRESS_OR_PREFIX = partial(
    _text, lambda text: packed(text) or interface_of(text), "an IP address, with or without a prefix length"
)
_SUBNET = partial(_text, interface_of, "a subnet such as 10.88.0.0/16")
_PORT = partial(_number, 1, 65535)
_PORT_MAPPING: Dict[str, Check] = {
    "hostPort": _PORT,
    "containerPort": _PORT,
    "protocol": partial(_text, lambda text: text.lower() in ("tcp", "udp", "sctp"), "tcp, udp or sctp"),
    "hostIP": _optional_address,
}
_RANGE: Dict[str, Check] = dict.fromkeys(("subnet", "rangeStart", "rangeEnd", "gateway"), _optional_address)
_RANGE["subnet"] = _SUBNET
_TEXTS = partial(_list, _ANY_TEXT)
_DNS: Dict[str, Check] = {"servers": partial(_list, _ADDRESS), "searches": _TEXTS, "options": _TEXTS}


def _aliases(value: Any, where: str) -> None:
    """Aliases are a list or, from podman, a list for each network."""
    if isinstance(value, dict):
        _mapping(_TEXTS, value, where)
    else:
        _TEXTS(value, where)


_CAPABILITIES: Dict[str, Check] = {
    "aliases": _aliases,
    "bandwidth": _bandwidth,
    "cgroupPath": _ANY_TEXT,
    "deviceID": _ANY_TEXT,
    "dns": partial(_object, (), _DNS),
    "infinibandGUID": partial(
        _text, lambda text: not text or _GUID.fullmatch(text), "a GUID such as c2:11:22:33:44:55:66:77"
    ),
    "io.kubernetes.cri.pod-annotations": partial(_mapping, _private),
    "ipRanges": _ip_ranges,
    "ips": partial(_list, _ADDRESS_OR_PREFIX),
    "mac": _mac,
    "podAnnotations": partial(_mapping, _private),
    "portMappings": partial(_list, partial(_object, ("hostPort", "containerPort", "protocol"), _PORT_MAPPING)),
}
