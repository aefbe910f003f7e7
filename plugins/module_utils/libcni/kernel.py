# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""What Python lacks of the kernel's networking: rtnetlink sockets and their messages, and changing namespaces."""

from __future__ import annotations

import errno
import os
import socket
import struct
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

HEADER = struct.Struct("=LHHLL")
REQUEST, ACK, INTERRUPTED, DUMP = 0x1, 0x4, 0x10, 0x300
CREATE, EXCLUSIVE = 0x400, 0x200
_ERROR, _DONE = 2, 3
_ATTRIBUTE = struct.Struct("=HH")
_NESTED = 0x8000
# The kernel sends at most 32 KiB at once.
_BUFFER = 128 * 1024
_TRIES = 5
_TIMEOUT = 10.0
_CLONE_NEWNET = 0x40000000


class Netlink:
    """A netlink socket in the namespace of the thread that opens it: asks for lists, and makes changes.

    All methods raise OSError: with the kernel's number if it refuses, EAGAIN if a list changes faster than it can be
    read, EIO for an answer that is cut short, and the socket's own errors.
    """

    __slots__ = ("_socket",)

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.settimeout(_TIMEOUT)

    def __enter__(self) -> Netlink:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def dump(self, request: int, answer: int, payload: bytes) -> list[bytes]:
        """Return what the kernel lists. If something changes meanwhile, ask again, so that nothing is missed."""
        for _try in range(_TRIES):
            contents = self._dump_once(request, answer, payload)
            if contents is not None:
                return contents
        raise OSError(errno.EAGAIN, "its interfaces change faster than they can be read; run again")

    def _dump_once(self, request: int, answer: int, payload: bytes) -> list[bytes] | None:
        contents: list[bytes] = []
        whole = True
        self._send(request, REQUEST | DUMP, payload)
        while True:
            for kind, flags, content in messages(self._socket.recv(_BUFFER)):
                whole = whole and not flags & INTERRUPTED
                # A dump that fails, at its beginning or halfway, ends with the error's number.
                if kind in (_ERROR, _DONE):
                    _raise_error(content)
                if kind == _DONE:
                    return contents if whole else None
                if kind == answer:
                    contents.append(content)

    def ask(self, request: int, answer: int, payload: bytes) -> bytes:
        """Return the one message with which the kernel answers."""
        self._send(request, REQUEST, payload)
        for kind, _flags, content in messages(self._socket.recv(_BUFFER)):
            if kind == answer:
                return content
            if kind == _ERROR:
                _raise_error(content)
        raise OSError(errno.EIO, "the kernel did not answer")

    def change(self, request: int, payload: bytes, flags: int = 0) -> None:
        """Make one change, and wait until the kernel has made it."""
        self._send(request, REQUEST | ACK | flags, payload)
        for kind, _flags, content in messages(self._socket.recv(_BUFFER)):
            if kind == _ERROR:
                _raise_error(content)

    def _send(self, request: int, flags: int, payload: bytes) -> None:
        self._socket.send(HEADER.pack(HEADER.size + len(payload), request, flags, 1, 0) + payload)


def _raise_error(content: bytes) -> None:
    number = -struct.unpack_from("=i", content)[0]
    if number:
        raise OSError(number, os.strerror(number))


def messages(data: bytes) -> t.Iterator[tuple[int, int, bytes]]:
    """Split what was received into (type, flags, payload). Raises OSError."""
    begin = 0
    while len(data) - begin >= HEADER.size:
        length, kind, flags, _sequence, _port = HEADER.unpack_from(data, begin)
        if length < HEADER.size or begin + length > len(data):
            raise OSError(errno.EIO, "the kernel's answer was cut short")
        yield kind, flags, data[begin + HEADER.size : begin + length]
        begin += (length + 3) & ~3


def attributes_in(data: bytes, begin: int = 0) -> dict[int, bytes]:
    """Return the attributes in `data` from `begin` on."""
    attributes, last, unpack = {}, len(data) - 4, _ATTRIBUTE.unpack_from
    while begin <= last:
        length, kind = unpack(data, begin)
        if length < 4:
            break
        attributes[kind & 0x3FFF] = data[begin + 4 : begin + length]
        begin += (length + 3) & ~3
    return attributes


def pack_attribute(kind: int, value: bytes) -> bytes:
    """Return an attribute, padded."""
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + bytes(-len(value) % 4)


def pack_nested(kind: int, *parts: bytes) -> bytes:
    """Return an attribute that holds others."""
    return pack_attribute(kind | _NESTED, b"".join(parts))


def decode_text(raw: bytes | None) -> str:
    """Return the text of an attribute, "" if there is none."""
    return os.fsdecode((raw or b"").rstrip(b"\0"))


def number_in(raw: bytes | None) -> int:
    """Return the number of an attribute of four bytes, 0 if there is none."""
    return int(struct.unpack("=I", raw)[0]) if raw and len(raw) == 4 else 0


# ---- namespaces


def setns(fd: int) -> None:
    """Move this thread into the network namespace that is open as `fd`. Raises OSError."""
    if hasattr(os, "setns"):
        os.setns(fd, _CLONE_NEWNET)
    else:
        _call_libc("setns", fd, _CLONE_NEWNET)


def unshare(kinds: int = _CLONE_NEWNET) -> None:
    """Move this thread into new namespaces. Raises OSError."""
    if hasattr(os, "unshare"):
        os.unshare(kinds)
    else:
        _call_libc("unshare", kinds)


def _call_libc(function: str, *arguments: int) -> None:
    """Call a function that Python has only since 3.12."""
    libc = _libc()
    if getattr(libc, function)(*arguments) != 0:
        import ctypes

        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@lru_cache(maxsize=None)
def _libc() -> t.Any:
    # Imported late: it costs memory.
    import ctypes

    return ctypes.CDLL(None, use_errno=True)
