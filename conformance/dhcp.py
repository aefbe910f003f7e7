# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""What the plugin `dhcp` needs: its daemon, and a DHCP server on a bridge to which the containers are connected."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
import typing as t

from . import sandbox

BRIDGE = "cnfdhcp0"
SOCKET = "/run/cni/dhcp.sock"
_SERVER = "10.79.0.1"
_PREFIX, _MASK = 16, "255.255.0.0"
# The first address is 10.79.1.1.
_FIRST = 257
_LEASE_SECONDS = 3600
_PATIENCE = 30.0
_HEAD = struct.Struct("!BBBBIHH4s4s4s4s16s64s128s")
_MAGIC = b"c\x82Sc"
_DISCOVER, _OFFER, _REQUEST, _ACK = 1, 2, 3, 5
_MASK_OPTION, _ROUTER, _LEASE_TIME, _TYPE, _SERVER_ID, _CLIENT_ID = 1, 3, 51, 53, 54, 61
_PAD, _END = 0, 255


def start(plugin: str) -> int:
    """Make the bridge, start the server in a thread and the daemon of the plugin at *plugin*; return its process ID.

    Raises `SandboxError`.
    """
    sandbox.command("ip", "link", "add", BRIDGE, "type", "bridge")
    sandbox.command("ip", "address", "add", f"{_SERVER}/{_PREFIX}", "dev", BRIDGE)
    sandbox.command("ip", "link", "set", BRIDGE, "up")
    threading.Thread(target=_serve, args=(_open(),), daemon=True).start()
    streams = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    os.makedirs(os.path.dirname(SOCKET), exist_ok=True)
    pid = os.posix_spawn(plugin, [plugin, "daemon"], os.environ, file_actions=streams)
    end = time.monotonic() + _PATIENCE
    while not os.path.exists(SOCKET):
        if time.monotonic() > end or os.waitpid(pid, os.WNOHANG)[0]:
            raise sandbox.SandboxError(f"{plugin} daemon does not listen on {SOCKET}")
        time.sleep(0.05)
    return pid


def _open() -> socket.socket:
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, BRIDGE.encode() + b"\0")
    server.bind(("", 67))
    return server


def _serve(server: socket.socket) -> None:
    leases: t.Dict[bytes, bytes] = {}
    while True:
        data = server.recv(65536)
        # Whatever a plugin sends, the server goes on.
        with contextlib.suppress(struct.error, IndexError, OSError):
            answer = reply(data, leases)
            if answer:
                server.sendto(answer, ("255.255.255.255", 68))


def reply(data: bytes, leases: t.MutableMapping[bytes, bytes]) -> bytes:
    """Return the answer to a message, b"" for none. *leases*: client -> address, one more for each new client."""
    head = _HEAD.unpack_from(data)
    options = _options(data[_HEAD.size :])
    answer = {_DISCOVER: _OFFER, _REQUEST: _ACK}.get((options.get(_TYPE) or b"\0")[0])
    if answer is None:
        return b""
    hardware = head[11][: head[2]]
    address = leases.setdefault(
        hardware + options.get(_CLIENT_ID, b""), struct.pack("!HH", 0x0A4F, _FIRST + len(leases))
    )
    said = (
        (_TYPE, bytes((answer,))),
        (_SERVER_ID, socket.inet_aton(_SERVER)),
        (_LEASE_TIME, struct.pack("!I", _LEASE_SECONDS)),
        (_MASK_OPTION, socket.inet_aton(_MASK)),
        (_ROUTER, socket.inet_aton(_SERVER)),
    )
    out = _HEAD.pack(2, *head[1:3], 0, head[4], 0, head[6], bytes(4), address, *(bytes(4),) * 2, head[11], b"", b"")
    body = b"".join(bytes((number, len(value))) + value for number, value in said)
    return out + _MAGIC + body + bytes((_END,))


def _options(data: bytes) -> t.Dict[int, bytes]:
    options: t.Dict[int, bytes] = {}
    at = len(_MAGIC)
    while data[: len(_MAGIC)] == _MAGIC and data[at] != _END:
        if data[at] == _PAD:
            at += 1
            continue
        options[data[at]] = data[at + 2 : at + 2 + data[at + 1]]
        at += 2 + data[at + 1]
    return options
