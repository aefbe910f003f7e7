# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Plugins in an archive or a directory: their names and their content.

Both the controller and hosts read them. Only regular ELF files and scripts in the root count. Owners, modes, documents
and folders are ignored. An archive with anything other than files and folders with plain relative names is refused as a
whole.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tarfile
import zlib
from typing import IO, Any, BinaryIO, Callable, Collection, Dict, Iterable, Iterator, NamedTuple, Optional, Tuple, cast

from ...libcni.files import open_file
from ..errors import HostError
from ..manifest import digest_of
from ..trust import PLUGIN_HEADER_SIZE, plugin_machine
from .checksum import digests, parse_checksum, verify
from .store import PLAIN_NAME, scripts_in, select

try:
    from lzma import LZMAError
except ImportError:  # a Python that was built without lzma cannot read xz
    LZMAError = OSError  # type: ignore[misc, assignment]

MEMBER_LIMIT = 512 << 20
TOTAL_LIMIT = 2 << 30
COUNT_LIMIT = 4096
# A header extension holds a long name; a path has at most 4 KiB.
_EXTENSION_LIMIT = 64 << 10
# A global extension and the member's own, or a long name and a long link.
_EXTENSIONS_IN_A_ROW = 2
_BLOCK = tarfile.BLOCKSIZE
_CHUNK = 1 << 20
_LONG_NAME = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_PAX = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
# The exceptions that reading a damaged archive raises.
_DAMAGE = (tarfile.TarError, zlib.error, LZMAError, EOFError, ImportError, OSError, ValueError)
_OTHERS = (b"PK\3\4", b"\x28\xb5\x2f\xfd")
_MAGIC = ((b"\x1f\x8b", "gz"), (b"BZh", "bz2"), (b"\xfd7zXZ\x00", "xz"))


class Member(NamedTuple):
    """One plugin: its sha256 in hex ("": not asked for), its machine (trust.SCRIPT: a script), its size in bytes."""

    sha256: str
    machine: str
    size: int


class DirectorySource:
    """The regular ELF files and scripts of a directory, without links; *plugins* have digests, None for all."""

    def __init__(self, path: str, plugins: Optional[Collection[str]] = None) -> None:
        self.path = self.shown = path
        self._plugins = plugins

    def members(self) -> Dict[str, Member]:
        """Return the plugins by name. Raises HostError ``bad_source``."""
        members: Dict[str, Member] = {}
        try:
            with os.scandir(self.path) as entries:
                names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
            for name in sorted(filter(PLAIN_NAME.match, names)):
                with open_file(os.path.join(self.path, name), follow=False) as stream:
                    machine, size = plugin_machine(stream), os.fstat(stream.fileno()).st_size
                    if machine is not None:
                        stream.seek(0)
                        is_wanted = self._plugins is None or name in self._plugins
                        members[name] = Member(digest_of(stream) if is_wanted else "", machine, size)
        except OSError as error:
            raise HostError(f"cannot read the directory {self.path}: {error.strerror}", code="bad_source") from error
        return members

    def contents(self, names: Iterable[str]) -> Iterator[Tuple[str, BinaryIO]]:
        """Yield ``(name, stream)`` for each of *names*."""
        for name in sorted(names):
            try:
                stream = open_file(os.path.join(self.path, name), follow=False)
            except OSError as error:
                raise HostError(f"cannot read {self.path}/{name}: {error.strerror}", code="bad_source") from error
            with stream:
                yield name, stream


class ArchiveSource:
    """The regular ELF files and scripts in the root of a tar archive: plain, or in gzip, bzip2 or xz.

    The file is opened once, for all methods.
    *shown* names the archive in messages.
    """

    def __init__(self, path: str, shown: str = "") -> None:
        self.path = path
        self.shown = shown or path
        try:
            self._file: BinaryIO = open_file(path)
        except (OSError, ValueError) as error:
            raise HostError(
                f"cannot read {self.shown}: {getattr(error, 'strerror', None) or error}; name a tar archive "
                "(plain, gz, bz2 or xz) or a directory of plugin binaries",
                code="bad_source",
                may_pass=isinstance(error, FileNotFoundError),
            ) from error

    def __enter__(self) -> ArchiveSource:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._file.close()

    def copy(self, target: BinaryIO) -> None:
        shutil.copyfileobj(self._file, target)

    def digests(self) -> Dict[str, str]:
        """Return ``{"sha256": HEX, "sha512": HEX}`` of the archive."""
        return digests(self._file)

    def members(self) -> Dict[str, Member]:
        """Return the plugins by name.

        Raises HostError ``bad_source`` (cannot be read as an archive) or ``bad_archive`` (contains something that is
        not allowed).
        """
        return {
            name: Member(digest_of(cast(BinaryIO, stream)), stream.machine, stream.size)
            for name, stream in self._walk()
        }

    def contents(self, names: Iterable[str]) -> Iterator[Tuple[str, BinaryIO]]:
        """Yield ``(name, stream)`` for each of *names*, in the archive's order; read each before the next."""
        remaining = set(names)
        for name, stream in self._walk():
            if name in remaining:
                yield name, cast(BinaryIO, stream)

    def _walk(self) -> Iterator[Tuple[str, _MemberStream]]:
        """Yield ``(name, stream)`` of the plugins, and check every member on the way."""
        self._file.seek(0)
        seen = set()
        try:
            with _unpacked(self._file) as plain:
                for member, stream in self._members(plain):
                    name = member.name[2:] if member.name.startswith("./") else member.name
                    if not member.isfile() or "/" in name:
                        continue
                    if name in seen:
                        raise self._refused(member.name, "is in the archive twice")
                    seen.add(name)
                    if PLAIN_NAME.match(name) and stream.begin():
                        yield name, stream
        except _DAMAGE as error:
            raise self._broken(error) from error

    def _members(self, plain: IO[bytes]) -> Iterator[Tuple[tarfile.TarInfo, _MemberStream]]:
        """Yield each member with its content; the headers are read here one by one, in bounded pieces.

        The standard library parses single headers. Its reader for whole archives recurses for each extension, accepts
        an extension of any size, and takes quadratic time for some.
        """
        total = count = 0
        while True:
            member = self._header(plain)
            if member is None:
                return
            count += 1
            total += member.size
            self._check(member, count, total)
            stream = _MemberStream(plain, member.size if member.isfile() else 0, self._broken)
            yield member, stream
            stream.skip()

    def _header(self, plain: IO[bytes]) -> Optional[tarfile.TarInfo]:
        """Return the next member, with the name that an extension gives it; None at the end."""
        name = ""
        for row in range(_EXTENSIONS_IN_A_ROW + 1):
            block = plain.read(_BLOCK)
            # Two blocks of zeros end an archive; some writers leave them out.
            if (not block and plain.tell() and not row) or block == b"\0" * _BLOCK:
                return None
            member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            if member.type not in _LONG_NAME + _PAX:
                member.name = name or member.name
                return member
            if not 0 <= member.size <= _EXTENSION_LIMIT:
                raise self._refused(
                    member.name,
                    f"has a header extension of {member.size} bytes; at most {_EXTENSION_LIMIT} are allowed",
                )
            data = _read_padded(plain, member.size)
            if member.type == tarfile.GNUTYPE_LONGNAME:
                name = data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
            elif member.type in _PAX:
                name = self._name_in(data, member) or name
        raise self._refused(member.name, f"has more than {_EXTENSIONS_IN_A_ROW} header extensions in a row")

    def _name_in(self, data: bytes, member: tarfile.TarInfo) -> str:
        """Return the path that a pax extension gives to the next member, "" if none."""
        name = ""
        for key, value in _pax_records(data):
            # Only files of 8 GiB and more have a size here, and no real archive sets one path for all members.
            refused = key == b"size" or key.startswith(b"GNU.sparse.")
            if refused or (key == b"path" and member.type == tarfile.XGLTYPE):
                raise self._refused(member.name, f"sets {key.decode('ascii', 'replace')[:100]} in a header extension")
            if key == b"path":
                name = value.decode("utf-8", "surrogateescape")
        return name

    def _broken(self, error: Exception) -> HostError:
        return HostError(
            f"cannot read {self.shown} as a tar archive (plain, gz, bz2 or xz): {error}; {self._advice()}",
            code="bad_source",
        )

    def _advice(self) -> str:
        self._file.seek(0)
        if self._file.read(4) in _OTHERS:
            return "unpack it with ansible.builtin.unarchive, and set src to the directory"
        return "check that the file is complete"

    def _check(self, member: tarfile.TarInfo, count: int, total: int) -> None:
        name = member.name
        if "\0" in name:
            raise self._refused(name, "has a NUL character in its name")
        if name.startswith("/"):
            raise self._refused(name, "has an absolute path")
        if ".." in name.split("/"):
            raise self._refused(name, "has '..' in its path")
        if member.issym() or member.islnk():
            raise self._refused(name, f"is a link to {member.linkname!r}")
        if not (member.isfile() or member.isdir()) or member.type == tarfile.GNUTYPE_SPARSE:
            raise self._refused(name, "is neither a regular file nor a directory")
        if not 0 <= member.size <= MEMBER_LIMIT:
            raise self._refused(name, f"is larger than {MEMBER_LIMIT} bytes")
        if total > TOTAL_LIMIT:
            raise self._refused(name, f"makes the archive larger than {TOTAL_LIMIT} bytes when unpacked")
        if count > COUNT_LIMIT:
            raise self._refused(name, f"exceeds the limit of {COUNT_LIMIT} members")

    def _refused(self, member: str, why: str) -> HostError:
        return HostError(
            f"{self.shown}: the member {member!r:.300} {why}; the whole archive is refused and nothing was installed. "
            "Pack only the plugin binaries",
            code="bad_archive",
        )


class Selection:
    """What *plugins* names of a source, None for all but scripts: ``files`` and ``machines``.

    ``archive`` is what to remember of an archive, which must have the *checksum*; None for a directory.
    """

    def __init__(self, source: Any, plugins: Optional[Iterable[str]], checksum: str = "") -> None:
        self.source = source
        self.archive: Optional[Dict[str, Any]] = source.digests() if isinstance(source, ArchiveSource) else None
        if checksum and self.archive is not None:
            verify(self.archive, parse_checksum(checksum), source.shown)
        self.members = source.members()
        machines = {name: member.machine for name, member in self.members.items()}
        hashes = {name: member.sha256 for name, member in self.members.items()}
        self.scripts = scripts_in(machines)
        self.files = select(hashes, plugins, source.shown, self.scripts)
        self.machines = {name: machines[name] for name in self.files}
        if self.archive is not None:
            self.archive = {**self.archive, "plugins": hashes, "scripts": self.scripts}


def _unpacked(packed: BinaryIO) -> Any:
    """Return a context manager with the archive's plain bytes; the first bytes tell the compression."""
    head = packed.read(8)
    packed.seek(0)
    kind = next((kind for magic, kind in _MAGIC if head.startswith(magic)), "")
    if head.startswith(_OTHERS):
        raise ValueError("it is a zip archive, or compressed with zstd")
    if kind == "gz":
        import gzip

        return gzip.GzipFile(fileobj=packed, mode="rb")
    if kind == "bz2":
        import bz2

        return bz2.BZ2File(packed, "rb")
    if kind == "xz":
        import lzma

        return lzma.LZMAFile(packed, "rb")
    return contextlib.nullcontext(packed)


class _MemberStream:
    """A member's content, *size* bytes. ``machine`` is known after :meth:`begin`."""

    def __init__(self, plain: IO[bytes], size: int, broken: Callable[[Exception], HostError]) -> None:
        self.machine = ""
        self.size = size
        self._plain = plain
        self._left = size
        self._head = b""
        self._broken = broken

    def begin(self) -> bool:
        """Read the header; tell whether it is that of an ELF file or of a script."""
        while len(self._head) < min(PLUGIN_HEADER_SIZE, self.size):
            self._head += self._take(PLUGIN_HEADER_SIZE - len(self._head))
        self.machine = plugin_machine(io.BytesIO(self._head)) or ""
        return bool(self.machine)

    def read(self, size: int) -> bytes:
        head, self._head = self._head[:size], self._head[size:]
        return head + self._take(size - len(head))

    def skip(self) -> None:
        """Go to the end of the last block."""
        while self._left:
            self._take(_CHUNK)
        self._plain.read(-self.size % _BLOCK)

    def _take(self, size: int) -> bytes:
        try:
            data = self._plain.read(min(size, self._left))
            if not data and size and self._left:
                raise EOFError("it ends within a member")
        except _DAMAGE as error:
            raise self._broken(error) from error
        self._left -= len(data)
        return data


def _read_padded(plain: IO[bytes], size: int) -> bytes:
    """Read *size* bytes and the padding of their last block."""
    data = plain.read(size + -size % _BLOCK)
    if len(data) < size:
        raise EOFError("it ends within a header")
    return data[:size]


def _pax_records(data: bytes) -> Iterator[Tuple[bytes, bytes]]:
    """Yield key and value of the records ``LENGTH KEY=VALUE LF``. Raises ValueError."""
    at = 0
    while at < len(data):
        # As many digits as the longest extension has.
        blank = data.index(b" ", at, at + len(str(_EXTENSION_LIMIT)) + 1)
        end = at + int(data[at:blank])
        key, equals, value = data[blank + 1 : end - 1].partition(b"=")
        if not blank < end <= len(data) or data[end - 1 : end] != b"\n" or not equals:
            raise ValueError("a pax header with an invalid record")
        yield key, value
        at = end
