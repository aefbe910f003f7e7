# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import socket

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import upkeep, watch
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError


class Stop(Exception):
    """Ends the loop of the service."""


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(watch, "_PAUSE", 0)
    monkeypatch.setattr(watch, "_QUIET", 0.01)


class Events(watch.RuleEvents):
    """Events come through a pair of sockets."""

    def __init__(self):
        self._socket, self.sender = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)


class Waits:
    def __init__(self, most):
        self.seconds = []
        self._most = most

    def wait(self, seconds):
        self.seconds.append(seconds)
        if len(self.seconds) == self._most:
            raise Stop
        return True


@pytest.mark.parametrize(
    ("statuses", "waits"),
    [
        # Forever, until rules change: what cannot be put back is told once.
        ([0, 1], [-1, -1]),
        # The lock was held: again after a while.
        ([2, 0], [60.0, -1]),
    ],
)
def test_when_the_service_repairs_again(statuses, waits):
    events, left = Waits(len(statuses)), list(statuses)
    with pytest.raises(Stop):
        watch._watch(events, lambda: left.pop(0))
    assert events.seconds == waits
    assert left == []


def test_a_burst_of_changes_is_one_event():
    events = Events()
    for _change in range(5):
        events.sender.send(b"a change")
    assert events.wait(-1)
    assert not events.wait(0)


def test_changes_without_end_do_not_put_off_a_repair(monkeypatch):
    events = Events()
    monkeypatch.setattr(watch, "_LONGEST", 0.05)
    events.sender.send(b"a change")
    monkeypatch.setattr(watch.select, "select", lambda *given: ([events._socket], [], []))
    assert events.wait(-1)


@pytest.mark.parametrize("code", [errno.ENOBUFS, errno.EAGAIN])
def test_more_changes_than_fit_are_an_event(code):
    class Full:
        def recv(self, size):
            raise OSError(code, "")

    events = Events()
    events.sender.send(b"a change")
    real, events._socket = events._socket, Full()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch.select, "select", lambda *given: ([real], [], []))
        assert events._take(0)


def test_a_socket_that_fails_ends_the_service():
    class Broken:
        def recv(self, size):
            raise OSError(errno.EBADF, "")

    events = Events()
    events._socket = Broken()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch.select, "select", lambda *given: ([events._socket], [], []))
        with pytest.raises(OSError):
            events._take(0)


@pytest.mark.parametrize(("program", "printed", "status"), [
    ("import sys; print('put back', *sys.argv[1:]); print('odd', file=sys.stderr); sys.exit(1)",
     ("put back repair --cache-dir /cache\n", "odd\n"), 1),
    ("import os; os.kill(os.getpid(), 9)", ("", ""), -9),
])  # fmt: skip
def test_the_service_runs_itself_for_a_repair_and_prints_what_that_prints(
    tmp_path, monkeypatch, capfd, program, printed, status
):
    path = tmp_path / "repair.py"
    path.write_text(program)
    statuses = []

    def once(events, repair):
        statuses.append(repair())

    monkeypatch.setattr(watch.sys, "argv", [str(path)])
    monkeypatch.setattr(watch, "RuleEvents", lambda: None)
    monkeypatch.setattr(watch, "_watch", once)
    assert watch.main(["watch", "--cache-dir", "/cache"]) == 0
    assert statuses == [status]
    assert tuple(capfd.readouterr()) == printed


def test_a_repair_that_cannot_be_started_is_tried_again_later(capsys):
    assert watch._run(["/nonexistent/python3"]) == watch._UNREADABLE
    assert "the repair did not run: fork/exec /nonexistent/python3: no such file" in capsys.readouterr().err


def test_a_repair_prints_why_it_failed(monkeypatch, capsys):
    def run(_cache_dir):
        raise HostError("waited 60 s for the lock", code="lock_timeout")

    monkeypatch.setattr(upkeep, "repair_all", run)
    assert watch.main(["repair", "--cache-dir", "/cache"]) == upkeep.FAILED
    assert capsys.readouterr().out == "waited 60 s for the lock\n"


@pytest.mark.parametrize(("left", "status"), [([], upkeep.DONE), (["web: not put back"], upkeep.LEFT)])
def test_a_repair_prints_what_it_did_and_what_is_left(monkeypatch, capsys, left, status):
    monkeypatch.setattr(upkeep, "repair_all", lambda _cache_dir: (["a rule is gone; put back"], left))
    assert watch.main(["repair"]) == status
    assert capsys.readouterr().out.splitlines() == ["a rule is gone; put back", *left]
