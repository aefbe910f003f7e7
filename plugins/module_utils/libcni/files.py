# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Reading files that other programs may have written.

Deviation from Go: only regular files are read. Go waits forever for the writer of a FIFO, and reads a device until the
memory is full.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t


def read_file(path: str, largest: int | None = None, follow: bool = True) -> bytes:
    """Return the content of a regular file, or with `follow` of the one that a link leads to; `largest` in bytes.

    Raises OSError for everything else, ValueError for a path that cannot be one.
    """
    with open_file(path, largest, follow) as file:
        return file.read()


def open_file(path: str, largest: int | None = None, follow: bool = True) -> t.BinaryIO:
    """Open what `read_file` would read."""
    # Checked before opening, as opening a device can have effects, and after it, as the path may have changed.
    _require_file(os.stat(path, follow_symlinks=follow), largest)
    further = os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | further))  # noqa: SIM115  # for the caller
    try:
        _require_file(os.fstat(file.fileno()), largest)
    except OSError:
        file.close()
        raise
    return file


def _require_file(status: os.stat_result, largest: int | None) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file")
    if largest is not None and status.st_size > largest:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
