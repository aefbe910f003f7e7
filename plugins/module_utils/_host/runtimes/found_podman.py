# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""podman, as far as it uses CNI: containers.conf and its drop-ins, and the backend that podman has recorded.

podman itself is not run: on its first run, it would create its databases and choose its backend.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Tuple

from ..errors import HostError
from . import reading
from .profiles import Runtime

_CONFIGS = ("/usr/share/containers/containers.conf", "/etc/containers/containers.conf")
_DROP_INS = "/etc/containers/containers.conf.d"
_STORAGE = "/etc/containers/storage.conf"
_GRAPH_ROOT = "/var/lib/containers/storage"
# containers/common pkg/config/config_linux.go: helper_binaries_dir
_HELPERS = ("/usr/local/libexec/podman", "/usr/local/lib/podman", "/usr/libexec/podman", "/usr/lib/podman")


def find_podman() -> List[Runtime]:
    """Return podman if it is installed."""
    program = reading.installed("podman")
    if not program:
        return []
    notes: List[str] = []
    runtime = Runtime("podman", reading.version(program, "--version", notes), program)
    runtime.notes, runtime.config = notes, _DROP_INS
    try:
        _configure(runtime)
    except HostError as error:
        notes.append(f"its configuration is not understood ({error.msg}), so its default directories are assumed")
    return [runtime]


def _configure(runtime: Runtime) -> None:
    network: Dict[str, Any] = {}
    helpers: List[str] = []
    for path in [*_CONFIGS, *reading.listed(_DROP_INS, ".conf")]:
        tables = reading.parsed(path) or {}
        network.update(reading.section(tables, "network"))
        helpers = reading.directories(reading.section(tables, "engine"), "helper_binaries_dir") or helpers
    backend, why = _backend(runtime, reading.text_of_key(network, "network_backend"), helpers or list(_HELPERS))
    if backend != "cni":
        runtime.reads = False
        runtime.notes.append(f"it uses {backend}, not CNI, {why}")
        return
    if why:
        runtime.notes.append(f"it uses CNI, {why}")
    runtime.set_conf(reading.directory(network, "network_config_dir") or runtime.conf_dir)
    runtime.bin_dirs = reading.directories(network, "cni_plugin_dirs") or runtime.bin_dirs
    runtime.default_network = reading.text_of_key(network, "default_network") or runtime.default_network
    runtime.databases = os.path.join(_root(), "libpod")


def _backend(runtime: Runtime, configured: str, helpers: List[str]) -> Tuple[str, str]:
    """Return cni or netavark, and why (containers/common libnetwork/network/interface.go:NetworkBackend)."""
    major = podman_release(runtime.version)
    if major < 4:
        return "cni", ""
    if configured:
        return configured, "because of network_backend"
    path, used = settled()
    if used:
        return used, f"according to {path}"
    if major >= 5:
        return "netavark", "as all releases since 5 do"
    if not any(os.path.exists(os.path.join(folder, "netavark")) for folder in helpers):
        return "cni", "because netavark is not installed"
    # It also checks its storage for containers and images, which is not read here.
    return "netavark", "unless it finds containers, images or CNI networks when it first runs"


def podman_release(version: str) -> int:
    """Return the major version. One that is not known is taken for a recent one, which has no CNI."""
    return int(version.split(".")[0]) if version else 5


def settled() -> Tuple[str, str]:
    """Return the file where podman records the backend of its containers, and that backend ("" if not yet recorded)."""
    path = os.path.join(_root(), "defaultNetworkBackend")
    text = reading.read_text(path)
    return path, text if text in ("cni", "netavark") else ""


def _root() -> str:
    return reading.directory(reading.section(reading.parsed(_STORAGE) or {}, "storage"), "graphroot") or _GRAPH_ROOT
