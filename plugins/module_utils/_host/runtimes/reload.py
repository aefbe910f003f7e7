# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Telling Nomad that its networks have changed: it reads their directory only when it starts, and on SIGHUP.

(Nomad client/fingerprint/cni.go: a reloadable fingerprint.) Containers do not notice the signal.
"""

from __future__ import annotations

import os
import signal
from typing import Collection, List, Optional

from ..plan import SAFE, Step
from .planner import forget_restart, note_restart, restart_pending
from .profiles import Runtime

# The name of the note that a signal has to be sent.
_NOTE = "nomad.reload"


def reload_of(runtimes: List[Runtime], changes: bool, restarting: Collection[str]) -> Optional[Reload]:
    """Return what tells the agent among *runtimes*, which read the directory of a plan; None if nothing is to be told.

    That is if the plan *changes* the directory, or an earlier run was interrupted before it told the agent.
    """
    agent = next((one for one in runtimes if one.name == "nomad" and one.pid and one.reads), None)
    if agent is None or "nomad" in restarting or not (changes or restart_pending(_NOTE, agent.pid)):
        return None
    return Reload(agent.pid)


class Reload:
    """The signal to the agent with the process *pid*."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def note(self) -> None:
        """Record, before the first change, that the agent has to be told."""
        note_restart(_NOTE, self.pid)

    def step(self) -> Step:
        """Return the last step of the plan."""
        reason = "Nomad reads its networks only when it starts and on SIGHUP"
        return Step("reload", "nomad", SAFE, None, {"signal": "SIGHUP", "process": self.pid}, self._send, reason=reason)

    def _send(self) -> None:
        # An agent that has started since has read the directory.
        if restart_pending(_NOTE, self.pid):
            os.kill(self.pid, signal.SIGHUP)
        forget_restart(_NOTE)
