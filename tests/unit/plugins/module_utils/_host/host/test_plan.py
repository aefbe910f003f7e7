# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""How the parts of a host's plan are applied, with parts that only note what they do."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.host.plan import HostPlan, Part, errors_of_sections
from ansible_collections.podwire.cni.plugins.module_utils._host.plan import DISRUPTIVE, SAFE, Plan, Step
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.host.whole_host import errors
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import raising


class Sections:
    """Makes parts. A step whose target is in ``errors`` fails with the error's next code, "" for none."""

    def __init__(self):
        self.log = []
        self.errors = {}
        self.planned = []
        # What a second plan consists of: the parts after those that are done.
        self.second = lambda done: []

    def part(self, section, *targets, late=False, kind="write", each_alone=False):
        plan = Plan()
        for target in targets:
            item = target if each_alone else None
            plan.add(
                Step(
                    kind,
                    target,
                    SAFE,
                    None,
                    target,
                    lambda t=target: self._act(t),
                    item=item,
                    lane=target,
                    reason="differs",
                )
            )
        return Part(section, plan, plan.apply, late)

    def _act(self, target):
        codes = self.errors.get(target, [])
        code = codes.pop(0) if codes else ""
        if code:
            raise HostError(f"{target} failed", code=code)
        self.log.append(target)

    def host(self, *parts):
        return HostPlan(list(parts), self._plan_again)

    def _plan_again(self, done):
        self.planned.append([(part.section, part.late) for part in done])
        return self.second(done)


@pytest.fixture
def sections():
    return Sections()


def described(plan):
    return [(step["section"], step["target"], step["state"]) for step in plan.progress()]


def test_check_mode_shows_the_steps_beside_an_error_because_of_which_a_run_takes_none(sections):
    plan = Plan()
    plan.add(Step("write", "a", SAFE, None, "a", lambda: None, reason="differs"))
    plan.errors.append(HostError("another file is broken", code="bad_config"))
    host = sections.host(Part("networks", plan, plan.apply), sections.part("netns", "b"))
    assert described(host) == [("networks", "a", "planned"), ("netns", "b", "planned")]
    assert [entry["after"] for entry in host.diff()] == ["a", "b"]
    assert errors(host) == [("networks", "bad_config")]
    host.apply()
    assert sections.log == ["b"]


def test_work_before_the_steps_may_fail(sections):
    part = sections.part("networks", "a")
    part.apply = raising(OSError(30, "Read-only file system", "/var/lib/podwire"))
    plan = sections.host(part)
    plan.apply()
    assert described(plan) == [("networks", "a", "left_out")]
    ((section, error),) = errors_of_sections(plan)
    assert (section, error.code) == ("networks", "write_failed")
    assert error.msg == "cannot write to this host: Read-only file system (/var/lib/podwire)"


@pytest.mark.parametrize("code", ["changed_meanwhile", "host_changed"])
def test_a_stale_part_is_planned_again_once(sections, code):
    sections.errors["b"] = [code]
    sections.second = lambda done: [sections.part("networks", "b"), sections.part("netns", "c")]
    plan = sections.host(sections.part("networks", "a", "b"), sections.part("netns", "c"))
    plan.apply()
    assert sections.planned == [[]]
    assert sections.log == ["a", "b", "c"]
    # What the first attempt has done counts as done.
    assert described(plan) == [("networks", "a", "done"), ("networks", "b", "done"), ("netns", "c", "done")]
    assert errors(plan) == []


def test_a_stale_part_is_refused_the_second_time_and_the_others_go_on(sections):
    sections.errors["b"] = ["changed_meanwhile"] * 9
    second = iter(
        [lambda: [sections.part("networks", "b"), sections.part("netns", "c")], lambda: [sections.part("netns", "c")]]
    )
    sections.second = lambda done: next(second)()
    plan = sections.host(sections.part("networks", "a", "b"), sections.part("netns", "c"))
    plan.apply()
    assert sections.planned == [[], [("networks", False)]]
    assert described(plan) == [("networks", "a", "done"), ("networks", "b", "failed"), ("netns", "c", "done")]
    assert errors(plan) == [("networks", "changed_meanwhile")]


@pytest.mark.parametrize("rest", [[], ["plugins"]])
def test_a_stale_removal_that_somebody_else_has_made_is_done(sections, rest):
    sections.errors["b"] = ["changed_meanwhile"]
    sections.second = lambda done: [sections.part(name, "p", late=True) for name in rest]
    late = [sections.part(name, "p", late=True) for name in rest]
    plan = sections.host(sections.part("networks", "a"), sections.part("networks", "r", "b", late=True), *late)
    plan.apply()
    assert described(plan) == [
        ("networks", "a", "done"),
        ("networks", "r", "done"),
        *((name, "p", "done") for name in rest),
    ]
    assert errors(plan) == []


# ---- removals, which come after the attachments


def attachments(sections, *targets, outcomes=()):
    part = sections.part("attachments", *targets, kind="del", each_alone=True)
    part.plan.outcomes = list(outcomes)
    return part


def removals(sections):
    return [sections.part(name, name, late=True) for name in ("netns", "networks", "plugins")]


def outcome(state, error):
    return SimpleNamespace(
        wanted=SimpleNamespace(state=state), key="a/c/eth0", error={"code": "x", "message": "m"} if error else None
    )


def failing_del(sections):
    sections.errors["a/b/eth0"] = ["del_failed"]
    return attachments(sections, "a/b/eth0", "a/d/eth0")


def unplanned(sections):
    return attachments(sections, "a/d/eth0", outcomes=[outcome("absent", error=True)])


def left(sections):
    part = attachments(sections, "a/b/eth0", "a/d/eth0")
    part.plan.leave_out([part.plan.steps[0]])
    part.steps = list(part.plan.steps)
    return part


def failed(_sections):
    part = Part("attachments", None, lambda workers: None)
    part.error = HostError("m", code="unsafe_permissions")
    return part


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (failing_del, "a/b/eth0 could not be detached"),
        (unplanned, "a/c/eth0 could not be detached"),
        (left, "a/b/eth0 could not be detached"),
        (failed, "the section attachments has failed (m)"),
    ],
)
def test_nothing_that_an_attachment_needs_is_removed_while_it_is_there(sections, made, why):
    plan = sections.host(made(sections), *removals(sections))
    plan.apply()
    late = [(name, name, "left_out") for name in ("netns", "networks", "plugins")]
    assert described(plan)[-3:] == late
    assert not {"netns", "networks", "plugins"} & set(sections.log)
    texts = {error.msg for section, error in errors_of_sections(plan) if section != "attachments"}
    assert texts == {f"nothing is removed here, because {why}"}


def test_an_attachment_that_failed_to_be_made_does_not_keep_what_is_removed(sections):
    part = attachments(sections, outcomes=[outcome("present", error=True)])
    plan = sections.host(part, *removals(sections))
    plan.apply()
    assert sections.log == ["netns", "networks", "plugins"]


def test_left_steps_and_warnings_of_all_sections_are_reported_once(sections):
    one, two = sections.part("networks", "a", "b"), sections.part("runtime", "c")
    one.plan.leave_out([one.plan.steps[1]])
    for part in (one, two):
        part.plan.warn("same", "text")
    two.plan.steps[0].step_class = DISRUPTIVE
    plan = sections.host(one, two)
    assert [step.target for step in plan.left] == ["b"]
    assert list(plan.warnings) == [("same", "text")]
