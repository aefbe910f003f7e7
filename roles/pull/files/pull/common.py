# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What both parts of the program use: problems, programs with a time limit, and files."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

# A record has some KiB, and a status file less.
LARGEST = 64 * 1024 * 1024


class Problem(Exception):
    """What went wrong, for people, with a stable word to test for."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def run(words: list[str], seconds: float, **options: t.Any) -> subprocess.CompletedProcess[str]:
    """Run a program with all it starts, for at most *seconds*. Raises Problem ``timeout``, ``missing_program``."""
    try:
        process = subprocess.Popen(
            words, text=True, errors="replace", stdin=subprocess.DEVNULL, start_new_session=True, **options
        )
    except FileNotFoundError as error:
        raise Problem("missing_program", f"{words[0]} is not installed ({error.filename})") from error
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Problem("timeout", f"{' '.join(words[:2])} did not end within {seconds:g} seconds") from None
    finally:
        # Its children, too, also if this program is asked to end.
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def read_json(path: str) -> dict[str, t.Any]:
    """Return an object of a file; {} if the file is missing or no object."""
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.loads(stream.read(LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write(path: str, text: str, mode: int = 0o600) -> None:
    """Write a file, complete or not at all."""
    fresh = f"{path}.new"
    # A run that was killed may have left one, and whoever owns the directory a link to a file of somebody else.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(fresh)
    with open(
        fresh, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags | os.O_EXCL, mode)
    ) as stream:
        stream.write(text)
        os.fchmod(stream.fileno(), mode)
        os.fsync(stream.fileno())
    os.replace(fresh, path)


def first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            return stream.readline(200).strip()
    except OSError:
        return ""


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    """Return the end of what a program printed, as one line without control characters."""
    lines = [line for line in f"{done.stdout or ''}\n{done.stderr or ''}".splitlines() if line.strip()]
    text = " ".join(" ".join(lines[-3:]).split())
    return "".join(sign if sign.isprintable() else "?" for sign in text)[-500:] or f"exit status {done.returncode}"
