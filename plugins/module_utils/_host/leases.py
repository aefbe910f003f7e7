# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address reservations of the IPAM plugin host-local.

Its store is ``<dataDir>/<network>/``: one file for each address, ``<container id> CR LF <ifname>`` (before 0.7.2 the id
alone), beside ``lock`` and ``last_reserved_ip.<range>`` (plugins/ipam/host-local/backend/disk/backend.go).
"""

from __future__ import annotations

import os
import socket
import stat
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from .problems import WARNING, problem

DEFAULT_DATA_DIR = "/var/lib/cni/networks"
_MAX_SIZE = 4096


class Lease:
    """One reservation: ``ip`` as text, ``container_id`` ("" for an empty file), ``ifname`` ("" in the old format)."""

    __slots__ = ("container_id", "data_dir", "ifname", "ip", "network")

    def __init__(self, data_dir: str, network: str, ip: str, container_id: str, ifname: str) -> None:
        self.data_dir = data_dir
        self.network = network
        self.ip = ip
        self.container_id = container_id
        self.ifname = ifname

    def row(self) -> Dict[str, Any]:
        return {
            "network": self.network,
            "ip": self.ip,
            "container_id": self.container_id,
            "ifname": self.ifname,
            "data_dir": self.data_dir,
        }


def stores(networks: Iterable[Tuple[str, Mapping[str, Any]]], default: str = DEFAULT_DATA_DIR) -> List[Tuple[str, str]]:
    """Return ``(data dir, network)`` of every store that there is, sorted.

    *networks* are the configured ones with their parsed plugin objects, one pair for each plugin. In host-local's
    default directory every store counts, also of networks that are not configured any more.
    """
    found = {(default, name) for name in _folders(default)}
    for network, plugin in networks:
        ipam = plugin.get("ipam")
        if isinstance(ipam, dict) and ipam.get("type") == "host-local":
            data_dir = ipam.get("dataDir")
            if isinstance(data_dir, str) and data_dir.startswith("/") and "\0" not in data_dir:
                data_dir = os.path.normpath(data_dir)
                if os.path.isdir(os.path.join(data_dir, network)):
                    found.add((data_dir, network))
    return sorted(found)


def _folders(path: str) -> List[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def read(data_dir: str, network: str) -> Tuple[List[Lease], List[Dict[str, Any]]]:
    """Return the reservations of one store, sorted by address, and what is wrong with it.

    Reads without host-local's lock: every file is written by one write, and a reader that makes the lock file would
    alter the store.
    """
    folder = os.path.join(data_dir, network)
    leases: List[Lease] = []
    problems: List[Dict[str, Any]] = []
    try:
        names = os.listdir(folder)
    except OSError as error:
        problems.append(problem(WARNING, "leases_unreadable", f"cannot list the store: {error.strerror}", folder))
        return leases, problems
    for name in names:
        if name == "lock" or name.startswith("last_reserved_ip."):
            continue
        path = os.path.join(folder, name)
        text = _content(path)
        if not packed(name) or text is None:
            problems.append(problem(WARNING, "lease_unknown", "this is no reservation of host-local", path))
            continue
        lines = text.splitlines()
        container_id = lines[0].strip() if lines else ""
        if not container_id:
            problems.append(problem(WARNING, "lease_empty", "the reservation is empty: no DEL will ever free it", path))
        leases.append(Lease(data_dir, network, name, container_id, lines[1].strip() if len(lines) > 1 else ""))
    leases.sort(key=lambda lease: packed(lease.ip))
    problems.sort(key=lambda entry: str(entry["file"]))
    return leases, problems


def packed(ip: str) -> bytes:
    """Return an address as bytes that sort by family and value, empty for what is no address."""
    for family, prefix in ((socket.AF_INET, b"4"), (socket.AF_INET6, b"6")):
        try:
            return prefix + socket.inet_pton(family, ip)
        except OSError:
            continue
    return b""


def _content(path: str) -> Optional[str]:
    """Return a small regular file's text, None for anything else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        # One byte more than is allowed tells what is too long.
        data = os.read(fd, _MAX_SIZE + 1)
    except OSError:
        return None
    finally:
        os.close(fd)
    return data.decode("utf-8", "replace") if len(data) <= _MAX_SIZE else None
