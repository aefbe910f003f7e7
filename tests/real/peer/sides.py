# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a case on both sides: Go's libcni in a process for each command, ours in a fork of this process for each."""

from __future__ import annotations

import os
import shutil
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


class Turn:
    """One step of a case, done by both sides from the same state, so that no difference has another one for its cause.

    `before`: the files that both found; `go`, `python`: what each did. After `finish` the state is the one that this
    collection's libcni left.
    """

    def __init__(self, case: Case, step: Step, root: str, go: Run) -> None:
        self.case, self.step, self.root = case, step, root
        self.argv, self.env = case.arguments(root, step), case.environment(root, step)
        self.verb = self.argv[0]
        self._saved, self._after, self._go = root + ".saved", root + ".after", go
        write(root, step.files, case.mode)
        self.earlier = read_calls(root, 0)
        self.before = read_files(root)
        os.rename(root, self._saved)
        self.python = self.again(run=python_side)
        os.rename(root, self._after)
        self.go = self.again()

    def again(
        self,
        argv: list[str] | None = None,
        without: t.Iterable[str] = (),
        changed: t.Mapping[str, bytes] | None = None,
        env: t.Mapping[str, str] | None = None,
        run: Run | None = None,
    ) -> Seen:
        """Run the step, or another command, once more: by Go's libcni, from the same state but for some files."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self._saved, self.root, symlinks=True)
        write(self.root, {**dict.fromkeys(without), **(changed or {})}, 0o600)
        env = {**self.env, **(env or {})}
        status, stdout, stderr = (run or self._go)(argv or self.argv, env, self.root, self.step.stdin)
        return Seen(status, stdout, stderr, read_calls(self.root, len(self.earlier)), read_files(self.root))

    def finish(self) -> None:
        """Leave the state to the next step."""
        shutil.rmtree(self.root)
        shutil.rmtree(self._saved)
        os.rename(self._after, self.root)

    # ---- what the step is about

    @property
    def network(self) -> str:
        return self.argv[1] if len(self.argv) > 1 else ""

    @property
    def key(self) -> tuple[str, str, str]:
        """The attachment's three names."""
        return self.network, self.env["CNI_CONTAINERID"], self.env.get("CNI_IFNAME") or "eth0"

    @property
    def path(self) -> str:
        """Where its cache file is."""
        return "cache/results/" + "-".join(self.key)

    @property
    def is_set_up(self) -> bool:
        """Whether Go came so far as to do anything."""
        return not self.go.stderr.startswith((b"libcni: invalid CNI_ARGS pair", b"libcni: CAP_ARGS"))

    def answer(self, number: int) -> dict[str, t.Any]:
        """Return what a plugin was told to answer to a call of Go's."""
        call = self.go.calls[number]
        calls = [*self.earlier, *self.go.calls[:number]]
        answers = self.case.script.get(f"{call.plugin}/{call.command}") or [{"stdout": ""}]
        called = sum((one.plugin, one.command) == (call.plugin, call.command) for one in calls)
        return answers[min(called, len(answers) - 1)]

    def refused(self, text: str) -> Seen:
        """Return what is seen of a side that does nothing but say `text`."""
        return Seen(1, b"", b"libcni: " + text.encode("utf-8", "surrogateescape") + b"\n", [], dict(self.before))


def turns(case: Case, go: Run, root: str, recorder: str) -> t.Iterator[Turn]:
    """Run all steps of a case in a fresh directory, which is left as it was at the end."""
    for directory in (root + ".saved", root + ".after"):
        shutil.rmtree(directory, ignore_errors=True)
    case.lay(root, recorder)
    for step in case.steps:
        turn = Turn(case, step, root, go)
        yield turn
        turn.finish()
