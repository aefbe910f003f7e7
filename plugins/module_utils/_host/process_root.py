# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The files that a process sees: in its mount namespace, and below its root directory.

A path is walked step by step with descriptors, as the kernel does for the process: an absolute link begins at the root
again, and nothing leads out of it. Only regular files are opened for more than that.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Dict, Iterator, List

# What Linux follows.
_MOST_LINKS = 40


class ProcessRoot:
    """The root directory of *descriptor*, which stays the caller's. All methods raise OSError."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def open(self, path: str) -> int:
        """Return a descriptor of what *path* leads to, which is not opened (O_PATH)."""
        steps = [os.dup(self._descriptor)]
        rest, links = path.split("/")[::-1], 0
        try:
            while rest:
                name = rest.pop()
                if name == "..":
                    if len(steps) > 1:
                        os.close(steps.pop())
                elif name not in ("", "."):
                    steps.append(os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=steps[-1]))
                    if stat.S_ISLNK(os.fstat(steps[-1]).st_mode):
                        links += 1
                        if links > _MOST_LINKS:
                            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                        target = os.readlink("", dir_fd=steps[-1])
                        _close(steps, 1 if target.startswith("/") else len(steps) - 1)
                        rest += target.split("/")[::-1]
            return steps.pop()
        finally:
            _close(steps, 0)

    @contextlib.contextmanager
    def below(self, directory: str) -> Iterator[ProcessRoot]:
        """Yield what a process sees that has *directory* as its root."""
        descriptor = self.open(directory)
        try:
            yield ProcessRoot(descriptor)
        finally:
            os.close(descriptor)

    def read(self, path: str, largest: int) -> bytes:
        """Return the content of a regular file of at most *largest* bytes."""
        descriptor = self.open(path)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > largest:
                raise OSError(errno.EINVAL, "not a regular file, or too large", path)
            with open(f"/proc/self/fd/{descriptor}", "rb") as stream:
                return stream.read(largest)
        finally:
            os.close(descriptor)

    def dead_links(self, directory: str) -> Dict[str, str]:
        """Return the links in *directory* that lead nowhere: name -> what the link says."""
        descriptor = self.open(directory)
        try:
            names = sorted(os.listdir(f"/proc/self/fd/{descriptor}"))
            links = {name: _link(name, descriptor) for name in names}
        finally:
            os.close(descriptor)
        return {name: target for name, target in links.items() if target and not self._exists(f"{directory}/{name}")}

    def _exists(self, path: str) -> bool:
        try:
            os.close(self.open(path))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return False
            raise
        return True


def _link(name: str, directory: int) -> str:
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError:
        return ""


def _close(descriptors: List[int], kept: int) -> None:
    while len(descriptors) > kept:
        os.close(descriptors.pop())
