# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Event source cni_changes: say when networks, plugins or packet filters of this host change."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from typing import Any

DOCUMENTATION = r"""
---
short_description: Say when networks, plugins or packet filters of this host change
description:
  - Looks at directories of the host on which ansible-rulebook runs, and sends an event when an entry is new, gone or
    different, also in their folders, where the drop-ins of networks are. A directory may be removed and made again.
  - With O(firewall), sends an event when the rules of nftables change, as by a reload of firewalld or by iptables-nft.
  - Changes before the source starts are no events. Run a playbook once at the start if they matter.
options:
  paths:
    description: Directories to look at.
    type: list
    elements: str
    default: [/etc/cni/net.d, /opt/cni/bin]
  interval:
    description: Seconds between two looks.
    type: float
    default: 1.0
  firewall:
    description:
      - Whether changes of nftables are events. Requires root.
      - Each container that a runtime starts may change them.
    type: bool
    default: false
  host:
    description: The name of this host in the inventory, which each event carries.
    type: str
    default: localhost
"""

EXAMPLES = r"""
- podwire.cni.cni_changes:
    host: node1
    firewall: true
"""

_NETLINK_NETFILTER, _ADD_MEMBERSHIP, _SOL_NETLINK, _NFT_GROUP = 12, 1, 270, 7

Seen = dict[str, tuple[int, ...]]


def identities_of(paths: list[str]) -> Seen:
    """Return each entry of the directories, and the directories themselves, with what changes when it changes."""
    identities: Seen = {}
    for folder in paths:
        inner = _entries(folder)
        for path in (folder, *inner, *(path for name in inner if os.path.isdir(name) for path in _entries(name))):
            # Of a link, and of what it leads to.
            for status_of in (os.lstat, os.stat):
                with contextlib.suppress(OSError):
                    identities[path] = (*identities.get(path, ()), *_identity(status_of(path)))
    return identities


def _identity(status: os.stat_result) -> tuple[int, ...]:
    inside = () if stat.S_ISDIR(status.st_mode) else (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_ino, status.st_mode, status.st_uid, status.st_gid, *inside)


def _entries(folder: str) -> list[str]:
    try:
        # What begins with a dot is a file that a rename will put in its place.
        return [os.path.join(folder, name) for name in os.listdir(folder) if not name.startswith(".")]
    except OSError:
        return []


def changed(before: Seen, after: Seen) -> list[str]:
    """Return the paths that are new, gone or different."""
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


async def _watch_paths(queue: asyncio.Queue[Any], host: str, paths: list[str], interval: float) -> None:
    seen = identities_of(paths)
    while True:
        await asyncio.sleep(interval)
        now = identities_of(paths)
        different = changed(seen, now)
        seen = now
        if different:
            await queue.put({"cni": {"host": host, "what": "files", "paths": different}})


async def _watch_firewall(queue: asyncio.Queue[Any], host: str) -> None:
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_NETFILTER) as listening:
        listening.setblocking(False)
        listening.bind((0, 0))
        listening.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, _NFT_GROUP)
        while True:
            # An error means more changes than the socket holds: a change all the same.
            with contextlib.suppress(OSError):
                await loop.sock_recv(listening, 65536)
            # All messages of one transaction are one event.
            await asyncio.sleep(0.2)
            _drain(listening)
            await queue.put({"cni": {"host": host, "what": "firewall", "paths": []}})


def _drain(listening: socket.socket) -> None:
    while True:
        try:
            listening.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            continue


async def main(queue: asyncio.Queue[Any], args: dict[str, Any]) -> None:
    """Send events until ansible-rulebook ends this task. Raises ValueError for arguments that it cannot use."""
    paths = args.get("paths") or ["/etc/cni/net.d", "/opt/cni/bin"]
    interval, host = args.get("interval", 1.0), args.get("host", "localhost")
    if not isinstance(paths, list) or not all(isinstance(path, str) and path.startswith("/") for path in paths):
        raise ValueError(f"cni_changes: paths: {paths!r:.200} is no list of absolute paths")
    if isinstance(interval, bool) or not isinstance(interval, (int, float)) or not 0.05 <= interval <= 3600:
        raise ValueError(f"cni_changes: interval: {interval!r:.200} is no number of seconds from 0.05 to 3600")
    if not isinstance(host, str) or not host:
        raise ValueError(f"cni_changes: host: {host!r:.200} is no name")
    tasks = [_watch_paths(queue, host, paths, float(interval))]
    if args.get("firewall", False):
        tasks.append(_watch_firewall(queue, host))
    await asyncio.gather(*tasks)
