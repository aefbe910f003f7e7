# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's one lock, and its rule: a module that had to wait for it plans again."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
from typing import Any, Callable, Dict, TypeVar

from .errors import HostError
from .plan import Plan

LOCK_PATH = "/run/podwire-cni/lock"

P = TypeVar("P", bound=Plan)


def read_state(path: str = LOCK_PATH) -> Dict[str, Any]:
    """Return ``{generation, holder, pid}`` as the last holder left it; generation 0 if the lock was never held."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return _parse(os.read(fd, 4096))
        finally:
            os.close(fd)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return {"generation": 0, "holder": "", "pid": 0}
        raise HostError(f"cannot read the lock file {path}: {error.strerror}", code="lock_unusable") from error


def _parse(raw: bytes) -> Dict[str, Any]:
    try:
        state = json.loads(raw.decode("utf-8"))
        return {"generation": int(state["generation"]), "holder": str(state["holder"]), "pid": int(state["pid"])}
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        # Empty (just created), or torn by a crash while it was written: counts as an unfinished holder.
        return {"generation": 0, "holder": "unknown" if raw else "", "pid": 0}


class Lock:
    """An exclusive flock(2). ``moved`` tells that another module may have applied changes since *seen* was read."""

    def __init__(self, holder: str, timeout: float, seen: Dict[str, Any], path: str = LOCK_PATH) -> None:
        self.holder = holder
        self.timeout = timeout
        self.seen = seen
        self.path = path
        self.moved = False
        self._fd = -1
        self._generation = 0

    def __enter__(self) -> Lock:
        self._fd = _open(self.path)
        try:
            waited = self._wait()
            state = _parse(os.pread(self._fd, 4096, 0))
            # A holder that the file still names has died in the middle of its work.
            self.moved = waited or bool(state["holder"]) or state["generation"] != self.seen["generation"]
            self._generation = state["generation"]
            self._note(self.holder)
        except OSError as error:
            os.close(self._fd)
            text = f"cannot write the lock file {self.path}: {error.strerror}; nothing was changed"
            raise HostError(text, code="lock_unusable") from error
        except BaseException:
            os.close(self._fd)
            raise
        return self

    def _wait(self) -> bool:
        deadline = time.monotonic() + self.timeout
        waited = False
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return waited
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EINTR):
                    raise HostError(f"cannot lock {self.path}: {error.strerror}", code="lock_unusable") from error
            if time.monotonic() >= deadline:
                state = _parse(os.pread(self._fd, 4096, 0))
                holder = state["holder"] or "another module"
                raise HostError(
                    f"waited {self.timeout:g} s for the lock {self.path}, which {holder} (process {state['pid']}) "
                    "holds; let it finish, or increase lock_timeout",
                    code="lock_timeout",
                )
            waited = True
            time.sleep(0.05)

    def _note(self, holder: str) -> None:
        # Incremented when the lock is taken and when it is released: a plan made in between saw a changing host.
        self._generation += 1
        text = json.dumps({"generation": self._generation, "holder": holder, "pid": os.getpid() if holder else 0})
        os.pwrite(self._fd, text.encode("utf-8"), 0)
        os.ftruncate(self._fd, len(text))

    def __exit__(self, *_exception: object) -> None:
        # A note that stays says that its holder died; then other modules only plan again.
        with contextlib.suppress(OSError):
            self._note("")
        os.close(self._fd)


def _open(path: str) -> int:
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o022:
            text = f"{folder} must be a directory of root that only root can write; remove it and run again"
            raise HostError(text, code="unsafe_permissions")
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise HostError(f"cannot open the lock file {path}: {error.strerror}", code="lock_unusable") from error


def run_locked(
    make_plan: Callable[[], P], holder: str, timeout: float, check_mode: bool, workers: int = 1, path: str = LOCK_PATH
) -> P:
    """Plan, and apply under the lock unless *check_mode* or the plan is empty. Returns the plan that counts.

    *make_plan* may be called twice: a plan from before the lock was taken is stale if another module applied changes.
    """
    seen = read_state(path)
    plan = make_plan()
    if check_mode or not plan.pending:
        return plan
    with Lock(holder, timeout, seen, path) as lock:
        if lock.moved:
            plan = make_plan()
        try:
            _apply(plan, workers)
        except HostError as error:
            # Steps before the failure stay applied, and the result shows them.
            error.facts.setdefault("actions", plan.progress())
            raise
    return plan


def _apply(plan: Plan, workers: int) -> None:
    try:
        plan.apply(workers)
    except OSError as error:
        # From work before and after the steps, such as removing what an interrupted run left.
        where = f" ({error.filename})" if error.filename else ""
        raise HostError(f"cannot write to this host: {error.strerror}{where}", code="write_failed") from error
