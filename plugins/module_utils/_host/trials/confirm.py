# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the runtimes have loaded what was written, and their containers would get it."""

from __future__ import annotations

import time
from typing import List, Optional, Sequence, Tuple

from ..problems import ERROR, Finding
from ..runtimes.asking import ANSWER, ask_until, mismatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..networks.plan import ConfPlan
    from ..runtimes.runtime import Runtime
    from .readiness import Readiness

# A load takes milliseconds once the runtime has noticed the file.
DEADLINE = 2.0

Answer = Tuple[Optional[bool], List[str]]


def confirm_plan(plan: ConfPlan, bin_dirs: Sequence[str], deadline: float = DEADLINE) -> Optional[bool]:
    """Ask the runtimes until *deadline* seconds have passed whether they have loaded what a plan has written.

    Returns True if all have loaded what their verdicts say and nothing else is known to keep a container from its
    network, False if one has not, None if that is not known; warns of each that is not confirmed. Runtimes that are not
    running, read another directory, or have to be restarted are not asked.
    """
    # Imported late: a run that changes nothing asks nobody.
    from .readiness import Readiness, all_of

    effective, end = plan.judged, time.monotonic() + deadline
    asked = effective.asked(plan.restarting) if effective is not None else []
    if effective is None or not asked:
        return None
    readiness = Readiness(effective, asked, bin_dirs, max(ANSWER, deadline))
    answers = [_confirm_one(runtime, end, readiness) for runtime in asked]
    others = [_in_words(found) for found in readiness.of_others() if found.level == ERROR]
    for text in (text for _answer, texts in [*answers, (None, others)] for text in texts):
        plan.warn("not_confirmed", text)
    return all_of([answer for answer, _texts in answers])


def _in_words(found: Finding) -> str:
    return f"{found.what} ({found.evidence}); {found.remedy}"


def _confirm_one(runtime: Runtime, end: float, readiness: Readiness) -> Answer:
    verdict = runtime.verdict
    end += runtime.settles
    answer = ask_until(runtime, verdict.names, end, lambda status: getattr(mismatch(runtime, status), "what", ""))
    if answer.code == "cri_not_loaded":
        from .readiness import not_loaded

        found = not_loaded(runtime, answer.why)
        return False, [_in_words(found)]
    if answer.status is None:
        return None, [f"{runtime.name} cannot be asked which networks it has loaded: {answer.why}"]
    if answer.why:
        return False, [f"{answer.why}; check its log, or restart it"]
    if verdict.network is None and not verdict.networks:
        # It agrees that there is none, which is no network for a container.
        return None, []
    row = readiness.of(runtime)
    if row.ready:
        return True, []
    if row.ready is None:
        return None, [f"{runtime.name} has loaded its network, but it is not known whether it works: {row.doubt}"]
    texts = [_in_words(found) for found in row.obstacles if found.level == ERROR]
    return False, [f"{runtime.name} has loaded its network, but containers would not get it: {'; '.join(texts)}"]
