# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The plan for a directory of network configurations, and its report."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Optional, Set

from ..confdir import ConfFile
from ..files import Attributes
from ..manifest import Manifest
from ..plan import Plan, Step
from ..problems import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtimes.effective import Effective
    from .execute import ConfSteps


class ConfPlan(Plan):
    """A plan over one conf_dir.

    ``networks`` is ``[{name, path, action}]``, ``problems`` what the levels found, ``effective`` what the runtimes use,
    ``configured`` the changes of their own configurations. ``files_after`` are the files that the directory will have,
    ``written`` the names of those that a step changes. ``judged`` are the runtimes with the networks that they should
    have loaded after the steps, None if that is not known. ``reload`` is the step that tells a runtime that the
    directory has changed.
    """

    def __init__(self, conf_dir: str, manifest: Manifest, attributes: Attributes) -> None:
        super().__init__()
        self.conf_dir = conf_dir
        self.manifest = manifest
        self.attributes = attributes
        self.networks: List[Dict[str, Any]] = []
        self.problems: List[Finding] = []
        self.effective: List[Dict[str, Any]] = []
        self.configured: List[Dict[str, Any]] = []
        self.files_after: List[ConfFile] = []
        self.written: Set[str] = set()
        self.judged: Optional[Effective] = None
        self.reload: Optional[Step] = None
        self._changes: Optional[ConfSteps] = None
        self._deferred: List[Step] = []

    @property
    def changes(self) -> ConfSteps:
        """What adds the steps."""
        if self._changes is None:
            from .execute import ConfSteps

            self._changes = ConfSteps(self, self.conf_dir, self.manifest, self.attributes)
        return self._changes

    def path(self, name: str) -> str:
        return os.path.join(self.conf_dir, name)

    def claims(self, name: str) -> bool:
        """Tell whether a step makes the file *name* managed."""
        return self._changes is not None and self._changes.claims(self.path(name))

    def leave_out(self, steps: Iterable[Step]) -> None:
        super().leave_out(steps)
        if not self.left:
            return
        for row in self.networks:
            row["action"] = "none" if row["action"] == "none" else "left"
        for row in self.configured:
            row.update(action="none" if row["action"] == "none" else "left", restart=False)
        # With steps left out, the predicted networks are not what the runtimes load.
        self.judged = None

    @property
    def restarting(self) -> List[str]:
        """The runtimes that have to be restarted to know what the plan writes."""
        return [row["runtime"] for row in self.configured if row["restart"]]

    def asks_runtimes(self, check_mode: bool) -> bool:
        """Tell whether a runtime can have loaded what is written. It cannot have loaded what is only planned."""
        return not check_mode and self.judged is not None and bool(self.judged.asked(self.restarting))

    def apply(self, workers: int = 1) -> None:
        """Execute the steps, in order, without the deferred ones."""
        if self.reload is not None:
            from ..runtimes.nomad import note_reload

            note_reload(self.reload)
        self.changes.execute([step for step in self.steps if step not in self._deferred])

    def apply_deferred(self, workers: int = 1) -> None:
        """Execute the deferred steps, in order."""
        self.changes.execute(self._deferred)

    def defer_removals(self) -> List[Step]:
        """Take the removals at the end of the plan out of :meth:`apply`; return them."""
        kept = len(self.steps)
        while kept and self.steps[kept - 1].kind in ("remove", "set_aside", "reload"):
            kept -= 1
        self._deferred = self.steps[kept:]
        return self._deferred
