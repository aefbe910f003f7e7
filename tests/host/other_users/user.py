# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A user of the host without privileges, who has a directory, and a watch that tells whether it is used."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import subprocess
from pathlib import Path

from ansible_collections.podwire.cni.tests.host.host import wait_until

NOBODY = 65534
# include/uapi/linux/inotify.h: what is more than a look at names and owners.
ACCESS, MODIFY, ATTRIB, MOVED, CREATED, DELETED, OPEN = 0x1, 0x2, 0x4, 0xC0, 0x100, 0x200, 0x20
_NONBLOCK = 0o4000


class User:
    """*home* is his, and so is what the test puts there until :meth:`watch`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir()
        self.started: list[subprocess.Popen[bytes]] = []
        self.listening: list[socket.socket] = []
        self._watch = -1

    def start(self, name: str, argv: list[str], uids: str = "65534 0 0 0") -> int:
        """Run su through a link *name*, with arguments that let it wait for a password, and return its process ID."""
        link = self.home / name
        if not link.is_symlink():
            link.symlink_to("/usr/bin/su")
        process = subprocess.Popen(
            argv,
            executable=link,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            cwd=self.home,
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.started.append(process)
        status = Path(f"/proc/{process.pid}/status")
        wait_until(lambda: "\nUid:\t" + uids.replace(" ", "\t") in status.read_text())
        return process.pid

    def run(self, argv: list[str]) -> int:
        """Run a program of root in his directory until the end, and return its process ID."""
        process = subprocess.Popen(argv, cwd=self.home, stdin=subprocess.PIPE)
        self.started.append(process)
        return process.pid

    def listen(self, name: str) -> str:
        """Listen on a socket of his, and return its path."""
        path = str(self.home / name)
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(path)
        bound.listen()
        bound.setblocking(False)
        self.listening.append(bound)
        return path

    def watch(self) -> None:
        """Give him his directory, and watch what becomes of it."""
        folders = [self.home, *(path for path in self.home.rglob("*") if path.is_dir() and not path.is_symlink())]
        for folder in folders:
            for path in (folder, *folder.iterdir()):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        libc = ctypes.CDLL(None)
        self._watch = libc.inotify_init1(_NONBLOCK)
        events = ACCESS | MODIFY | ATTRIB | MOVED | CREATED | DELETED | OPEN
        for folder in folders:
            assert libc.inotify_add_watch(self._watch, os.fsencode(folder), events) > 0

    def used(self) -> list[str]:
        """Return what was opened, read or changed in his directory, and each socket that somebody connected to."""
        found = []
        try:
            data = os.read(self._watch, 1 << 20)
        except BlockingIOError:
            data = b""
        while data:
            _watch, mask, _cookie, length = struct.unpack_from("iIII", data)
            found.append(f"{mask:x} {data[16 : 16 + length].rstrip(bytes(1)).decode()}")
            data = data[16 + length :]
        for bound in self.listening:
            try:
                bound.accept()[0].close()
                found.append(f"connected to {bound.getsockname()}")
            except BlockingIOError:
                pass
        return found

    def end(self) -> None:
        for process in self.started:
            process.kill()
            process.communicate()
        for bound in self.listening:
            bound.close()
        if self._watch >= 0:
            os.close(self._watch)
