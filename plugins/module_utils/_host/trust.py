# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that only root can change what root executes, and the files that decide what root executes.

Plugins are regular ELF files, or scripts whose interpreter is one. Configurations and cache entries of attachments
decide which plugins run, with which arguments.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shlex
import stat
import sys
from typing import BinaryIO, Callable, Dict, Iterable, List, Optional, Set

from ..libcni.files import open_file
from .errors import HostError
from .problems import Finding, unreadable

# (e_machine, byte order) -> a word: as uname -m prints it, the family for arm and i386, with the byte order for mips.
MACHINES = {
    (3, "little"): "i386",
    (8, "little"): "mips64le",
    (8, "big"): "mips64",
    (21, "little"): "ppc64le",
    (21, "big"): "ppc64",
    (22, "big"): "s390x",
    (40, "little"): "arm",
    (62, "little"): "x86_64",
    (183, "little"): "aarch64",
    (243, "little"): "riscv64",
    (258, "little"): "loongarch64",
}
ELF_HEADER_SIZE = 20
"""The number of bytes at the beginning of a file that :func:`elf_machine` reads."""
SCRIPT = "script"
"""The machine of a script: it runs wherever its interpreter does."""
PLUGIN_HEADER_SIZE = 256
"""The number of bytes that :func:`plugin_machine` reads: what the kernel reads of a script to find its interpreter."""
# They run another program, which they find through PATH.
_SEARCHING = ("env", "busybox", "toybox")
# The most links that Linux follows.
_MOST_LINKS = 40


def elf_machine(stream: BinaryIO) -> Optional[str]:
    """Return the machine that an ELF file is built for (unknown ones as ``elf-N``), None if it is not ELF."""
    header = stream.read(ELF_HEADER_SIZE)
    if len(header) < ELF_HEADER_SIZE or header[:4] != b"\x7fELF" or header[5] not in (1, 2):
        return None
    order = "little" if header[5] == 1 else "big"
    number = int.from_bytes(header[18:20], "little" if header[5] == 1 else "big")
    return MACHINES.get((number, order), f"elf-{number}")


def host_machine() -> str:
    """Return this host's machine in the words of :data:`MACHINES`."""
    machine = os.uname().machine
    if machine.startswith("arm"):
        return "arm"
    if machine in ("i486", "i586", "i686"):
        return "i386"
    if machine == "mips64" and sys.byteorder == "little":
        return "mips64le"
    return machine


def check_executable(path: str) -> str:
    """Return the real path of *path* if root may run it, else raise HostError ``unsafe_permissions`` or ``not_elf``.

    Links are followed (some plugins are links to one binary).
    """
    check_trusted(path)
    real = os.path.realpath(path)
    try:
        if not stat.S_ISREG(os.stat(real).st_mode):
            raise HostError(f"{path} is not a regular file and is not executed", code="not_elf")
        with open(real, "rb") as stream:
            if elf_machine(stream) is None:
                raise HostError(f"{path} is not an ELF file and is not executed", code="not_elf")
    except OSError as error:
        raise HostError(f"cannot examine {path}: {error.strerror}", code="unreadable") from error
    return real


def plugin_machine(stream: BinaryIO) -> Optional[str]:
    """Return the machine of a plugin, :data:`SCRIPT` for a script, None for a file that is neither."""
    header = stream.read(PLUGIN_HEADER_SIZE)
    return SCRIPT if header[:2] == b"#!" else elf_machine(io.BytesIO(header))


def check_plugin(path: str) -> str:
    """Do the same as :func:`check_executable` for a plugin, which may be a script.

    Its interpreter must be an absolute path to an ELF file that passes the same checks; raises HostError
    ``bad_interpreter`` otherwise.
    """
    try:
        with open_file(path) as stream:
            header = stream.read(PLUGIN_HEADER_SIZE)
    except (OSError, ValueError):
        # The text for it is below.
        header = b""
    if header[:2] != b"#!":
        return check_executable(path)
    check_trusted(path)
    line = header[2:].partition(b"\n")[0] if b"\n" in header else b""
    words = line.replace(b"\t", b" ").split(b" ")
    interpreter = os.fsdecode(next(filter(None, words), b""))
    if not interpreter.startswith("/") or "\0" in interpreter or os.path.basename(interpreter) in _SEARCHING:
        raise HostError(
            f"{path} is a script whose first line does not name its interpreter by an absolute path, but "
            f"{interpreter[:100]!r}; it is not executed. Begin it with a line such as #!/usr/bin/python3",
            code="bad_interpreter",
        )
    try:
        check_executable(interpreter)
    except HostError as error:
        raise HostError(
            f"{path} is a script that root does not run, because of its interpreter: {error.msg}",
            code="bad_interpreter",
            **error.facts,
        ) from error
    return os.path.realpath(path)


def check_trusted(path: str, passed: Optional[Set[str]] = None) -> None:
    """Raise HostError ``unsafe_permissions`` unless only root can change what *path* leads to, or redirect it.

    *path* is absolute and may be a file or a directory. Every part of it counts, and every part of the links in it.
    A missing file is trusted if only root could create it. Access control lists count, because their mask is in the
    bits of the group. Of many paths, *passed* are the directories that the last ones have led through.
    """
    try:
        _check_parts(path, set() if passed is None else passed)
    except OSError as error:
        raise HostError(f"cannot examine {path}: {error.strerror}", code="unreadable") from error


def check_directory(path: str, refuse: Callable[[HostError, bool], None], check_mode: bool) -> None:
    """Do the same for a directory whose owner an earlier task may correct: check mode only warns.

    *refuse* is that of the plan.
    """
    try:
        check_trusted(path)
    except HostError as error:
        error.may_pass = error.code == "unsafe_permissions"
        refuse(error, check_mode and error.may_pass)


def check_socket(path: str) -> None:
    """Do the same as :func:`check_trusted` for a socket; ValueError if it is not one, OSError if it does not exist."""
    if not os.path.isabs(path) or not stat.S_ISSOCK(os.stat(path).st_mode):
        raise ValueError("it is not a socket")
    check_trusted(path)


def open_trusted(path: str) -> int:
    """Return a descriptor of the directory *path*, which has no links, and make what is missing of it (0755).

    Each part is opened in the one before and then checked, so a later change of the path cannot lead elsewhere. Raises
    HostError ``unsafe_permissions`` and ``no_directory``.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    reached, fd = "/", os.open("/", flags)
    try:
        for name in filter(None, path.split("/")):
            _check(reached, os.fstat(fd), is_last=False)
            try:
                below = os.open(name, flags, dir_fd=fd)
            except FileNotFoundError:
                _check(reached, os.fstat(fd), is_last=True)
                # Another program may make it first. mkdir's mode is subject to the umask.
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=fd)
                    os.chmod(name, 0o755, dir_fd=fd)
                below = os.open(name, flags, dir_fd=fd)
            os.close(fd)
            reached, fd = os.path.join(reached, name), below
        _check(reached, os.fstat(fd), is_last=True)
    except BaseException as error:
        os.close(fd)
        if isinstance(error, OSError):
            raise HostError(f"cannot open the directory {path}: {error.strerror}", code="no_directory") from error
        raise
    return fd


def untrusted(paths: Iterable[str]) -> List[Finding]:
    """Return a problem for each file or directory that lets users other than root change some of *paths*."""
    problems: Dict[str, Finding] = {}
    passed: Set[str] = set()
    for path in paths:
        try:
            check_trusted(path, passed)
        except HostError as error:
            problems.setdefault(error.msg, unreadable(error, file=error.facts.get("file", path)))
    return list(problems.values())


def _check_parts(path: str, passed: Set[str]) -> None:
    reached, rest, links = "/", _parts(path), 0
    _check(reached, os.lstat(reached), is_last=False)
    while rest:
        name = rest.pop(0)
        below = os.path.dirname(reached) if name == ".." else os.path.join(reached, name)
        if name == ".." or (rest and below in passed):
            reached = below
            continue
        try:
            status = os.lstat(below)
        except (FileNotFoundError, NotADirectoryError):
            break
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if status.st_uid != 0 and os.lstat(reached).st_mode & stat.S_ISVTX:
                # In a directory where every user may create links, its owner may redirect it.
                raise _refusal("link", below, f"belongs to user {status.st_uid}", "rm")
            target = os.readlink(below)
            reached, rest = "/" if target.startswith("/") else reached, [*_parts(target), *rest]
        else:
            reached = below
            _check(reached, status, is_last=False)
            passed.add(reached)
    # The last part may be "..", missing, or a link to ".".
    _check(reached, os.lstat(reached), is_last=True)


def _parts(path: str) -> List[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _check(path: str, status: os.stat_result, is_last: bool) -> None:
    is_socket = stat.S_ISSOCK(status.st_mode)
    what = "directory" if stat.S_ISDIR(status.st_mode) else "socket" if is_socket else "file"
    if status.st_uid != 0:
        raise _refusal(what, path, f"belongs to user {status.st_uid}", "chown root")
    # In a sticky directory, other users cannot rename or remove what root owns. To write to a socket is to connect.
    if status.st_mode & 0o022 and not is_socket and (is_last or not status.st_mode & stat.S_ISVTX):
        mode = stat.S_IMODE(status.st_mode)
        raise _refusal(what, path, f"(mode {mode:04o}) can be written by users other than root", "chmod go-w")


def _refusal(what: str, path: str, why: str, remedy: str) -> HostError:
    return HostError(
        f"the {what} {path} {why}, who could make root run other programs; fix it with: {remedy} {shlex.quote(path)}",
        code="unsafe_permissions",
        file=path,
    )
