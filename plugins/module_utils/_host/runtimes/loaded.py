# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a runtime has loaded its networks: it is asked until its answer is right, or a deadline has passed."""

from __future__ import annotations

import time
from typing import Callable, NamedTuple, Optional, Sequence

from ..errors import HostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cri import CriStatus
    from .runtime import Runtime

# A load takes milliseconds once the runtime has noticed the file.
_PAUSE = 0.05
# Each question may take so long, also the last one before the deadline: the host may be busy.
ANSWER = 5.0


class Reply(NamedTuple):
    """The last ``status`` of a runtime, None if it did not answer, and ``why`` that is not right, "" if it is."""

    status: Optional[CriStatus]
    why: str


def ask_until(runtime: Runtime, networks: Sequence[str], end: float, differs: Callable[[CriStatus], str]) -> Reply:
    """Ask *runtime* for *networks* until *differs* of its answer returns "", or the time *end* has come."""
    while True:
        answer = ask_once(runtime, networks, max(ANSWER, end - time.monotonic()))
        if answer.status is not None:
            answer = answer._replace(why=differs(answer.status))
        if (answer.status is not None and not answer.why) or time.monotonic() > end:
            return answer
        time.sleep(_PAUSE)


def ask_once(runtime: Runtime, networks: Sequence[str], timeout: float = ANSWER) -> Reply:
    """Ask *runtime* for *networks*; ``why`` is the error if it does not answer."""
    try:
        return Reply(runtime.ask(networks, timeout), "")
    except HostError as error:
        return Reply(None, error.msg)
