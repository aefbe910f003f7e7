# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The leases (address reservations) of the IPAM plugin host-local.

Its store is ``<dataDir>/<network>/``: one file for each address, ``<container id> CR LF <ifname>`` (before 0.7.2 the id
alone), beside ``lock`` and ``last_reserved_ip.<range>`` (plugins/ipam/host-local/backend/disk/backend.go).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from ..libcni.files import open_file
from .addresses import DEFAULT_DATA_DIR, packed
from .errors import HostError
from .kinds import lease_dir
from .paths import names_in
from .problems import WARNING, Finding
from .trust import check_trusted

_MAX_SIZE = 4096


class Lease(NamedTuple):
    """One lease: ``ip`` as text, ``container_id`` ("" for an empty file), ``ifname`` ("" in the old format).

    ``status`` and ``text`` are those of the file.
    """

    data_dir: str
    network: str
    ip: str
    container_id: str
    ifname: str
    text: str = ""
    status: Optional[os.stat_result] = None

    @property
    def path(self) -> str:
        return os.path.join(self.data_dir, self.network, self.ip)

    def row(self) -> Dict[str, Any]:
        return {
            "network": self.network,
            "ip": self.ip,
            "container_id": self.container_id,
            "ifname": self.ifname,
            "data_dir": self.data_dir,
        }


def lease_stores(
    networks: Iterable[Tuple[str, Mapping[str, Any]]], default: str = DEFAULT_DATA_DIR
) -> List[Tuple[str, str]]:
    """Return ``(data dir, network)`` of every existing store, sorted.

    *networks* are the configured ones with their parsed plugin objects, one pair for each plugin. In host-local's
    default directory every store counts, even if its network is no longer configured.
    """
    places = {name: os.path.join(default, name) for name in names_in(default)}
    stores = {(default, name) for name, path in places.items() if os.path.isdir(path) and not os.path.islink(path)}
    for network, plugin in networks:
        data_dir = lease_dir(plugin, default)
        if data_dir and os.path.isdir(os.path.join(data_dir, network)):
            stores.add((data_dir, network))
    return sorted(stores)


def read_leases(data_dir: str, network: str) -> Tuple[List[Lease], List[Finding]]:
    """Return the leases of one store, sorted by address, and its problems.

    Reads without host-local's lock: each file is written by a single write, and a reader that created the lock file
    would change the store.
    """
    folder = os.path.join(data_dir, network)
    try:
        names = os.listdir(folder)
    except OSError as error:
        return [], [Finding(WARNING, "leases_unreadable", f"cannot list the store: {error.strerror}", file=folder)]
    leases: List[Lease] = []
    problems: List[Finding] = []
    for name in names:
        if name == "lock" or name.startswith("last_reserved_ip."):
            continue
        path = os.path.join(folder, name)
        text, status = _content(path)
        if not packed(name) or text is None:
            problems.append(Finding(WARNING, "lease_unknown", "this file is not a lease of host-local", file=path))
            continue
        lines = text.splitlines()
        container_id = lines[0].strip() if lines else ""
        if not container_id:
            what = "the lease is empty, so no DEL will ever free it"
            problems.append(Finding(WARNING, "lease_empty", what, file=path))
        ifname = lines[1].strip() if len(lines) > 1 else ""
        leases.append(Lease(data_dir, network, name, container_id, ifname, text, status))
    leases.sort(key=lambda lease: packed(lease.ip))
    problems.sort(key=lambda finding: finding.file)
    return leases, problems


def last_reserved(data_dir: str, network: str) -> List[str]:
    """Return the addresses that host-local assigned last, one for each range, as far as they can be read."""
    folder = os.path.join(data_dir, network)
    names = [name for name in names_in(folder) if name.startswith("last_reserved_ip.")]
    texts = [(_content(os.path.join(folder, name))[0] or "").strip() for name in names]
    return [text for text in texts if packed(text)]


def remove_lease(lease: Lease, timeout: float) -> None:
    """Free a lease under host-local's own lock, unless it is gone or has changed since it was read.

    *timeout* for the lock is in seconds. Raises HostError ``lease_locked``, ``lease_not_removed`` and others.
    """
    folder = os.path.join(lease.data_dir, lease.network)
    try:
        with _locked(folder, timeout):
            _unlink_unchanged(lease)
    except FileNotFoundError:
        return
    except OSError as error:
        raise HostError(f"cannot free {lease.path}: {error.strerror}", code="lease_not_removed") from error


def _unlink_unchanged(lease: Lease) -> None:
    (text, now), then = _content(lease.path), lease.status
    # The same content could be a newer lease of a container with that ID.
    if text == lease.text and now and then and (now.st_ino, now.st_mtime_ns) == (then.st_ino, then.st_mtime_ns):
        os.unlink(lease.path)


def put_lease(
    data_dir: str, network: str, ip: str, text: str, timeout: float, replaced: Optional[Lease] = None
) -> None:
    """Write a lost lease again, as host-local does: under its lock, and never over another one than *replaced*.

    Raises HostError ``lease_locked``, ``lease_taken``, ``lease_not_written`` and others.
    """
    folder = os.path.join(data_dir, network)
    path = os.path.join(folder, ip)
    try:
        check_trusted(folder)
        os.makedirs(folder, 0o755, exist_ok=True)
        with _locked(folder, timeout):
            if replaced is not None:
                _unlink_unchanged(replaced)
            # Not through a name that somebody could have put there.
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8", newline="") as stream:
                stream.write(text)
    except FileExistsError as error:
        content = _content(path)[0]
        if content is None:
            raise HostError(f"{path} is no lease of host-local; remove it", code="lease_not_written") from error
        if content != text:
            raise HostError(f"the address {ip} is leased to another container: {path}", code="lease_taken") from error
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}", code="lease_not_written") from error


@contextlib.contextmanager
def _locked(folder: str, timeout: float) -> Iterator[None]:
    """Hold the lock of a store that only root can lead elsewhere, as host-local does: flock(2) on its ``lock``."""
    check_trusted(folder)
    path = os.path.join(folder, "lock")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    text = f"waited {timeout:g} s for {path}, which host-local holds; run again when it has ended"
                    raise HostError(text, code="lease_locked") from None
            time.sleep(0.02)
        yield
    finally:
        os.close(fd)


def _content(path: str) -> Tuple[Optional[str], Optional[os.stat_result]]:
    """Return a small regular file's text and status, None for anything else."""
    try:
        with open_file(path, _MAX_SIZE, follow=False) as file:
            # One byte more than allowed shows that the file is too long.
            data, status = file.read(_MAX_SIZE + 1), os.fstat(file.fileno())
    except (OSError, ValueError):
        return None, None
    return (data.decode("utf-8", "replace"), status) if len(data) <= _MAX_SIZE else (None, None)
