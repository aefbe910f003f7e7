# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""One plan determines ``changed``, the diff and the actions; check mode prints it, a run executes it."""

from __future__ import annotations

import os
import threading
from typing import Any, Callable, Container, Dict, Iterable, List, Optional, Sequence, Tuple, TypeVar

from .errors import HostError
from .struct import grouped, struct

T = TypeVar("T")


def workers_of(parallel: Optional[int] = None) -> int:
    """Return the number of workers that the option ``parallel`` sets, or a number for this host if it is not set.

    Raises HostError ``bad_parallel``.
    """
    if parallel is None:
        # One more than the processors, because plugins wait; more than four workers compete for the same locks.
        return min(4, len(os.sched_getaffinity(0)) + 1)
    if parallel < 1:
        raise HostError("parallel must be at least 1", code="bad_parallel")
    return parallel


def each_of(function: Callable[[T], None], things: Iterable[T], workers: int) -> None:
    """Call *function* with each thing, in up to *workers* threads. The first exception ends the work and is raised."""
    waiting = list(things)
    if workers <= 1 or len(waiting) <= 1:
        for thing in waiting:
            function(thing)
        return
    waiting.reverse()
    errors: List[BaseException] = []

    def work() -> None:
        while not errors:
            try:
                thing = waiting.pop()
            except IndexError:
                return
            try:
                function(thing)
            except BaseException as error:  # noqa: BLE001 - handed to the caller's thread below
                errors.append(error)

    threads = [threading.Thread(target=work) for dummy in range(min(workers, len(waiting)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


SAFE = "safe"
"""No running container notices: a managed file, or what is put back in place."""
DISRUPTIVE = "disruptive"
"""A container is off its network for a moment, a network goes, or a runtime restarts."""
FOREIGN = "foreign"
"""Made by another owner: reported, never executed."""

_LONGEST_REASON = 200


@struct
class Step:
    """One change of one thing.

    ``kind`` is a verb (``write``, ``install``, ``add`` ...), ``target`` what it acts on (a path, or
    ``network/container_id/ifname``), ``step_class`` one of the constants above, ``before`` and ``after`` the state for
    the diff (a text, a JSON-ready object, or None: does not exist; a value inside that only a run can know is None),
    ``action`` the function that makes the change. ``reason`` is a phrase that says what is not as desired, without
    secrets: ``eth0 is gone``. Steps with the same ``item`` belong together: when one fails, the rest of them are left
    out and other items continue. A failing step without item ends the plan. Steps of one ``lane`` run in order, lanes
    in parallel. ``parts`` are the kinds of what the step does, if it does several things; ``lost`` those of the objects
    that a repair in place is about. ``section`` is the part of a host that it belongs to, in a plan of several.
    ``row`` names its line in the one diff of its directory.
    """

    kind: str
    target: str
    step_class: str
    before: Any
    after: Any
    action: Callable[[], None]
    reason: str
    item: Any = None
    lane: str = ""
    parts: Sequence[str] = ()
    lost: Sequence[str] = ()
    section: str = ""
    row: str = ""
    state: str = "planned"
    error: Optional[HostError] = None

    def describe(self) -> Dict[str, Any]:
        """Return what the user sees: ``{kind, target, class, reason}``, and ``parts``, ``lost``, ``section`` if set."""
        parts = [{"kind": kind} for kind in self.parts]
        more = {"parts": parts, "lost": list(self.lost), "section": self.section}
        shown = {"kind": self.kind, "target": self.target, "class": self.step_class, "reason": self.reason}
        return {**shown, **{name: value for name, value in more.items() if value}}


def shorten(reason: str) -> str:
    """Return a reason in at most 200 characters; it may quote what a plugin said."""
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 3]}..."


class Plan:
    """An ordered list of steps, and the warnings from planning.

    ``warnings``: rows ``{level, code, message, target}`` by code and message, with the level error for what only check
    mode tolerates. ``left`` are steps that the user does not allow, see ``restrict``: they are reported and never
    executed. ``errors`` are the parts that could not be planned. A run raises them before it changes anything; check
    mode shows the rest, too.
    """

    def __init__(self) -> None:
        self.steps: List[Step] = []
        self.left: List[Step] = []
        self.errors: List[HostError] = []
        self.warnings: Dict[Tuple[str, str], Dict[str, str]] = {}

    def add(self, step: Step) -> None:
        step.reason = shorten(step.reason)
        self.steps.append(step)

    def warn(self, code: str, message: str, target: str = "") -> None:
        """Add a warning, unless it is there. *target*: that of the step that it is about."""
        row = {"level": "warning", "code": code, "message": message, "target": target}
        self.warnings.setdefault((code, message), row)

    def findings(self) -> List[Dict[str, str]]:
        return list(self.warnings.values())

    def refuse(self, error: HostError, check_mode: bool) -> None:
        """Raise *error*; in check mode, note it, as a warning if an earlier task may prevent it."""
        if not check_mode:
            raise error
        if error.may_pass:
            self.warn(error.code, error.msg)
            self.warnings[error.code, error.msg]["level"] = "error"
        else:
            self.errors.append(error)

    @property
    def error(self) -> Optional[HostError]:
        """All of ``errors`` as one, None if there are none."""
        if len(self.errors) < 2:
            return self.errors[0] if self.errors else None
        first = self.errors[0]
        return HostError("; ".join(error.msg for error in self.errors), first.code, **first.facts)

    def restrict(self, classes: Container[str]) -> None:
        """Leave out steps of other classes, and with each its whole lane, because later steps may depend on it."""
        barred = {step.lane for step in self.steps if step.step_class != FOREIGN and step.step_class not in classes}
        self.leave_out([step for step in self.steps if step.lane in barred and step.step_class != FOREIGN])

    def leave_out(self, steps: Iterable[Step]) -> None:
        """Leave out *steps*, and report them."""
        for step in steps:
            step.state = "left"
            self.left.append(step)
            self.steps.remove(step)

    def remember(self, seen: Dict[str, Any]) -> None:
        """Save what an unchanged run found out, so that the next one is faster. *seen*: see lock.read_state."""

    @property
    def changed(self) -> bool:
        return any(step.step_class != FOREIGN for step in self.steps)

    @property
    def pending(self) -> bool:
        """Whether there is anything to apply."""
        return self.changed

    def actions(self) -> List[Dict[str, Any]]:
        """Return the steps, the same in check mode and in a run."""
        return [step.describe() for step in self.steps]

    def progress(self) -> List[Dict[str, Any]]:
        """Return the actions with ``state`` (``done``, ``failed``, ``left_out``, ``planned``)."""
        return [dict(step.describe(), state=step.state) for step in self.steps]

    def diff(self) -> List[Dict[str, Any]]:
        """Return Ansible's diff structure, see changes.diff_of."""
        from .changes import diff_of

        return diff_of(self.steps)

    def apply(self, workers: int = 1) -> None:
        """Execute the steps. Raises the first error of a step without item; other errors are stored in their steps."""
        self.apply_steps(self.steps, workers)

    @staticmethod
    def apply_steps(steps: Iterable[Step], workers: int) -> None:
        """Execute some of the steps."""
        lanes = grouped((step.lane, step) for step in steps if step.step_class != FOREIGN)
        each_of(_run_lane, lanes.values(), workers)


def _run_lane(steps: List[Step]) -> None:
    failed = set()
    for step in steps:
        if step.item is not None and step.item in failed:
            step.state = "left_out"
            continue
        try:
            _carry_out(step)
        except HostError as error:
            step.state = "failed"
            step.error = error
            if step.item is None:
                raise
            failed.add(step.item)
        else:
            step.state = "done"


def _carry_out(step: Step) -> None:
    try:
        step.action()
    except OSError as error:
        raise HostError(
            f"cannot {step.kind.replace('_', ' ')} {step.target}: {error.strerror}", code="write_failed"
        ) from error
