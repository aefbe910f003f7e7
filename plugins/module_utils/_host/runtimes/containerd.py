# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""containerd, and the Kubernetes distributions that include it: k3s, rke2, MicroK8s, k0s.

The command line of a running daemon tells which configuration it reads; a daemon that is not running is found by its
binary or its configuration. ``containerd config dump`` includes the defaults of the package and all imports. If it
cannot be run, the configuration is read here.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Sequence, Tuple

from ..errors import HostError
from ..processes import Process
from ..trust import check_trusted
from . import profiles, reading
from .profiles import CONTAINERD_CRI, containerd_profile
from .runtime import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .settings import FileChange, RuntimeSettings


class Containerd(Runtime):
    """One containerd, or one of its runtime handlers that has networks of its own."""

    @classmethod
    def find(cls, running: Sequence[Process]) -> List[Runtime]:
        """Return every containerd on this host; one with several sets of networks occurs several times."""
        evidence: Dict[str, Tuple[str, str, str, Process]] = {}
        installed = reading.installed("containerd")
        for process in running:
            if process.name == "containerd":
                config = (process.paths("-c", "--config", "-config") or [profiles.CONTAINERD_CONFIG])[-1]
                program = process.program or installed
                evidence.setdefault(os.path.realpath(config), (config, program, f"a running {process.name}", process))
        for distribution in profiles.DISTRIBUTIONS:
            config = distribution.config
            if os.path.exists(config):
                evidence.setdefault(os.path.realpath(config), (config, distribution.program, config, Process()))
        if installed:
            evidence.setdefault(
                os.path.realpath(profiles.CONTAINERD_CONFIG),
                (profiles.CONTAINERD_CONFIG, installed, installed, Process()),
            )
        return [runtime for seen in evidence.values() for runtime in cls._of_config(*seen)]

    @classmethod
    def _of_config(cls, config: str, program: str, evidence: str, process: Process) -> List[Runtime]:
        notes: List[str] = []
        version = reading.version(program, "--version", notes)
        marked = (distribution.name for distribution in profiles.DISTRIBUTIONS if distribution.mark in config)
        runtime = cls(next(marked, "") or containerd_profile(version), version, evidence)
        runtime.notes, runtime.config, runtime.program = notes, config, program
        runtime.process, runtime.pid = process, process.pid
        handlers: List[Runtime] = []
        with runtime.read_settings():
            runtime.tables = runtime._read()
            handlers = runtime._configure()
        return [runtime, *handlers]

    def _read(self) -> Dict[str, Any]:
        """Return the configuration, from the daemon's own command if it can be run."""
        check_trusted(self.config)
        try:
            if os.path.exists(self.config):
                return reading.toml(reading.output(self.program, "--config", self.config, "config", "dump"))
            # Without a file, the daemon uses its defaults, and `config dump` fails.
            return reading.toml(reading.output(self.program, "config", "default"))
        except HostError as error:
            self.notes.append(f"read from {self.config}, because its own command failed: {error.msg}")
        return self._read_files()

    def _read_files(self) -> Dict[str, Any]:
        """Return the configuration of the file and its imports; a later one overrides an earlier one."""
        tables = reading.parsed(self.config) or {}
        for path in reading.imported(self.config, tables):
            more = reading.parsed(path) or {}
            plugins = reading.section(tables, "plugins")
            for name, settings in reading.section(more, "plugins").items():
                mergeable = isinstance(plugins.get(name), dict) and isinstance(settings, dict)
                # Observed with 1.6.20 and 1.7.24: an import's settings of a plugin replace all of the main file's.
                if self.version.startswith("1.") or not mergeable:
                    plugins[name] = settings
                else:
                    _merge(plugins[name], settings)
            tables["plugins"] = plugins
            if "disabled_plugins" in more:
                tables["disabled_plugins"] = more["disabled_plugins"]
        return tables

    def _configure(self) -> List[Runtime]:
        """Set what its configuration says; return more runtimes, for runtime handlers with their own networks."""
        tables = self.tables
        disabled = tables.get("disabled_plugins")
        if isinstance(disabled, list) and any(name in disabled for name in CONTAINERD_CRI):
            self.reads = False
            self.notes.append("its CRI plugin is disabled (disabled_plugins), so it reads no networks")
            return []
        plugins = reading.section(tables, "plugins")
        cri = next((reading.section(plugins, name) for name in CONTAINERD_CRI if name in plugins), {})
        cni = reading.section(cri, "cni")
        # A configuration without the directories, even that of k3s, means containerd's own defaults.
        self.set_conf(reading.directory(cni, "conf_dir") or "/etc/cni/net.d")
        bin_dir = reading.directory(cni, "bin_dir")
        self.bin_dirs = reading.directories(cni, "bin_dirs") or [bin_dir or "/opt/cni/bin"]
        self.max_networks = max(0, reading.number(cni, "max_conf_num", 1))
        self.setup_serially = cni.get("setup_serially") is True
        self.internal_loopback = cni.get("use_internal_loopback") is True
        # Configurations of version 4, since containerd 2.3, have the socket among the plugins.
        server = reading.section(plugins, "io.containerd.server.v1.grpc")
        self.address = (
            reading.text_of_key(server, "address")
            or reading.text_of_key(reading.section(tables, "grpc"), "address")
            or "/run/containerd/containerd.sock"
        )
        template = reading.text_of_key(cni, "conf_template")
        if template:
            self.notes.append(f"it writes 10-containerd-net.conflist itself, from conf_template {template}")
        return self._handlers(reading.section(cri, "containerd", "runtimes"))

    def _handlers(self, handlers: Dict[str, Any]) -> List[Runtime]:
        runtimes: List[Runtime] = []
        for handler in sorted(handlers):
            settings = reading.section(handlers, handler)
            conf_dir = reading.directory(settings, "cni_conf_dir")
            if conf_dir and conf_dir != self.conf_dir:
                other = Containerd(self.name, self.version, self.found, conf_dir, self.bin_dirs)
                other.max_networks = max(0, reading.number(settings, "cni_max_conf_num", 0)) or self.max_networks
                other.internal_loopback = self.internal_loopback
                other.process, other.pid, other.address, other.handler = self.process, self.pid, self.address, handler
                other.notes = [*self.notes, f"for pods with the runtime handler {handler}"]
                runtimes.append(other)
        return runtimes

    def changes(self, desired: RuntimeSettings) -> List[FileChange]:
        from .containerd_files import containerd_changes

        return containerd_changes(self, desired)


def _merge(base: Dict[str, Any], other: Dict[str, Any]) -> None:
    for key, value in other.items():
        inner = base.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            _merge(inner, value)
        else:
            base[key] = value
