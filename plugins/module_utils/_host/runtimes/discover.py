# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runtimes on this host, and those that a task names."""

from __future__ import annotations

import os
from typing import Iterable, List, Sequence

from ..processes import Process, processes
from ..trust import untrusted
from . import profiles, reading
from .profiles import CONTAINERD, Runtime, containerd_profile

# Daemons whose command lines tell what they read.
_DAEMONS = ("containerd", "crio", "nomad", "buildkitd", "kubelet", "cri-dockerd", "mesos-agent", "mesos-slave")
# The programs of the runtimes in found_others.
_OTHERS = (
    *("nerdctl", "buildkitd", "kubelet", "cri-dockerd", "firecracker", "firecracker-containerd"),
    *("rkt", "mesos-agent", "mesos-slave"),
)


def runtimes_on_host(conf_dir: str) -> List[Runtime]:
    """Return the runtimes that run on this host or are installed, by name; *conf_dir* is searched for multus."""
    running = processes(*_DAEMONS)
    found: List[Runtime] = []
    # Each is imported only where there is a trace of it: most hosts have one runtime.
    if _is_here(running, "containerd") or any(os.path.exists(one.config) for one in profiles.DISTRIBUTIONS):
        from .found_containerd import find_containerd

        found.extend(find_containerd(running))
    if _is_here(running, "crio"):
        from .found_crio import find_crio

        found.extend(find_crio(running))
    if _is_here(running, "podman"):
        from .found_podman import find_podman

        found.extend(find_podman())
    if _is_here(running, "apptainer") or os.path.exists(profiles.APPTAINER_CONFIG):
        from .found_apptainer import find_apptainer

        found.extend(find_apptainer())
    if _is_here(running, "nomad"):
        from .found_nomad import find_nomad

        found.extend(find_nomad(running))
    if _is_here(running, *_OTHERS) or os.path.exists(profiles.ECS_CONFIG):
        from .found_others import find_others

        found.extend(find_others(running))
    trusted = (runtime.conf_dir for runtime in found if runtime.reads and not untrusted([runtime.conf_dir]))
    found.extend(multus([conf_dir, *trusted]))
    return sorted(found, key=lambda runtime: (runtime.name, runtime.conf_dir))


def _is_here(running: Sequence[Process], *names: str) -> bool:
    """Tell whether one of the programs runs or is installed."""
    return any(process.name in names for process in running) or any(map(reading.installed, names))


def multus(conf_dirs: Iterable[str]) -> List[Runtime]:
    """Return a multus for each directory that it has put its configuration into, beside the one that it was made from.

    Where nothing else is, the file was not made from another one. What it gives pods is in the row of its runtime.
    """
    found = []
    for conf_dir in sorted(set(conf_dirs)):
        there = [path for path in reading.listed(conf_dir) if path.endswith((".conf", ".conflist"))]
        own = [path for path in there if os.path.basename(path).startswith("00-multus")]
        if own and len(there) > len(own):
            found.append(Runtime("multus", "", own[0], conf_dir))
    return found


def named_runtimes(names: Sequence[str], conf_dir: str, bin_dirs: Sequence[str]) -> List[Runtime]:
    """Return the runtimes *names*, each as it is on this host, else as if it read *conf_dir*.

    A runtime whose directory cannot be configured keeps that directory.
    """
    here = runtimes_on_host(conf_dir)
    wanted: List[Runtime] = []
    for name in names:
        matching = [runtime for runtime in here if runtime.name == name]
        if name == CONTAINERD:
            matching = [runtime for runtime in here if runtime.name.startswith(CONTAINERD + "-")]
        wanted.extend(runtime for runtime in matching if runtime not in wanted)
        if not matching:
            wanted.append(_absent(containerd_profile("") if name == CONTAINERD else name, conf_dir, bin_dirs))
    return wanted


def _absent(name: str, conf_dir: str, bin_dirs: Sequence[str]) -> Runtime:
    runtime = Runtime(name)
    if runtime.may_read(conf_dir):
        runtime.set_conf(conf_dir)
        runtime.bin_dirs = list(bin_dirs)
        runtime.notes.append(f"it was not found on this host; it is assumed to read {conf_dir}")
    elif runtime.rules.choice != "own":
        runtime.notes.append("it was not found on this host; the directory is its default")
    return runtime


def same_directory(one: str, other: str) -> bool:
    """Tell whether two paths lead to the same directory, even if it does not exist yet."""
    return os.path.realpath(one) == os.path.realpath(other)
