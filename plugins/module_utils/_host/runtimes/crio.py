# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""CRI-O, also in OpenShift: crio.conf, overridden by the files in crio.conf.d, overridden by the command line."""

from __future__ import annotations

import os
import time
from typing import Any, List, Sequence

from .. import commands
from ..errors import HostError
from ..processes import Process
from . import reading
from .profiles import PROFILES
from .runtime import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cri import CriStatus
    from .settings import FileChange, RuntimeSettings

_CONFIG = "/etc/crio/crio.conf"
_DROP_INS = "/etc/crio/crio.conf.d"
_MOST = 4 << 20


class Crio(Runtime):
    """CRI-O, or the one of OpenShift."""

    @classmethod
    def find(cls, running: Sequence[Process]) -> List[Runtime]:
        """Return CRI-O if it runs or is installed."""
        runtime = cls.evident("crio", running, "crio", version="--version")
        if runtime is None:
            return []
        process = runtime.process
        runtime.config = (process.paths("--config-dir", "-d") or [_DROP_INS])[-1]
        runtime.address = (process.paths("--listen") or ["/run/crio/crio.sock"])[-1]
        with runtime.read_settings():
            runtime._read()
        if runtime.conf_dir == PROFILES["openshift"].conf_dir:
            runtime.become("openshift")
        return [runtime]

    def _read(self) -> None:
        process = self.process
        conf_dir, bin_dirs, default = "", list(self.bin_dirs), ""
        paths = process.paths("--config", "-c")[-1:] or [_CONFIG]
        if os.path.isdir(self.config):
            paths.extend(reading.below(self.config))
        for path in paths:
            network = reading.section(reading.parsed(path) or {}, "crio", "network")
            conf_dir = reading.directory(network, "network_dir") or conf_dir
            bin_dirs = reading.directories(network, "plugin_dirs") or bin_dirs
            # This deprecated key adds to the others.
            old = reading.directory(network, "plugin_dir")
            bin_dirs = [*bin_dirs, old] if old and old not in bin_dirs else bin_dirs
            if "cni_default_network" in network:
                default = reading.text_of_key(network, "cni_default_network")
        option = process.option("--cni-config-dir")
        conf_dir = reading.plain_path(option, "--cni-config-dir") if option else conf_dir
        if conf_dir:
            self.set_conf(conf_dir)
        paths = [reading.plain_path(path, "--cni-plugin-dir") for path in process.options("--cni-plugin-dir")]
        self.bin_dirs = paths or bin_dirs
        self.default_network = process.option("--cni-default-network") or default

    def ask(self, networks: Sequence[str], timeout: float) -> CriStatus:
        end = time.monotonic() + timeout
        status = super().ask(networks, timeout)
        differs = self._differs(max(0.1, end - time.monotonic()))
        return status._replace(ready=False, message=differs) if differs else status

    def _differs(self, timeout: float) -> str:
        """Return how the configuration that CRI-O runs with differs from that of its files, "" if it does not.

        Since 1.28, ``crio status config`` prints it; before, a program of its own did. Without either, the files count.
        """
        old = bool(self.version) and self.release < (1, 28)
        program = reading.installed("crio-status" if old else "crio")
        if not program:
            return ""
        argv = [program, *([] if old else ["status"]), "--socket", self.address, "config"]
        done = commands.run_command(argv, timeout)
        if done.rc != 0:
            raise commands.failure(argv, f"exit status {done.rc}", done.stderr)
        try:
            tables = reading.toml(done.stdout[:_MOST].decode("utf-8", "replace"))
            network = reading.section(tables, "crio", "network")
            conf_dir = reading.directory(network, "network_dir")
            bin_dirs = reading.directories(network, "plugin_dirs")
            default = reading.text_of_key(network, "cni_default_network")
        except HostError as error:
            raise HostError(f"{' '.join(argv)} prints no configuration ({error.msg})", code="not_answered") from error
        if not conf_dir:
            raise HostError(f"{' '.join(argv)} prints no network_dir", code="not_answered")
        for what, runs, files in (
            ("network_dir", conf_dir, self.conf_dir),
            ("plugin_dirs", bin_dirs or self.bin_dirs, self.bin_dirs),
            ("cni_default_network", default, self.default_network),
        ):
            if runs != files:
                return f"it runs with {what} {_words(runs)}, but its configuration says {_words(files)}; restart it"
        return ""

    def changes(self, desired: RuntimeSettings) -> List[FileChange]:
        """Raises HostError ``not_ours``."""
        from .settings import drop_in
        from .toml import rendered

        text = f"[crio.network]\nnetwork_dir = {rendered(desired.conf_dir)}\n"
        text += f"plugin_dirs = {rendered(list(desired.bin_dirs))}\n"
        path = os.path.join(self.config or _DROP_INS, "99-podwire-cni.conf")
        return drop_in(path, text if desired.present else None, not self.has(desired))


def _words(value: Any) -> str:
    return (", ".join(value) if isinstance(value, list) else value) or "none"
