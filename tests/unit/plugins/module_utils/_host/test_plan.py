# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
import os
import threading

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.plan import (
    DISRUPTIVE,
    FOREIGN,
    SAFE,
    Plan,
    Step,
    each_of,
    workers_of,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with


def step(name, log, item=None, lane="", fails=False, step_class=SAFE):
    def action():
        if fails:
            raise HostError("%s failed" % name)
        log.append(name)

    return Step("write", name, step_class, None, name, action, item=item, lane=lane, reason="it differs")


def plan_of(*steps):
    plan = Plan()
    for one in steps:
        plan.add(one)
    return plan


def test_an_empty_plan_changes_nothing():
    plan = Plan()
    plan.apply()
    assert (plan.changed, plan.diff(), plan.actions()) == (False, [], [])


def test_foreign_steps_are_shown_and_never_executed():
    log = []
    plan = plan_of(step("theirs", log, step_class=FOREIGN))
    plan.apply()
    assert not plan.changed
    assert plan.actions() == [{"kind": "write", "target": "theirs", "class": "foreign", "reason": "it differs"}]
    assert log == []


def test_changed_diff_and_actions_speak_of_the_same_steps():
    log = []
    plan = plan_of(step("a", log), step("b", log, step_class=DISRUPTIVE))
    assert plan.changed
    assert [entry["after"] for entry in plan.diff()] == [action["target"] for action in plan.actions()] == ["a", "b"]
    plan.apply()
    assert log == ["a", "b"]


def test_a_diff_begins_with_the_reason_and_shows_only_what_differs():
    before, after = {"mode": "0700", "owner": "0:0", "list": [1, 2]}, {"mode": "0755", "owner": "0:0", "list": [1, 3]}
    changed = Step("set_attributes", "/x", SAFE, before, after, lambda: None, reason="mode 0700, want 0755")
    made = Step("install", "/y", SAFE, None, after, lambda: None, reason="not installed")
    assert plan_of(changed, made).diff() == [
        {
            "before_header": "/x",
            "after_header": "set_attributes: mode 0700, want 0755",
            "before": {"mode": "0700", "list": ["...", 2]},
            "after": {"mode": "0755", "list": ["...", 3]},
            "step": 0,
        },
        {"before_header": "/y", "after_header": "install: not installed", "before": "", "after": after, "step": 1},
    ]


def test_parts_and_section_are_shown_where_they_are_set():
    whole = Step("repair", "a/b/c", DISRUPTIVE, None, None, lambda: None, reason="c is gone", parts=("del", "add"))
    whole.section = "attachments"
    assert whole.describe() == {
        "kind": "repair",
        "target": "a/b/c",
        "class": "disruptive",
        "reason": "c is gone",
        "parts": [{"kind": "del"}, {"kind": "add"}],
        "section": "attachments",
    }


def test_a_reason_is_required_and_short():
    make = functools.partial(Step, "write", "/x", SAFE, None, None, print)
    with pytest.raises(TypeError):
        make()
    steps = plan_of(make(reason="x" * 200), make(reason="x" * 201)).steps
    assert [step.reason for step in steps] == ["x" * 200, "x" * 197 + "..."]


def test_a_step_without_item_ends_the_plan():
    log = []
    with pytest.raises(HostError, match="b failed"):
        plan_of(step("a", log), step("b", log, fails=True), step("c", log)).apply()
    assert log == ["a"]


@pytest.mark.parametrize("workers", [1, 4])
def test_the_rest_of_a_failed_item_is_left_out_and_others_go_on(workers):
    log = []
    plan = plan_of(
        step("del-1", log, item=1, lane="c1", fails=True),
        step("add-1", log, item=1, lane="c1"),
        step("add-2", log, item=2, lane="c1"),
        step("add-3", log, item=3, lane="c2"),
    )
    plan.apply(workers)
    assert sorted(log) == ["add-2", "add-3"]
    assert [one.state for one in plan.steps] == ["failed", "left_out", "done", "done"]
    assert plan.steps[0].error.msg == "del-1 failed"


def test_lanes_run_at_the_same_time_and_a_lane_in_order():
    barrier = threading.Barrier(2, timeout=10)
    log = []

    def meet(name):
        def action():
            barrier.wait()
            log.append(name)

        return Step("add", name, SAFE, None, name, action, item=name, lane=name[0], reason="not attached")

    plan = plan_of(meet("a1"), meet("b1"), meet("a2"), meet("b2"))
    plan.apply(2)
    assert [name for name in log if name[0] == "a"] == ["a1", "a2"]
    assert [name for name in log if name[0] == "b"] == ["b1", "b2"]


def test_an_error_in_a_thread_reaches_the_caller():
    log = []
    with pytest.raises(HostError, match="x failed"):
        plan_of(step("x", log, lane="1", fails=True), step("y", log, lane="2", item=1)).apply(2)


def test_a_warning_is_kept_once():
    plan = Plan()
    plan.warn("missing_network", "no a")
    plan.warn("missing_network", "no a")
    assert list(plan.warnings) == [("missing_network", "no a")]


def test_what_is_not_allowed_is_left_with_the_rest_of_its_lane():
    log = []
    plan = plan_of(
        step("del", log, lane="a", step_class=DISRUPTIVE),
        step("add", log, lane="a"),
        step("other", log, lane="b"),
        step("theirs", log, lane="a", step_class=FOREIGN),
    )
    plan.restrict([SAFE])
    assert [one.target for one in plan.left] == ["del", "add"]
    assert [one["target"] for one in plan.actions()] == ["other", "theirs"]
    assert plan.changed
    plan.apply()
    assert log == ["other"]


def test_a_plan_of_which_all_is_left_changes_nothing():
    plan = plan_of(step("del", [], step_class=DISRUPTIVE), step("theirs", [], step_class=FOREIGN))
    plan.restrict([SAFE])
    assert (plan.changed, plan.pending) == (False, False)
    assert [one.state for one in plan.left] == ["left"]


def test_a_plan_of_allowed_classes_is_whole():
    plan = plan_of(step("del", [], step_class=DISRUPTIVE), step("add", []))
    plan.restrict([SAFE, DISRUPTIVE])
    assert (len(plan.steps), plan.left) == (2, [])


def test_the_number_of_workers(monkeypatch):
    assert [workers_of(number) for number in (1, 2, 99)] == [1, 2, 99]
    for number in (0, -1):
        with fails_with("bad_parallel", "parallel must be at least 1"):
            workers_of(number)
    for processors, workers in ((1, 2), (2, 3), (3, 4), (64, 4)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, number=processors: set(range(number)), raising=False)
        assert workers_of() == workers


def test_several_errors_are_one():
    plan = Plan()
    assert plan.error is None
    plan.errors.append(HostError("first", code="one", file="a"))
    assert plan.error is plan.errors[0]
    plan.errors.append(HostError("second", code="two", file="b"))
    error = plan.error
    assert (error.msg, error.code, error.facts) == ("first; second", "one", {"file": "a"})


def test_everything_is_done_once_and_side_by_side():
    barrier = threading.Barrier(3, timeout=10)
    done = []

    def work(number):
        # Would never be passed by fewer than three workers.
        barrier.wait()
        done.append(number)

    each_of(work, range(9), 3)
    assert sorted(done) == list(range(9))


def test_one_worker_keeps_the_order():
    done = []
    each_of(done.append, [3, 1, 2], 1)
    assert done == [3, 1, 2]


def test_an_exception_reaches_the_caller():
    def work(number):
        raise ValueError(number)

    with pytest.raises(ValueError, match="1"):
        each_of(work, [1], 4)
    with pytest.raises(ValueError):
        each_of(work, [1, 2, 3], 2)
