# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members of a zip archive, read strictly and in bounded pieces.

The standard library's reader takes the whole directory of an archive into memory whatever its size, follows entries
that overlap (a small archive can unpack to petabytes so), and trusts the directory where the members differ from it.
No plugin archive needs zip64, encryption, several disks or another method than deflate.
"""

from __future__ import annotations

import os
import stat
import struct
import zlib
from typing import BinaryIO, List, NamedTuple

ZIP_MAGIC = b"PK\3\4"
"""The first bytes of an archive that is not empty."""

_END = struct.Struct("<4s4H2LH")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_STORED, _DEFLATED = 0, 8
_ENCRYPTED = 0x1
_UNIX = 3
_LONGEST_COMMENT = 0xFFFF
_NUMBER64, _COUNT64 = 0xFFFFFFFF, 0xFFFF
# A name has at most 4 KiB; extra fields and comments have a few bytes.
_DIRECTORY_LIMIT = 16 << 20
_CHUNK = 1 << 16


class ZipEntry(NamedTuple):
    """A member: its name, its Unix mode (0: none), size and packed size in bytes, method, CRC, start of its data."""

    name: str
    mode: int
    size: int
    packed: int
    method: int
    crc: int
    start: int

    @property
    def is_directory(self) -> bool:
        return self.name.endswith("/") or stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_special(self) -> bool:
        return bool(stat.S_IFMT(self.mode)) and not (stat.S_ISREG(self.mode) or stat.S_ISDIR(self.mode))


def read_zip_entries(file: BinaryIO, most: int) -> List[ZipEntry]:
    """Return the members in the order of their data; one more than *most* is enough to see that there are too many.

    Raises ValueError and EOFError for an archive that is damaged, or has what no plugin archive needs.
    """
    size = file.seek(0, os.SEEK_END)
    begin = max(0, size - _END.size - _LONGEST_COMMENT)
    file.seek(begin)
    tail = file.read(size - begin)
    at = tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) - at < _END.size:
        raise EOFError("the end of the zip archive is missing")
    _magic, disk, first, here, count, length, offset, comment = _END.unpack_from(tail, at)
    if _COUNT64 in (count, here) or _NUMBER64 in (length, offset):
        raise ValueError("zip64 is not supported")
    if disk or first or here != count or at + _END.size + comment != len(tail) or offset + length != begin + at:
        raise ValueError("the directory of the zip archive is not where it should be")
    if length > _DIRECTORY_LIMIT:
        raise ValueError(f"the directory of the zip archive has more than {_DIRECTORY_LIMIT} bytes")
    file.seek(offset)
    directory = file.read(length)
    found, place = [], 0
    for _number in range(min(count, most + 1)):
        if len(directory) - place < _ENTRY.size:
            raise EOFError("the directory of the zip archive is incomplete")
        found.append(_entry(file, directory, place))
        _skipped = _ENTRY.unpack_from(directory, place)
        place += _ENTRY.size + sum(_skipped[10:13])
    if count <= most and place != length:
        raise ValueError("the directory of the zip archive has another length than it says")
    found.sort(key=lambda entry: entry.start)
    end = 0
    for entry in found:
        # Its local header lies between; the least that has a name of one byte.
        if entry.start - _LOCAL.size < end:
            raise ValueError(f"the member {entry.name!r:.300} overlaps another one")
        end = entry.start + entry.packed
    if end > offset:
        raise ValueError("a member overlaps the directory of the zip archive")
    return found


def _entry(file: BinaryIO, directory: bytes, place: int) -> ZipEntry:
    fields = _ENTRY.unpack_from(directory, place)
    magic, made, _needed, flags, method, _time, _date, crc, packed, size, length = fields[:11]
    outer, local = fields[15], fields[16]
    raw = directory[place + _ENTRY.size : place + _ENTRY.size + length]
    name = raw.decode("utf-8", "surrogateescape")
    if magic != b"PK\1\2" or len(raw) != length or not name:
        raise ValueError("the directory of the zip archive is damaged")
    if _NUMBER64 in (packed, size, local):
        raise ValueError("zip64 is not supported")
    if flags & _ENCRYPTED:
        raise ValueError(f"the member {name!r:.300} is encrypted")
    if method not in (_STORED, _DEFLATED) or (method == _STORED and packed != size):
        raise ValueError(f"the member {name!r:.300} is packed by the method {method}; only deflate is supported")
    file.seek(local)
    header = file.read(_LOCAL.size)
    if len(header) < _LOCAL.size or header[:4] != ZIP_MAGIC:
        raise ValueError(f"the member {name!r:.300} is not where the directory says")
    *_rest, name_length, extra = _LOCAL.unpack(header)
    if file.read(name_length) != raw:
        raise ValueError(f"the member {name!r:.300} has another name in its own header")
    mode = outer >> 16 if made >> 8 == _UNIX else 0
    return ZipEntry(name, mode, size, packed, method, crc, local + _LOCAL.size + name_length + extra)


class ZipContent:
    """The content of a member, unpacked piece by piece."""

    def __init__(self, file: BinaryIO, entry: ZipEntry) -> None:
        self._file = file
        self._entry = entry
        self._at = entry.start
        self._packed = entry.packed
        self._unpacker = zlib.decompressobj(-zlib.MAX_WBITS) if entry.method == _DEFLATED else None
        self._crc = 0
        self._size = 0

    def read(self, size: int) -> bytes:
        """Return *size* bytes, less at the end. Raises ValueError and EOFError for other content than promised."""
        data = bytearray()
        while len(data) < size and self._size < self._entry.size:
            data += self._unpack(min(size - len(data), _CHUNK))
        return bytes(data)

    def _unpack(self, most: int) -> bytes:
        waiting = self._unpacker.unconsumed_tail if self._unpacker is not None else b""
        piece = waiting or self._next(most)
        data = piece if self._unpacker is None else self._unpacker.decompress(piece, most)
        if not data and not piece:
            raise EOFError(f"the member {self._entry.name!r:.300} ends too early")
        self._size += len(data)
        self._crc = zlib.crc32(data, self._crc)
        if self._size > self._entry.size or (self._size == self._entry.size and self._crc != self._entry.crc):
            raise ValueError(f"the content of the member {self._entry.name!r:.300} is damaged")
        return data

    def _next(self, size: int) -> bytes:
        self._file.seek(self._at)
        piece = self._file.read(min(self._packed, size if self._unpacker is None else _CHUNK))
        self._at += len(piece)
        self._packed -= len(piece)
        return piece
