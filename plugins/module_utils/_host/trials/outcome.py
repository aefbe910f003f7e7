# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of each network that ``cni_smoke`` looks at, and the plan that they are in."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from ...libcni.conf import NetworkConfigList
from ..errors import HostError
from ..plan import Plan

PLANNED, PASSED, FAILED, SKIPPED = "planned", "passed", "failed", "skipped"
UNUSABLE = "unusable"
TAKE_BACK = "take_back"


class SmokeSettings(NamedTuple):
    """The options of cni_smoke. ``networks`` None: all that can be tried without harm. ``timeout`` in seconds."""

    conf_dir: str
    bin_dirs: Sequence[str]
    cache_dir: str
    networks: Optional[Sequence[str]]
    ping: bool
    timeout: float
    check_mode: bool


class Trial:
    """One network on its way.

    ``add``, ``check``, ``ping``, ``deleted``: how each ended, None for what did not take place. ``notes`` say why it
    did not, or cannot count.
    """

    def __init__(self, network: str, file: str) -> None:
        self.network = network
        self.file = file
        self.config: Optional[NetworkConfigList] = None
        self.status = PLANNED
        self.reason = ""
        self.add: Optional[str] = None
        self.check: Optional[str] = None
        self.ping: Optional[str] = None
        self.deleted: Optional[str] = None
        self.ips: Optional[List[str]] = None
        self.leaks: List[Dict[str, Any]] = []
        self.notes: List[Dict[str, str]] = []
        self.error: Optional[Dict[str, Any]] = None

    def note(self, code: str, message: str) -> None:
        self.notes.append({"code": code, "message": message})

    def skip(self, reason: str, message: str) -> None:
        self.status, self.reason = SKIPPED, reason
        self.note(reason, message)

    def fail(self, error: HostError) -> None:
        """Note what went wrong; the first error is the one to look at."""
        self.status = FAILED
        if self.error is None:
            self.error = dict(error.facts, code=error.code, message=error.msg)

    def row(self) -> Dict[str, Any]:
        """Return what the module returns of this network."""
        return {
            "network": self.network,
            "file": self.file,
            "status": self.status,
            "reason": self.reason,
            "add": self.add,
            "check": self.check,
            "ping": self.ping,
            "del": self.deleted,
            "ips": self.ips,
            "leaks": self.leaks,
            "notes": self.notes,
            "error": self.error,
        }


class SmokePlan(Plan):
    """The plan, and the trial of each network. To try a network is no change: nothing of it stays."""

    def __init__(self) -> None:
        super().__init__()
        self.trials: List[Trial] = []
        self.finish: Callable[[], None] = lambda: None

    @property
    def changed(self) -> bool:
        return any(step.kind == TAKE_BACK for step in self.steps)

    @property
    def pending(self) -> bool:
        return bool(self.steps)

    def apply(self, workers: int = 1) -> None:
        try:
            super().apply(1)
        finally:
            self.finish()
