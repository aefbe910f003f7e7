# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plugin binaries in a tar archive or a directory: which there are, and their content.

Read on the controller and on hosts. Only regular ELF files in the root count. Owners, modes, documents and folders are
ignored. An archive that has anything else in it than files and folders with plain relative names is refused whole.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import tarfile
import zlib
from typing import IO, Any, BinaryIO, Callable, Dict, Iterable, Iterator, NamedTuple, Optional, Tuple, cast

from .bindir import ELF_HEADER_SIZE, elf_machine
from .checksum import digests
from .errors import HostError
from .manifest import digest_of
from .plugin_names import PLAIN_NAME

try:
    from lzma import LZMAError
except ImportError:  # a Python that was built without it cannot read xz
    LZMAError = OSError  # type: ignore[misc, assignment]

MEMBER_LIMIT = 512 << 20
TOTAL_LIMIT = 2 << 30
COUNT_LIMIT = 4096
# tarfile reads a header's extension in one piece; our own reads are smaller. Without a bound a few compressed bytes
# could ask for all of the memory.
_READ_LIMIT = 4 << 20
# What reading a damaged archive raises.
_DAMAGE = (tarfile.TarError, zlib.error, LZMAError, EOFError, ImportError, OSError, ValueError)
_MAGIC = ((b"\x1f\x8b", "gz"), (b"BZh", "bz2"), (b"\xfd7zXZ\x00", "xz"))


class Member(NamedTuple):
    """One plugin binary: sha256 (hex), the machine it is for, and its size in bytes."""

    sha256: str
    machine: str
    size: int


def inspect(stream: BinaryIO) -> Optional[Member]:
    """Return what a file is as a plugin, None if it is not ELF."""
    machine = elf_machine(stream)
    if machine is None:
        return None
    stream.seek(0)
    return Member(digest_of(stream), machine, os.fstat(stream.fileno()).st_size)


class DirectorySource:
    """The regular ELF files of a directory. Links are not followed. *look* may know files without reading them."""

    def __init__(self, path: str, look: Callable[[BinaryIO], Optional[Member]] = inspect) -> None:
        self.path = path
        self._look = look

    def members(self) -> Dict[str, Member]:
        """Return the plugins by name. Raises HostError ``bad_source``."""
        found: Dict[str, Member] = {}
        try:
            with os.scandir(self.path) as entries:
                names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
            for name in sorted(filter(PLAIN_NAME.match, names)):
                with _open_regular(os.path.join(self.path, name)) as stream:
                    member = self._look(stream)
                if member is not None:
                    found[name] = member
        except OSError as error:
            raise HostError(
                "cannot read the directory %s: %s" % (self.path, error.strerror), code="bad_source"
            ) from error
        return found

    def contents(self, names: Iterable[str]) -> Iterator[Tuple[str, BinaryIO]]:
        """Yield ``(name, stream)`` for each of *names*."""
        for name in sorted(names):
            try:
                stream = _open_regular(os.path.join(self.path, name))
            except OSError as error:
                raise HostError(
                    "cannot read %s/%s: %s" % (self.path, name, error.strerror), code="bad_source"
                ) from error
            with stream:
                yield name, stream


def _open_regular(path: str) -> BinaryIO:
    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)

    stream = open(path, "rb", opener=opener)  # noqa: SIM115  # the caller gets it
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise HostError("%s is not a regular file" % path, code="bad_source")
    return stream


class ArchiveSource:
    """The regular ELF files in the root of a tar archive, plain or packed by gzip, bzip2 or xz.

    The file is opened once: what :meth:`digests` says holds for what the other methods read.
    *shown* names the archive in messages.
    """

    def __init__(self, path: str, shown: str = "") -> None:
        self.path = path
        self.shown = shown or path
        try:
            self._file: BinaryIO = open(path, "rb")  # noqa: SIM115  # closed by __exit__
        except OSError as error:
            raise HostError(
                "cannot read the archive %s: %s" % (self.shown, error.strerror), code="bad_source"
            ) from error

    def __enter__(self) -> ArchiveSource:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._file.close()

    def digests(self) -> Dict[str, str]:
        """Return ``{"sha256": HEX, "sha512": HEX}`` of the archive."""
        return digests(self._file)

    def members(self) -> Dict[str, Member]:
        """Return the plugins by name.

        Raises HostError ``bad_source`` (cannot be read as an archive) or ``bad_archive`` (has something in it that must
        not be there).
        """
        return {
            name: Member(digest_of(cast(BinaryIO, stream)), stream.machine, stream.size)
            for name, stream in self._walk()
        }

    def contents(self, names: Iterable[str]) -> Iterator[Tuple[str, BinaryIO]]:
        """Yield ``(name, stream)`` for each of *names*, in the archive's order; each to be read before the next."""
        wanted = set(names)
        for name, stream in self._walk():
            if name in wanted:
                yield name, cast(BinaryIO, stream)

    def _walk(self) -> Iterator[Tuple[str, _MemberStream]]:
        """Yield ``(name, stream)`` of the plugins, and test everything that is passed on the way."""
        self._file.seek(0)
        seen = set()
        total = count = 0
        try:
            with _unpacked(self._file) as plain, tarfile.open(
                fileobj=cast(IO[bytes], _Bounded(plain)), mode="r:"
            ) as archive:
                for member in archive:
                    count += 1
                    total += member.size
                    self._check(member, count, total)
                    name = member.name[2:] if member.name.startswith("./") else member.name
                    if not member.isfile() or "/" in name:
                        continue
                    if name in seen:
                        raise self._refused(member.name, "is in it twice")
                    seen.add(name)
                    stream = archive.extractfile(member)
                    if stream is None or not PLAIN_NAME.match(name):
                        continue
                    head = stream.read(ELF_HEADER_SIZE)
                    machine = elf_machine(io.BytesIO(head))
                    if machine is not None:
                        yield name, _MemberStream(head, stream, machine, member.size, self._broken)
        except _DAMAGE as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> HostError:
        return HostError(
            "cannot read %s as a tar archive (plain, gz, bz2 or xz): %s; look whether it is complete"
            % (self.shown, error),
            code="bad_source",
        )

    def _check(self, member: Any, count: int, total: int) -> None:
        parts = member.name.split("/")
        if member.name.startswith("/"):
            raise self._refused(member.name, "has an absolute path")
        if ".." in parts:
            raise self._refused(member.name, "has '..' in its path")
        if member.issym() or member.islnk():
            raise self._refused(member.name, "is a link to %r" % member.linkname)
        if not (member.isfile() or member.isdir()) or member.issparse():
            raise self._refused(member.name, "is neither a regular file nor a directory")
        if not 0 <= member.size <= MEMBER_LIMIT:
            raise self._refused(member.name, "is larger than %d bytes" % MEMBER_LIMIT)
        if total > TOTAL_LIMIT:
            raise self._refused(member.name, "makes it larger than %d bytes unpacked" % TOTAL_LIMIT)
        if count > COUNT_LIMIT:
            raise self._refused(member.name, "is more than the %d members that are allowed" % COUNT_LIMIT)

    def _refused(self, member: str, why: str) -> HostError:
        return HostError(
            "%s: the member %r %s; such an archive is refused whole, nothing was installed. Pack the plugin binaries "
            "alone" % (self.shown, member, why),
            code="bad_archive",
        )


def _unpacked(packed: BinaryIO) -> Any:
    """Return a context manager with the archive's plain bytes; the kind is told by the first bytes."""
    head = packed.read(8)
    packed.seek(0)
    kind = next((kind for magic, kind in _MAGIC if head.startswith(magic)), "")
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


class _Bounded:
    """A readable, seekable file that refuses a single large read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.tell = stream.tell
        self.seek = stream.seek

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _READ_LIMIT:
            raise ValueError("a header of %d bytes" % size)
        return self._stream.read(size)


class _MemberStream:
    """A member's content: what was read already, then the rest. ``machine`` and ``size`` describe it."""

    def __init__(
        self, head: bytes, rest: IO[bytes], machine: str, size: int, broken: Callable[[Exception], HostError]
    ) -> None:
        self.machine = machine
        self.size = size
        self._head = head
        self._rest = rest
        self._broken = broken

    def read(self, size: int) -> bytes:
        head, self._head = self._head[:size], self._head[size:]
        try:
            return head + self._rest.read(size - len(head))
        except _DAMAGE as error:
            raise self._broken(error) from error
