# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""containerd, and the Kubernetes distributions that include it: k3s, rke2, MicroK8s, k0s.

The command line of a running daemon tells which configuration it reads; a daemon that is not running is found by its
binary or its configuration. ``containerd config dump`` includes the defaults of the package and all imports. If it
cannot be run, the configuration is read here.

Settings are written to a drop-in that the configuration imports; in 1.x, where that loses settings, to lines in the
file itself. Observed with 1.6.20, 1.7.24 and 2.1.9 through ``containerd config dump``:

- In 1.x, an import replaces all settings of a plugin. A drop-in for CRI would discard, now or later, what the main
  file sets for sandboxes, registries and control groups. So the file whose CRI settings take effect is changed.
- 2.x merges imports, but only those written for the same version: an import of version 3 makes it ignore all
  plugins of a main file of version 2. So the drop-in has the version of the main file.
- ``bin_dirs`` is new in 2.1, and only in version 3. Setting it together with ``bin_dir`` is an error.

From the source of 2.2 and 2.3, not observed: version 4 has the same section for CRI as version 3, and a configuration
without ``imports`` imports nothing, although ``containerd config default`` prints ``/etc/containerd/conf.d/*.toml``.
"""

from __future__ import annotations

import copy
import os
from typing import Any, Dict, List, Sequence, Tuple

from ..errors import HostError
from ..processes import Process
from ..trust import check_trusted
from . import profiles, reading
from .profiles import CONTAINERD_CRI, containerd_profile
from .runtime import Runtime
from .settings import FileChange, RuntimeSettings, drop_in
from .toml import MARK, load_toml, rendered, statements, with_import, with_setting, without_managed_lines

_NAME = "99-podwire-cni.toml"
_MADE = "# file made by podwire.cni"
_SECTION = {1: CONTAINERD_CRI[2], 2: CONTAINERD_CRI[1], 3: CONTAINERD_CRI[0], 4: CONTAINERD_CRI[0]}


class Containerd(Runtime):
    """One containerd, or one of its runtime handlers that has networks of its own."""

    @classmethod
    def find(cls, running: Sequence[Process]) -> List[Runtime]:
        """Return every containerd on this host; one with several sets of networks occurs several times."""
        traces: List[Tuple[str, str, str, Process]] = []
        installed, default = reading.installed("containerd"), profiles.CONTAINERD_CONFIG
        for process in running:
            if process.name == "containerd":
                config = (process.paths("-c", "--config", "-config") or [default])[-1]
                traces.append((config, process.program or installed, f"a running {process.name}", process))
        for profile in profiles.PROFILES.values():
            if profile.config and os.path.exists(profile.config):
                traces.append((profile.config, profile.program, profile.config, Process()))
        if installed:
            traces.append((default, installed, installed, Process()))
        by_path: Dict[str, Tuple[str, str, str, Process]] = {}
        for trace in traces:
            # The first one of a configuration counts.
            by_path.setdefault(os.path.realpath(trace[0]), trace)
        return [runtime for trace in by_path.values() for runtime in cls._of_config(*trace)]

    @classmethod
    def _of_config(cls, config: str, program: str, evidence: str, process: Process) -> List[Runtime]:
        notes: List[str] = []
        version = reading.version(program, "--version", notes)
        marked = (name for name, profile in profiles.PROFILES.items() if profile.mark and profile.mark in config)
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
                return load_toml(reading.output(self.program, "--config", self.config, "config", "dump"))
            # Without a file, the daemon uses its defaults, and `config dump` fails.
            return load_toml(reading.output(self.program, "config", "default"))
        except HostError as error:
            self.notes.append(f"read from {self.config}, because its own command failed: {error.msg}")
        return self._read_files()

    def _read_files(self) -> Dict[str, Any]:
        """Return the configuration of the file and its imports; a later one overrides an earlier one."""
        tables = reading.parsed(self.config) or {}
        for path in reading.imported(self.config, tables):
            more = reading.parsed(path) or {}
            plugins = {**reading.section(tables, "plugins"), **reading.section(more, "plugins")}
            _merge(tables, more)
            if self.version.startswith("1."):
                # Observed with 1.6.20 and 1.7.24: an import's settings of a plugin replace all of the main file's.
                tables["plugins"] = plugins
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
        bin_dir, self.bin_dirs = reading.directory(cni, "bin_dir"), reading.directories(cni, "bin_dirs")
        # A dump has both where only bin_dir is set: bin_dirs is then the default, and does not count.
        if not self.bin_dirs or (bin_dir and self.bin_dirs == self._default_bin_dirs()):
            self.bin_dirs = [bin_dir or "/opt/cni/bin"]
        elif bin_dir:
            self.refuses = "its CRI plugin does not start, because bin_dir and bin_dirs are both set; remove bin_dir"
            self.notes.append(self.refuses)
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

    def _default_bin_dirs(self) -> List[str]:
        tables = load_toml(reading.output(self.program, "config", "default"))
        return reading.directories(reading.section(tables, "plugins", CONTAINERD_CRI[0], "cni"), "bin_dirs")

    def _handlers(self, handlers: Dict[str, Any]) -> List[Runtime]:
        runtimes: List[Runtime] = []
        for handler in sorted(handlers):
            settings = reading.section(handlers, handler)
            conf_dir = reading.directory(settings, "cni_conf_dir")
            if conf_dir and conf_dir != self.conf_dir:
                other = Containerd(self.name, self.version, self.evidence, conf_dir, self.bin_dirs)
                other.max_networks = max(0, reading.number(settings, "cni_max_conf_num", 0)) or self.max_networks
                other.internal_loopback = self.internal_loopback
                other.process, other.pid, other.address, other.handler = self.process, self.pid, self.address, handler
                other.notes = [*self.notes, f"for pods with the runtime handler {handler}"]
                runtimes.append(other)
        return runtimes

    def lost(self, now: Runtime) -> str:
        return _difference(_others(self.tables), _others(now.tables), "")

    def changes(self, desired: RuntimeSettings) -> List[FileChange]:
        """Raises HostError ``not_understood``, ``one_bin_dir``, ``unsupported_setting``."""
        main = self.config or profiles.CONTAINERD_CONFIG
        try:
            return _Files(self, desired).changes()
        except HostError:
            # A configuration without managed settings needs no removal, even if it cannot be interpreted.
            if desired.present or MARK in (reading.read_text(main) or "") or os.path.exists(_drop_in_of(main)):
                raise
            return []


def _others(tables: Dict[str, Any]) -> Dict[str, Any]:
    """Return the unmanaged settings."""
    others = {key: value for key, value in copy.deepcopy(tables).items() if key not in ("version", "imports")}
    for name in CONTAINERD_CRI:
        reading.section(others, "plugins", name).pop("cni", None)
    return others


def _difference(before: Any, after: Any, where: str) -> str:
    """Return the first place where *after* differs from *before*, "" if there is none."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            place = _difference(before[key], after.get(key), f"{where}.{key}" if where else key)
            if place:
                return place
        return ""
    return "" if before == after else where


def _merge(base: Dict[str, Any], other: Dict[str, Any]) -> None:
    for key, value in other.items():
        inner = base.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            _merge(inner, value)
        else:
            base[key] = value


# ---- its files


def _line(text: str, table: Sequence[str], key: str) -> int:
    """Return the line of the statement that sets *key* of a table."""
    lines = text.splitlines(keepends=True)
    starts = [line for line, _words in statements(text)]
    return max(line for line in starts if key not in reading.section(load_toml("".join(lines[: line - 1])), *table))


def _drop_in_of(main: str) -> str:
    return os.path.join(os.path.dirname(main), "conf.d", _NAME)


class _Files:
    def __init__(self, runtime: Runtime, desired: RuntimeSettings) -> None:
        self.runtime = runtime
        self.desired = desired
        self.main = runtime.config or profiles.CONTAINERD_CONFIG
        self.drop_in = _drop_in_of(self.main)
        self.first_generation = runtime.name in ("containerd-1.6", "containerd-1.7")
        self.before: Dict[str, str] = {}
        # Starts without managed lines. A file that has no other lines counts as missing.
        self.after: Dict[str, str] = {}
        self._read(self.main)
        self.tables = load_toml(self.after.get(self.main, ""))
        for path in reading.imported(self.main, self.tables):
            if path != self.drop_in:
                self._read(path)

    def _read(self, path: str) -> None:
        text = reading.read_text(path)
        if text is not None:
            reading.parsed(path)
            self.before[path], rest = text, without_managed_lines(text)
            # In a file that this collection made, the version line stays as long as unmanaged lines do.
            if any(line.strip() and not line.endswith(_MADE) for line in rest.splitlines()):
                self.after[path] = rest

    def changes(self) -> List[FileChange]:
        desired = self.desired
        managed = (
            any(text != self.after.get(path) for path, text in self.before.items() if text)
            or reading.read_text(self.drop_in) is not None
        )
        text = None
        if desired.present and (managed or not self.runtime.has(desired)):
            if self.after.get(self.main) is None:
                self.tables["version"] = 2 if self.first_generation else 3
                self.after[self.main] = f"version = {self.tables['version']}  {_MADE}\n"
            if self.first_generation:
                self._change_in_place()
            else:
                text = self._drop_in()
        changes = drop_in(self.drop_in, text, True)
        for path in sorted({*self.before, *self.after}):
            before, after = self.before.get(path), self.after.get(path)
            if before != after and (before or after):
                changes.append(FileChange(path, before, after))
        return changes

    # ---- 2.x

    def _version(self) -> int:
        version = self.tables.get("version")
        if version in tuple(_SECTION):
            return int(version)
        # 2.x ignores the CRI settings of a file without a version; 1.x reads it as version 1.
        return 1 if self.first_generation else 3

    def _drop_in(self) -> str:
        version = max(2, self._version())
        settings = self._keys(version)
        self._import_it()
        self._check_later(version, settings)
        lines = [f"version = {version}", f'[plugins."{_SECTION[version]}".cni]']
        lines += [f"  {key} = {rendered(value)}" for key, value in settings.items()]
        return "\n".join(lines) + "\n"

    def _keys(self, version: int) -> Dict[str, Any]:
        desired = self.desired
        settings: Dict[str, Any] = {"conf_dir": desired.conf_dir}
        if version >= 3 and self.runtime.name != "containerd-2.0":
            settings["bin_dirs"] = list(desired.bin_dirs)
            files = [reading.section(load_toml(text), "plugins", _SECTION[3], "cni") for text in self.after.values()]
            if any(cni.get("bin_dir") for cni in files):
                settings["bin_dir"] = ""
        elif len(desired.bin_dirs) == 1:
            settings["bin_dir"] = desired.bin_dirs[0]
        else:
            raise HostError(
                f"bin_dirs: {self.runtime.name} with a configuration of version {version} searches only one directory "
                f"for plugins, but bin_dirs has {', '.join(desired.bin_dirs)}; set one directory (several need "
                "containerd 2.1 and a configuration of version 3: containerd config migrate)",
                code="one_bin_dir",
            )
        if desired.max_conf_num is not None:
            settings["max_conf_num"] = desired.max_conf_num
        if desired.setup_serially is not None and self.runtime.name != "containerd-1.6":
            settings["setup_serially"] = desired.setup_serially
        elif desired.setup_serially:
            raise HostError(
                "setup_serially: containerd 1.6 does not support it; use containerd 1.7 or later, or leave it out",
                code="unsupported_setting",
            )
        return settings

    def _import_it(self) -> None:
        # An existing import pattern may already match the drop-in.
        self.importers = reading.imported(self.main, self.tables, self.drop_in)
        if self.drop_in not in self.importers:
            self.after[self.main] = self._edited(self.main, with_import, self.drop_in)
            self.importers = reading.imported(self.main, load_toml(self.after[self.main]), self.drop_in)

    def _check_later(self, version: int, settings: Dict[str, Any]) -> None:
        """Raise HostError ``overridden`` if a file that is read after the drop-in has other *settings*."""
        expected = {"bin_dir": "", "bin_dirs": list(self.desired.bin_dirs), **settings}
        paths = list(self.importers)
        for path in paths[paths.index(self.drop_in) + 1 :]:
            tables, importer = load_toml(self.after.get(path, "")), self.importers[path]
            # 2.x migrates an import of an older version, and bin_dir of version 2 replaces bin_dirs.
            migrated = tables.get("version") == 2
            table = ("plugins", _SECTION[2 if migrated else version], "cni")
            for key, value in reading.section(tables, *table).items():
                if value != expected.get(key, value):
                    refused = key == "bin_dir" and "bin_dirs" in settings and not migrated
                    effect = "CRI does not start with bin_dir and bin_dirs" if refused else "overrides this setting"
                    last = " and imports of imports are read last" if importer != self.main else ""
                    raise HostError(
                        f"{path}, line {_line(self.after[path], table, key)}, sets {key}: it is read after "
                        f"{self.drop_in}, because {importer} imports it{last}, and {effect}; remove this line",
                        code="overridden",
                    )

    # ---- 1.x

    def _change_in_place(self) -> None:
        path, table = self.main, ["plugins", _SECTION[self._version()], "cni"]
        for other in self.after:
            plugins = reading.section(load_toml(self.after[other]), "plugins")
            section = next((name for name in CONTAINERD_CRI if name in plugins), None)
            if section is not None:
                path, table = other, ["plugins", section, "cni"]
        for key, value in self._keys(2).items():
            self.after[path] = self._edited(path, with_setting, table, key, value)

    def _edited(self, path: str, edit: Any, *arguments: Any) -> str:
        try:
            return str(edit(self.after[path], *arguments))
        except HostError as error:
            raise HostError(f"{path}: {error.msg}", code=error.code) from error
