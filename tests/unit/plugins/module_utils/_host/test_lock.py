# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import stat
import threading

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import lock as lock_module
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.lock import Lock, read_state, run_locked
from ansible_collections.podwire.cni.plugins.module_utils._host.plan import Plan, Step
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with, raising


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "run" / "lock")


class Host:
    """A one-value host: planning compares, applying sets."""

    def __init__(self):
        self.value = 0
        self.planned = 0

    def plan(self):
        self.planned += 1
        plan = Plan()
        if self.value != 1:
            plan.add(Step("write", "value", "safe", self.value, 1, self.set, reason="0, want 1"))
        return plan

    def set(self):
        self.value = 1


def test_check_mode_plans_the_same_and_touches_nothing(path):
    host = Host()
    checked = run_locked(host.plan, "test", 1, True, path=path)
    assert host.value == 0
    assert not os.path.exists(os.path.dirname(path))
    applied = run_locked(host.plan, "test", 1, False, path=path)
    assert host.value == 1
    assert checked.actions() == applied.actions()
    assert checked.actions() == [{"kind": "write", "target": "value", "class": "safe", "reason": "0, want 1"}]
    again = run_locked(host.plan, "test", 1, False, path=path)
    assert not again.changed
    assert host.planned == 3


def test_the_lock_is_private_to_root(path):
    with Lock("test", 1, read_state(path), path):
        assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_the_holder_is_named_when_time_is_up(path):
    with Lock("cni_attach", 1, read_state(path), path), fails_with("lock_timeout") as caught:
        Lock("cni_conf", 0, read_state(path), path).__enter__()
    assert "cni_attach" in caught.value.msg
    assert "process %d" % os.getpid() in caught.value.msg


def test_who_had_to_wait_plans_again(path):
    host = Host()
    entered = threading.Event()
    leave = threading.Event()

    def other():
        with Lock("other", 5, read_state(path), path):
            entered.set()
            leave.wait(10)
            host.value = 1

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(10)
    real_plan = host.plan

    def plan():
        result = real_plan()
        leave.set()
        return result

    result = run_locked(plan, "test", 10, False, path=path)
    thread.join()
    assert host.planned == 2
    assert not result.changed


def test_somebody_who_came_and_went_while_we_planned_is_noticed(path):
    host = Host()

    def plan():
        result = host.plan()
        if host.planned == 1:
            with Lock("other", 1, read_state(path), path):
                host.value = 1
        return result

    assert not run_locked(plan, "test", 1, False, path=path).changed
    assert host.planned == 2


def test_a_holder_that_died_makes_the_next_one_plan_again(path):
    lock = Lock("dead", 1, read_state(path), path)
    lock.__enter__()
    os.close(lock._fd)
    host = Host()
    run_locked(host.plan, "test", 1, False, path=path)
    assert host.planned == 2


def test_a_link_in_place_of_the_lock_file_is_not_followed(path, tmp_path):
    os.makedirs(os.path.dirname(path), mode=0o700)
    os.symlink(str(tmp_path / "victim"), path)
    with pytest.raises(HostError):
        run_locked(Host().plan, "test", 1, False, path=path)
    assert not (tmp_path / "victim").exists()


def test_a_failure_tells_how_far_the_plan_got(path):
    def plan():
        result = Plan()
        for name, action in (("a", lambda: None), ("b", raising(HostError("no", code="bad"))), ("c", lambda: None)):
            result.add(Step("write", name, "safe", None, 1, action, reason="does not exist"))
        return result

    with pytest.raises(HostError) as caught:
        run_locked(plan, "test", 1, False, path=path)
    assert [action["state"] for action in caught.value.facts["actions"]] == ["done", "failed", "planned"]
    assert read_state(path)["holder"] == ""


@pytest.mark.parametrize(
    "note",
    [
        b"[" * 4096,
        b"\xff",
        b"null",
        b'{"generation": 1e999, "holder": 1, "pid": 1}',
        b"{}",
        b"9" * 4096,
        b"\0" * 9,
        b"x",
    ],
)
def test_a_note_that_is_none_is_that_of_an_unfinished_holder(path, note):
    os.makedirs(os.path.dirname(path), mode=0o700)
    with open(path, "wb") as stream:
        stream.write(note)
    assert read_state(path) == {"generation": 0, "holder": "unknown", "pid": 0}
    with Lock("test", 1, read_state(path), path) as lock:
        assert lock.moved


@pytest.mark.parametrize("make", [os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_a_lock_that_is_no_file_is_unusable(path, make):
    os.makedirs(os.path.dirname(path), mode=0o700)
    make(path)
    with fails_with("lock_unusable"):
        read_state(path)


def test_an_error_of_the_file_system_in_a_step_or_around_it_is_a_sentence(path):
    def refused():
        raise OSError(30, "Read-only file system", "/opt/x")

    plan = Plan()
    plan.add(Step("set_aside", "/opt/x", "safe", None, None, refused, reason="it is not wanted"))
    with pytest.raises(HostError) as caught:
        run_locked(lambda: plan, "test", 1, False, path=path)
    assert (caught.value.code, caught.value.msg) == ("write_failed", "cannot set aside /opt/x: Read-only file system")
    assert [action["state"] for action in caught.value.facts["actions"]] == ["failed"]
    plan.apply = lambda workers: refused()
    with pytest.raises(HostError) as caught:
        run_locked(lambda: plan, "test", 1, False, path=path)
    assert (caught.value.code, caught.value.msg) == (
        "write_failed",
        "cannot write to this host: Read-only file system (/opt/x)",
    )


@pytest.mark.parametrize("spoil", ["link", "owner", "mode"])
def test_a_directory_that_is_not_root_s_alone_is_refused(tmp_path, spoil):
    folder = tmp_path / "lock"
    if spoil == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir(mode=0o700)
        if spoil == "owner":
            os.chown(folder, 12345, 0)
        else:
            folder.chmod(0o702)
    with fails_with("unsafe_permissions", "must be a directory of root that only root can write"):
        lock_module._open(str(folder / "lock"))
