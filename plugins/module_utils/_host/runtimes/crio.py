# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""CRI-O, also in OpenShift: crio.conf, overridden by the files in crio.conf.d, overridden by the command line."""

from __future__ import annotations

import os
import time
from typing import Any, List, Sequence

from ..errors import HostError
from ..processes import Process
from . import reading
from .cri import CriStatus
from .profiles import PROFILES
from .runtime import Keys, Runtime
from .settings import FileChange, RuntimeSettings
from .toml import load_toml, rendered

_CONFIG = "/etc/crio/crio.conf"


class Crio(Runtime):
    """CRI-O, or the one of OpenShift."""

    drop_ins = "/etc/crio/crio.conf.d"
    keys = Keys(
        "network_dir",
        "plugin_dirs",
        "cni_default_network",
        options=[["--cni-config-dir"], ["--cni-plugin-dir"], ["--cni-default-network"]],
    )

    @classmethod
    def find(cls, running: Sequence[Process]) -> List[Runtime]:
        runtime = cls.evident("crio", running, "crio", version="--version")
        if runtime is None:
            return []
        process = runtime.process
        runtime.config = (process.paths("--config-dir", "-d") or [cls.drop_ins])[-1]
        runtime.address = (process.paths("--listen") or ["/run/crio/crio.sock"])[-1]
        with runtime.read_settings():
            runtime._read()
        if runtime.conf_dir == PROFILES["openshift"].conf_dir:
            # Its defaults are the same, but for what is configured.
            runtime.name, runtime.profile = "openshift", PROFILES["openshift"]
        return [runtime]

    def _read(self) -> None:
        paths = self.process.paths("--config", "-c")[-1:] or [_CONFIG]
        if os.path.isdir(self.config):
            paths.extend(reading.below(self.config))
        network = reading.merged(paths, "crio", "network")
        old = reading.directory(network, "plugin_dir")
        if old:
            # This deprecated key adds to the others.
            network["plugin_dirs"] = [*(reading.directories(network, "plugin_dirs") or self.bin_dirs), old]
        self.take(network)

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
        printed = reading.output(*argv, timeout=timeout)
        runs = Crio("crio", bin_dirs=self.bin_dirs)
        try:
            network = reading.section(load_toml(printed), "crio", "network")
            runs.take(network)
        except HostError as error:
            raise HostError(f"{' '.join(argv)} prints no configuration ({error.msg})", code="not_answered") from error
        if not network.get("network_dir"):
            raise HostError(f"{' '.join(argv)} prints no network_dir", code="not_answered")
        for what, name in zip(self.keys, ("conf_dir", "bin_dirs", "default_network")):
            current, configured = getattr(runs, name), getattr(self, name)
            if current != configured:
                says = f"but its configuration says {_words(configured)}"
                return f"it runs with {what} {_words(current)}, {says}; restart it"
        return ""

    def changes(self, desired: RuntimeSettings) -> List[FileChange]:
        """Raises HostError ``not_ours``."""
        text = f"[crio.network]\nnetwork_dir = {rendered(desired.conf_dir)}\n"
        text += f"plugin_dirs = {rendered(list(desired.bin_dirs))}\n"
        return self.drop_in(desired, text)


def _words(value: Any) -> str:
    return (", ".join(value) if isinstance(value, list) else value) or "none"
