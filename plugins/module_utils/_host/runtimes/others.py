# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""nerdctl, buildkit, and a table of runtimes with simple settings: Firecracker, rkt, Mesos, ECS."""

from __future__ import annotations

import os
import re
from typing import List, NamedTuple, Sequence, Tuple

from ..processes import Process
from . import profiles, reading
from .runtime import Runtime

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


class Simple(NamedTuple):
    """A runtime whose settings are options of its command line, or in ``config``.

    That is a file with lines KEY=VALUE, or a directory with a file for each key. One that has no ``programs`` on the
    host is found by this file. ``version`` is the argument that makes it print its version. ``conf_dir`` and
    ``bin_dirs`` are the keys of the directories. Unless the key ``switch`` has the value ``on`` ("": any), it reads no
    networks, because of ``off``. ``note``: what else it does. ``default_network``: the name of the network that it
    makes. ``needs_conf_dir``: it counts only if its conf_dir exists.
    """

    name: str
    programs: Tuple[str, ...] = ()
    config: str = ""
    version: str = ""
    conf_dir: str = ""
    bin_dirs: str = ""
    switch: str = ""
    on: str = ""
    off: str = ""
    note: str = ""
    default_network: str = ""
    needs_conf_dir: bool = False


SIMPLE = (
    Simple("firecracker", ("firecracker", "firecracker-containerd"), needs_conf_dir=True),
    Simple("rkt", ("rkt",), version="version"),
    # The package makes the agent's command line of the files in its directory.
    Simple(
        "mesos",
        ("mesos-agent", "mesos-slave"),
        "/etc/mesos-slave",
        conf_dir="network_cni_config_dir",
        bin_dirs="network_cni_plugins_dir",
        switch="network_cni_config_dir",
        off="network_cni_config_dir is not set, so its containers use the host's network",
        note="it also reads files without these extensions",
    ),
    # Its agent runs in a container: only its configuration is on the host.
    Simple(
        "ecs",
        (),
        profiles.ECS_CONFIG,
        bin_dirs="ECS_CNI_PLUGINS_PATH",
        switch="ECS_ENABLE_TASK_ENI",
        on="true",
        off="ECS_ENABLE_TASK_ENI is not true, so Docker makes the networks of tasks",
        note="its plugins are in the image of its agent, not on the host",
        default_network="awsvpc",
    ),
)


def find_others(running: Sequence[Process]) -> List[Runtime]:
    """Return those that run or are installed."""
    runtimes = [*_nerdctl(), *_buildkit(running)]
    for row in SIMPLE:
        runtime = Runtime.evident(row.name, running, *row.programs, version=row.version)
        if runtime is None and not row.programs and os.path.exists(row.config):
            runtime = Runtime(row.name, "", row.config)
        if runtime is None or (row.needs_conf_dir and not os.path.isdir(runtime.conf_dir)):
            continue
        with runtime.read_settings():
            _read_simple(runtime, row)
        runtimes.append(runtime)
    return runtimes


def _read_simple(runtime: Runtime, row: Simple) -> None:
    switch = _value(runtime.process, row, row.switch)
    if row.switch and (not switch or (row.on and switch.lower() != row.on)):
        runtime.reads = False
        runtime.notes.append(row.off)
        return
    runtime.default_network = row.default_network or runtime.default_network
    conf_dir, bin_dirs = _value(runtime.process, row, row.conf_dir), _value(runtime.process, row, row.bin_dirs)
    if conf_dir:
        runtime.set_conf(reading.plain_path(conf_dir, row.conf_dir))
    paths = [reading.plain_path(path, row.bin_dirs) for path in bin_dirs.split(":") if path]
    runtime.bin_dirs = paths or runtime.bin_dirs
    if row.note:
        runtime.notes.append(row.note)


def _value(process: Process, row: Simple, key: str) -> str:
    """Return a setting of the command line, else of its configuration; "" if there is none."""
    option = process.option(f"--{key}") if key else ""
    if option or not key or not row.config:
        return option
    if os.path.isdir(row.config):
        return (reading.read_text(os.path.join(row.config, key)) or "").strip()
    lines = (line.strip().partition("=") for line in (reading.read_text(row.config) or "").splitlines())
    return next((value.strip() for name, _equals, value in reversed(list(lines)) if name == key), "")


def _nerdctl() -> List[Runtime]:
    runtime = Runtime.evident("nerdctl", [], "nerdctl", version="--version")
    if runtime is None:
        return []
    runtime.folder = "default"
    existing = [folder for folder in _NERDCTL_BIN_DIRS if os.path.isdir(folder)]
    runtime.bin_dirs = existing[:1] or list(_NERDCTL_BIN_DIRS[:1])
    with runtime.read_settings():
        tables = reading.parsed(_NERDCTL_CONFIG) or {}
        runtime.set_conf(reading.directory(tables, "cni_netconfpath") or runtime.conf_dir)
        bin_dir = reading.directory(tables, "cni_path")
        runtime.bin_dirs = [bin_dir] if bin_dir else runtime.bin_dirs
        namespace = reading.text_of_key(tables, "namespace") or runtime.folder
        if _NAMESPACE.fullmatch(namespace):
            runtime.folder = namespace
    return [runtime]


def _buildkit(running: Sequence[Process]) -> List[Runtime]:
    runtime = Runtime.evident("buildkit", running, "buildkitd")
    if runtime is None:
        return []
    process = runtime.process
    with runtime.read_settings(then="so its default file is assumed"):
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
    return [runtime]
