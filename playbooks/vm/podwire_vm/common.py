# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by all parts: the error for users, progress, the cache directory, locks."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

FAILED = "The virtual machines failed, not the tests on them: "
"""Begins the text of each error."""


class VmError(Exception):
    """The virtual machines failed, not the tests on them: what, where, and what to do."""


def say(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)


def cache_directory() -> Path:
    """Return the directory of images and saved states; it exists, and only its owner can read it."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = Path(base) / "podwire-cni" / "vm"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def locked(path: Path, holder: str | None) -> Iterator[int]:
    """Hold the lock file ``path`` exclusively; yield its descriptor.

    The kernel releases it when the last process that has it ends.
    ``holder`` says what the process that holds it does; with None, this raises VmError instead of waiting.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if holder is None:
                raise VmError(f"{path}: in use; destroy the machines that run on it first") from error
            say(f"waiting: another process {holder}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def lock_shared(path: Path) -> Iterator[int]:
    """Hold the lock file ``path`` shared with others; yield its descriptor, and record the time of use."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        os.utime(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


def need_program(*names: str) -> None:
    """Raise VmError naming the programs that are not installed."""
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        raise VmError(
            f"{', '.join(missing)}: not found. On Debian: apt-get install qemu-system-x86 qemu-utils mmdebstrap "
            "e2fsprogs openssh-client debian-archive-keyring (and uidmap, where images are not built by root)"
        )


def need_space(directory: Path, mebibytes: int) -> None:
    """Raise VmError if the file system of ``directory`` has less free space than that."""
    free = shutil.disk_usage(directory).free // 2**20
    if free < mebibytes:
        raise VmError(
            f"{directory}: {free} MiB of disk are free, {mebibytes} MiB are needed. Make room, or choose another "
            "directory (that of the images is below XDG_CACHE_HOME)"
        )


def need_memory(mebibytes: int) -> None:
    """Raise VmError if the machine has less memory available than that."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        available = next(int(line.split()[1]) // 1024 for line in lines if line.startswith("MemAvailable:"))
    if available < mebibytes:
        raise VmError(
            f"{available} MiB of memory are available, a virtual machine needs {mebibytes} MiB. Free memory, or run "
            "fewer machines at once"
        )


def run(command: Sequence[str | Path], *, what: str, env: Mapping[str, str] | None = None, timeout: float = 120) -> str:
    """Run a short command and return its output; raise VmError with the output if it fails."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
            timeout=timeout,
            check=False,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise VmError(f"{what}: {command[0]} did not end within {timeout:g} s") from error
    if done.returncode != 0:
        raise VmError(
            f"{what}: {command[0]} failed with status {done.returncode}: {done.stdout.strip() or '(no output)'}"
        )
    return done.stdout


def remove_tree(path: Path) -> None:
    """Remove a directory, if it exists, which may contain files of the users that an image was built as."""
    if not path.exists():
        return
    try:
        shutil.rmtree(path)
    except PermissionError:
        run(["unshare", "--user", "--map-root-user", "--map-auto", "--", "rm", "-rf", path], what=f"removing {path}")


class Deadline:
    """A point in time, and how far away it is."""

    def __init__(self, seconds: float) -> None:
        self.begun = time.monotonic()
        self.seconds = seconds

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.begun

    @property
    def over(self) -> bool:
        """Whether the time has run out."""
        return self.elapsed > self.seconds
