# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Starting and awaiting a child process, where the host or the parent is not as usual."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import process

ENV = {"PATH": "/usr/bin:/bin"}


def run(script, timeout=60):
    return process.run_program("/bin/sh", ["sh", "-c", script], b"input", ENV, timeout)


def fail(*_args):
    raise OSError(38, "Function not implemented")


@pytest.fixture(params=["pidfd", "no pidfd"])
def pidfd(request, monkeypatch):
    if request.param == "no pidfd":
        monkeypatch.setattr(os, "pidfd_open", fail, raising=False)


def test_end_is_awaited(pidfd):
    """The output ends before the program does."""
    ended = run("cat; exec >&- 2>&-; sleep 0.2; exit 3")
    assert (ended.stdout, ended.returncode, ended.failure) == (b"input", 3, "exit status 3")


def test_end_that_does_not_come(pidfd):
    ended = run("exec >&- 2>&-; exec sleep 600", timeout=0.3)
    assert (ended.returncode, ended.killed) == (-signal.SIGKILL, True)
    assert ended.failure == "signal: killed (it did not end within 0.3 s)"


def test_without_limit():
    ended = run("cat; exit 4", timeout=None)
    assert (ended.stdout, ended.returncode) == (b"input", 4)


def test_waiting_twice():
    child = process.start_child("/bin/sh", ["sh", "-c", "exit 5"], ENV)
    child.close()
    assert [child.wait(60), child.wait(0), child.wait(None)] == [True] * 3
    assert child.returncode == 5


def test_signals_that_python_ignores_are_not_ignored():
    mask = run("grep SigIgn /proc/self/status").stdout.split()[1]
    assert not int(mask, 16) & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1))


def test_descriptors_without_proc(monkeypatch):
    inherited = os.dup(0)
    os.set_inheritable(inherited, True)
    monkeypatch.setattr(process.os, "listdir", fail)
    try:
        child = process.start_child("/bin/sh", ["sh", "-c", f"[ ! -e /proc/self/fd/{inherited} ]"], ENV)
    finally:
        os.close(inherited)
    child.close()
    assert child.wait(60)
    assert child.returncode == 0


@pytest.mark.parametrize("closed", [(0,), (1, 2), (0, 1, 2)])
def test_parent_without_standard_streams(closed):
    """Its pipes would get the numbers that the child's streams have."""
    code = (
        f"import os, sys; sys.path.insert(0, {str(Path(process.__file__).parents[1])!r})\n"
        "from libcni import process\n"
        f"for fd in {closed}: os.close(fd)\n"
        "ended = process.run_program('/bin/sh', ['sh', '-c', 'cat; echo error >&2'], b'input', {'PATH': '/bin'}, 60)\n"
        "os._exit(7 if (ended.stdout, ended.stderr, ended.failure) == (b'input', b'error\\n', '') else 1)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-B", "-c", code], check=False)
    assert done.returncode == 7


@pytest.fixture
def ignored():
    """SIGCHLD is ignored, as a process may inherit it from its parent."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGCHLD, before)


def test_failure_where_sigchld_is_ignored(ignored, pidfd):
    for timeout in (60, None):
        ended = run("cat; exit 3", timeout)
        assert (ended.stdout, ended.returncode, ended.failure) == (b"input", 3, "exit status 3")
        assert run("exit 0", timeout).failure == ""
    assert run("kill -KILL $$").failure == "signal: killed"
    assert run("exec sleep 600", 0.2).killed
    # What is started gets the default, what was ignored stays so.
    mask = run("grep SigIgn /proc/self/status").stdout.split()[1]
    assert not int(mask, 16) & 1 << (signal.SIGCHLD - 1)
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN


def test_start_that_fails_where_sigchld_is_ignored(ignored):
    assert process.run_program("/nowhere", ["x"], b"", ENV).failure == "fork/exec /nowhere: no such file or directory"
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN


def test_nothing_is_run_in_a_thread_where_sigchld_is_ignored(ignored, tmp_path):
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(run, f"touch {tmp_path}/run").result()
    assert "this process ignores SIGCHLD" in ended.failure
    assert ended.returncode is None
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("status", [0, 3])
def test_exit_status_that_somebody_else_got_is_a_failure(status, pidfd):
    """As a handler of SIGCHLD does, or another part of the process that waits for any child."""

    def take(_signal, _frame):
        os.waitpid(-1, 0)

    before = signal.signal(signal.SIGCHLD, take)
    try:
        ended = run(f"exit {status}")
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert ended.failure.startswith("exit status unknown ")
    assert (ended.returncode, ended.killed) == (None, False)


def test_nothing_is_left_open_when_it_cannot_be_started():
    before = os.listdir("/proc/self/fd")
    for path, env in (("/nowhere", ENV), ("/bin/sh", {"A": "b\0"}), ("/bin/s\0h", ENV)):
        with pytest.raises((OSError, ValueError)):
            process.start_child(path, ["sh"], env)
    assert len(os.listdir("/proc/self/fd")) <= len(before), "a file descriptor leaked"
