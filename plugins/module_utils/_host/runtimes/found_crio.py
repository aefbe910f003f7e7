# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CRI-O, also in OpenShift: crio.conf, overridden by the files in crio.conf.d, overridden by the command line."""

from __future__ import annotations

import os
from typing import List, Sequence

from ..errors import HostError
from ..processes import Process
from . import reading
from .profiles import PROFILES, Runtime

_CONFIG = "/etc/crio/crio.conf"
_DROP_INS = "/etc/crio/crio.conf.d"


def find_crio(running: Sequence[Process]) -> List[Runtime]:
    """Return CRI-O if it runs or is installed."""
    process = next((process for process in running if process.name == "crio"), Process())
    program = process.program or reading.installed("crio")
    if not process.pid and not program:
        return []
    evidence = f"a running {process.name}" if process.pid else program
    notes: List[str] = []
    runtime = Runtime("crio", reading.version(program, "--version", notes) if program else "", evidence)
    runtime.notes = notes
    runtime.config = (process.paths("--config-dir", "-d") or [_DROP_INS])[-1]
    runtime.pid = process.pid
    runtime.address = (process.paths("--listen") or ["/run/crio/crio.sock"])[-1]
    try:
        _configure(runtime, process)
    except HostError as error:
        notes.append(f"its configuration is not understood ({error.msg}), so its default directories are assumed")
    if runtime.conf_dir == PROFILES["openshift"].conf_dir:
        named = Runtime("openshift", runtime.version, evidence, runtime.conf_dir, runtime.bin_dirs)
        named.default_network, named.notes = runtime.default_network, notes
        named.config, named.pid, named.address = runtime.config, runtime.pid, runtime.address
        return [named]
    return [runtime]


def _configure(runtime: Runtime, process: Process) -> None:
    conf_dir, bin_dirs, default = "", list(runtime.bin_dirs), ""
    paths = process.paths("--config", "-c")[-1:] or [_CONFIG]
    if os.path.isdir(runtime.config):
        paths.extend(reading.below(runtime.config))
    for path in paths:
        network = reading.section(reading.parsed(path) or {}, "crio", "network")
        conf_dir = reading.directory(network, "network_dir") or conf_dir
        bin_dirs = reading.directories(network, "plugin_dirs") or bin_dirs
        # This deprecated key adds to the others.
        old = reading.directory(network, "plugin_dir")
        bin_dirs = [*bin_dirs, old] if old and old not in bin_dirs else bin_dirs
        if "cni_default_network" in network:
            default = reading.text_of_key(network, "cni_default_network")
    given = process.option("--cni-config-dir")
    conf_dir = reading.plain_path(given, "--cni-config-dir") if given else conf_dir
    dirs = process.options("--cni-plugin-dir")
    if conf_dir:
        runtime.set_conf(conf_dir)
    runtime.bin_dirs = [reading.plain_path(path, "--cni-plugin-dir") for path in dirs] or bin_dirs
    runtime.default_network = process.option("--cni-default-network") or default
