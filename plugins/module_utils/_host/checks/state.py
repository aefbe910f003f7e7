# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an ADD can keep its state on the host: what plugins and libcni write, and read again."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Sequence, Tuple

from ..kinds import delegate_of, lease_dir, member_of, set_or_default, text_of
from ..paths import directory_above, names_in
from ..problems import Finding, obstacle
from ..processes import mounts

# The keys for which an ADD writes to dataDir what DEL needs (tuning.go: createBackup; flannel.go: saveScratchNetConf).
_KEPT = {"tuning": ("mac", "mtu", "promisc", "allmulti", "txqlen"), "flannel": ("type",)}


def state_obstacles(network: str, plugins: Sequence[Mapping[str, Any]], cache_dir: str) -> Iterator[Finding]:
    """Yield what makes every ADD of *plugins* fail; *cache_dir* is that of libcni."""
    stores = [os.path.join(path, network) for path in map(lease_dir, [*plugins, *map(delegate_of, plugins)]) if path]
    keeping = [each for each in plugins if any(member_of(each, key) for key in _KEPT.get(text_of(each, "type"), ()))]
    kept = [set_or_default(plugin, "dataDir") for plugin in keeping]
    reasons: Dict[Tuple[str, str], str] = {}
    for path in [*stores, *filter(os.path.isabs, kept), os.path.join(cache_dir, "results")]:
        reasons.setdefault(_why_unwritable(path), path)
    for (why, remedy), path in reasons.items():
        if why:
            text = f"nothing can be written to {path}, where every ADD keeps its state"
            yield obstacle("state_unwritable", text, why, remedy)
    for store in dict.fromkeys(stores):
        yield from _unusable(store)


def _why_unwritable(path: str) -> Tuple[str, str]:
    """Return why nothing can be written to the directory *path*, or to where it would be made, and what helps."""
    existing, why = directory_above(path)
    if why:
        return why, f"move {existing} away, so that the directory can be made"
    status = os.statvfs(existing)
    if status.f_flag & os.ST_RDONLY:
        point = mount_point(existing)
        return f"{existing} is on a file system that is mounted read-only ({point})", f"mount -o remount,rw {point}"
    # What is reserved for root counts as free: plugins run as root.
    if (status.f_blocks and not status.f_bfree) or (status.f_files and not status.f_ffree):
        return f"the file system of {existing} ({mount_point(existing)}) is full", "remove files there"
    if not os.access(existing, os.W_OK):
        return f"{existing} is immutable, or something else denies it", f"chattr -i {existing}"
    return "", ""


def mount_point(path: str) -> str:
    """Return the mount point of the file system of *path*; a bind mount is found only in the list of the kernel."""
    real = os.path.realpath(path)
    points = [mount.point for mount in mounts("self")]
    return max((point for point in points if point == "/" or f"{real}/".startswith(f"{point}/")), key=len, default="/")


def _unusable(store: str) -> Iterator[Finding]:
    """Yield what in a store of host-local it cannot use: it reads all files, and writes down where it has left off."""
    for name in names_in(store):
        path, kept = os.path.join(store, name), name.startswith("last_reserved_ip.")
        # Most are leases.
        if not (kept or name == "lock") and os.path.isfile(path):
            continue
        real = Path(os.path.realpath(path))
        why, remedy = "it is a FIFO, and reading it never ends", f"remove {path}, which host-local then creates"
        if not real.is_fifo():
            # It creates what a link leads to.
            needed = (kept or name == "lock") and (os.path.lexists(real) or not real.parent.is_dir())
            why = "it is no file" if needed and not real.is_file() else ""
            why, remedy = _why_locked(str(real)) if kept and needed and not why else (why, remedy)
        if why:
            text = f"host-local cannot use {path}, which every ADD of the network needs"
            yield obstacle("state_unwritable", text, why, remedy)


def _why_locked(path: str) -> Tuple[str, str]:
    """Return why a file cannot be written, and what helps; "" if it can. A FIFO in its place is not waited for."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        point = mount_point(path)
        read_only = f"it is mounted read-only ({point})", f"mount -o remount,rw {point}"
        locked = "it is immutable or append-only", f"chattr -ia {path}"
        unknown = f"it cannot be written: {error.strerror}", f"find out what denies that root writes to {path}"
        return {errno.EROFS: read_only, errno.EPERM: locked}.get(error.errno or 0, unknown)
    return "", ""
