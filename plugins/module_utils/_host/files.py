# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Files that go live complete, once, and in a way that the directory watcher of every runtime notices.

A file goes live by a rename *within* its directory, from a name whose last extension no runtime reads. containerd
ignores files that are renamed from elsewhere or linked (CREATE, CHMOD), and reads any file that ends in ``.conf``,
``.conflist`` or ``.json`` as soon as it is written to.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
import re
import stat
from functools import partial
from typing import Any, BinaryIO, Callable, Iterable, NamedTuple, Optional

from .errors import HostError
from .paths import file_name

TEMP_SUFFIX = ".podwire-tmp"
_CHUNK = 1 << 20
# A nameless file is not possible here: other file system, no support, no /proc, or not allowed.
_NO_NAMELESS = (errno.EXDEV, errno.EOPNOTSUPP, errno.EPERM, errno.EACCES, errno.EISDIR, errno.EINVAL, errno.ENOENT)


class Directory:
    """A directory held open, so that later changes of its path cannot redirect a write.

    The last component must not be a symbolic link (HostError ``path_is_link``). *fd*: its descriptor, if it is open.
    """

    def __init__(self, path: str, fd: Optional[int] = None) -> None:
        self.path = path
        if fd is not None:
            self.fd = fd
            return
        try:
            self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP) and os.path.islink(path):
                raise HostError(
                    f"{path} is a symbolic link; name the directory that it leads to ({os.path.realpath(path)})",
                    code="path_is_link",
                ) from error
            raise HostError(f"cannot open the directory {path}: {error.strerror}", code="no_directory") from error

    def join(self, name: str) -> str:
        return os.path.join(self.path, file_name(name, self.path))

    def sync(self) -> None:
        os.fsync(self.fd)

    def remove(self, name: str) -> None:
        """Unlink a file, if it still exists."""
        try:
            os.unlink(file_name(name, self.path), dir_fd=self.fd)
        except FileNotFoundError:
            return
        self.sync()

    def discard(self, name: str) -> None:
        """Unlink what a failed write left. An error here is ignored, because the first one is reported."""
        with contextlib.suppress(OSError):
            self.remove(name)

    def rename(self, old: str, new: str) -> None:
        """Rename within the directory, replacing *new*."""
        os.rename(file_name(old, self.path), file_name(new, self.path), src_dir_fd=self.fd, dst_dir_fd=self.fd)
        self.sync()

    def remove_stale_temps(self) -> None:
        """Remove what an interrupted write left. Only for the holder of the lock, who is the only writer."""
        with os.scandir(self.fd) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(TEMP_SUFFIX)]
        for name in names:
            self.remove(name)

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self.fd)


class Attributes(NamedTuple):
    """Mode (an int such as 0o644) and owner (numeric ids) that a file gets before it goes live.

    ``gid`` is the name of a group that does not exist: :func:`check_group` refuses it.
    """

    mode: int
    uid: int = 0
    gid: Any = 0


def make_directory(path: str, mode: int) -> None:
    """Create *path* and its missing parents (0755); an existing directory keeps its mode and owner."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        try:
            os.mkdir(path, mode)
        except FileExistsError:
            return
        # mkdir's mode is subject to the umask.
        os.chmod(path, mode)
    except OSError as error:
        raise HostError(f"cannot create the directory {path}: {error.strerror}", code="no_directory") from error


def write(directory: Directory, name: str, data: bytes, attributes: Attributes) -> None:
    """Write *data* to *name*; a crash at any point leaves the old file or the new one.

    A link of that name is replaced, never followed.
    """
    target = directory.join(name)
    temp = _temp_name(name)
    try:
        if not _link_nameless(directory, temp, target, data, attributes):
            _write_named(directory, temp, target, [data], attributes)
        try:
            directory.rename(temp, name)
        except BaseException:
            directory.discard(temp)
            raise
    except OSError as error:
        raise HostError(f"cannot write {target}: {error.strerror}", code="write_failed") from error


class Staged:
    """A complete file under a temporary name beside its target: it can be tested and is not live yet."""

    def __init__(self, directory: Directory, temp: str, name: str) -> None:
        self.directory = directory
        self.path = directory.join(temp)
        self._temp = temp
        self._name = name

    def publish(self) -> None:
        try:
            self.directory.rename(self._temp, self._name)
        except OSError as error:
            text = f"cannot rename {self.path} to {self._name}: {error.strerror}"
            raise HostError(text, code="write_failed") from error

    def discard(self) -> None:
        self.directory.discard(self._temp)


def stage(directory: Directory, name: str, source: BinaryIO, attributes: Attributes) -> Staged:
    """Copy *source* to a temporary file in *directory*, ready for ``publish()`` under *name*."""
    target = directory.join(name)
    temp = _temp_name(name)
    try:
        _write_named(directory, temp, target, iter(partial(source.read, _CHUNK), b""), attributes)
    except OSError as error:
        raise HostError(f"cannot write {target}: {error.strerror}", code="write_failed") from error
    return Staged(directory, temp, name)


def _temp_name(name: str) -> str:
    return f".{name}.{os.urandom(6).hex()}{TEMP_SUFFIX}"


def _link_nameless(directory: Directory, temp: str, target: str, data: bytes, attributes: Attributes) -> bool:
    """Write to a nameless file in the parent directory and link it into *directory*; False if that is not possible."""
    try:
        parent = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory.fd)
        try:
            fd = os.open(".", os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600, dir_fd=parent)
        finally:
            os.close(parent)
    except OSError as error:
        if error.errno in _NO_NAMELESS:
            return False
        raise
    try:
        _write_all(fd, data)
        _finish(fd, target, attributes)
        os.link(f"/proc/self/fd/{fd}", temp, dst_dir_fd=directory.fd, follow_symlinks=True)
    except OSError as error:
        if error.errno in _NO_NAMELESS:
            return False
        raise
    finally:
        os.close(fd)
    return True


def _write_named(directory: Directory, temp: str, target: str, chunks: Iterable[bytes], attributes: Attributes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temp, flags, 0o600, dir_fd=directory.fd)
    try:
        for chunk in chunks:
            _write_all(fd, chunk)
        _finish(fd, target, attributes)
    except BaseException:
        directory.discard(temp)
        raise
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _finish(fd: int, target: str, attributes: Attributes) -> None:
    # chown comes first, because it clears set-id bits that the mode may have.
    os.fchown(fd, attributes.uid, attributes.gid)
    os.fchmod(fd, attributes.mode)
    _label(fd, target)
    os.fsync(fd)


def _label(fd: int, target: str) -> None:
    """On hosts that use SELinux, give the file the label that the policy has for its final path."""
    try:
        import selinux
    except ImportError:
        return
    if selinux.is_selinux_enabled() != 1:
        return
    status, label = selinux.matchpathcon(target, stat.S_IFREG)
    if status == 0:
        os.setxattr(fd, "security.selinux", label.encode("utf-8") + b"\0")


def read_attributes(mode: Any, owner: str, group: str) -> Attributes:
    """Return mode and numeric owner from the user's options, for files that decide what root runs.

    Raises HostError ``unsafe_permissions`` if others than root could change them, and ``bad_mode``.
    """
    number = _mode(mode)
    if number & 0o022:
        text = f"mode: {number:04o} lets users other than root change what root runs; use '{number & ~0o022:04o}'"
        raise HostError(text, code="unsafe_permissions")
    if _id(owner, lambda: pwd.getpwnam(owner).pw_uid) != 0:
        raise HostError(
            f"owner: {owner!r} is refused, because whoever owns plugins and networks decides what root runs; use "
            "'root', and set 'group' and 'mode' to let others read them",
            code="unsafe_permissions",
        )
    gid = _id(group, lambda: grp.getgrnam(group).gr_gid)
    return Attributes(number, 0, group if gid is None else gid)


def check_group(attributes: Attributes) -> None:
    """Raise HostError ``bad_group`` if the group does not exist; an earlier task may create it."""
    if isinstance(attributes.gid, str):
        text = f"group: there is no group {attributes.gid!r} on this host; create it, or write a number"
        raise HostError(text, code="bad_group", may_pass=True)


def _mode(mode: Any) -> int:
    # In YAML, an unquoted 0644 is the number 420, as intended, but an unquoted 644 is 0o1204.
    number = mode if isinstance(mode, int) and not isinstance(mode, bool) else -1
    if isinstance(mode, str) and re.match(r"0?[0-7]{3}\Z", mode):
        number = int(mode, 8)
    if not 0o400 <= number <= 0o777:
        raise HostError(
            f"mode: {mode!r} is refused; write three octal digits that let the owner read, in quotes and with a "
            "leading 0, such as '0644'",
            code="bad_mode",
        )
    return number


def _id(name: str, look_up: Callable[[], int]) -> Optional[int]:
    """Return the number that *name* is or stands for, None if nobody has this name."""
    if name.isdigit() and name.isascii():
        return int(name)
    try:
        return look_up()
    except KeyError:
        return None
