# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a case on one side: Go's libcni in a process for each command, ours in a fork of this process for each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import traceback
import typing as t

import calls
from model import Case, Seen, Step, read_calls, read_files, write

# A side that is not done by then has hung.
PATIENCE = 60

Run = t.Callable[[t.List[str], t.Dict[str, str], str, bytes], t.Tuple[int, bytes, bytes]]


def go_side(driver: str) -> Run:
    """Return what runs a command with Go's libcni."""

    def run(argv: list[str], env: dict[str, str], root: str, stdin: bytes) -> tuple[int, bytes, bytes]:
        done = subprocess.run(
            [driver, *argv], env=env, cwd=root, input=stdin, capture_output=True, timeout=PATIENCE, check=False
        )
        return done.returncode, done.stdout, done.stderr

    return run


def python_side(argv: list[str], env: dict[str, str], root: str, stdin: bytes) -> tuple[int, bytes, bytes]:
    """Run a command with this collection's libcni, as `python3 -m libcni` does, but without the start of Python."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        given.write(stdin)
        given.seek(0)
        pid = os.fork()
        if pid == 0:
            _become(argv, env, root, (given.fileno(), stdout.fileno(), stderr.fileno()))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        stdout.seek(0)
        stderr.seek(0)
        return status, stdout.read(), stderr.read()


def _become(argv: list[str], env: dict[str, str], root: str, files: tuple[int, int, int]) -> t.NoReturn:
    status = 70
    try:
        signal.alarm(PATIENCE)
        for number, file in enumerate(files):
            os.dup2(file, number)
        # A worker of multiprocessing has another.
        sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115
        os.chdir(root)
        os.environ.clear()
        os.environ.update(env)
        status = calls.run(argv)
    except BaseException:  # noqa: BLE001 (whatever it is, the child of a fork may not return)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def observe(case: Case, run: Run, root: str, recorder: str) -> list[Seen]:
    """Run all steps of a case in a fresh directory, which is left as it was at the end."""
    case.lay(root, recorder)
    seen: list[Seen] = []
    for step in case.steps:
        seen.append(_observe_step(case, step, run, root, sum(len(earlier.calls) for earlier in seen)))
    return seen


def _observe_step(case: Case, step: Step, run: Run, root: str, done: int) -> Seen:
    write(root, step.files, case.mode)
    status, stdout, stderr = run(case.arguments(root, step), case.environment(root, step), root, step.stdin)
    return Seen(status, stdout, stderr, read_calls(root, done), read_files(root))
