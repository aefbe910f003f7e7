# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""kubelet with its own networks, cri-dockerd, firecracker, rkt, mesos, the agent of ECS, nerdctl and buildkit."""

from __future__ import annotations

import os
import re
from typing import List, Optional, Sequence

from ..processes import Process
from . import profiles, reading
from .runtime import Keys, Runtime

# nerdctl pkg/defaults/defaults_linux.go: the first one that exists
_NERDCTL_BIN_DIRS = ("/opt/cni/bin", "/usr/local/libexec/cni", "/usr/local/lib/cni", "/usr/libexec/cni", "/usr/lib/cni")
_NERDCTL_CONFIG = "/etc/nerdctl/nerdctl.toml"
# What containerd accepts; such a name cannot lead out of the directory.
_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MESOS_CONFIG = "/etc/mesos-slave"
_BUILDKIT_CONFIG = "/etc/buildkit/buildkitd.toml"
# Values of --network-plugin for none: pkg/kubelet/network/plugins.go
_NOOP = ("", "kubernetes.io/no-op")
_FIRST_WITHOUT_DOCKER = (1, 24)


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
        if plugin == "kubenet":
            runtime.default_network = "kubenet"
        elif plugin in _NOOP:
            runtime.reads = False
            runtime.notes.append("it has no --network-plugin (noop), so Docker makes the network of pods")
        elif plugin != "cni":
            return None
        return runtime


class Other(Runtime):
    """One of them; ``keys`` are its own."""

    @classmethod
    def find(cls, running: Sequence[Process]) -> List[Runtime]:
        runtimes = Kubelet.find(running)
        firecracker = cls.evident("firecracker", running, "firecracker", "firecracker-containerd")
        if firecracker is not None and os.path.isdir(firecracker.conf_dir):
            runtimes.append(firecracker)
        rkt = cls.evident("rkt", running, "rkt", version="version")
        if rkt is not None:
            runtimes.append(rkt)
        mesos = cls.evident("mesos", running, "mesos-agent", "mesos-slave")
        if mesos is not None:
            with mesos.read_settings():
                mesos._read_mesos()
            runtimes.append(mesos)
        # Its agent runs in a container: only its configuration is on the host.
        if os.path.exists(profiles.ECS_CONFIG):
            ecs = cls("ecs", "", profiles.ECS_CONFIG)
            with ecs.read_settings():
                ecs._read_ecs()
            runtimes.append(ecs)
        nerdctl = cls.evident("nerdctl", [], "nerdctl", version="--version")
        if nerdctl is not None:
            nerdctl._read_nerdctl()
            runtimes.append(nerdctl)
        buildkit = cls.evident("buildkit", running, "buildkitd")
        if buildkit is not None:
            with buildkit.read_settings(then="so its default file is assumed"):
                buildkit._read_buildkit()
            runtimes.append(buildkit)
        return runtimes

    def _read_mesos(self) -> None:
        # The package makes the agent's command line of the files in its directory, each with the value of a key.
        settings = {os.path.basename(path): reading.read_text(path) or "" for path in reading.listed(_MESOS_CONFIG)}
        self.keys = Keys("network_cni_config_dir", "network_cni_plugins_dir", separator=":")
        for key in self.keys[:2]:
            settings[key] = self.process.option(f"--{key}") or settings.get(key, "").strip()
        self.reads = bool(settings["network_cni_config_dir"])
        if self.reads:
            self.take(settings)
            self.notes.append("it also reads files without these extensions")
        else:
            self.notes.append("network_cni_config_dir is not set, so its containers use the host's network")

    def _read_ecs(self) -> None:
        lines = (line.strip().partition("=") for line in (reading.read_text(profiles.ECS_CONFIG) or "").splitlines())
        settings = {name: value.strip() for name, _equals, value in lines}
        self.reads = settings.get("ECS_ENABLE_TASK_ENI", "").lower() == "true"
        if self.reads:
            self.keys, self.default_network = Keys(bin_dirs="ECS_CNI_PLUGINS_PATH", separator=":"), "awsvpc"
            self.take(settings)
            self.notes.append("its plugins are in the image of its agent, not on the host")
        else:
            self.notes.append("ECS_ENABLE_TASK_ENI is not true, so Docker makes the networks of tasks")

    def _read_nerdctl(self) -> None:
        self.folder = "default"
        existing = [folder for folder in _NERDCTL_BIN_DIRS if os.path.isdir(folder)]
        self.bin_dirs = existing[:1] or list(_NERDCTL_BIN_DIRS[:1])
        self.keys = Keys("cni_netconfpath", "cni_path", separator="")
        with self.read_settings():
            settings = reading.merged([_NERDCTL_CONFIG])
            self.take(settings)
            namespace = reading.text_of_key(settings, "namespace")
            self.folder = namespace if _NAMESPACE.fullmatch(namespace) else self.folder

    def _read_buildkit(self) -> None:
        process = self.process
        workers = reading.merged((process.paths("--config", "-config") or [_BUILDKIT_CONFIG])[-1:], "worker")
        oci, containerd = (reading.section(workers, name) for name in ("oci", "containerd"))
        worker, prefix = (containerd, "--containerd") if containerd.get("enabled") is True else (oci, "--oci")
        mode = process.option(f"{prefix}-worker-net") or reading.text_of_key(worker, "networkMode")
        if mode in ("host", "bridge"):
            self.reads = False
            self.notes.append(f"its mode is {mode}, so it reads no network")
        options = [[f"{prefix}-cni-config-path"], [f"{prefix}-cni-binary-dir"]]
        self.keys = Keys("cniConfigPath", "cniBinaryPath", separator="", options=options)
        self.take(worker)
