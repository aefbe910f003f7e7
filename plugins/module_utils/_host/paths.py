# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Paths that come from a user or a host: checked before anything is joined to them."""

from __future__ import annotations

import os
from typing import List, Tuple

from .errors import HostError

# That of this process, and that of a thread: only threads of a process enter other namespaces.
OWN_NETNS = "/proc/self/ns/net"
THREAD_NETNS = "/proc/thread-self/ns/net"


def names_in(folder: str) -> List[str]:
    """Return the sorted names of what is in a directory, none if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def kernel_text(path: str) -> str:
    """Return what a file of the kernel's says, "" if it cannot be read."""
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            return stream.read().strip()
    except (OSError, ValueError):
        return ""


def directory_above(path: str) -> Tuple[str, str]:
    """Return what exists of *path*, and why nothing can be made in it, "" if it is a directory."""
    while not os.path.lexists(path) and path != "/":
        path = os.path.dirname(path)
    what = f"a link to {os.readlink(path)}, which is" if os.path.islink(path) else "a file, and"
    return path, "" if os.path.isdir(path) else f"{path} is {what} no directory"


def is_url(text: str) -> bool:
    """Tell whether *text* is meant as a URL and not as a path."""
    return "://" in text


def absolute(path: str, option: str) -> str:
    """Return *path* without a trailing slash; it must be absolute and free of ``.`` and ``..`` components.

    ``..`` is refused, not resolved: after a symbolic link, resolving it in the text leads to another directory.
    """
    if not path.startswith("/"):
        text = f"{option}: {path!r} is not an absolute path; write it from the root, such as '/etc/cni/net.d'"
        raise HostError(text, code="path_not_absolute")
    parts = [part for part in path.split("/") if part]
    if not parts or "\0" in path or any(part in (".", "..") for part in parts):
        text = f"{option}: {path!r} is refused; the path must name a directory below / without '.' and '..'"
        raise HostError(text, code="path_not_clean")
    return "/" + "/".join(parts)


def file_name(name: str, where: str) -> str:
    """Return *name* if it is one plain file name, so that joining it to a directory cannot leave the directory."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        text = f"{where}: {name!r} is not a plain file name; it must not be empty, '.', '..' or contain '/'"
        raise HostError(text, code="bad_file_name")
    if len(os.fsencode(name)) > 200:
        raise HostError(f"{where}: the file name {name!r} is longer than 200 bytes", code="bad_file_name")
    return name


def stage_unsynced(path: str, data: bytes) -> str:
    """Write *data* to a temporary file beside *path*, and return its path; for what a power loss makes worthless.

    Only the holder of the collection's lock writes such files, so the name is free or stale. Raises OSError.
    """
    temp = os.path.join(os.path.dirname(path), "." + os.path.basename(path))
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as stream:
        stream.write(data)
    return temp


def replace_unsynced(path: str, data: bytes) -> None:
    """Replace a file by one that holds *data*, in one step; see :func:`stage_unsynced`. Raises OSError."""
    os.rename(stage_unsynced(path, data), path)
