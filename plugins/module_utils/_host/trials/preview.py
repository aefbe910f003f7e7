# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What the ADDs of new attachments would do, found by rehearsals."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Sequence

from ..attachments.drift import Present
from ..attachments.outcome import ADD, AttachPlan, Outcome
from ..errors import HostError
from ..footprints.footprint import Objects
from ..footprints.object_kinds import describe, text_of_mac
from ..footprints.rehearsed import Rehearsed
from .rehearsal import rehearse

_TOTAL = 60.0


def add_previews(plan: AttachPlan, bin_dirs: Sequence[str]) -> None:
    """Add to the ADDs of a plan what the kernel would get from them, for its diff and its outcomes.

    The ADDs run one after the other, so that no two of them get the same address.
    """
    deadline = time.monotonic() + _TOTAL
    earlier: Dict[str, List[Rehearsed]] = {}
    steps = {step.item: step for step in plan.steps if step.kind == "add"}
    for outcome in plan.outcomes:
        step = steps.get(outcome.key)
        if outcome.todo != ADD or step is None or outcome.config is None:
            continue
        others = earlier.setdefault(outcome.key.network, [])
        try:
            if time.monotonic() > deadline:
                raise HostError(f"there was no time for it within {_TOTAL:g} s")
            present = Present(outcome.given(outcome.config), {}, None)
            rehearsed = rehearse([present], bin_dirs, earlier=others)[outcome.key]
            if isinstance(rehearsed, HostError):
                raise rehearsed
        except HostError as error:
            outcome.preview = {"unknown": error.msg}
            plan.note(outcome, "no_preview", f"{outcome.key}: what its ADD would do is not known: {error.msg}")
        else:
            others.append(rehearsed)
            outcome.preview = _described(rehearsed, outcome)
        step.after = dict(step.after, preview=outcome.preview)


def _described(rehearsed: Rehearsed, outcome: Outcome) -> Dict[str, Any]:
    others = [objects for owner, objects in rehearsed.owned.items() if owner != outcome.key]
    shared = {place: kernel_object for objects in others for place, kernel_object in objects.items()}
    wanted = outcome.wanted
    asked = f"{outcome.config.bytes!r} {wanted.args} {wanted.capability_args}".lower() if outcome.config else ""
    # The real ADD chooses others at random.
    chosen = [mac for mac in map(text_of_mac, rehearsed.macs) if mac not in asked]

    def told(objects: Objects) -> List[str]:
        texts = describe(objects)
        for mac in chosen:
            texts = [text.replace(mac, "MAC*") for text in texts]
        return texts

    own = rehearsed.owned.get(tuple(outcome.key), {})
    return {"container": told(rehearsed.inside), "host": told(own), "shared": told(shared)}
