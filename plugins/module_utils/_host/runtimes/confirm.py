# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the running runtimes have loaded the expected networks: those that can be asked are asked."""

from __future__ import annotations

import time
from typing import Collection, List, Optional, Tuple

from ..errors import HostError
from .effective import Effective
from .profiles import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Verdict

# A load takes milliseconds once the runtime has noticed the file.
DEADLINE = 2.0
_PAUSE = 0.05


def confirm(
    effective: Effective, restarting: Collection[str] = (), deadline: float = DEADLINE
) -> Tuple[Optional[bool], List[str]]:
    """Ask containerd and CRI-O, for at most *deadline* seconds in all, which networks they have loaded.

    Returns True if all have loaded what their verdicts say, False if one has not, None if there was none to ask; and
    a sentence for each that has not. Runtimes that are not running, read another directory, or are in *restarting*
    are not asked.
    """
    asked = [
        (runtime, verdict)
        for runtime, verdict in zip(effective.runtimes, effective.verdicts)
        if runtime.pid and runtime.address and effective.reads_here(runtime) and runtime.name not in restarting
    ]
    if not asked:
        return None, []
    end = time.monotonic() + deadline
    found = [_difference(runtime, verdict, end) for runtime, verdict in asked]
    return not any(found), [text for text in found if text]


def _difference(runtime: Runtime, verdict: Verdict, end: float) -> str:
    """Return how the loaded networks differ from the verdict, "" if they do not."""
    expected = [network.name for network in verdict.networks]
    while True:
        text = _compare(runtime, expected)
        if not text or time.monotonic() > end:
            return text
        time.sleep(_PAUSE)


def _compare(runtime: Runtime, expected: List[str]) -> str:
    # Imported here because most hosts have no runtime to ask, and compiling it takes time.
    from . import cri

    try:
        status = cri.cri_status(runtime.address)
    except HostError as error:
        return f"{runtime.name} cannot be asked which networks it has loaded: {error.msg}"
    if status.networks is None:
        # CRI-O does not name them.
        right, told = status.ready == bool(expected), "a network" if status.ready else "none"
    else:
        right, told = status.networks == expected, ", ".join(status.networks) or "none"
    if right:
        return ""
    why = f" ({status.message})" if status.message and not status.ready else ""
    wanted = ", ".join(expected) or "none"
    return f"{runtime.name} has loaded {told}{why} instead of {wanted}; check its log, or restart it"
