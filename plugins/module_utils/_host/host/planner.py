# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans a whole host: each section on the state that the earlier ones will leave."""

from __future__ import annotations

from typing import Any, Callable, Container, Dict, List, Optional, Sequence, Union

from ..attachments.request import ABSENT, PRESENT
from ..errors import HostError
from ..hostview import HostView
from ..plan import Plan, workers_of
from .plan import HostPlan, Part
from .request import HostRequest, bin_dir_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..binaries.outcome import WantedPlugins
    from ..networks.steps import ConfPlan

# The order in which sections are planned and applied, and whether it is their removals that have this place.
_ORDER = (
    ("plugins", False),
    ("networks", False),
    ("runtime", False),
    ("netns", False),
    ("attachments", False),
    ("netns", True),
    ("runtime", True),
    ("networks", True),
    ("plugins", True),
)


class HostPlanner:
    """Makes one plan. Reads files, namespaces and runtimes, asks plugins (VERSION, CHECK), and changes nothing.

    *wanted* are the plugins of the section ``plugins``, or the error that prevents knowing them. Steps of classes that
    are not in *classes* are left.
    """

    def __init__(
        self,
        request: HostRequest,
        wanted: Union[WantedPlugins, HostError, None],
        classes: Container[str],
        check_mode: bool,
    ) -> None:
        self._request = request
        self._wanted = wanted
        self._classes = classes
        self._check_mode = check_mode
        self._makers: Dict[str, Callable[[HostView], Plan]] = {
            "plugins": self._plan_plugins,
            "networks": self._plan_networks,
            "runtime": self._plan_runtime,
            "netns": self._plan_netns,
            "attachments": self._plan_attachments,
        }

    def make(self) -> HostPlan:
        """Return the plan. An error of a section is in its part; the others are planned."""
        return HostPlan(self._plan_after([]), self._plan_after)

    def _plan_after(self, done: Sequence[Part]) -> List[Part]:
        """Return the parts that come after those in *done*."""
        view = HostView()
        view.requested = {wanted.key: wanted.state == PRESENT for wanted in self._request.attachments}
        finished = {(part.section, part.late) for part in done}
        parts = list(done)
        for section, late in _ORDER:
            if section in self._request.sections and (section, late) not in finished:
                part = self._removals(view, parts) if (section, late) == _REMOVALS else self._part(section, late, view, parts)
                parts.extend([part] if part else [])
        return parts[len(done) :]

    def _part(self, section: str, late: bool, view: HostView, before: Sequence[Part]) -> Optional[Part]:
        """Return the plan of a section, None if it has another place in the order."""
        if late != (section in _UNDONE and self._request.state_of(section) != PRESENT):
            return None
        try:
            plan = self._makers[section](view)
        except HostError as error:
            return _failed(section, error, late)
        plan.restrict(self._classes)
        unsettled = self._unsettled(before)
        if section == "runtime" and unsettled:
            # A runtime that is restarted now would load other networks than it should.
            plan.leave(list(plan.steps))
        elif section == "attachments":
            plan.leave_networks(unsettled)
        part = Part(section, plan, plan.apply, late)
        if section == "networks" and any(wanted.state == ABSENT for wanted in self._request.attachments):
            part.steps = [step for step in plan.steps if step not in plan.defer_removals()]
        if part.error is None:
            plan.foretell(view)
        return part

    def _removals(self, view: HostView, before: Sequence[Part]) -> Optional[Part]:
        """Return the removals of networks that wait for the attachments, None if there are none."""
        first = next(part for part in before if part.section == "networks")
        if first.error is not None:
            return None
        plan = first.plan
        if all(step.state != "planned" for step in plan.steps):
        
        deferred = plan.defer_removals() if ... else []
        part = Part("networks", plan, plan.apply_deferred, late=True)
        part.steps = deferred
        return part if deferred else None
