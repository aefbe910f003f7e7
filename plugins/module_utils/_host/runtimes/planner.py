# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans how runtimes read a directory: which files to change, whether the change has effect, and which to restart."""

from __future__ import annotations

import copy
import os
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from ..errors import HostError
from ..files import Attributes, Directory, make_directory, write
from ..hostview import HostView
from ..plan import DISRUPTIVE, Plan, Step
from ..problems import ERROR, WARNING, problem
from ..processes import started
from . import asking, cri, discover, dropins, reading, set_containerd
from .dropins import HEADER, FileChange, RuntimeSettings
from .found_containerd import CRI
from .profiles import PROFILES, Runtime
from .tomlfile import MARK

_DIRECTORY = "/run/podwire-cni/restarts"


def note_restart(service: str, pid: int) -> None:
    """Record that the process *pid* must end before the next write takes effect."""
    start = started(pid)
    if start is not None:
        make_directory(_DIRECTORY, 0o700)
        with Directory(_DIRECTORY) as directory:
            write(directory, service, f"{pid} {start}\n".encode("ascii"), Attributes(0o600))


def forget_restart(service: str) -> None:
    """Remove the record."""
    if os.path.isdir(_DIRECTORY):
        with Directory(_DIRECTORY) as directory:
            directory.remove(service)


def restart_pending(service: str, pid: int) -> bool:
    """Tell whether the process *pid* was recorded."""
    try:
        with open(os.path.join(_DIRECTORY, service), encoding="ascii") as stream:
            noted = stream.read().split()
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise HostError(f"cannot read {_DIRECTORY}/{service}: {error}", code="unreadable") from error
    return noted == [str(pid), started(pid)]


_HOW = {
    "k3s": (
        "k3s generates this configuration at each start; write networks to {} (cni_conf_dir), or change the template "
        "config.toml.tmpl (config-v3.toml.tmpl with containerd 2) beside it"
    ),
    "rke2": (
        "rke2 generates this configuration at each start; write networks to {} (cni_conf_dir), or change the template "
        "config.toml.tmpl (config-v3.toml.tmpl with containerd 2) beside it"
    ),
    "microk8s": (
        "MicroK8s generates this configuration from /var/snap/microk8s/current/args/containerd-template.toml; "
        "write networks to {} (cni_conf_dir), or change that file"
    ),
    "k0s": (
        "k0s manages this configuration; write networks to {} (cni_conf_dir), or put your own file into "
        "/etc/k0s/containerd.d"
    ),
    "openshift": (
        "its MachineConfig manages this configuration; write networks to {} (cni_conf_dir), or change the MachineConfig"
    ),
}
_STANDS_FOR = dict.fromkeys(("k3s", "rke2", "microk8s", "k0s"), "containerd")
_STANDS_FOR["openshift"] = "crio"


def managed_elsewhere(name: str, here: Sequence[str]) -> None:
    """Raise HostError ``managed_elsewhere`` if a distribution manages *name*, or is *here* in place of it."""
    owners = [name, *(owner for owner in here if _STANDS_FOR.get(owner) == name)]
    owner = next((owner for owner in owners if owner in _HOW), "")
    if owner:
        text = _HOW[owner].format(PROFILES[owner].conf_dir)
        raise HostError(f"{name}: {text}. Its configuration was not changed", code="managed_elsewhere")


# Seconds between two attempts, and that an answer may take.
_PAUSE = 0.2
_ANSWER = 5.0


class Kind(NamedTuple):
    """A runtime that can be configured: ``service`` is the unit to restart, "" if it is not a daemon."""

    service: str
    changes: Callable[[Runtime, RuntimeSettings], List[FileChange]]


KINDS = {
    "containerd": Kind("containerd", set_containerd.containerd_changes),
    "crio": Kind("crio", dropins.crio_changes),
    "nomad": Kind("nomad", dropins.nomad_changes),
    "podman": Kind("", dropins.podman_changes),
    "apptainer": Kind("", dropins.apptainer_changes),
}


class Setup:
    """Adds steps to a plan, and a row for each runtime to *configured*."""

    def __init__(
        self,
        plan: Plan,
        configured: List[Dict[str, Any]],
        wanted: RuntimeSettings,
        tolerate_missing: bool,
        view: HostView,
    ) -> None:
        self.plan = plan
        self.configured = configured
        self.wanted = wanted
        self.tolerate_missing = tolerate_missing
        self.view = view

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
        wanted, kind = self.wanted, KINDS[name]
        if wanted.present and not self._usable(name, runtime):
            self._report(kind, runtime, [])
            return
        changes = kind.changes(runtime, wanted)
        self._report(kind, runtime, changes)
        if changes:
            self._add_steps(kind, runtime, changes)
        if wanted.present:
            runtime.set_conf(wanted.conf_dir)
            runtime.bin_dirs = list(wanted.bin_dirs)
            runtime.reads = True
            if wanted.max_conf_num is not None:
                runtime.max_networks = wanted.max_conf_num
            if wanted.allow and name == "apptainer":
                runtime.allowed = dict(runtime.allowed, **{what: list(names) for what, names in wanted.allow.items()})

    def _usable(self, name: str, runtime: Runtime) -> bool:
        """Tell whether there is anything to configure."""
        if not runtime.found:
            managed_elsewhere(name, [other.name for other in self._here()])
            self._missing(
                "missing_runtime",
                f"{name} is not installed on this host; install it first, or leave it out of 'runtime'",
            )
        elif not runtime.reads and name == "containerd":
            raise HostError(
                f"containerd's CRI plugin is disabled; remove cri from disabled_plugins in {runtime.config}, or leave "
                "containerd out of 'runtime'",
                code="cri_disabled",
            )
        elif not runtime.reads and name == "nomad":
            self.plan.warn(
                "no_client", "nomad: the agent on this host is not a client, so it has no networks to configure"
            )
            return False
        if name == "podman" and not any(self.view.has_directory(path) for path in self.wanted.bin_dirs):
            dirs = ", ".join(self.wanted.bin_dirs)
            text = f"bin_dirs: none of {dirs} exists, and podman would refuse every command; create one"
            self._missing("missing_bin_dir", text)
        return True

    def _missing(self, code: str, text: str) -> None:
        if not self.tolerate_missing:
            raise HostError(text, code=code)
        self.plan.warn(code, text)

    def _report(self, kind: Kind, runtime: Runtime, changes: List[FileChange]) -> None:
        pending = bool(kind.service and runtime.pid) and restart_pending(kind.service, runtime.pid)
        row: Dict[str, Any] = {
            "runtime": runtime.name,
            "service": kind.service,
            "files": [change.path for change in changes],
            "action": ("configured" if self.wanted.present else "removed") if changes else "none",
            "restart": bool(kind.service and runtime.pid and (changes or pending)),
            "ready": None,
            "message": "",
            "networks": None,
        }
        if runtime.pid and runtime.address and not row["restart"]:
            _ask(runtime, row)
        self.configured.append(row)

    def not_loaded(self, network: str) -> List[Dict[str, Any]]:
        """Return the problems if runtimes have not loaded *network* within ``wait`` seconds, or cannot be asked."""
        if not self.wanted.wait or not self.wanted.present or self.plan.pending:
            return []
        deadline = time.monotonic() + self.wanted.wait
        problems = [self._why_not(row, network, deadline) for row in self.configured if not row["restart"]]
        return [found for found in problems if found]

    def _why_not(self, row: Dict[str, Any], network: str, deadline: float) -> Dict[str, Any]:
        runtime: Optional[Runtime] = None
        while True:
            # Finding it runs its program twice; that of one that runs does not change while it loads a network.
            if runtime is None or (runtime.address and not runtime.pid):
                runtime = next((one for one in self._here() if one.name == row["runtime"] and one.config), None)
            if runtime is None:
                return {}
            if not runtime.address and not asking.can_be_asked(runtime):
                # Apptainer, and a podman that was never used, read their files when they start a container.
                text = f"{runtime.name} does not run, so it is not known whether it will load the network {network!r}"
                service = KINDS[_kind(runtime)].service
                return problem(WARNING, "not_loaded", f"{text}; start it", runtime.conf_dir) if service else {}
            _ask(runtime, row, [network])
            if row["ready"] and (row["networks"] is None or network in row["networks"]):
                return {}
            if time.monotonic() > deadline:
                why = row["message"] or f"it has loaded {', '.join(row['networks'] or []) or 'none'}"
                text = f"{runtime.name} has not loaded the network {network!r} within {self.wanted.wait:g} s: {why}"
                return problem(ERROR, "not_loaded", text, runtime.conf_dir)
            time.sleep(_PAUSE)

    def _here(self) -> List[Runtime]:
        return discover.runtimes_on_host(self.wanted.conf_dir)

    # ---- applying

    def _add_steps(self, kind: Kind, runtime: Runtime, changes: List[FileChange]) -> None:
        before = copy.copy(runtime)
        reason = _reason(runtime, self.wanted)
        was_pending = bool(kind.service) and restart_pending(kind.service, runtime.pid)

        def apply(change: FileChange) -> None:
            try:
                if change is changes[0] and kind.service and runtime.pid:
                    note_restart(kind.service, runtime.pid)
                change.make()
                if change is changes[-1] and self.wanted.present and before.found:
                    self._verify(before)
            except HostError:
                for made in changes[: changes.index(change) + 1]:
                    made.undo()
                if kind.service and not was_pending:
                    forget_restart(kind.service)
                _close(changes)
                raise
            if change is changes[-1]:
                _close(changes)

        for change in changes:
            self.plan.add(
                Step(
                    "configure",
                    change.path,
                    DISRUPTIVE,
                    _shown(change.before),
                    _shown(change.after),
                    lambda change=change: apply(change),  # type: ignore[misc]
                    reason=reason,
                )
            )

    def _verify(self, before: Runtime) -> None:
        """Read the runtime's configuration again; raise HostError if it lacks the settings, or has lost others."""
        here = [runtime for runtime in self._here() if _is(runtime, before)]
        if not here or not self.wanted.are_those_of(here[0]):
            now = here[0] if here else before
            raise HostError(
                f"{before.name} would still read {now.conf_dir} and search {', '.join(now.bin_dirs)} for plugins"
                + "".join(f"; {note}" for note in now.notes)
                + ". A file that it reads later, or its command line, overrides the settings; change them there. The "
                "previous configuration was restored",
                code="overridden",
            )
        lost = _difference(_others(before.tables), _others(here[0].tables), "")
        if lost:
            raise HostError(
                f"{before.name} would lose its setting {lost}; the previous configuration was restored",
                code="settings_lost",
            )


def _close(changes: List[FileChange]) -> None:
    for change in changes:
        change.close()


def _ask(runtime: Runtime, row: Dict[str, Any], networks: Sequence[str] = ()) -> None:
    if runtime.address and not runtime.pid:
        row.update(ready=False, message="it is not running", networks=None)
        return
    try:
        answer = cri.cri_status(runtime.address) if runtime.address else asking.ask(runtime, networks, _ANSWER)
    except HostError as error:
        answer = cri.CriStatus(False, error.msg, None)
    row.update(ready=answer.ready, message=answer.message, networks=answer.networks)


def _kind(runtime: Runtime) -> str:
    name = "containerd" if runtime.name.startswith("containerd-") else runtime.name
    if name not in KINDS:
        managed_elsewhere(name, [])
        text = f"configure: {name} cannot be configured, only {', '.join(KINDS)}"
        raise HostError(text, code="cannot_configure")
    return name


def _choose(same: List[Runtime]) -> Runtime:
    """Return the runtime to configure: of several daemons, one that reads networks, the system's own first.

    Runtime handlers with their own networks keep them.
    """
    own = [runtime for runtime in same if runtime.config or not runtime.found] or same
    return min(own, key=lambda runtime: (not runtime.reads, runtime.config != set_containerd.MAIN))


def _reason(runtime: Runtime, wanted: RuntimeSettings) -> str:
    """Return why the files of a runtime change."""
    # Imported late: unchanged runs do not need it.
    from ..changes import change_in_words

    if not wanted.present:
        return "state is absent"
    if not runtime.found or not runtime.reads:
        return "does not have the settings yet"
    settings = [
        ("conf_dir", runtime.conf_dir, wanted.conf_dir),
        ("bin_dirs", ":".join(runtime.bin_dirs), ":".join(wanted.bin_dirs)),
        ("max_conf_num", runtime.max_networks, wanted.max_conf_num),
        ("setup_serially", runtime.setup_serially, wanted.setup_serially),
    ]
    if runtime.name == "apptainer":
        for what, names in (wanted.allow or {}).items():
            settings.append((f"allow.{what}", ", ".join(runtime.allowed.get(what, ())), ", ".join(names)))
    chosen = [setting for setting in settings if setting[2] is not None]
    texts = change_in_words({name: here for name, here, _want in chosen}, {name: want for name, _here, want in chosen})
    return texts or "its settings are not as this collection writes them"


def _is(runtime: Runtime, other: Runtime) -> bool:
    return (runtime.name, runtime.config) == (other.name, other.config)


def _shown(text: Optional[str]) -> str:
    """Return the text for the diff: all of a managed file, but only the managed lines of any other file."""
    if text is None or text.startswith(HEADER):
        return text or ""
    return "".join(line for line in text.splitlines(keepends=True) if MARK in line)


def _others(tables: Dict[str, Any]) -> Dict[str, Any]:
    """Return containerd's unmanaged settings."""
    others = {key: value for key, value in copy.deepcopy(tables).items() if key not in ("version", "imports")}
    for name in CRI:
        reading.section(others, "plugins", name).pop("cni", None)
    return others


def _difference(one: Any, other: Any, where: str) -> str:
    """Return the first place where *other* differs from *one*, "" if there is none."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one:
            found = _difference(one[key], other.get(key), f"{where}.{key}" if where else key)
            if found:
                return found
        return ""
    return "" if one == other else where
