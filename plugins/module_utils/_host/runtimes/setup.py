# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Plans how runtimes read a directory: which files to change, whether the change has effect, and which to restart."""

from __future__ import annotations

import copy
import time
from functools import partial
from typing import Any, Dict, List, Optional, Sequence

from ..errors import HostError
from ..hostview import HostView
from ..plan import DISRUPTIVE, Plan, Step
from ..problems import ERROR, WARNING, Finding
from ..processes import processes
from ..struct import field, struct
from . import discover
from .asking import ask_once, ask_until
from .profiles import CONFIGURABLE, CONTAINERD_CONFIG, PROFILES
from .runtime import Runtime
from .settings import HEADER, FileChange, RuntimeSettings, forget_restart, note_restart, restart_pending
from .toml import MARK

# Seconds between two searches for a daemon that does not run yet.
_PAUSE = 0.2


def managed_elsewhere(name: str, present: Sequence[str]) -> None:
    """Raise HostError ``managed_elsewhere`` if a distribution manages *name*, or is *present* in place of it."""
    owners = [name, *(owner for owner in present if PROFILES[owner].stands_for == name)]
    owner = next((owner for owner in owners if owner in PROFILES and PROFILES[owner].managed), "")
    if owner:
        text = PROFILES[owner].managed.format(PROFILES[owner].conf_dir)
        raise HostError(f"{name}: {text}. Its configuration was not changed", code="managed_elsewhere")


@struct
class Setup:
    """Adds steps to a plan, and a row for each runtime to *configured*."""

    plan: Plan
    configured: List[Dict[str, Any]]
    desired: RuntimeSettings
    tolerate_missing: bool
    view: HostView
    _runtimes: List[Runtime] = field(default_factory=list)

    def prepare(self, runtimes: List[Runtime]) -> None:
        """Plan the steps for *runtimes*, and update these to the state after the plan.

        Raises HostError for one that cannot be configured; in check mode, this only becomes a warning.
        """
        kinds: Dict[str, List[Runtime]] = {}
        for runtime in runtimes:
            kinds.setdefault(_kind(runtime), []).append(runtime)
        for kind, same in kinds.items():
            try:
                self._configure(kind, _choose(same))
            except HostError as error:
                self.plan.refuse(error, self.tolerate_missing)

    def _configure(self, name: str, runtime: Runtime) -> None:
        desired = self.desired
        if desired.present and not self._usable(name, runtime):
            self._report(runtime, [])
            return
        changes = runtime.changes(desired)
        self._report(runtime, changes)
        if changes:
            self._add_steps(runtime, changes)
        if desired.present:
            runtime.take_over(desired)

    def _usable(self, name: str, runtime: Runtime) -> bool:
        """Tell whether there is anything to configure."""
        if not runtime.evidence:
            others = discover.runtimes_on_host(self.desired.conf_dir, self.view)
            managed_elsewhere(name, [other.name for other in others])
            text = f"{name} is not installed on this host; install it first, or leave it out of 'runtime'"
            self._missing("missing_runtime", text)
        elif not runtime.reads and name == "containerd":
            raise HostError(
                f"containerd's CRI plugin is disabled; remove cri from disabled_plugins in {runtime.config}, or leave "
                "containerd out of 'runtime'",
                code="cri_disabled",
            )
        elif not runtime.reads and name == "nomad":
            text = "nomad: the agent on this host is not a client, so it has no networks to configure"
            self.plan.warn("no_client", text)
            return False
        if name == "podman" and not any(self.view.has_directory(path) for path in self.desired.bin_dirs):
            dirs = ", ".join(self.desired.bin_dirs)
            text = f"bin_dirs: none of {dirs} exists, and podman would refuse every command; create one"
            self._missing("missing_bin_dir", text)
        return True

    def _missing(self, code: str, text: str) -> None:
        if not self.tolerate_missing:
            raise HostError(text, code=code)
        self.plan.warn(code, text)

    def _report(self, runtime: Runtime, changes: List[FileChange]) -> None:
        service = runtime.profile.unit
        pending = bool(service and runtime.pid) and restart_pending(service, runtime.pid)
        row: Dict[str, Any] = {
            "runtime": runtime.name,
            "service": service,
            "files": [change.path for change in changes],
            "action": ("configured" if self.desired.present else "removed") if changes else "none",
            "restart": bool(service and runtime.pid and (changes or pending)),
            "ready": None,
            "message": "",
            "networks": None,
        }
        if runtime.pid and runtime.address and not row["restart"]:
            answer = ask_once(runtime, [])
            row.update(ready=False, message=answer.why)
            if answer.status is not None:
                row.update(answer.status.row())
        self.configured.append(row)
        self._runtimes.append(runtime)

    def not_loaded(self, network: str) -> List[Finding]:
        """Return the problems if runtimes have not loaded *network* within ``wait`` seconds, or cannot be asked."""
        if not self.desired.wait or not self.desired.present or self.plan.pending:
            return []
        end = time.monotonic() + self.desired.wait
        problems = [
            self._why_not(runtime, row, network, end)
            for runtime, row in zip(self._runtimes, self.configured)
            if not row["restart"] and runtime.config
        ]
        return [finding for finding in problems if finding is not None]

    def _why_not(self, runtime: Runtime, row: Dict[str, Any], network: str, end: float) -> Optional[Finding]:
        if runtime.address and not runtime.pid:
            runtime = self._await_start(runtime, end)
        if not runtime.can_be_asked and not runtime.address:
            # Apptainer, and a podman that was never used, read their files when they start a container.
            text = f"{runtime.name} does not run, so it is not known whether it will load the network {network!r}"
            unit = runtime.profile.unit
            return Finding(WARNING, "not_loaded", text, "start it", runtime.conf_dir) if unit else None
        why = "it is not running"
        row.update(ready=False, message=why, networks=None)
        if runtime.pid or not runtime.address:
            answer = ask_until(runtime, [network], end, lambda status: status.lacks(network))
            why = answer.why
            row.update(answer.status.row() if answer.status else {"message": why})
        if not why:
            return None
        text = f"{runtime.name} has not loaded the network {network!r} within {self.desired.wait:g} s: {why}"
        return Finding(ERROR, "not_loaded", text, "", runtime.conf_dir)

    def _await_start(self, runtime: Runtime, end: float) -> Runtime:
        """Return the runtime as it runs, or as it is if none has started in time."""
        # To search for runtimes runs their programs, so it is done when there is a new process only.
        known = {process.pid for process in processes(runtime.kind)}
        while time.monotonic() <= end:
            started = {process.pid for process in processes(runtime.kind)}
            if started - known:
                known = started
                same = [other for other in discover.find_runtimes() if _is(runtime, other) and other.pid]
                if same:
                    return same[0]
            time.sleep(_PAUSE)
        return runtime

    # ---- applying

    def _add_steps(self, runtime: Runtime, changes: List[FileChange]) -> None:
        before = copy.copy(runtime)
        reason = _reason(runtime, self.desired)
        service = runtime.profile.unit
        was_pending = bool(service) and restart_pending(service, runtime.pid)

        def apply(change: FileChange) -> None:
            try:
                if change is changes[0] and service and runtime.pid:
                    note_restart(service, runtime.pid)
                change.make()
                if change is changes[-1] and self.desired.present and before.evidence:
                    self._verify(before)
            except HostError:
                for made in changes[: changes.index(change) + 1]:
                    made.undo()
                if service and not was_pending:
                    forget_restart(service)
                _close(changes)
                raise
            if change is changes[-1]:
                _close(changes)

        for change in changes:
            states = _shown(change.before), _shown(change.after)
            self.plan.add(Step("configure", change.path, DISRUPTIVE, *states, partial(apply, change), reason))

    def _verify(self, before: Runtime) -> None:
        """Read the runtime's configuration again; raise HostError if it lacks the settings, or has lost others."""
        self.view.runtimes = None
        runtimes = discover.runtimes_on_host(self.desired.conf_dir, self.view)
        now = next((runtime for runtime in runtimes if _is(runtime, before)), None)
        if now is None or not now.has(self.desired):
            now = now or before
            text = f"read {now.conf_dir} and search {', '.join(now.bin_dirs)} for plugins"
            raise HostError(
                f"{before.name} would {'start no container' if now.refuses else 'still ' + text}"
                + "".join(f"; {note}" for note in now.notes)
                + ". A file that it reads later, or its command line, overrides the settings; change them there. The "
                "previous configuration was restored",
                code="overridden",
            )
        lost = before.lost(now)
        if lost:
            text = f"{before.name} would lose its setting {lost}; the previous configuration was restored"
            raise HostError(text, code="settings_lost")


def _close(changes: List[FileChange]) -> None:
    for change in changes:
        change.close()


def _kind(runtime: Runtime) -> str:
    name = runtime.kind
    if name not in CONFIGURABLE:
        managed_elsewhere(name, [])
        text = f"configure: {name} cannot be configured, only {', '.join(CONFIGURABLE)}"
        raise HostError(text, code="cannot_configure")
    return name


def _choose(same: List[Runtime]) -> Runtime:
    """Return the runtime to configure: of several daemons, one that reads networks, the system's own first.

    Runtime handlers with their own networks keep them.
    """
    candidates = [runtime for runtime in same if runtime.config or not runtime.evidence] or same
    return min(candidates, key=lambda runtime: (not runtime.reads, runtime.config != CONTAINERD_CONFIG))


def _reason(runtime: Runtime, desired: RuntimeSettings) -> str:
    """Return why the files of a runtime change."""
    from ..changes import change_in_words

    if not desired.present:
        return "state is absent"
    if not runtime.evidence or not runtime.reads:
        return "does not have the settings yet"
    return change_in_words(*runtime.compared(desired)) or "its settings are not as this collection writes them"


def _is(runtime: Runtime, other: Runtime) -> bool:
    return (runtime.name, runtime.config) == (other.name, other.config)


def _shown(text: Optional[str]) -> str:
    """Return the text for the diff: all of a managed file, but only the managed lines of any other file."""
    if text is None or text.startswith(HEADER):
        return text or ""
    return "".join(line for line in text.splitlines(keepends=True) if MARK in line)
