# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What steps change for containers: which networks runtimes give them, and where their addresses come from.

The class of a step follows these effects, whatever its kind is.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, Sequence

from ..confdir import ConfFile, Folders, drop_ins, sort_key, with_folders
from ..hostview import HostView
from ..plan import DISRUPTIVE, Plan, Step, shorten
from ..runtimes.discover import runtimes_on_host
from ..runtimes.effective import Effective
from ..runtimes.profiles import FIRST
from ..runtimes.runtime import Network, Runtime
from .difference import moved_plugins

Judge = Callable[[Sequence[ConfFile]], Effective]
Networks = Dict[str, Network]
"""What containers get, by the place: a runtime's default network, an interface, a network by name."""


def _alike(network: Network, other: Network) -> bool:
    """Tell whether containers of *network* would get the same from *other*."""
    same = network.name == other.name and bool(network.file.path) == bool(other.file.path)
    return same and not moved_plugins(network.plugins, other.plugins)


def disrupt(step: Step, before: Networks, after: Networks) -> None:
    """Make a step disruptive if containers get something else after it than before."""
    lost = [place for place, network in before.items() if place not in after or not _alike(network, after[place])]
    # A runtime that attaches to several networks attaches to one more.
    more = [place for place in after if place not in before and _more_of(place) in before]
    if lost or more:
        step.step_class = DISRUPTIVE
        words = [_in_words(place, before.get(place), after.get(place)) for place in lost + more]
        step.reason = shorten("; ".join([step.reason, *list(filter(None, words))[:1]]))


def given_by(effective: Effective) -> Networks:
    """Return what the runtimes of a host give to containers."""
    given: Networks = {}
    for runtime in effective.runtimes:
        places = _places(effective, runtime)
        # Several can have one name.
        given.update({f"{runtime.name} {runtime.conf_dir} {runtime.handler} {p}": places[p] for p in places})
    return given


_DEFAULT, _INTERFACE = "default", "interface"


def _places(effective: Effective, runtime: Runtime) -> Networks:
    verdict = runtime.verdict
    every = verdict.networks
    if runtime.profile.choice == FIRST and not runtime.default_network:
        places = {f"{_INTERFACE} {index}": network for index, network in enumerate(every)}
    else:
        places = {f"network {network.name}": network for network in every}
        if verdict.network is not None:
            # Unless a file has it, the runtime makes it.
            own = Network(ConfFile("", ""), verdict.network)
            places[_DEFAULT] = next((network for network in every if network.file.path == verdict.file), own)
    files = {file.path: file for file in effective.files}
    for index, row in enumerate(verdict.through):
        if row["network"]:
            file = files.get(row["file"]) or ConfFile("", row["file"] or "")
            places[f"through {index}"] = Network(file, row["network"], plugins=file.plugins)
    return places


def _more_of(place: str) -> str:
    """Return the place before an interface, "" for any other place."""
    before, _blank, index = place.rpartition(" ")
    return f"{before} {int(index) - 1}" if before.endswith(f" {_INTERFACE}") and index != "0" else ""


def _in_words(place: str, before: Optional[Network], after: Optional[Network]) -> str:
    runtime = place.partition(" ")[0]
    if before is None:
        return f"{runtime} also gives containers the network {after.name!r}" if after else ""
    if place.startswith(_BY_NAME) or (after is not None and before.name == after.name):
        # The reason of the step says what is different.
        return ""
    return f"{runtime} changes from the network {before.name!r} to {repr(after.name) if after else 'none'}"


# ---- plugins


def classify_plugins(plan: Plan, expected: Mapping[str, Any], options: Mapping[str, Any], view: HostView) -> None:
    """Make those steps disruptive after which a runtime chooses another network; tell *view* what they leave.

    Some runtimes skip networks whose plugins are missing. *expected*: see PluginsPlan.expected; *options* are those of
    the module.
    """
    directories = options["conf_dir"], options["bin_dirs"]
    runtimes = runtimes_on_host(directories[0], view) if expected else []
    if not any(runtime.reads and (runtime.profile.validates or runtime.profile.finds) for runtime in runtimes):
        return

    def given() -> Networks:
        return given_by(Effective(None, *directories, view.conf_files(directories[0]), view))

    before = given()
    for step in plan.steps:
        if step.target in expected:
            view.expect_binaries({step.target: expected[step.target]})
            after = given()
            disrupt(step, before, after)
            before = after


# ---- a directory, step by step

_BY_NAME = "network "


class ConfEffects:
    """The files that runtimes read in *conf_dir*, as each step of a plan leaves them; *judge* finds the runtimes.

    *planned* are the files after all steps, *folders* the drop-ins then of those networks whose drop-ins change.
    """

    def __init__(
        self, conf_dir: str, files: Sequence[ConfFile], planned: Sequence[ConfFile], folders: Folders, judge: Judge
    ) -> None:
        self._files = {file.name: file for file in files}
        self._planned = {file.name: file for file in planned}
        self._planned_folders = folders
        self._folders = {network: drop_ins(conf_dir, network or "") for network in folders}
        self._judge = judge

    def classify(self, changes: Sequence[Any]) -> None:
        """Make those steps disruptive that change something for containers. *changes*: see ConfSteps.file_changes."""
        before = self._given()
        for step, change in changes:
            if change.drop_ins:
                self._folders[change.drop_ins] = self._planned_folders[change.drop_ins]
            vacated = self._files.pop(change.vacates, None)
            if change.fills in self._planned:
                self._files[change.fills] = self._planned[change.fills]
            if change.fills and step.kind == "rename" and vacated is not None:
                path = step.after["path"]
                self._files[change.fills] = ConfFile(change.fills, path, vacated.text)
            after = self._given()
            disrupt(step, before, after)
            before = after

    def _given(self) -> Networks:
        files = with_folders((self._files[name] for name in sorted(self._files, key=sort_key)), self._folders)
        return {**self._by_name(files), **given_by(self._judge(files))}

    @staticmethod
    def _by_name(files: Sequence[ConfFile]) -> Networks:
        """Return the networks as libcni finds them by name, with what their drop-ins add."""
        networks: Networks = {}
        for file in sorted(files, key=lambda file: file.kind != "conflist"):
            place = f"{_BY_NAME}{file.network}"
            if file.network and not file.error and place not in networks:
                networks[place] = Network(file, file.network, plugins=file.chain)
        return networks
