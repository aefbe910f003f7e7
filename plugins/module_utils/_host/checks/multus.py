# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Multus in a conf_dir: the networks that it runs, the traps around its file, and what it waits for.

Multus is one plugin to a runtime. If its file is gone, runtimes that take the first file use another one without a word
(multus-cni#1527); what its delegates need must be declared by Multus itself.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from ..binaries.types import MULTINET, delegates_of, inner_plugins, is_multus, named_plugins
from ..binaries.usable import Binaries
from ..confdir import ConfFile
from ..json_text import parse_json
from ..kinds import member_of, text_of
from ..model import Placed, chain_of
from ..problems import ERROR, WARNING, Finding, obstacle
from ..process_root import ProcessRoot
from ..processes import Process, open_root, processes
from ..runtimes.through import network_file
from .plugins import found_plugin, missing_file, why_not_there
from .view import ConfView

# Multus' own defaults.
_SOCKET_DIR, _SOCKET = "/run/multus", "multus.sock"
_DAEMON_CONFIG, _BIN_DIR = "/etc/cni/net.d/multus.d/daemon-config.json", "/opt/cni/bin"
_LARGEST = 1 << 20


def multus_problems(view: ConfView) -> Iterator[Finding]:
    """Yield the problems of Multus' files in the planned directory."""
    files = view.loaded()
    every = [(file, placed) for file in files for placed in chain_of(file) if is_multus(placed.plugin)]
    for file, placed in every:
        yield from _target(view, file, placed)
        yield from _networks(view, file, placed)
    if not every:
        return
    first = every[0][0]
    for other, _placed in every[1:]:
        if other is not first:
            what = (
                f"{first.name} runs Multus, too; runtimes use only the first of them, and Multus could run the other "
                "as a network"
            )
            yield Finding(view.level(first, other), "multus_twice", what, "remove one of them", other.path)
    yield from _beside(view, first, [file for file in files if file not in [multus for multus, _placed in every]])


def _beside(view: ConfView, multus: ConfFile, others: Sequence[ConfFile]) -> Iterator[Finding]:
    place = view.files.index(multus)
    before = [file for file in others if view.files.index(file) < place]
    level = view.level(multus)
    if before:
        what = (
            f"{before[0].name} sorts before it, so runtimes that take the first file do not run Multus, and pods get "
            "one network"
        )
        remedy = f"give {before[0].name} a higher priority, or move it to a directory of its own"
        yield Finding(level, "multus_not_first", what, remedy, multus.path)
    elif others:
        what = (
            f"{others[0].name} is beside it: if this file goes, runtimes use the network {others[0].network!r} without "
            "an error, and pods lose their other networks"
        )
        remedy = "move the networks of Multus to a directory of their own"
        yield Finding(level, "multus_fallback", what, remedy, multus.path)


def _target(view: ConfView, file: ConfFile, placed: Placed) -> Iterator[Finding]:
    """Yield a problem if Multus refers to a file that will not exist: it keeps the path even if the file is gone."""
    target = text_of(placed.plugin, "clusternetwork")
    if not target.startswith("/") or _is_shim(placed.plugin):
        return
    pointer = placed.pointer + "/clusterNetwork"
    if os.path.normpath(target) == os.path.normpath(view.conf_dir):
        return
    in_conf_dir = os.path.dirname(target) == view.conf_dir
    names = {other.name for other in view.files}
    if (os.path.basename(target) in names) if in_conf_dir else _will_exist(view, target):
        return
    what = f"Multus reads its default network from {target}, which will not exist"
    # In an unmanaged conflist this matters only if the plan itself removes the file.
    taken = in_conf_dir and os.path.basename(target) in {other.name for other in view.before}
    level, remedy = WARNING if taken else view.level(file), "write it there, or change this path"
    yield Finding(level, "multus_target_missing", what, remedy, placed.path, pointer)


def _will_exist(view: ConfView, target: str) -> bool:
    """Tell whether there will be something at a path in another directory, which the same plan may write to."""
    if os.path.isdir(target):
        return True
    return network_file(target, view.conf_dir, view.files, view.host) is not None or (
        os.path.exists(target) and not target.endswith((".conflist", ".conf", ".json"))
    )


def _networks(view: ConfView, file: ConfFile, placed: Placed) -> Iterator[Finding]:
    version = file.cni_version or "0.1.0"
    declared = capabilities_of([placed.plugin])
    for name, pointer, cni_version, plugins in _inner(view, placed):
        if any(map(is_multus, plugins)):
            what = f"the network {name!r} runs Multus again, which calls itself without end"
            yield Finding(view.certain(file), "multus_loop", what, "name another network", placed.path, pointer)
            continue
        missing = [key for key in capabilities_of(plugins) if key not in declared]
        if missing:
            what = (
                f"the network {name!r} declares the capabilities {', '.join(missing)}, but Multus does not, so the "
                "runtime never sends them"
            )
            remedy = "add them to the capabilities of Multus"
            yield Finding(view.level(file), "multus_capabilities", what, remedy, placed.path, pointer)
        # podwire-multinet answers in its own version.
        if cni_version != version and text_of(placed.plugin, "type") != MULTINET:
            what = (
                f"Multus is at cniVersion {version} and the network {name!r} at {cni_version}; Multus answers in the "
                "version of its first network, and thick Multus refuses some pairs"
            )
            yield Finding(view.level(file), "multus_version", what, "write one version", placed.path, pointer)


def capabilities_of(plugins: Sequence[Dict[str, Any]]) -> List[str]:
    capabilities: List[str] = []
    for plugin in plugins:
        declared = member_of(plugin, "capabilities")
        if isinstance(declared, dict):
            capabilities += [key for key, value in declared.items() if value is True and key not in capabilities]
    return capabilities


def _inner(view: ConfView, placed: Placed) -> Iterator[Tuple[str, str, str, List[Dict[str, Any]]]]:
    """Yield name, pointer, version and plugins of each network that Multus runs for every pod, as far as files say."""
    for place, network in delegates_of(placed.plugin, placed.pointer):
        plugins = [plugin for _at, plugin in inner_plugins(network, place)]
        yield text_of(network, "name"), place, text_of(network, "cniversion") or "0.1.0", plugins
    target = text_of(placed.plugin, "clusternetwork")
    file = network_file(target, view.conf_dir, view.files, view.host) if target.startswith("/") else None
    if file is not None and not file.error:
        yield str(file.network), placed.pointer + "/clusterNetwork", file.cni_version or "0.1.0", file.plugins


# ---- for a runtime


def _is_shim(plugin: Dict[str, Any]) -> bool:
    """Tell whether a daemon in a container does the work. The other paths are those that it sees, as /host/etc/cni."""
    return text_of(plugin, "type") == "multus-shim"


def multus_obstacles(plugin: Dict[str, Any], binaries: Binaries) -> Iterator[Finding]:
    """Yield the obstacles in the configuration *plugin* of Multus. *binaries* are those that the runtime finds."""
    if _is_shim(plugin):
        path = os.path.join(text_of(plugin, "daemonsocketdir") or _SOCKET_DIR, _SOCKET)
        text = "the daemon of Multus, which does the work of its shim, does not run: it has no socket"
        yield from missing_file(path, "no_multus_daemon", text, "start it (DaemonSet)")
        for daemon in processes("multus-daemon", seeing=os.path.dirname(path)):
            # What cannot be read is not judged.
            with contextlib.suppress(OSError, ValueError):
                yield from _dead_links(daemon, plugin, binaries)
        return
    text = "Multus waits for the network of the cluster, and every ADD fails after 45 seconds"
    remedy = "start the daemon that writes the file, or correct readinessindicatorfile"
    yield from missing_file(text_of(plugin, "readinessindicatorfile"), "no_readiness_file", text, remedy)
    target = text_of(plugin, "clusternetwork")
    if target and not text_of(plugin, "kubeconfig"):
        text = "Multus asks a cluster for clusterNetwork, and no kubeconfig names one"
        yield obstacle("no_kubeconfig", text, "kubeconfig is not set", "write it, or write delegates instead")
    if target.startswith("/"):
        text = "Multus does not find the network of every pod"
        remedy = "write the network there, or correct clusterNetwork"
        yield from missing_file(target, "no_cluster_network", text, remedy)
    inner = [delegate for _place, network in delegates_of(plugin) for _at, delegate in inner_plugins(network)]
    names = [name for delegate in inner for _pointer, name in named_plugins(delegate)]
    directory = text_of(plugin, "bindir")
    places = [*([directory] if directory else []), *binaries.bin_dirs]
    for name in dict.fromkeys(names):
        if not found_plugin(name, places):
            yield why_not_there(name, places, [])


def _dead_links(daemon: Process, plugin: Dict[str, Any], binaries: Binaries) -> Iterator[Finding]:
    """Yield the plugins that are links to what the container of the daemon does not have. Raises OSError, ValueError.

    The daemon runs plugins in its own mount namespace, or in the root directory ``chrootDir`` of its configuration.
    """
    descriptor = open_root(daemon)
    try:
        root, config_file = ProcessRoot(descriptor), (daemon.paths("-config", "--config") or [_DAEMON_CONFIG])[-1]
        config = parse_json(root.read(config_file, _LARGEST))
        if not isinstance(config, dict):
            return
        directory = text_of(config, "bindir") or text_of(plugin, "bindir") or _BIN_DIR
        with root.below(text_of(config, "chrootdir") or "/") as seen:
            dead = seen.dead_links(directory)
        used = _used(root, {**plugin, **config})
    finally:
        os.close(descriptor)
    # Those that the host does not have either are missing for everybody.
    lost = sorted((name for name in dead if found_plugin(name, binaries.bin_dirs)), key=lambda name: name not in used)
    if lost:
        lost_names = ", ".join(lost)
        text = f"the daemon of Multus does not find the plugins {lost_names}: they are links that lead nowhere there"
        place, target = os.path.join(directory, lost[0]), dead[lost[0]]
        evidence = f"{place} is a link to {target}, which exists on this host, but not for its process {daemon.pid}"
        folder = os.path.dirname(found_plugin(lost[0], binaries.bin_dirs))
        remedy = (
            f"install plugins instead of links in {folder} (podwire.cni.cni_plugins), mount what {target} leads to in "
            f"its container, or set chrootDir in {config_file} to where the root of the host is mounted there"
        )
        yield obstacle("no_plugin_for_multus", text, evidence, remedy, ERROR if lost[0] in used else WARNING)


def _used(root: ProcessRoot, config: Dict[str, Any]) -> List[str]:
    """Return the plugins that the daemon runs for every pod, as far as the files that it sees tell."""
    plugins = [plugin for _place, network in delegates_of(config) for _at, plugin in inner_plugins(network)]
    target = text_of(config, "clusternetwork")
    if target.startswith("/"):
        with contextlib.suppress(OSError):
            plugins += ConfFile(os.path.basename(target), target, root.read(target, _LARGEST)).plugins
    return [name for plugin in plugins for _pointer, name in named_plugins(plugin)]
