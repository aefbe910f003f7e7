# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the runtimes have loaded what was written, and their containers would get it."""

from __future__ import annotations

import time
from typing import List, Optional, Sequence, Tuple

from ..problems import ERROR, Finding
from ..runtimes.asking import ask_until, mismatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..networks.entries import ConfPlan
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
    readiness = Readiness(effective, asked, bin_dirs)
    answers = [_confirm_one(runtime, end, readiness) for runtime in asked]
    others = [_in_words(finding) for finding in readiness.of_others() if finding.level == ERROR]
    for text in (text for _answer, texts in [*answers, (None, others)] for text in texts):
        plan.warn("not_confirmed", text)
    return all_of([answer for answer, _texts in answers])


def _in_words(finding: Finding) -> str:
    # What a runtime has answered is in the text of not_loaded.
    shown = f" ({finding.evidence})" if finding.evidence and finding.code != "not_loaded" else ""
    return finding._replace(what=finding.what + shown).message


def _confirm_one(runtime: Runtime, end: float, readiness: Readiness) -> Answer:
    verdict = runtime.verdict
    end += runtime.settles
    reply = ask_until(runtime, verdict.names, end, lambda status: getattr(mismatch(runtime, status), "what", ""))
    row = readiness.of(runtime, reply)
    # An older state is not what was written. That the files give it no network is what the plan says.
    failed = [finding for finding in row.obstacles if finding.level == ERROR or finding.code == "not_loaded"]
    failed = [finding for finding in failed if finding.code not in ("no_network", "broken_file")]
    if failed:
        words = "; ".join(map(_in_words, failed))
        return False, [f"containers of {runtime.name} would not get their network: {words}"]
    if row.doubt:
        return None, [f"it is not known whether containers of {runtime.name} get their network: {row.doubt}"]
    return (True if verdict.networks or verdict.network is not None else None), []
