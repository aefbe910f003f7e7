# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A service for hosts: puts back in place what attachments lose when a firewall is reloaded, without a controller.

    watch [--cache-dir DIR]    each time the rules of nftables have changed, and at the start
    repair [--cache-dir DIR]   once; status 1: something was not put back, 2: the host could not be read

The role attachments installs it as one archive. It prints what it did, for the journal.
"""

from __future__ import annotations

import argparse
import errno
import os
import select
import socket
import sys
import time
from typing import Callable, Sequence

from ...libcni.process import run_program

_CACHE_DIR = "/var/lib/podwire/cni"
# nfnetlink's group of changes of nftables, and so of iptables-nft (linux/netfilter/nfnetlink.h, linux/netlink.h).
_NETLINK_NETFILTER, _SOL_NETLINK, _ADD_MEMBERSHIP, _GROUP_NFTABLES = 12, 270, 1, 7
# A reload is many changes. Programs that change rules all the time must not keep the service busy.
_QUIET, _LONGEST, _PAUSE = 1.0, 10.0, 5.0
# After a repair that could not read the host: another module held the lock, for example.
_UNREADABLE, _RETRY = 2, 60.0


class RuleEvents:
    """Waits for changes of the rules of nftables in this network namespace."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_NETFILTER)
        self._socket.bind((0, 0))
        self._socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, _GROUP_NFTABLES)
        self._socket.setblocking(False)

    def wait(self, seconds: float) -> bool:
        """Wait for a change at most *seconds* (negative: forever), then until they pause. Returns whether one came."""
        changed = self._take(seconds)
        deadline = time.monotonic() + _LONGEST
        while changed and time.monotonic() < deadline and self._take(_QUIET):
            pass
        return changed

    def _take(self, seconds: float) -> bool:
        if not select.select([self._socket], [], [], None if seconds < 0 else seconds)[0]:
            return False
        try:
            while self._socket.recv(1 << 16):
                pass
        except OSError as error:
            # More changes than fit count as well.
            if error.errno not in (errno.EAGAIN, errno.ENOBUFS):
                raise
        return True


def _watch(events: RuleEvents, repair: Callable[[], int]) -> None:
    """Repair now and after each change. A repair makes changes itself; the look that follows finds nothing to do."""
    while True:
        status = repair()
        time.sleep(_PAUSE)
        events.wait(_RETRY if status == _UNREADABLE else -1)


def main(words: Sequence[str]) -> int:
    """Run the program. Each repair is a process of its own."""
    parser = argparse.ArgumentParser(prog="podwire-cni-repair")
    parser.add_argument("verb", choices=["watch", "repair"])
    parser.add_argument("--cache-dir", default=_CACHE_DIR)
    given = parser.parse_args(words)
    if given.verb == "repair":
        # Imported late: the service that waits stays small.
        from .upkeep import put_back_all

        return put_back_all(given.cache_dir)
    command = [sys.executable, "-I", sys.argv[0], "repair", "--cache-dir", given.cache_dir]
    _watch(RuleEvents(), lambda: _run(command))
    return 0


def _run(command: Sequence[str]) -> int:
    """Run a repair, print what it printed, and return its status."""
    ended = run_program(command[0], command, b"", os.environ)
    for stream, text in ((sys.stdout, ended.stdout), (sys.stderr, ended.stderr)):
        stream.write(text.decode("utf-8", "replace"))
        stream.flush()
    if ended.returncode is None:
        sys.stderr.write(f"the repair did not run: {ended.failure}\n")
        return _UNREADABLE
    return ended.returncode
