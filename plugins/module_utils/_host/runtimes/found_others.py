# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nerdctl, buildkit, kubelet with dockershim, cri-dockerd, Firecracker, and multus where it made its configuration."""

from __future__ import annotations

import os
import re
from typing import List, Sequence

from ..errors import HostError
from ..processes import Process, option
from . import reading
from .profiles import Runtime

# nerdctl pkg/defaults/defaults_linux.go: the first one that exists
_NERDCTL_BIN_DIRS = (
    "/opt/cni/bin",
    "/usr/local/libexec/cni",
    "/usr/local/lib/cni",
    "/usr/libexec/cni",
    "/usr/lib/cni",
)
_NERDCTL_CONFIG = "/etc/nerdctl/nerdctl.toml"
# What containerd accepts; such a name cannot lead out of the directory.
_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_BUILDKIT_CONFIG = "/etc/buildkit/buildkitd.toml"


def find_others(running: Sequence[Process]) -> List[Runtime]:
    """Return those that run or are installed."""
    found = [*_nerdctl(), *_buildkit(running), *_by_flags(running)]
    firecracker = reading.installed("firecracker") or reading.installed("firecracker-containerd")
    runtime = Runtime("firecracker", "", firecracker)
    if firecracker and os.path.isdir(runtime.conf_dir):
        found.append(runtime)
    return found


def _nerdctl() -> List[Runtime]:
    program = reading.installed("nerdctl")
    if not program:
        return []
    notes: List[str] = []
    runtime = Runtime("nerdctl", reading.version(program, "--version", notes), program)
    runtime.notes, runtime.folder = notes, "default"
    existing = [folder for folder in _NERDCTL_BIN_DIRS if os.path.isdir(folder)]
    runtime.bin_dirs = existing[:1] or list(_NERDCTL_BIN_DIRS[:1])
    try:
        tables = reading.parsed(_NERDCTL_CONFIG) or {}
        runtime.set_conf(reading.directory(tables, "cni_netconfpath") or runtime.conf_dir)
        own = reading.directory(tables, "cni_path")
        runtime.bin_dirs = [own] if own else runtime.bin_dirs
        namespace = reading.text_of_key(tables, "namespace") or runtime.folder
        if _NAMESPACE.fullmatch(namespace):
            runtime.folder = namespace
    except HostError as error:
        notes.append(f"its configuration is not understood ({error.msg}), so its default directories are assumed")
    return [runtime]


def _buildkit(running: Sequence[Process]) -> List[Runtime]:
    process = next((process for process in running if process.name == "buildkitd"), None)
    program = reading.installed("buildkitd")
    if process is None and not program:
        return []
    argv = process.argv if process else []
    runtime = Runtime("buildkit", "", f"a running {process.name}" if process else program)
    try:
        tables = reading.parsed(option(argv, "--config", "-config") or _BUILDKIT_CONFIG) or {}
        oci, containerd = (reading.section(tables, "worker", name) for name in ("oci", "containerd"))
        worker, prefix = (containerd, "--containerd") if containerd.get("enabled") is True else (oci, "--oci")
        mode = option(argv, f"{prefix}-worker-net") or reading.text_of_key(worker, "networkMode")
        path = option(argv, f"{prefix}-cni-config-path") or reading.directory(worker, "cniConfigPath")
        runtime.set_conf(reading.plain_path(path, "cniConfigPath") if path else runtime.conf_file)
        bin_dir = option(argv, f"{prefix}-cni-binary-dir") or reading.directory(worker, "cniBinaryPath")
        runtime.bin_dirs = [reading.plain_path(bin_dir, "cniBinaryPath")] if bin_dir else runtime.bin_dirs
        if mode in ("host", "bridge"):
            runtime.reads = False
            runtime.notes.append(f"its mode is {mode}, so it reads no network")
    except HostError as error:
        runtime.notes.append(f"its configuration is not understood ({error.msg}), so its default file is assumed")
    return [runtime]


def _by_flags(running: Sequence[Process]) -> List[Runtime]:
    """Return dockershim and cri-dockerd, which are configured only by their command lines."""
    found = []
    for process in running:
        if process.name == "kubelet" and option(process.argv, "--network-plugin") == "cni":
            runtime = Runtime("dockershim", "", f"a running {process.name}")
        elif process.name == "cri-dockerd" and option(process.argv, "--network-plugin") in ("", "cni"):
            runtime = Runtime("cri-dockerd", "", f"a running {process.name}")
        else:
            continue
        try:
            conf_dir = option(process.argv, "--cni-conf-dir")
            runtime.set_conf(reading.plain_path(conf_dir, "--cni-conf-dir") if conf_dir else runtime.conf_dir)
            bin_dirs = option(process.argv, "--cni-bin-dir").split(",")
            runtime.bin_dirs = [
                reading.plain_path(path, "--cni-bin-dir") for path in bin_dirs if path
            ] or runtime.bin_dirs
        except HostError as error:
            runtime.notes.append(f"its command line is not understood ({error.msg})")
        found.append(runtime)
    return found
