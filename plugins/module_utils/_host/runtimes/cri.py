# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a CRI runtime reports about its networks: one call of Status, with the minimum of gRPC and HTTP/2.

Most hosts have no client, and gRPC for Python is large.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from ..errors import HostError

_TIMEOUT = 10.0
# The answer of containerd contains its whole configuration.
_MOST = 8 << 20
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END_STREAM = _ACK = 1
_END_HEADERS = 4
_FIELDS = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "/runtime.v1.RuntimeService/Status",
    ":authority": "localhost",
    "content-type": "application/grpc",
    "te": "trailers",
}


class CriStatus(NamedTuple):
    """``ready`` is the condition NetworkReady, ``message`` the reason if it is false.

    ``networks``: the names of the loaded networks in order, None if the runtime does not report them (only containerd
    does).
    """

    ready: bool
    message: str
    networks: Optional[List[str]]


def cri_status(address: str) -> CriStatus:
    """Ask the runtime that listens at *address*. Raises HostError ``not_answered``."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_TIMEOUT)
            connection.connect(address)
            reply = _call(connection)
        # A method that fails sends no message.
        if len(reply) < 5:
            raise ValueError("the call of Status was refused")
        return _understood(_message(reply[5:]))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise HostError(f"{address} does not report its networks: {error}", code="not_answered") from error


def _understood(reply: Dict[int, List[Any]]) -> CriStatus:
    ready, message = False, "the runtime reports no condition NetworkReady"
    for raw in _message(reply[1][0]).get(1, []):
        condition = _message(raw)
        if condition[1][0] == b"NetworkReady":
            ready = bool(condition.get(2, [0])[0])
            message = condition.get(4, [b""])[0].decode("utf-8", "replace")
    networks = None
    for raw in reply.get(2, []):
        pair = _message(raw)
        if pair[1][0] == b"cniconfig":
            loaded = (json.loads(pair[2][0]) or {}).get("Networks") or []
            networks = [str(network["Config"]["Name"]) for network in loaded if network["IFName"] != "lo"]
        elif pair[1][0] == b"lastCNILoadStatus" and not ready:
            message = pair[2][0].decode("utf-8", "replace")
    return CriStatus(ready, message, networks)


# --- HTTP/2


def _call(connection: socket.socket) -> bytes:
    headers = b"".join(_header(name, value) for name, value in _FIELDS.items())
    # A message with one field, verbose: true.
    request = b"\0" + struct.pack(">I", 2) + b"\x08\x01"
    window = struct.pack(">I", _MOST)
    connection.sendall(
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        # Setting 4: the flow-control window; for the stream, then for the connection.
        + _frame(_SETTINGS, 0, 0, struct.pack(">H", 4) + window)
        + _frame(_WINDOW, 0, 0, window)
        + _frame(_HEADERS, _END_HEADERS, 1, headers)
        + _frame(_DATA, _END_STREAM, 1, request)
    )
    reply = b""
    with connection.makefile("rb") as stream:
        while len(reply) <= _MOST:
            head = stream.read(9)
            if len(head) < 9:
                break
            kind, flags = head[3], head[4]
            payload = stream.read(int.from_bytes(head[:3], "big"))
            if kind == _SETTINGS and not flags & _ACK:
                connection.sendall(_frame(_SETTINGS, _ACK, 0, b""))
            elif kind == _PING and not flags & _ACK:
                connection.sendall(_frame(_PING, _ACK, 0, payload))
            elif kind == _DATA:
                reply += payload
            if kind in (_RESET, _GOAWAY) or (kind in (_DATA, _HEADERS) and flags & _END_STREAM):
                break
    return reply


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _header(name: str, value: str) -> bytes:
    return b"\0" + bytes([len(name)]) + name.encode("ascii") + bytes([len(value)]) + value.encode("ascii")


# --- protobuf


def _message(data: bytes) -> Dict[int, List[Any]]:
    """Return the fields of a message: numbers, and bytes for texts and messages."""
    fields: Dict[int, List[Any]] = {}
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        number, at = _number(data, at)
        value: Union[int, bytes] = number
        if tag & 7 == 2:
            if at + number > len(data):
                raise ValueError("its answer is truncated")
            value, at = data[at : at + number], at + number
        elif tag & 7:
            raise ValueError("its answer is malformed")
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _number(data: bytes, at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            return value, at
        if shift > 63:
            raise ValueError("its answer is malformed")
