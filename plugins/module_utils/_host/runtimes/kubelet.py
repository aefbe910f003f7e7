# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""kubelet with its own networks, and cri-dockerd: both are configured by their command lines."""

from __future__ import annotations

from typing import List, Optional, Sequence

from ..processes import Process
from .runtime import Keys, Runtime

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


class Kubelet(Runtime):
    """kubelet or cri-dockerd."""

    keys = Keys("--cni-conf-dir", "--cni-bin-dir", separator=",")

    @classmethod
    def find(cls, running: Sequence[Process]) -> List[Runtime]:
        """Return those that run."""
        runtimes: List[Runtime] = []
        for process in running:
            runtime: Optional[Runtime] = None
            if process.name == "kubelet":
                runtime = cls._kubelet(process)
            elif process.name == "cri-dockerd" and process.option("--network-plugin") in ("", "cni"):
                runtime = cls.evident("cri-dockerd", [process], process.name)
            if runtime is not None:
                with runtime.read_settings("command line", ""):
                    # kubelet cmd/kubelet/app/plugins.go:ProbeNetworkPlugins
                    old = process.option("--network-plugin-dir")
                    runtime.take({option: process.option(option) or old for option in cls.keys[:2]})
                runtimes.append(runtime)
        return runtimes

    @classmethod
    def _kubelet(cls, process: Process) -> Optional[Runtime]:
        """Return the network that kubelet itself makes with Docker, None if it leaves networks to a runtime for CRI.

        Without --network-plugin it makes none (pkg/kubelet/network/plugins.go:InitNetworkPlugin); later releases lack
        the option.
        """
        endpoint = process.option("--container-runtime-endpoint")
        if process.option("--container-runtime") == "remote" or (endpoint and "dockershim" not in endpoint):
            return None
        plugin = process.option("--network-plugin")
        name = "kubenet" if plugin == "kubenet" else "dockershim"
        runtime = cls.evident(name, [process], process.name, version="--version")
        if runtime is None or (plugin in _NOOP and (not runtime.version or runtime.release >= _FIRST_WITHOUT_DOCKER)):
            return None
        notes, mode = runtime.notes, process.option("--hairpin-mode")
        if plugin == "kubenet":
            runtime.default_network = "kubenet"
            notes.append(_HAIRPIN.get(mode or "promiscuous-bridge", f"its --hairpin-mode {mode!r} is not known"))
        else:
            if runtime.version and runtime.release <= _LAST_WITH_VENDOR_DIRS:
                runtime.become("dockershim-1.9")
            if plugin in _NOOP:
                runtime.reads = False
                notes.append("it has no --network-plugin (noop), so Docker makes the network of pods")
            elif plugin != "cni":
                return None
            elif mode:
                notes.append(
                    f"--hairpin-mode {mode} has no effect on CNI networks; hairpinMode of the plugin bridge has"
                )
        return runtime
