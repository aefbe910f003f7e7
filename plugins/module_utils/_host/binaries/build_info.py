# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Go's linker records in a program: the release of Go, the modules with their versions, and how it was built.

(Go: debug/buildinfo/buildinfo.go, runtime/debug/mod.go.) The file is untrusted: every length is checked, and little of
it is read. Since Go 1.18 the texts are in the section itself; before, it had pointers to them.
"""

from __future__ import annotations

import re
import struct
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Optional, Tuple

_MAGIC = b"\xff Go buildinf:"
_SECTION = b".go.buildinfo"
# Where the texts of the modules begin and end.
_FENCE = 16
_INLINE, _BIG_ENDIAN = 2, 1
_HEAD = 32
_MOST_SECTIONS, _MOST_SEGMENTS = 1000, 100
_MOST_NAMES, _MOST_TEXT = 1 << 20, 1 << 20
_MOST_MODULES = 1000
_LOAD = 1
_WORD = re.compile(r"[!-~]{1,300}")
# The settings that tell where a program comes from.
_SETTINGS = ("vcs", "vcs.revision", "vcs.time", "vcs.modified", "CGO_ENABLED", "GOARCH", "GOOS")


class _Malformed(ValueError):
    """The file is no ELF file, or its tables are nonsense."""


class _Part(NamedTuple):
    """A section or segment: its name (a section's only), its address in memory, its place in the file, its size."""

    name: int
    address: int
    offset: int
    size: int


def build_info(stream: BinaryIO) -> Optional[Dict[str, Any]]:
    """Return ``{version, path, module, modules, settings}`` of an ELF file that Go has built, None for any other.

    ``module`` is the main module and ``modules`` are those it was built with, each as ``PATH@VERSION``, a replaced one
    as ``PATH@VERSION => PATH@VERSION``; "" and none if they are not recorded.
    """
    try:
        elf = _Elf(stream)
        section = elf.section()
        if section is None or not section.startswith(_MAGIC) or len(section) < _HEAD:
            return None
        version, modules = _texts(elf, section)
    except (_Malformed, OSError, struct.error, OverflowError, IndexError):
        return None
    return {"version": version, **_parsed(modules)} if version else None


class _Elf:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        head = self.read(0, 64)
        if head[:4] != b"\x7fELF" or head[4] not in (1, 2) or head[5] not in (1, 2):
            raise _Malformed
        self._order = "<" if head[5] == 1 else ">"
        self._wide = head[4] == 2
        # e_phoff and e_shoff, then the sizes and counts of both tables, and the section with the names.
        places = struct.unpack_from(self._order + ("QQ" if self._wide else "II"), head, 32 if self._wide else 28)
        counts = struct.unpack_from(self._order + "5H", head, 54 if self._wide else 42)
        self._segments = (places[0], counts[0], min(counts[1], _MOST_SEGMENTS))
        self._sections = (places[1], counts[2], min(counts[3], _MOST_SECTIONS))
        self._names = counts[4]

    def read(self, offset: int, size: int) -> bytes:
        self._stream.seek(offset)
        return self._stream.read(size)

    def section(self) -> Optional[bytes]:
        """Return the section with the build info."""
        start, size, count = self._sections
        table = self.read(start, size * count)
        form, first = (self._order + "IIQQQQ", 40) if self._wide else (self._order + "IIIIII", 24)
        parts = []
        for index in range(count):
            name, _kind, _flags, address, offset, length = struct.unpack_from(
                form, table[index * size :][:first].ljust(first)
            )
            parts.append(_Part(name, address, offset, length))
        if not 0 <= self._names < len(parts):
            return None
        names = self.read(parts[self._names].offset, min(parts[self._names].size, _MOST_NAMES))
        for part in parts:
            if names[part.name : part.name + len(_SECTION) + 1] == _SECTION + b"\0":
                return self.read(part.offset, min(part.size, _MOST_TEXT))
        return None

    def at(self, address: int, size: int) -> bytes:
        """Return *size* bytes of memory."""
        start, length, count = self._segments
        table = self.read(start, length * count)
        for index in range(count):
            entry = table[index * length :]
            if self._wide:
                kind, _flags, offset, here, _physical, in_file = struct.unpack_from(self._order + "IIQQQQ", entry)
            else:
                kind, offset, here, _physical, in_file = struct.unpack_from(self._order + "IIIII", entry)
            if kind == _LOAD and here <= address < here + in_file:
                return self.read(offset + address - here, min(size, here + in_file - address))
        raise _Malformed


def _texts(elf: _Elf, section: bytes) -> Tuple[str, bytes]:
    """Return the release of Go, and the text with the modules."""
    width, flags = section[14], section[15]
    if flags & _INLINE:
        version, at = _inline(section, _HEAD)
        modules, _at = _inline(section, at)
    else:
        order = ">" if flags & _BIG_ENDIAN else "<"
        form = order + ("Q" if width == 8 else "I")
        pointers = [struct.unpack_from(form, section, 16 + index * width)[0] for index in (0, 1)]
        version, modules = (_pointed(elf, form, width, pointer) for pointer in pointers)
    fenced = len(modules) > 2 * _FENCE and modules[-_FENCE - 1 : -_FENCE] == b"\n"
    return version.decode("ascii", "replace")[:100], modules[_FENCE:-_FENCE] if fenced else b""


def _inline(data: bytes, at: int) -> Tuple[bytes, int]:
    length = shift = 0
    while True:
        byte = data[at]
        at += 1
        length |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            break
        if shift > 28:
            raise _Malformed
    if at + length > len(data):
        raise _Malformed
    return data[at : at + length], at + length


def _pointed(elf: _Elf, form: str, width: int, pointer: int) -> bytes:
    """Return a string of Go: a pointer to its text, and its length."""
    text, length = struct.unpack(form[0] + form[1] * 2, elf.at(pointer, 2 * width))
    return elf.at(text, length) if 0 < length <= _MOST_TEXT else b""


def _parsed(text: bytes) -> Dict[str, Any]:
    found: Dict[str, Any] = {"path": "", "module": "", "modules": [], "settings": {}}
    modules: List[str] = found["modules"]
    for kind, *words in _lines(text):
        if kind == "path" and words:
            found["path"] = words[0]
        elif kind in ("mod", "dep") and len(words) >= 2:
            module = f"{words[0]}@{words[1]}"
            if kind == "mod":
                found["module"] = module
            elif len(modules) < _MOST_MODULES:
                modules.append(module)
        elif kind == "=>" and len(words) >= 2 and modules:
            modules[-1] += f" => {words[0]}@{words[1]}"
        elif kind == "build" and words:
            key, _equals, value = words[0].partition("=")
            if key in _SETTINGS:
                found["settings"][key] = value
    return found


def _lines(text: bytes) -> Iterator[List[str]]:
    for line in text.decode("ascii", "replace").split("\n"):
        words = line.split("\t")
        if len(words) > 1 and all(_WORD.fullmatch(word) for word in words if word):
            yield words
