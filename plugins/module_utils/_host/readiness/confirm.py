# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether containers of the running runtimes would get the expected networks: those that can be asked are asked."""

from __future__ import annotations

import time
from typing import Collection, List, Optional, Tuple

from ..problems import ERROR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..networks.plan import ConfPlan
    from ..runtimes.effective import Effective
    from ..runtimes.rules import Verdict
    from ..runtimes.runtime import Runtime

# A load takes milliseconds once the runtime has noticed the file.
DEADLINE = 2.0

Answer = Tuple[Optional[bool], List[str]]


def confirm_plan(plan: ConfPlan, bin_dirs: Collection[str]) -> Answer:
    """Do the same as :func:`confirm` after *plan* was applied, for all runtimes that need no restart."""
    if plan.judged is None:
        return None, []
    return confirm(plan.judged, [row["runtime"] for row in plan.configured if row["restart"]], bin_dirs)


def confirm(
    effective: Effective,
    restarting: Collection[str] = (),
    bin_dirs: Collection[str] = (),
    deadline: float = DEADLINE,
) -> Answer:
    """Ask the runtimes until *deadline* seconds have passed which networks they have loaded.

    Returns True if all have loaded what their verdicts say and nothing else is known to keep a container from its
    network, False if one has not, None if that is not known; and a sentence for each that is not confirmed. Runtimes
    that are not running, read another directory, or are in *restarting* are not asked.
    """
    asked = [
        (runtime, verdict)
        for runtime, verdict in zip(effective.runtimes, effective.verdicts)
        if effective.reads_here(runtime) and runtime.name not in restarting and runtime.can_be_asked
    ]
    if not asked:
        return None, []
    end = time.monotonic() + deadline
    answers = [_confirm_one(effective, runtime, verdict, list(bin_dirs), end) for runtime, verdict in asked]
    known = [answer for answer, _texts in answers]
    confirmed = False if False in known else None if None in known else True
    return confirmed, [text for _answer, texts in answers for text in texts]


def _confirm_one(effective: Effective, runtime: Runtime, verdict: Verdict, bin_dirs: List[str], end: float) -> Answer:
    from ..runtimes.loaded import ANSWER, ask_until, mismatch
    from .report import Readiness

    end += runtime.settles
    answer = ask_until(runtime, verdict.names, end, lambda status: mismatch(runtime, verdict, status).text)
    if answer.status is None:
        return None, [f"{runtime.name} cannot be asked which networks it has loaded: {answer.why}"]
    if answer.why:
        return False, [f"{runtime.name} {answer.why}; check its log, or restart it"]
    if verdict.network is None and not verdict.networks:
        # It agrees that there is none, which is no network for a container.
        return None, []
    row = Readiness(effective, bin_dirs, max(ANSWER, end - time.monotonic())).of(runtime, verdict)
    if row.ready:
        return True, []
    if row.ready is None:
        return None, [f"{runtime.name} has loaded its network, but it is not known whether it works: {row.doubt}"]
    texts = [
        f"{obstacle.message} ({obstacle.evidence}); {obstacle.remedy}"
        for obstacle in row.obstacles
        if obstacle.level == ERROR
    ]
    return False, [f"{runtime.name} has loaded its network, but containers would not get it: {'; '.join(texts)}"]
