# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runtimes on this host, and those that a task names."""

from __future__ import annotations

import os
from typing import List, Sequence

from ..processes import processes
from . import found_containerd, found_crio, found_nomad, found_others, found_podman
from .profiles import CONTAINERD, Runtime, containerd_profile

# Daemons whose command lines tell what they read.
_DAEMONS = ("containerd", "crio", "nomad", "buildkitd", "kubelet", "cri-dockerd")


def runtimes_on_host(conf_dir: str) -> List[Runtime]:
    """Return the runtimes that run on this host or are installed, by name; *conf_dir* is searched for multus."""
    running = processes(*_DAEMONS)
    found = [
        *found_containerd.find_containerd(running),
        *found_crio.find_crio(running),
        *found_podman.find_podman(),
        *found_nomad.find_nomad(running),
        *found_others.find_others(running),
    ]
    found.extend(found_others.multus([conf_dir, *(runtime.conf_dir for runtime in found if runtime.reads)]))
    return sorted(found, key=lambda runtime: (runtime.name, runtime.conf_dir))


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
