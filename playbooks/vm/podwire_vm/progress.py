# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The progress of a long command, line by line, for a playbook: Ansible shows nothing of a command before it ends."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .common import FAILED, VmError, remove_tree

PAUSE = 0.3


def follow(command: Sequence[str | Path], directory: Path, number: int) -> dict[str, Any]:
    """Wait for one more line on the standard error of a command, the *number*-th; the call for 1 starts the command.

    Returns ``line`` and ``finished``. Once the command has ended, ``finished`` is true, and ``result`` is the JSON that
    it has printed. Raises VmError if it has failed. *directory* is for the files of this command alone.
    """
    if number == 1:
        _start(command, directory)
    while True:
        # In this order: what is said before the end has been said when the end is seen.
        ended = not _is_running(directory)
        lines = (directory / "said").read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        if ended and not (directory / "result").stat().st_size:
            remove_tree(directory)
            raise VmError((lines or ["the build was killed"])[-1].strip().removeprefix(FAILED))
        if len(lines) >= number and (ended or lines[number - 1].endswith("\n")):
            return {"line": lines[number - 1].strip(), "finished": False}
        if ended:
            result = json.loads((directory / "result").read_bytes())
            remove_tree(directory)
            return {"line": "done", "finished": True, "result": result}
        time.sleep(PAUSE)


def _start(command: Sequence[str | Path], directory: Path) -> None:
    remove_tree(directory)
    directory.mkdir(mode=0o700, parents=True)
    said, result = ((directory / name).open("wb") for name in ("said", "result"))
    with said, result, _lock(directory, fcntl.LOCK_EX) as lock:
        # It inherits the lock, which is free when it ends, however that happens.
        subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.DEVNULL,
            stdout=result,
            stderr=said,
            pass_fds=[lock],
            start_new_session=True,
        )


@contextlib.contextmanager
def _lock(directory: Path, how: int) -> Iterator[int]:
    descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, how)
        yield descriptor
    finally:
        os.close(descriptor)


def _is_running(directory: Path) -> bool:
    try:
        with _lock(directory, fcntl.LOCK_SH | fcntl.LOCK_NB):
            return False
    except BlockingIOError:
        return True
