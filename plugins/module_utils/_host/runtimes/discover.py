# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The runtimes on this host, and those that a task names."""

from __future__ import annotations

import copy
import os
from typing import Dict, Iterable, List, Sequence, Tuple, Type

from ..hostview import HostView, Users
from ..processes import processes
from ..trust import untrusted
from . import profiles, reading
from .profiles import CONTAINERD, OWN, containerd_profile
from .runtime import Runtime

# What is found by which programs: daemons, whose command lines tell what they read, and others.
_PROGRAMS: Dict[str, Tuple[Sequence[str], Sequence[str]]] = {
    CONTAINERD: ([CONTAINERD], []),
    "crio": (["crio"], []),
    "podman": ([], ["podman"]),
    "apptainer": ([], ["apptainer"]),
    "nomad": (["nomad"], []),
    "others": (
        ["kubelet", "cri-dockerd", "buildkitd", "mesos-agent", "mesos-slave"],
        ["nerdctl", "firecracker", "firecracker-containerd", "rkt"],
    ),
}


def runtimes_on_host(conf_dir: str, view: HostView) -> List[Runtime]:
    """Return the runtimes that run on this host or are installed, by name; *conf_dir* is searched for multus.

    To find them runs their programs, so the *view* remembers them.
    """
    if view.runtimes is None:
        view.runtimes = find_runtimes()
    # What is planned for a runtime does not change what was found.
    runtimes: List[Runtime] = [copy.copy(runtime) for runtime in view.runtimes]
    trusted = (runtime.conf_dir for runtime in runtimes if runtime.reads and not untrusted([runtime.conf_dir]))
    runtimes.extend(multus([conf_dir, *trusted]))
    return sorted(runtimes, key=lambda runtime: (runtime.name, runtime.conf_dir))


def find_runtimes() -> List[Runtime]:
    """Return the runtimes that run on this host or are installed."""
    running = processes(*(name for daemons, _others in _PROGRAMS.values() for name in daemons))
    configs = {
        CONTAINERD: [profile.config for profile in profiles.PROFILES.values()],
        "apptainer": [profiles.APPTAINER_CONFIG],
        "others": [profiles.ECS_CONFIG],
    }
    runtimes: List[Runtime] = []
    for kind, (daemons, others) in _PROGRAMS.items():
        runs = any(process.name in daemons for process in running)
        if runs or any(map(reading.installed, [*daemons, *others])) or any(map(os.path.exists, configs.get(kind, ()))):
            runtimes.extend(class_of(kind).find(running))
    return runtimes


def class_of(name: str) -> Type[Runtime]:
    """Return the class of a runtime, or the one that finds runtimes of a kind.

    Each is imported only where there is a trace of it: most hosts have one.
    """
    runtime_class: Type[Runtime] = Runtime
    if name.startswith(CONTAINERD):
        from .containerd import Containerd as runtime_class
    elif name == "crio":
        from .crio import Crio as runtime_class
    elif name == "podman":
        from .podman import Podman as runtime_class
    elif name == "apptainer":
        from .apptainer import Apptainer as runtime_class
    elif name == "nomad":
        from .nomad import Nomad as runtime_class
    elif name == "others":
        from .others import Other as runtime_class
    return runtime_class


def multus(conf_dirs: Iterable[str]) -> List[Runtime]:
    """Return a multus for each directory that it has put its configuration into, beside the one that it was made from.

    Where nothing else is, the file was not made from another one. What it gives pods is in the row of its runtime.
    """
    runtimes = []
    for conf_dir in sorted(set(conf_dirs)):
        files = [path for path in reading.listed(conf_dir) if path.endswith((".conf", ".conflist"))]
        multus_files = [path for path in files if os.path.basename(path).startswith("00-multus")]
        if multus_files and len(files) > len(multus_files):
            runtimes.append(Runtime("multus", "", multus_files[0], conf_dir))
    return runtimes


def named_runtimes(names: Sequence[str], conf_dir: str, bin_dirs: Sequence[str], view: HostView) -> List[Runtime]:
    """Return the runtimes *names*, each as it is on this host, else as if it read *conf_dir*.

    A runtime whose directory cannot be configured keeps that directory.
    """
    present = runtimes_on_host(conf_dir, view)
    runtimes: List[Runtime] = []
    for name in names:
        matching = [runtime for runtime in present if name in (runtime.name, runtime.kind)]
        runtimes.extend(runtime for runtime in matching if runtime not in runtimes)
        if not matching:
            runtimes.append(_absent(containerd_profile("") if name == CONTAINERD else name, conf_dir, bin_dirs))
    return runtimes


def _absent(name: str, conf_dir: str, bin_dirs: Sequence[str]) -> Runtime:
    runtime = class_of(name)(name)
    if runtime.may_read(conf_dir):
        runtime.set_conf(conf_dir)
        runtime.bin_dirs = list(bin_dirs)
        runtime.notes.append(f"it was not found on this host; it is assumed to read {conf_dir}")
    elif runtime.profile.choice != OWN:
        runtime.notes.append("it was not found on this host; the directory is its default")
    return runtime


def same_directory(path: str, other: str) -> bool:
    """Tell whether two paths lead to the same directory, even if it does not exist yet."""
    return os.path.realpath(path) == os.path.realpath(other)


def built_in_users(view: HostView, bin_dir: str) -> Users:
    """Return the built-in networks of this host's runtimes whose plugins are in *bin_dir*.

    Without a network of its own, a runtime starts no container, and does not need the plugins.
    """
    users = []
    for runtime in runtimes_on_host("", view):
        network = runtime.built_in
        if network is None or not any(same_directory(bin_dir, path) for path in runtime.bin_dirs):
            continue
        if runtime.profile.choice == OWN or (network.plugins and view.conf_files(runtime.conf_dir)):
            text = f"{runtime.name} for {network.purpose} (its built-in network {network.name!r})"
            users.append((text, network.cni_version, [{"type": plugin} for plugin in network.plugins]))
    return users
