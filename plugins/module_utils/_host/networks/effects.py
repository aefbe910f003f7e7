# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What steps change for containers: which networks runtimes give them, and where their addresses come from.

The class of a step follows these effects, whatever its kind is.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..confdir import ConfFile, Folders, drop_ins, sort_key, with_folders
from ..hostview import HostView
from ..plan import DISRUPTIVE, Plan, Step, shorten
from ..runtimes.discover import runtimes_on_host
from ..runtimes.effective import Effective
from ..runtimes.profiles import FIRST
from ..runtimes.runtime import Network, Runtime
from .difference import moved_plugins

_DEFAULT, _INTERFACE, _NAMED, _THROUGH = "default", "interface", "named", "through"


class NetworkPlace(NamedTuple):
    """Where containers get a network: the default of a runtime, an interface (by number), or a network by its name.

    ``runtime`` and the ``source`` of its networks are "" for a network that libcni finds by name.
    """

    runtime: str
    source: Tuple[str, str]
    kind: str
    key: Any = ""


Networks = Dict[NetworkPlace, Network]


def _alike(network: Network, other: Network) -> bool:
    """Tell whether containers of *network* would get the same from *other*."""
    same = network.name == other.name and bool(network.file.path) == bool(other.file.path)
    return same and not moved_plugins(network.plugins, other.plugins)


def disrupt(step: Step, before: Networks, after: Networks) -> None:
    """Make a step disruptive if containers get something else after it than before."""
    lost = [place for place, network in before.items() if place not in after or not _alike(network, after[place])]
    # A runtime that attaches to several networks attaches to one more.
    added = [place for place in after if place not in before and place.kind == _INTERFACE]
    more = [place for place in added if place._replace(key=place.key - 1) in before]
    if lost or more:
        step.step_class = DISRUPTIVE
        words = [_in_words(place, before.get(place), after.get(place)) for place in lost + more]
        step.reason = shorten("; ".join([step.reason, *list(filter(None, words))[:1]]))


def given_by(effective: Effective) -> Networks:
    """Return what the runtimes of a host give to containers."""
    # Several can have one name.
    return {
        NetworkPlace(runtime.name, (runtime.conf_dir, runtime.handler), *place): network
        for runtime in effective.runtimes
        for place, network in _places(effective, runtime)
    }


def _places(effective: Effective, runtime: Runtime) -> Iterator[Tuple[Tuple[str, Any], Network]]:
    verdict = runtime.verdict
    every = verdict.networks
    if runtime.profile.choice == FIRST and not runtime.default_network:
        yield from (((_INTERFACE, index), network) for index, network in enumerate(every))
    else:
        yield from (((_NAMED, network.name), network) for network in every)
        if verdict.network is not None:
            # Unless a file has it, the runtime makes it.
            own = Network(ConfFile("", ""), verdict.network)
            yield (_DEFAULT, ""), next((network for network in every if network.file.path == verdict.file), own)
    files = {file.path: file for file in effective.files}
    for index, row in enumerate(verdict.through):
        if row["network"]:
            file = files.get(row["file"]) or ConfFile("", row["file"] or "")
            yield (_THROUGH, index), Network(file, row["network"], plugins=file.plugins)


def _in_words(place: NetworkPlace, before: Optional[Network], after: Optional[Network]) -> str:
    if before is None:
        return f"{place.runtime} also gives containers the network {after.name!r}" if after else ""
    if not place.runtime or (after is not None and before.name == after.name):
        # The reason of the step says what is different.
        return ""
    return f"{place.runtime} changes from the network {before.name!r} to {repr(after.name) if after else 'none'}"


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


def classify_changes(
    changes: Sequence[Any],
    conf_dir: str,
    bin_dirs: Sequence[str],
    planned: Sequence[ConfFile],
    folders: Folders,
    view: HostView,
) -> None:
    """Make those steps disruptive that change something for containers. *changes*: see ConfSteps.file_changes.

    *planned* are the files after all steps, *folders* the drop-ins then of those networks whose drop-ins change.
    """
    current = {file.name: file for file in view.conf_files(conf_dir)}
    future = {file.name: file for file in planned}
    beside = {network: drop_ins(conf_dir, network or "") for network in folders}

    def given() -> Networks:
        files = with_folders((current[name] for name in sorted(current, key=sort_key)), beside)
        return {**_by_name(files), **given_by(Effective(None, conf_dir, bin_dirs, files, view))}

    before = given()
    for step, change in changes:
        if change.drop_ins:
            beside[change.drop_ins] = folders[change.drop_ins]
        vacated = current.pop(change.vacates, None)
        if change.fills in future:
            current[change.fills] = future[change.fills]
        if change.fills and step.kind == "rename" and vacated is not None:
            current[change.fills] = ConfFile(change.fills, step.after["path"], vacated.text)
        after = given()
        disrupt(step, before, after)
        before = after


def _by_name(files: Sequence[ConfFile]) -> Networks:
    """Return the networks as libcni finds them by name, with what their drop-ins add."""
    networks: Networks = {}
    for file in sorted(files, key=lambda file: file.kind != "conflist"):
        place = NetworkPlace("", ("", ""), _NAMED, file.network)
        if file.network and not file.error and place not in networks:
            networks[place] = Network(file, file.network, plugins=file.chain)
    return networks
