# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Sends packets between namespaces, those that a network promises, and finds what drops them in a private host."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, TypeVar

from ...libcni.kernel import attributes_in, decode_text, messages
from .. import commands
from ..addresses import family_of, result_addresses, result_macs
from ..errors import HostError
from ..firewall.chains import LEGACY, dump_iptables, printed
from ..kernel.sysctls import read_globals, write_global
from ..kinds import member_of, text_of
from ..netns import Netns, visit

# Seconds for an attempt; a lost SYN is sent again after one, and an echo request after some.
DEADLINE, QUICK, _AGAIN = 2.5, 1.0, 0.4
OUTSIDE: Dict[int, str] = {socket.AF_INET: "9.9.9.10", socket.AF_INET6: "2620:fe::10"}
"""They stand for all that the default route leads to, as no filter of odd addresses has them. No packet leaves."""
ALL = ("0.0.0.0/0", "::/0")
# Protocol, types of request and reply, and the length of the header that a raw socket reads.
_ECHO: Dict[int, Tuple[int, int, int, int]] = {
    socket.AF_INET: (socket.IPPROTO_ICMP, 8, 0, 20),
    socket.AF_INET6: (socket.IPPROTO_ICMPV6, 128, 129, 0),
}
_NETFILTER, _TRACE_GROUP = 12, 9
_TRACE = 10 << 8 | 17
# include/uapi/linux/netfilter/nf_tables.h: NFTA_TRACE_*, and the types of a trace.
_TABLE, _CHAIN, _HANDLE, _TYPE, _VERDICT, _ID, _HEADER, _TRANSPORT, _POLICY = 1, 2, 3, 4, 5, 6, 8, 9, 16
_NEIGHBOUR_SOLICITATION = 135
_BY_POLICY, _BY_RULE = 1, 3
_DROP = 0
_PROTOCOLS = {1: "inet", 2: "ip", 3: "arp", 5: "netdev", 7: "bridge", 10: "ip6"}
_TRACED = {"inet": ("prerouting", "output"), "bridge": ("prerouting",), "arp": ("input", "output")}
_FIRST = "priority -450; meta nftrace set 1;"
_RP_FILTER = "rp_filter"
_UNKNOWN = "nothing that was traced drops them"

Result = TypeVar("Result")


class Flow(NamedTuple):
    """Packets from *client* to *address*, where *server* has the address or is what is behind it. None: the host.

    *source*: the address of the client that they come from, "" for any.
    """

    client: Optional[Netns]
    server: Optional[Netns]
    address: str
    port: int
    server_port: int
    source: str = ""


def _inside(netns: Optional[Netns], work: Callable[[], Result]) -> Result:
    return work() if netns is None else visit([netns], work)[netns.path]


class Attempt:
    """The time that packets have to arrive, in seconds. ``peer``: where the last connection came from."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.peer = ""
        self._end = 0.0

    def begin(self, family: int) -> None:
        """Begin an attempt with packets of an address family."""
        self.peer = ""
        self._end = time.monotonic() + self.most

    @property
    def goes_on(self) -> bool:
        """Whether the attempt has time."""
        return time.monotonic() < self._end

    def waits_for(self, stream: socket.socket, most: float = DEADLINE) -> bool:
        """Wait for at most *most* seconds until *stream* can be read; False if it cannot, or the attempt is over."""
        left = min(most, self._end - time.monotonic())
        return bool(select.select([stream], [], [], max(0.0, left))[0])


def connects(flow: Flow, attempt: Attempt) -> bool:
    """Tell whether a TCP connection is made and carries a byte in both directions."""
    family = family_of(flow.address)

    def listen() -> socket.socket:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", flow.server_port))
        listener.listen(1)
        return listener

    def connect() -> socket.socket:
        while True:
            client = socket.socket(family, socket.SOCK_STREAM)
            client.setblocking(False)
            try:
                client.bind((flow.source, 0))
                client.connect((flow.address, flow.port))
            except BlockingIOError:
                return client
            except OSError:
                # An IPv6 address is usable only some seconds after it was assigned.
                if attempt.goes_on:
                    client.close()
                    time.sleep(_AGAIN)
                    continue
            return client

    attempt.begin(family)
    with _inside(flow.server, listen) as listener, _inside(flow.client, connect) as client:
        while attempt.goes_on:
            if attempt.waits_for(listener):
                accepted, peer = listener.accept()
                attempt.peer = str(peer[0])
                with accepted:
                    return _carries(client, accepted, attempt) and _carries(accepted, client, attempt)
    return False


def _carries(sender: socket.socket, receiver: socket.socket, attempt: Attempt) -> bool:
    with contextlib.suppress(OSError):
        sender.send(b"x")
        return attempt.waits_for(receiver) and receiver.recv(1) == b"x"
    return False


def answers(container: Netns, address: str, attempt: Attempt, source: str = "") -> bool:
    """Tell whether *address* answers an echo request of the container, from its address *source*."""
    family = family_of(address)
    protocol, request, reply, header = _ECHO[family]
    body = struct.pack("!BBHHH", request, 0, 0, os.getpid() & 0xFFFF, 1)
    # The kernel fills it in for IPv6.
    body = body[:2] + struct.pack("!H", _checksum(body)) + body[4:]

    def ping() -> bool:
        with socket.socket(family, socket.SOCK_RAW, protocol) as stream:
            while attempt.goes_on:
                # An IPv6 address is usable only some seconds after it was assigned.
                with contextlib.suppress(OSError):
                    stream.bind((source, 0))
                    stream.sendto(body, (address, 0))
                while attempt.waits_for(stream, _AGAIN):
                    data, (sender, *_rest) = stream.recvfrom(4096)
                    if sender == address and data[header : header + 1] == bytes([reply]):
                        return True
            return False

    attempt.begin(family)
    return _inside(container, ping)


def _checksum(body: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(body) // 2}H", body))
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


# ---- which ones a network promises


def container_addresses(result: Mapping[str, Any]) -> List[str]:
    """Return the addresses of a container in the result of its ADD, without those of loopback."""
    addresses = [entry.partition("/")[0] for entry in result_addresses(result)]
    return [address for address in addresses if address != "::1" and not address.startswith("127.")]


def same_host(results: Sequence[Mapping[str, Any]], plugins: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether two containers of a network were given an address or a MAC that only one can have."""
    same = set.intersection(*({*result_macs(result).values()} for result in results))
    # All containers of ipvlan have the MAC of its master.
    if same and all(text_of(plugin, "type") != "ipvlan" for plugin in plugins):
        return True
    return bool(set.intersection(*(set(container_addresses(result)) for result in results)))


def keeps_apart(plugin: Mapping[str, Any]) -> bool:
    """Tell whether a plugin keeps the containers of its network apart."""
    kind = text_of(plugin, "type")
    return (
        member_of(plugin, "portisolation") is True
        or (kind == "firewall" and text_of(plugin, "ingresspolicy") == "isolated")
        # A tap carries nothing before a program opens it, such as a virtual machine.
        or kind in ("dummy", "tap")
        or (kind == "macvlan" and text_of(plugin, "mode") in ("private", "vepa", "passthru"))
    )


# ---- what drops them


class Trace(Attempt):
    """Follows the packets of one attempt after the other through nftables. Use it as a context manager."""

    def __init__(self) -> None:
        super().__init__(DEADLINE)
        self._nft = commands.find_command("nft")
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETFILTER)
        self._traced: List[str] = []
        self._aside: Set[Optional[bytes]] = set()
        self._dropping: List[Tuple[str, str, str, int]] = []
        self._legacy: Dict[str, int] = {}
        self._ipv6 = False

    def __enter__(self) -> Trace:
        self._socket.bind((0, 1 << _TRACE_GROUP - 1))
        self._socket.setblocking(False)
        if self._nft is None:
            return self
        tables = {}
        for family, hooks in _TRACED.items():
            chains = "\n".join(f"chain {hook} {{ type filter hook {hook} {_FIRST} }}" for hook in hooks)
            tables[family] = f"table {family} podwire_trace {{\n{chains}\n}}"
        # A kernel may lack some family.
        whole = self._change(list(tables.values()))
        self._traced = [family for family, table in tables.items() if whole or self._change([table])]
        return self

    def __exit__(self, *_exception: object) -> None:
        self._socket.close()
        if self._traced:
            self._change([f"delete table {family} podwire_trace" for family in self._traced])

    def _change(self, commands: Sequence[str]) -> bool:
        """Let nft make all changes or none; tell whether it made them."""
        try:
            printed([str(self._nft), "-f", "-"], "\n".join([*commands, ""]).encode())
        except HostError:
            return False
        return True

    def begin(self, family: int) -> None:
        """Begin an attempt with packets of an address family. What drops those of the other one does not count."""
        self._read()
        self._ipv6 = family == socket.AF_INET6
        self._dropping = []
        self._legacy = self._legacy_counters()
        super().begin(family)

    @property
    def goes_on(self) -> bool:
        """Whether the attempt has time, and no packet of it was dropped."""
        return super().goes_on and not self._dropping and not self._legacy_drop()

    def waits_for(self, stream: socket.socket, most: float = DEADLINE) -> bool:
        end = min(self._end, time.monotonic() + most)
        while True:
            left = max(0.0, end - time.monotonic())
            pause = min(left, _AGAIN) if self._legacy else left
            ready, _written, _failed = select.select([stream, self._socket], [], [], pause)
            if stream in ready:
                return True
            self._read()
            if not left or not self.goes_on:
                return False

    def explain(self, attempt: Optional[Callable[[], bool]]) -> Tuple[str, str]:
        """Return what has dropped the packets of the last attempt, which has failed and can be made again.

        That is "rule", "policy", "rp_filter" or "" if nothing was seen to, and the same as a clause.
        """
        for place in self._dropping:
            return _described(str(self._nft), *place)
        line = self._legacy_drop()
        if line:
            return "rule", f"a rule of iptables-legacy drops them ({line})"
        if attempt is None:
            return "", _UNKNOWN
        with _without_rp_filter() as changed:
            if changed and attempt():
                return _RP_FILTER, "the kernel drops packets whose source it would route elsewhere (sysctl rp_filter)"
        return "", _UNKNOWN

    def _legacy_drop(self) -> str:
        """Return the rule or policy of iptables-legacy that has dropped a packet since the attempt began, or ""."""
        counters = self._legacy_counters() if self._legacy else {}
        return next((line for line, count in counters.items() if count > self._legacy.get(line, 0)), "")

    def _legacy_counters(self) -> Dict[str, int]:
        """Return how many packets each dropping rule and policy of iptables-legacy has seen."""
        family = "ipv6" if self._ipv6 else "ipv4"
        counted = {}
        with contextlib.suppress(HostError):
            for line in dump_iptables(LEGACY, family, options=["-c"]).splitlines():
                counters, _space, rule = line.partition(" ") if line.startswith("[") else ("", "", line)
                if line.startswith(":") and " DROP " in line:
                    rule, _space, counters = line.rpartition(" ")
                elif not (counters and rule.rpartition(" -j ")[2].split(" ")[0] in ("DROP", "REJECT")):
                    continue
                counted[f"{family} {rule}"] = int(counters.strip("[]").partition(":")[0])
        return counted

    def _read(self) -> None:
        """Read what has dropped packets: (family, table, chain, handle of the rule; 0 for the policy)."""
        while True:
            try:
                received = self._socket.recv(1 << 18)
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    continue
                return
            for kind, _flags, payload in messages(received):
                if kind == _TRACE:
                    self._note(payload[0], attributes_in(payload, 4))

    def _note(self, family: int, parts: Dict[int, bytes]) -> None:
        header = parts.get(_HEADER, b"")
        other = header[:1] and header[0] >> 4 == (4 if self._ipv6 else 6)
        if other or _is_aside(header, parts.get(_TRANSPORT, b"")):
            self._aside.add(parts.get(_ID))
        cause = _number(parts.get(_TYPE))
        verdict = parts.get(_POLICY) if cause == _BY_POLICY else attributes_in(parts.get(_VERDICT, b"")).get(1)
        if cause in (_BY_POLICY, _BY_RULE) and _number(verdict) == _DROP and parts.get(_ID) not in self._aside:
            handle = int.from_bytes(parts.get(_HANDLE, b""), "big") if cause == _BY_RULE else 0
            names = decode_text(parts.get(_TABLE)), decode_text(parts.get(_CHAIN))
            self._dropping.append((_PROTOCOLS.get(family, "inet"), *names, handle))


@contextlib.contextmanager
def _without_rp_filter() -> Iterator[bool]:
    """Switch rp_filter off on all interfaces for a while; tell whether it was on."""
    names = [f"ipv4/conf/{name}/rp_filter" for name in os.listdir("/proc/sys/net/ipv4/conf")]
    set_ones = {str(key[1]): sysctl.value for key, sysctl in read_globals(names).items() if sysctl.value != "0"}
    for name in set_ones:
        write_global(name, "0")
    try:
        yield bool(set_ones)
    finally:
        for name, value in set_ones.items():
            write_global(name, value)


def _is_aside(header: bytes, transport: bytes) -> bool:
    """Tell whether the kernel sends a packet of its own accord: to a group, except to ask for a neighbour."""
    if header[:1] and header[0] >> 4 == 6:
        return header[24:25] == b"\xff" and transport[:1] != bytes([_NEIGHBOUR_SOLICITATION])
    return len(header) >= 20 and header[16] >= 224


def _number(raw: Optional[bytes]) -> int:
    """Return a number of nftables, -1 for none."""
    return int.from_bytes(raw, "big") if raw else -1


def _described(nft: str, family: str, table: str, chain: str, handle: int) -> Tuple[str, str]:
    where = f"the chain {chain} of the table {table} ({family})"
    if not handle:
        return "policy", f"the policy of {where} drops them"
    text = ""
    with contextlib.suppress(HostError):
        listed = printed([nft, "-s", "-a", "list", "chain", family, table, chain])
        lines = (line.strip().rpartition(" # handle ") for line in listed.splitlines())
        text = next((f" ({rule})" for rule, _mark, number in lines if number == str(handle)), "")
    return "rule", f"a rule of {where} drops them{text}"
