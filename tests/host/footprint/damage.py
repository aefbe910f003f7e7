# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Ways to break what an ADD made: each object of a footprint, one at a time, and much at once as other programs do."""

from __future__ import annotations

import json
import re
import socket
import struct
from functools import partial
from pathlib import Path
from typing import Any, Callable, Collection, Iterator, NamedTuple

from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.chains import rule_text
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.footprint import Footprint
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.objects import (
    ADDRESS,
    NEIGHBOUR,
    ROUTE,
    ROUTING_RULE_SIZE,
    TRAFFIC,
    KernelObject,
    device_of,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.netlink import Dumps, attributes_in
from ansible_collections.podwire.cni.plugins.module_utils._host.netns import Netns, visit
from ansible_collections.podwire.cni.tests.host.footprint.chains import BRIDGE_NAME
from ansible_collections.podwire.cni.tests.host.footprint.site import Container, flush_legacy
from ansible_collections.podwire.cni.tests.host.host import sh

_UP, _PROMISC, _ALLMULTI = 0x1, 0x100, 0x200
_HAIRPIN = "4"
_FAMILIES = {"ipv4": "iptables", "ipv6": "ip6tables"}
_FOLDERS = {"conf4": "ipv4/conf", "conf6": "ipv6/conf"}
# Requests of the kernel: what removes each kind, the size of the fixed part, and attributes that are only told.
_REMOVALS = {
    "addr": (21, ADDRESS.size, (6,)),
    "route": (25, ROUTE.size, (12,)),
    "rule": (33, ROUTING_RULE_SIZE, (18,)),
    "neigh": (29, NEIGHBOUR.size, (3, 4)),
    "fdb": (29, NEIGHBOUR.size, (3, 4)),
    # The kind is enough beside the handle.
    "qdisc": (37, TRAFFIC.size, range(2, 20)),
    "class": (41, TRAFFIC.size, range(2, 20)),
    "filter": (45, TRAFFIC.size, range(2, 20)),
}
_NEW_ROUTE, _CREATE = 24, 0x400


class Break(NamedTuple):
    """One way to break something: ``kind`` (of the object, and how), ``what`` in words, and the function ``do``.

    ``in_place``: the repair must not need DEL and ADD. ``others``: rules of others go as well.
    """

    kind: str
    what: str
    do: Callable[[], Any]
    in_place: bool = True
    others: bool = False

    @property
    def order(self) -> tuple[Any, ...]:
        # Random names of veth pairs and chains differ from one site to the next.
        plain = re.sub(r"veth[0-9a-f]+|[0-9a-f]{12,}", "", self.what)
        return (not self.in_place, self.others, self.kind, plain)


def breaks(container: Container) -> list[Break]:
    """Return all ways to break one attachment and what it shares, in an order that does not depend on random names."""
    footprints = _footprints(container)
    found: list[Break] = []
    for footprint in footprints:
        for key, recorded in footprint.host.items():
            found += _Object(container, "", key, recorded).breaks()
        for key, recorded in footprint.inside.items():
            found += _Object(container, container.namespace, key, recorded).breaks()
    found += _at_once(container, footprints)
    return sorted(found, key=lambda one: one.order)


def objects(container: Container) -> int:
    """Return how many objects the footprint has, with those that are shared."""
    return sum(len(footprint.host) + len(footprint.inside) for footprint in _footprints(container))


def _footprints(container: Container) -> list[Footprint]:
    found = [container.footprint(), *container.site.shared(container.wanted["network"])]
    return [footprint for footprint in found if footprint is not None]


class _Object:
    """One object of a footprint, on the host (namespace "") or in the container."""

    def __init__(self, container: Container, namespace: str, key: tuple[Any, ...], recorded: KernelObject) -> None:
        self.container = container
        self.namespace = namespace
        self.key = key
        self.value = recorded.value
        self.raw = recorded.raw

    def breaks(self) -> Iterator[Break]:
        for how, do in self._ways():
            whose = "container" if self.namespace else "host"
            kind = str(self.key[0])
            if kind == "chain":
                kind = f"{kind if len(self.key) == 5 else 'rule'} {self.key[1]}"
            yield Break(f"{whose} {kind} {how}", f"{' '.join(map(str, self.key))} {how}", do, self._in_place(how))

    def _in_place(self, how: str) -> bool:
        """A tap is made by the program behind it, and a device by hardware."""
        device = self.container.site.chain.name == "host-device" and self.key[0] == "link"
        if device and (self.value is None or how == "deleted"):
            return False
        return not (self.key[0] == "link" and how == "deleted" and self.value["kind"] == "tun")

    def _ways(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        kind = str(self.key[0])
        if kind == "link":
            yield from self._link()
        elif self.value is None:
            assert kind == "route", f"no way to bring back {self.key}"
            do = partial(_send, _NEW_ROUTE, self.key, self.raw, ROUTE.size, (12, 20, 26), _CREATE)
            yield "back", self._in_space(do)
        elif kind in _REMOVALS:
            request, size, left_out = _REMOVALS[kind]
            # A class of tbf comes and goes with its qdisc.
            if kind != "class" or self.value["kind"] != "tbf":
                yield "deleted", self._in_space(partial(_send, request, self.key, self.raw, size, left_out))
        elif kind in _FOLDERS:
            path = f"{_FOLDERS[kind]}/{self.key[1]}/{self.key[2]}"
            yield "changed", self._in_space(partial(_write, path, "0" if self.value else "1"))
        elif kind == "sysctl":
            yield "changed", self._in_space(partial(_write, self.key[1], "1" if self.value == "0" else "0"))
        elif kind == "lease":
            yield "deleted", Path(*self.key[1:]).unlink
        elif kind == "vlan":
            own = " self" if self.key[1] == BRIDGE_NAME else ""
            yield "deleted", partial(sh, f"bridge vlan delete vid {self.key[2]} dev {self.key[1]}{own}")
        else:
            yield from _firewall(self.key)

    def _in_space(self, act: Callable[[], Any]) -> Callable[[], Any]:
        return partial(visit, [Netns(self.container.path)], act) if self.namespace else act

    def _link(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        name, value = self.key[1], self.value
        ip = f"ip -n {self.namespace}" if self.namespace else "ip"
        if value is None:
            # The ADD took a device of the host away.
            inner = self.container.wanted["ifname"]
            move = f"ip -n {self.container.namespace} link set {inner} netns 1"
            yield "back", partial(sh, f"{move}; ip link set {inner} name {name}")
            return
        turned = "down" if value["flags"] & _UP else "up"
        commands = {
            turned: f"{ip} link set {name} {turned}",
            "mtu": f"{ip} link set {name} mtu {value['mtu'] - 60}",
            "txqlen": f"{ip} link set {name} txqueuelen 77",
            "addrgenmode": f"{ip} link set {name} addrgenmode {'none' if not value['genmode'] else 'eui64'}",
        }
        if value["alias"]:
            commands["alias"] = f"{ip} link set {name} alias broken"
        for flag, word in ((_PROMISC, "promisc"), (_ALLMULTI, "allmulticast")):
            if value["flags"] & flag:
                commands[word] = f"{ip} link set {name} {word} off"
        if name != "lo":
            commands["renamed"] = f"{ip} link set {name} down; {ip} link set {name} name pwf-moved"
            commands["deleted"] = f"{ip} link delete {name}"
            # udev sets the MAC of host ends, and ports that of a bridge; the kernel refuses to change others.
            if value["kind"] != "ipvlan" and (self.namespace or value["kind"] not in ("veth", "bridge", "ifb")):
                commands["mac"] = f"{ip} link set {name} address 0a:0b:0c:0d:0e:0f"
        if value["master"]:
            commands["taken from its master"] = f"{ip} link set {name} nomaster"
        # A VRF has ports, too.
        if _HAIRPIN in value["port"]:
            commands["on another bridge"] = f"{ip} link set {name} nomaster; {ip} link set {name} master pwf-other"
            hairpin = "off" if value["port"].get(_HAIRPIN) == "01" else "on"
            commands["hairpin"] = f"bridge link set dev {name} hairpin {hairpin}"
        if value["kind"] == "bridge":
            commands["settings"] = f"ip link set {name} type bridge ageing_time 1234"
        for how, command in commands.items():
            yield how, partial(sh, command)


def _send(request: int, key: tuple[Any, ...], raw: bytes, size: int, left_out: Collection[int], flags: int = 0) -> None:
    """Send the kernel's own message back, as a request. The interface may have been made again, with another index."""
    head, attributes, device = raw[:size], attributes_in(raw, size), device_of(key)
    if device:
        index = struct.pack("=I", socket.if_nametoindex(device))
        if key[0] == "route":
            attributes[4] = index
        else:
            head = head[:4] + index + head[8:]
    parts = [_attribute(kind, value) for kind, value in attributes.items() if kind not in left_out]
    with Dumps() as netlink:
        netlink.change(request, head + b"".join(parts), flags)


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _write(name: str, text: str) -> None:
    path = Path("/proc/sys/net", name)
    path.write_text(text)
    assert path.read_text().strip() == text


# ---- firewall


def _firewall(key: tuple[Any, ...]) -> Iterator[tuple[str, Callable[[], Any]]]:
    kind, backend, family, table, *rest = key
    if backend == "nftables":
        if kind == "table":
            yield "deleted", partial(sh, f"nft delete table {family} {table}")
        elif kind == "chain" and len(rest) == 2:
            yield "deleted", partial(_delete_nft_rule, family, table, *rest)
        elif kind == "chain" and _nft_rules(family, table, rest[0]):
            yield "flushed", partial(sh, f"nft flush chain {family} {table} {rest[0]}")
        elif kind == "chain":
            yield "deleted", partial(_delete_nft_chain, family, table, rest[0])
        else:
            raise AssertionError(f"no way to break {key}")
        return
    tool = f"{_FAMILIES[family]}-{backend.partition('-')[2]}"
    if len(rest) == 2:
        yield "deleted", partial(_restore, tool, table, [f"-D {rest[0]} {rest[1]}"])
        return
    rules = _rules(tool, table)
    if any(line.startswith(f"-A {rest[0]} ") for line in rules):
        yield "flushed", partial(_restore, tool, table, [f"-F {rest[0]}"])
    else:
        # An empty chain goes with what jumps to it.
        jumps = [f"-D{line[2:]}" for line in rules if re.search(rf" -[jg] {re.escape(rest[0])}( |$)", line)]
        yield "deleted", partial(_restore, tool, table, [*jumps, f"-X {rest[0]}"])


def _rules(tool: str, table: str) -> list[str]:
    return [line for line in sh(f"{tool}-save -t {table} 2>/dev/null").splitlines() if line.startswith("-A ")]


def _restore(tool: str, table: str, lines: list[str]) -> None:
    text = "\n".join([f"*{table}", *lines, "COMMIT"])
    sh(f"{tool}-restore --noflush <<'END'\n{text}\nEND")


def _nft_rules(family: str, table: str, chain: str) -> list[dict[str, Any]]:
    listed = json.loads(sh(f"nft -j list chain {family} {table} {chain}"))["nftables"]
    return [entry["rule"] for entry in listed if "rule" in entry]


def _delete_nft_rule(family: str, table: str, chain: str, text: str) -> None:
    handle = next(rule["handle"] for rule in _nft_rules(family, table, chain) if rule_text(rule) == text)
    sh(f"nft delete rule {family} {table} {chain} handle {handle}")


def _delete_nft_chain(family: str, table: str, chain: str) -> None:
    listed = json.loads(sh(f"nft -j list table {family} {table}"))["nftables"]
    jump = f'"target": "{chain}"'
    rules = [entry["rule"] for entry in listed if "rule" in entry]
    for rule in rules:
        if jump in json.dumps(rule):
            sh(f"nft delete rule {family} {table} {rule['chain']} handle {rule['handle']}")
    sh(f"nft delete chain {family} {table} {chain}")


# ---- much at once


def _at_once(container: Container, footprints: list[Footprint]) -> Iterator[Break]:
    """Yield what other programs do, as far as it breaks something of these footprints."""
    host = [key for footprint in footprints for key in footprint.host if footprint.host[key].value is not None]
    inside = {key: one.value for key, one in footprints[0].inside.items() if one.value is not None}
    name, ifname = container.namespace, container.wanted["ifname"]
    firewall = [key for key in host if key[0] in ("chain", "table", "set", "map")]

    def found(what: str, command: str | Callable[[], Any], applies: Any, **more: Any) -> Iterator[Break]:
        if applies:
            do = partial(sh, command) if isinstance(command, str) else command
            yield Break(f"at once: {what}", f"at once: {what}", do, **more)

    rules = [key for key in firewall if key[1] != "iptables-legacy"]
    yield from found("nft flush ruleset", "nft flush ruleset", rules, others=True)
    legacy = [key for key in firewall if key[1] == "iptables-legacy"]
    yield from found("iptables-legacy flushed", flush_legacy, legacy, others=True)
    shared = [key for key in firewall if len(key) == 6 and key[4] in ("FORWARD", "POSTROUTING")]
    flushed = [key for key in shared if key[1] != "nftables"]
    tools = sorted({f"{_FAMILIES[key[2]]}-{key[1].partition('-')[2]}" for key in flushed})
    script = "".join(f"{tool} -F FORWARD; {tool} -t nat -F POSTROUTING\n" for tool in tools)
    yield from found("FORWARD and POSTROUTING flushed", script, flushed, others=True)

    bridge = ("link", BRIDGE_NAME) in host
    yield from found("bridge down", f"ip link set {BRIDGE_NAME} down", bridge)
    addresses = [key for key in host if key[:2] == ("addr", BRIDGE_NAME)]
    yield from found("bridge addresses flushed", f"ip address flush dev {BRIDGE_NAME} scope global", addresses)

    if ifname == "lo" or ("link", ifname) not in inside:
        return
    mine = [key for key in inside if key[0] == "addr" and key[1] == ifname]
    routes = [key for key in inside if key[0] == "route" and key[-1] == ifname and key[2] == 254]
    flush_routes = f"ip -n {name} route flush dev {ifname}; ip -n {name} -6 route flush dev {ifname}"
    yield from found("container routes flushed", flush_routes, routes)
    yield from found("container interface down", f"ip -n {name} link set {ifname} down", True)
    yield from found("container addresses flushed", f"ip -n {name} address flush dev {ifname} scope global", mine)
    renamed = f"ip -n {name} link set {ifname} down; ip -n {name} link set {ifname} name eth9"
    yield from found("container interface renamed", renamed, True)

    for key in inside:
        if key[0] == "route" and key[2] == 254 and key[3] == "default/0":
            gateway = inside[key]["gw"]
            family = "-6" if ":" in gateway else "-4"
            near = "fd00:88::77" if ":" in gateway else "10.88.77.78"
            change = f"ip -n {name} {family} route replace default via {near} dev {ifname} onlink metric {key[5]}"
            yield from found(f"another default route ({family})", change, True)
