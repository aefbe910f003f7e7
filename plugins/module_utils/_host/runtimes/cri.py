# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a CRI runtime reports about its networks: one call of Status, with the minimum of gRPC and HTTP/2.

Most hosts have no client, and gRPC for Python is large.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from ..errors import HostError
from ..json_text import parse_json
from ..trust import check_socket

# The answer of containerd contains its whole configuration.
_MOST = 8 << 20
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END_STREAM = _ACK = 1
_END_HEADERS = 4
# The plugins of containerd 2 that its gRPC service for CRI consists of.
_CRI_PARTS = "io.containerd.cri.v1"
_LAST_LOAD = "lastCNILoadStatus"
_FIELDS = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "",
    ":authority": "localhost",
    "content-type": "application/grpc",
    "te": "trailers",
}


class CriStatus(NamedTuple):
    """``ready`` is the condition NetworkReady, ``message`` the reason if it is false.

    ``networks``: the names of the loaded networks in order, None if the runtime does not report them (only containerd
    does). ``chains``: the plugin objects of each of them, None if they are not known. ``loads``: the error of the last
    load for each runtime handler that has its own directory ("default": for all others), "" if there was none.
    """

    ready: bool
    message: str
    networks: Optional[List[str]]
    chains: Optional[List[List[Any]]] = None
    loads: Optional[Dict[str, str]] = None

    def row(self) -> Dict[str, Any]:
        return {"ready": self.ready, "message": self.message, "networks": self.networks}

    def lacks(self, network: str) -> str:
        """Return why it does not have *network*, "" if it has it."""
        if self.ready and (self.networks is None or network in self.networks):
            return ""
        return self.message or f"it has loaded {', '.join(self.networks or []) or 'none'}"


def cri_status(address: str, timeout: float) -> CriStatus:
    """Ask the runtime that listens at *address*, for at most *timeout* seconds in all.

    Raises HostError ``unsafe_permissions`` if the socket is not root's, ``cri_not_loaded`` with the words of a
    containerd whose plugins for CRI have not started, else ``not_answered``.
    """
    end = time.monotonic() + timeout
    try:
        # A message with one field, verbose: true.
        return _understood(_ask(address, "/runtime.v1.RuntimeService/Status", b"\x08\x01", end))
    except socket.timeout as error:
        text = f"{address} does not report its networks: no complete answer within {timeout:g} s"
        raise HostError(text, code="not_answered") from error
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        refusal = _why_not_loaded(address, end)
        if refusal:
            raise HostError(refusal, code="cri_not_loaded") from error
        raise HostError(f"{address} does not report its networks: {error}", code="not_answered") from error


def _why_not_loaded(address: str, end: float) -> str:
    """Return in its own words why a containerd has not loaded its CRI plugins, "" if it has, or does not tell.

    Source: containerd's API introspection.v1, Plugin.init_err.
    """
    errors = {}
    with contextlib.suppress(HostError, OSError, ValueError, LookupError, TypeError, AttributeError):
        for raw in _ask(address, "/containerd.services.introspection.v1.Introspection/Plugins", b"", end)[1]:
            plugin = _message(raw)
            kind, name = (plugin[number][0].decode("utf-8", "replace") for number in (1, 2))
            said = _message(plugin.get(7, [b""])[0]).get(2, [b""])[0].decode("utf-8", "replace")
            if said and (name == "cri" or kind == _CRI_PARTS):
                errors[kind] = said
    # What the others need comes first.
    return errors.get(_CRI_PARTS) or next(iter(errors.values()), "")


def _ask(address: str, path: str, request: bytes, end: float) -> Dict[int, List[Any]]:
    check_socket(address)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(max(0.0, end - time.monotonic()))
        connection.connect(address)
        reply = _call(DeadlineReader(connection, end), path, request)
    # A method that fails sends no message.
    if len(reply) < 5:
        raise ValueError(f"the call of {path.rpartition('/')[2]} was refused")
    return _message(reply[5:])


def _understood(reply: Dict[int, List[Any]]) -> CriStatus:
    ready, message = False, "the runtime reports no condition NetworkReady"
    for raw in _message(reply[1][0]).get(1, []):
        condition = _message(raw)
        if condition[1][0] == b"NetworkReady":
            ready = bool(condition.get(2, [0])[0])
            message = condition.get(4, [b""])[0].decode("utf-8", "replace")
    networks = chains = None
    loads: Dict[str, str] = {}
    for raw in reply.get(2, []):
        pair = _message(raw)
        key, value = pair[1][0].decode("utf-8", "replace"), pair.get(2, [b""])[0].decode("utf-8", "replace")
        if key == "cniconfig":
            loaded = [entry for entry in (parse_json(value) or {}).get("Networks") or [] if entry["IFName"] != "lo"]
            networks = [str(network["Config"]["Name"]) for network in loaded]
            chains = [_chain(network["Config"]) for network in loaded]
        elif key.startswith(_LAST_LOAD):
            loads[key[len(_LAST_LOAD) :].lstrip(".") or "default"] = "" if value == "OK" else value
    # The plugin's own words, from STATUS, are in the condition; the load's last error says more than the condition.
    return CriStatus(ready, "" if ready else loads.get("default") or message, networks, chains, loads or None)


def _chain(config: Dict[str, Any]) -> List[Any]:
    """Return the plugin objects of a network as they were loaded, an empty list if they are not told."""
    try:
        return [parse_json(plugin["Source"]) for plugin in config["Plugins"]]
    except (KeyError, TypeError, ValueError):
        return []


# --- HTTP/2


class DeadlineReader:
    """Reads from a connection until a deadline, however slowly the other side sends."""

    def __init__(self, connection: socket.socket, end: float) -> None:
        self.connection = connection
        self._end = end
        self._data = b""

    def read(self, count: int) -> bytes:
        """Return *count* bytes, fewer at the end of the stream."""
        while len(self._data) < count:
            left = self._end - time.monotonic()
            if left <= 0:
                raise socket.timeout
            self.connection.settimeout(left)
            more = self.connection.recv(65536)
            if not more:
                break
            self._data += more
        taken, self._data = self._data[:count], self._data[count:]
        return taken


def _call(stream: DeadlineReader, path: str, message: bytes) -> bytes:
    connection = stream.connection
    headers = b"".join(_header(name, value) for name, value in {**_FIELDS, ":path": path}.items())
    request = b"\0" + struct.pack(">I", len(message)) + message
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
