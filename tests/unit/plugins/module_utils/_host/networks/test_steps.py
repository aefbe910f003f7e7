# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Steps that are left out or put off, for the plan of a whole host."""

from __future__ import annotations

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.networks.conf_host import (
    actions,
    steps,
    text,
    unwant,
    want,
)


def kinds(some):
    return [step.kind for step in some]


def configured():
    return [
        {"action": "configured", "restart": True},
        {"action": "none", "restart": False},
        {"action": "a new one", "restart": True},
    ]


def test_the_rows_of_a_plan_with_steps_left_out(conf_host):
    conf_host.run(want("a"))
    plan = conf_host.plan(want("a"), want("b"))
    plan.configured = configured()
    assert plan.judged is not None
    plan.leave_out([step for step in plan.steps if step.kind == "create"])
    assert (actions(plan), steps(plan)) == (["none", "left"], [])
    assert plan.configured == [
        {"action": "left", "restart": False},
        {"action": "none", "restart": False},
        {"action": "left", "restart": False},
    ]
    assert plan.judged is None


def test_a_plan_with_nothing_left_out_keeps_its_rows(conf_host):
    plan = conf_host.plan(want("a"))
    plan.configured = configured()
    assert plan.judged is not None
    plan.leave_out([])
    assert (actions(plan), plan.configured) == (["created"], configured())
    assert plan.judged is not None


def test_removals_at_the_end_are_put_off(conf_host):
    conf_host.run(want("a"), want("b"), want("c"))
    conf_host.put("87-x.conflist", text("x"))
    plan = conf_host.plan(want("a"), want("b", mtu=9), unwant("c"), exclusive=True)
    assert kinds(plan.steps) == ["write", "remove", "set_aside"]
    assert kinds(plan.defer_removals()) == ["remove", "set_aside"]
    plan.apply()
    assert conf_host.files() == ["10-a.conflist", "10-b.conflist", "10-c.conflist", "87-x.conflist"]
    assert [step.state for step in plan.steps] == ["done", "planned", "planned"]
    plan.apply_deferred()
    assert conf_host.files() == ["10-a.conflist", "10-b.conflist", "87-x.conflist.podwire-aside"]
    assert {step.state for step in plan.steps} == {"done"}


def test_a_plan_of_removals_only_and_one_without(conf_host):
    conf_host.run(want("a"))
    plan = conf_host.plan(unwant("a"))
    assert kinds(plan.defer_removals()) == ["remove"]
    assert conf_host.plan(want("b")).defer_removals() == []
    assert conf_host.plan(want("a")).defer_removals() == []
