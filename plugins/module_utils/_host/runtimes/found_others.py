# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nerdctl, buildkit, kubelet with its own networks, cri-dockerd, Firecracker, rkt, Mesos, the agent of Amazon ECS."""

from __future__ import annotations

import os
import re
from typing import List, Optional, Sequence

from ..errors import HostError
from ..processes import Process
from . import profiles, reading
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
# Values of --network-plugin for none: pkg/kubelet/network/plugins.go
_NOOP = ("", "kubernetes.io/no-op")
_LAST_WITH_VENDOR_DIRS = (1, 9)
_FIRST_WITHOUT_DOCKER = (1, 24)
# pkg/kubelet/network/kubenet/kubenet_linux.go:setup
_HAIRPIN = {
    "promiscuous-bridge": "cbr0 is promiscuous, so a pod reaches itself by its Service",
    "hairpin-veth": "its ports of cbr0 have hairpin mode, so a pod reaches itself by its Service",
    "none": "its --hairpin-mode is none, so a pod does not reach itself by its Service",
}
_MESOS = ("mesos-agent", "mesos-slave")
_MESOS_FLAGS = "/etc/mesos-slave"


def find_others(running: Sequence[Process]) -> List[Runtime]:
    """Return those that run or are installed."""
    found = [*_nerdctl(), *_buildkit(running), *_by_flags(running), *_rkt(), *_mesos(running), *_ecs()]
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
    process = next((process for process in running if process.name == "buildkitd"), Process())
    program = reading.installed("buildkitd")
    if not process.pid and not program:
        return []
    runtime = Runtime("buildkit", "", f"a running {process.name}" if process.pid else program)
    try:
        tables = reading.parsed((process.paths("--config", "-config") or [_BUILDKIT_CONFIG])[-1]) or {}
        oci, containerd = (reading.section(tables, "worker", name) for name in ("oci", "containerd"))
        worker, prefix = (containerd, "--containerd") if containerd.get("enabled") is True else (oci, "--oci")
        mode = process.option(f"{prefix}-worker-net") or reading.text_of_key(worker, "networkMode")
        path = process.option(f"{prefix}-cni-config-path") or reading.directory(worker, "cniConfigPath")
        runtime.set_conf(reading.plain_path(path, "cniConfigPath") if path else runtime.conf_file)
        bin_dir = process.option(f"{prefix}-cni-binary-dir") or reading.directory(worker, "cniBinaryPath")
        runtime.bin_dirs = [reading.plain_path(bin_dir, "cniBinaryPath")] if bin_dir else runtime.bin_dirs
        if mode in ("host", "bridge"):
            runtime.reads = False
            runtime.notes.append(f"its mode is {mode}, so it reads no network")
    except HostError as error:
        runtime.notes.append(f"its configuration is not understood ({error.msg}), so its default file is assumed")
    return [runtime]


def _by_flags(running: Sequence[Process]) -> List[Runtime]:
    """Return kubelet with its own networks, and cri-dockerd, which are configured only by their command lines."""
    found = []
    for process in running:
        if process.name == "kubelet":
            runtime = _kubelet(process)
        elif process.name == "cri-dockerd" and process.option("--network-plugin") in ("", "cni"):
            runtime = Runtime("cri-dockerd", "", f"a running {process.name}")
        else:
            continue
        if runtime is None:
            continue
        try:
            # kubelet cmd/kubelet/app/plugins.go:ProbeNetworkPlugins
            both = ("--network-plugin-dir", "--cni-conf-dir")
            conf_dir = process.option(both[1]) or process.option(both[0])
            runtime.set_conf(reading.plain_path(conf_dir, both[1]) if conf_dir else runtime.conf_dir)
            given = process.option("--cni-bin-dir") or process.option(both[0])
            runtime.bin_dirs = [
                reading.plain_path(path, "--cni-bin-dir") for path in given.split(",") if path
            ] or runtime.bin_dirs
        except HostError as error:
            runtime.notes.append(f"its command line is not understood ({error.msg})")
        found.append(runtime)
    return found


def _kubelet(process: Process) -> Optional[Runtime]:
    """Return the network that kubelet itself makes with Docker, None if it leaves networks to a runtime for CRI.

    Without --network-plugin it makes none (pkg/kubelet/network/plugins.go:InitNetworkPlugin); later releases lack the
    option.
    """
    endpoint = process.option("--container-runtime-endpoint")
    if process.option("--container-runtime") == "remote" or (endpoint and "dockershim" not in endpoint):
        return None
    plugin = process.option("--network-plugin")
    notes: List[str] = []
    program = process.program or reading.installed("kubelet")
    version = reading.version(program, "--version", notes) if program else ""
    older = bool(version) and tuple(map(int, version.split(".")[:2])) <= _LAST_WITH_VENDOR_DIRS
    if plugin in _NOOP and (not version or tuple(map(int, version.split(".")[:2])) >= _FIRST_WITHOUT_DOCKER):
        return None
    mode = process.option("--hairpin-mode")
    if plugin == "kubenet":
        runtime = Runtime("kubenet", version, f"a running {process.name}")
        runtime.default_network = "kubenet"
        notes.append(_HAIRPIN.get(mode or "promiscuous-bridge", f"its --hairpin-mode {mode!r} is not known"))
    else:
        runtime = Runtime("dockershim-1.9" if older else "dockershim", version, f"a running {process.name}")
        if plugin in _NOOP:
            runtime.reads = False
            notes.append("it has no --network-plugin (noop), so Docker makes the network of pods")
        elif plugin != "cni":
            return None
        elif mode:
            notes.append(f"--hairpin-mode {mode} has no effect on CNI networks; hairpinMode of the plugin bridge has")
    runtime.notes = notes
    return runtime


def _rkt() -> List[Runtime]:
    program = reading.installed("rkt")
    if not program:
        return []
    notes: List[str] = []
    runtime = Runtime("rkt", reading.version(program, "version", notes), program)
    runtime.notes = notes
    return [runtime]


def _mesos(running: Sequence[Process]) -> List[Runtime]:
    """Return Mesos: its agent is configured by its command line, which the package makes from /etc/mesos-slave."""
    process = next((one for one in running if one.name in _MESOS), Process())
    program = next((path for path in map(reading.installed, _MESOS) if path), "")
    if not process.pid and not program:
        return []
    runtime = Runtime("mesos", "", f"a running {process.name}" if process.pid else program)
    try:
        values = [_mesos_flag(process, name) for name in ("network_cni_config_dir", "network_cni_plugins_dir")]
        if not any(values):
            runtime.reads = False
            runtime.notes.append("network_cni_config_dir is not set, so its containers use the host's network")
            return [runtime]
        runtime.set_conf(reading.plain_path(values[0], "network_cni_config_dir"))
        runtime.bin_dirs = [
            reading.plain_path(path, "network_cni_plugins_dir") for path in values[1].split(":") if path
        ]
        runtime.notes.append("it also reads files without these extensions")
    except HostError as error:
        runtime.notes.append(
            f"its configuration is not understood ({error.msg}), so its default directories are assumed"
        )
    return [runtime]


def _mesos_flag(process: Process, name: str) -> str:
    return process.option(f"--{name}") or (reading.read_text(os.path.join(_MESOS_FLAGS, name)) or "").strip()


def _ecs() -> List[Runtime]:
    """Return the agent of Amazon ECS, which runs in a container: only its configuration is on the host."""
    try:
        text = reading.read_text(profiles.ECS_CONFIG)
    except HostError:
        text = ""
    if text is None:
        return []
    runtime = Runtime("ecs", "", profiles.ECS_CONFIG)
    values = dict(line.strip().partition("=")[::2] for line in text.splitlines() if "=" in line)
    if values.get("ECS_ENABLE_TASK_ENI", "").strip().lower() == "true":
        runtime.default_network = "awsvpc"
        path = values.get("ECS_CNI_PLUGINS_PATH", "").strip()
        runtime.bin_dirs = [path] if os.path.isabs(path) else runtime.bin_dirs
        runtime.notes.append("its plugins are in the image of its agent, not on the host")
    else:
        runtime.reads = False
        runtime.notes.append("ECS_ENABLE_TASK_ENI is not true, so Docker makes the networks of tasks")
    return [runtime]
