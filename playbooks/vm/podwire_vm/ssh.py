# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Reaching a machine with SSH."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from .common import Deadline, VmError, need_program


@dataclass(frozen=True)
class Login:
    """How a machine is reached on 127.0.0.1."""

    user: str
    key: Path
    known_hosts: Path | None  # None: a cloud image makes its host keys itself

    def options(self) -> list[str]:
        """Return options of ssh that identify the machine; without the port, the user and the key."""
        if self.known_hosts is None:
            return ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]
        return [
            *("-o", "StrictHostKeyChecking=yes", "-o", f"UserKnownHostsFile={self.known_hosts}"),
            *("-o", "HostKeyAlias=podwire-vm"),
        ]

    def command(self, port: int, script: str) -> list[str]:
        """Return the ssh command that runs ``script`` as root."""
        return [
            *("ssh", "-F", "/dev/null", "-i", str(self.key), "-p", str(port), *self.options()),
            *("-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "ConnectTimeout=20", "-o", "ControlPath=none"),
            *(f"{self.user}@127.0.0.1", "sudo", "-n", "sh", "-c", f"'{script}'"),
        ]


def wait_for_banner(port: int, deadline: Deadline, check: Callable[[], None]) -> None:
    """Wait until an SSH server answers; ``check`` is called in between and raises if waiting has become pointless."""
    while not deadline.over:
        check()
        try:
            with socket.create_connection(("127.0.0.1", port), 5) as connection:
                connection.settimeout(5)
                if connection.recv(4) == b"SSH-":
                    return
        except OSError:
            pass
        time.sleep(0.1)
    raise VmError(f"no SSH server answered on 127.0.0.1:{port} within {deadline.seconds:g} s")


def run_as_root(login: Login, port: int, script: str, deadline: Deadline, check: Callable[[], None]) -> None:
    """Run a shell script (without single quotes) on the machine as soon as login works; it may run several times.

    The script's standard input has one line: the time in seconds since 1970 at the moment when the script asks for it
    by printing a line.
    """
    need_program("ssh")
    said = "it was not reached"
    while not deadline.over:
        wait_for_banner(port, deadline, check)
        with subprocess.Popen(
            login.command(port, script),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process:
            timer = threading.Timer(max(1.0, deadline.seconds - deadline.elapsed), process.kill)
            timer.start()
            cast(IO[str], process.stdout).readline()
            said = process.communicate(f"{time.time():.3f}\n")[1].strip()
            timer.cancel()
            if process.returncode == 0:
                return
        time.sleep(0.2)
    raise VmError(
        f"the machine on 127.0.0.1:{port} did not run the commands over SSH within {deadline.seconds:g} s: {said}"
    )
