# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Running the host's own commands as root: found in fixed directories, bounded in time and output."""

from __future__ import annotations

import os
from typing import NamedTuple, Optional, Sequence

from .errors import HostError
from .trust import check_executable

# Where root looks for commands, in root's order. PATH does not count.
DIRECTORIES = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")

# The firewall rules of a host with ten thousand services are a few megabytes.
OUTPUT_LIMIT = 32 * 1024 * 1024

# The longest quotation from the output of a failed command.
_QUOTE_LIMIT = 500


class Done(NamedTuple):
    """The result of a command that ran to its end: ``stderr`` is the end of its error output, as text."""

    rc: int
    stdout: bytes
    stderr: str


def find_command(name: str) -> Optional[str]:
    """Return the path of the command *name*, None if it is not installed.

    Skips a file that root must not run. If there is no other, raises HostError ``unsafe_permissions`` or ``not_elf``.
    """
    refused: Optional[HostError] = None
    for directory in DIRECTORIES:
        path = os.path.join(directory, name)
        if not os.access(path, os.X_OK):
            continue
        try:
            check_executable(path)
            return path
        except HostError as error:
            refused = refused or error
    if refused is not None:
        raise refused
    return None


def run_command(argv: Sequence[str], timeout: float, stdin: Optional[bytes] = None) -> Done:
    """Run a command, whose first word is a path from :func:`find_command`, to its end. An exit status is no error here.

    *timeout* is in seconds; the environment is a fixed PATH, the C locale and root's HOME. Raises HostError
    ``command_failed`` if it cannot be started, is killed, or prints more than :data:`OUTPUT_LIMIT`.
    """
    check_executable(argv[0])
    environment = {"PATH": ":".join(DIRECTORIES), "LC_ALL": "C", "HOME": os.environ.get("HOME", "/root")}
    # Most calls of a module run no command and do not have to compile this.
    from ..libcni.process import run_program

    ended = run_program(argv[0], argv, stdin or b"", environment, timeout, OUTPUT_LIMIT)
    stderr = ended.stderr.decode("utf-8", "replace")
    if ended.returncode is None or ended.returncode < 0 or ended.killed:
        raise failure(argv, ended.failure, stderr)
    return Done(ended.returncode, ended.stdout, stderr)


def failure(argv: Sequence[str], reason: str, stderr: str = "") -> HostError:
    """Return the HostError ``command_failed`` for a command, with the end of its error output."""
    said = " ".join(stderr.split())[-_QUOTE_LIMIT:]
    text = f"{' '.join(argv)} failed: {reason}" + (f": {said}" if said else "")
    return HostError(text, code="command_failed", command=list(argv))
