# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for the reasons of every plan."""

from __future__ import annotations

import os


def explained(plan):
    """Return *plan* if each of its steps has a phrase as its reason, and the diff shows it."""
    for step in [*plan.steps, *plan.left]:
        assert step.reason == step.describe()["reason"]
        assert 0 < len(step.reason) <= 200
        assert not step.reason.endswith(".") or step.reason.endswith("...")
    diff = plan.diff()
    for entry in diff:
        # The default callback of Ansible shows nothing else.
        assert all(isinstance(entry[side], (str, dict)) for side in ("before", "after"))
        if "step" in entry:
            step = plan.steps[entry["step"]]
            assert (entry["before_header"], entry["after_header"]) == (step.target, f"{step.kind}: {step.reason}")
    for place, step in enumerate(plan.steps):
        rows = [
            entry for entry in diff if entry["before_header"] == os.path.dirname(step.target) and "step" not in entry
        ]
        assert any(f"{step.kind}: {step.reason}" in entry["after_header"] for entry in rows) == bool(step.row)
        assert (place in [entry.get("step") for entry in diff]) == (not step.row)
    return plan


def reasons(plan):
    return [step.reason for step in plan.steps]
