# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd, and the Kubernetes distributions that include it: k3s, rke2, MicroK8s, k0s.

The command line of a running daemon tells which configuration it reads; a daemon that is not running is found by its
binary or its configuration. ``containerd config dump`` includes the defaults of the package and all imports. If it
cannot be run, the configuration is read here.
"""

from __future__ import annotations

import glob
import os
from typing import Any, Dict, List, Sequence, Tuple

from ..errors import HostError
from ..processes import Process
from ..trust import check_trusted
from . import profiles, reading
from .profiles import Runtime, containerd_profile

_CONFIG = "/etc/containerd/config.toml"
CRI = ("io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "cri")
_MOST_IMPORTS = 100


def find_containerd(running: Sequence[Process]) -> List[Runtime]:
    """Return every containerd on this host; one with several sets of networks occurs several times."""
    found: Dict[str, Tuple[str, str, str, int]] = {}
    for process in running:
        if process.name == "containerd":
            config = (process.paths("-c", "--config", "-config") or [_CONFIG])[-1]
            program = process.program or reading.installed("containerd")
            found.setdefault(os.path.realpath(config), (config, program, f"a running {process.name}", process.pid))
    for one in profiles.DISTRIBUTIONS:
        if os.path.exists(one.config):
            found.setdefault(os.path.realpath(one.config), (one.config, one.program, one.config, 0))
    program = reading.installed("containerd")
    if program:
        found.setdefault(os.path.realpath(_CONFIG), (_CONFIG, program, program, 0))
    runtimes = []
    for config, program, evidence, pid in found.values():
        runtimes.extend(_runtimes(config, program, evidence, pid))
    return runtimes


def _runtimes(config: str, program: str, evidence: str, pid: int) -> List[Runtime]:
    notes: List[str] = []
    version = reading.version(program, "--version", notes)
    name = next((one.name for one in profiles.DISTRIBUTIONS if one.mark in config), "") or containerd_profile(version)
    runtime = Runtime(name, version, evidence)
    runtime.notes, runtime.config, runtime.pid = notes, config, pid
    try:
        runtime.tables = _tables(config, program, version, notes)
        return [runtime, *_configure(runtime, runtime.tables)]
    except HostError as error:
        notes.append(f"its configuration is not understood ({error.msg}), so its default directories are assumed")
        return [runtime]


def _tables(config: str, program: str, version: str, notes: List[str]) -> Dict[str, Any]:
    """Return the configuration, from the daemon's own command if it can be run."""
    check_trusted(config)
    try:
        if os.path.exists(config):
            return reading.toml(reading.output(program, "--config", config, "config", "dump"))
        # Without a file, the daemon uses its defaults, and `config dump` fails.
        return reading.toml(reading.output(program, "config", "default"))
    except HostError as error:
        notes.append(f"read from {config}, because its own command failed: {error.msg}")
    return _read(config, version)


def _read(config: str, version: str) -> Dict[str, Any]:
    """Return the configuration of the file and its imports; a later one overrides an earlier one."""
    tables = reading.parsed(config) or {}
    for path in imported(config, tables):
        more = reading.parsed(path) or {}
        plugins = reading.section(tables, "plugins")
        for name, settings in reading.section(more, "plugins").items():
            # Observed with 1.6.20 and 1.7.24: an import's settings of a plugin replace all of the main file's.
            if version.startswith("1.") or not isinstance(plugins.get(name), dict) or not isinstance(settings, dict):
                plugins[name] = settings
            else:
                _merge(plugins[name], settings)
        tables["plugins"] = plugins
        if "disabled_plugins" in more:
            tables["disabled_plugins"] = more["disabled_plugins"]
    return tables


def imported(config: str, tables: Dict[str, Any]) -> List[str]:
    """Return the files that the file *config*, with the content *tables*, imports; later ones override earlier ones."""
    imports = tables.get("imports")
    paths = []
    for pattern in imports if isinstance(imports, list) else []:
        if isinstance(pattern, str):
            pattern = reading.plain_path(os.path.join(os.path.dirname(config), pattern), "imports")
            paths.extend(sorted(glob.glob(pattern))[:_MOST_IMPORTS])
    return paths[:_MOST_IMPORTS]


def _merge(base: Dict[str, Any], other: Dict[str, Any]) -> None:
    for key, value in other.items():
        inner = base.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            _merge(inner, value)
        else:
            base[key] = value


def _configure(runtime: Runtime, tables: Dict[str, Any]) -> List[Runtime]:
    """Set what *tables* configure; return more runtimes, for runtime handlers with their own networks."""
    disabled = tables.get("disabled_plugins")
    if isinstance(disabled, list) and any(name in disabled for name in CRI):
        runtime.reads = False
        runtime.notes.append("its CRI plugin is disabled (disabled_plugins), so it reads no networks")
        return []
    plugins = reading.section(tables, "plugins")
    cri = next((reading.section(plugins, name) for name in CRI if name in plugins), {})
    cni = reading.section(cri, "cni")
    # A configuration without the directories, even that of k3s, means containerd's own defaults.
    runtime.set_conf(reading.directory(cni, "conf_dir") or "/etc/cni/net.d")
    bin_dir = reading.directory(cni, "bin_dir")
    runtime.bin_dirs = reading.directories(cni, "bin_dirs") or [bin_dir or "/opt/cni/bin"]
    runtime.max_networks = max(0, reading.number(cni, "max_conf_num", 1))
    runtime.setup_serially = cni.get("setup_serially") is True
    runtime.internal_loopback = cni.get("use_internal_loopback") is True
    # Configurations of version 4, since containerd 2.3, have the socket among the plugins.
    server = reading.section(plugins, "io.containerd.server.v1.grpc")
    runtime.address = (
        reading.text_of_key(server, "address")
        or reading.text_of_key(reading.section(tables, "grpc"), "address")
        or "/run/containerd/containerd.sock"
    )
    template = reading.text_of_key(cni, "conf_template")
    if template:
        runtime.notes.append(f"it writes 10-containerd-net.conflist itself, from conf_template {template}")
    return _of_handlers(runtime, reading.section(cri, "containerd", "runtimes"))


def _of_handlers(runtime: Runtime, handlers: Dict[str, Any]) -> List[Runtime]:
    found = []
    for handler in sorted(handlers):
        settings = reading.section(handlers, handler)
        conf_dir = reading.directory(settings, "cni_conf_dir")
        if conf_dir and conf_dir != runtime.conf_dir:
            other = Runtime(runtime.name, runtime.version, runtime.found, conf_dir, runtime.bin_dirs)
            other.max_networks = max(0, reading.number(settings, "cni_max_conf_num", 0)) or runtime.max_networks
            other.internal_loopback = runtime.internal_loopback
            other.pid, other.address, other.handler = runtime.pid, runtime.address, handler
            other.notes = [*runtime.notes, f"for pods with the runtime handler {handler}"]
            found.append(other)
    return found
