# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for the reasons of every plan."""

from __future__ import annotations


def explained(plan):
    """Return *plan* if each of its steps has a phrase as its reason, and the diff shows it."""
    for step in [*plan.steps, *plan.left]:
        assert step.reason == step.describe()["reason"]
        assert 0 < len(step.reason) <= 200
        assert not step.reason.endswith(".") or step.reason.endswith("...")
    for step, entry in zip(plan.steps, plan.diff()):
        assert (entry["before_header"], entry["after_header"]) == (step.target, f"{step.kind}: {step.reason}")
        # The default callback of Ansible shows nothing else.
        assert all(isinstance(entry[side], (str, dict)) for side in ("before", "after"))
    return plan


def reasons(plan):
    return [step.reason for step in plan.steps]
