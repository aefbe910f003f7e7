# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a container started now would get a working network, for each runtime, and what stands in between."""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...libcni.cache import DEFAULT_DIR
from ..binaries.usable import Binaries
from ..checks.plugins import plugin_obstacles
from ..checks.ready import NetworkCauses, conflicts
from ..problems import ERROR, INFO, WARNING, Obstacle
from ..processes import Process, processes
from ..runtimes.cri import CriStatus
from ..runtimes.effective import Effective
from ..runtimes.loaded import ask_once, mismatch
from ..runtimes.profiles import FIRST, NAMED, OWN
from ..runtimes.rules import Network, Verdict
from ..runtimes.runtime import Runtime
from ..runtimes.status import NOT_READY, PluginsStatus, status_of
from ..secrets import mask_text

# A runtime whose plugin hangs in STATUS does not answer within any time.
CRI_TIMEOUT = 5.0
# The most files that an explanation lists.
_MOST = 10
# Programs that are, or contain, a kubelet.
_KUBELETS = ("kubelet", "k3s", "rke2", "kubelite")


class RuntimeReadiness(NamedTuple):
    """``ready`` is None if it is not known, as ``doubt`` explains. ``reported``: its own answer, None if not asked."""

    runtime: Runtime
    verdict: Verdict
    ready: Optional[bool]
    doubt: str
    reported: Optional[CriStatus]
    status: List[Tuple[Network, PluginsStatus]]
    obstacles: List[Obstacle]

    def row(self) -> Dict[str, Any]:
        answer = self.reported
        return {
            "runtime": self.runtime.name,
            "handler": self.runtime.handler,
            "conf_dir": self.runtime.conf_file or self.runtime.conf_dir,
            "network": self.verdict.network,
            "ready": self.ready,
            "unknown": mask_text(self.doubt),
            "reported": answer
            and {"ready": answer.ready, "message": mask_text(answer.message), "networks": answer.networks},
            "status": [
                dict(answer.row(), network=network.name, file=network.file.path) for network, answer in self.status
            ],
        }


class Readiness:
    """Examines the runtimes of *effective*: asks plugins (VERSION, STATUS) and runtimes, and changes nothing."""

    def __init__(self, effective: Effective, bin_dirs: Sequence[str], timeout: float = CRI_TIMEOUT) -> None:
        self._effective = effective
        self._timeout = timeout
        self._other_dirs = [*bin_dirs, *(path for runtime in effective.runtimes for path in runtime.bin_dirs)]
        self._kubelet = any(_is_kubelet(process) for process in processes(*_KUBELETS))
        self._conflicts: Dict[Tuple[str, ...], Dict[str, List[Dict[str, Any]]]] = {}
        self._running = [runtime for runtime in effective.runtimes if runtime.reads and runtime.pid]

    def rows(self) -> Dict[str, Any]:
        """Return ``{ready, runtimes, obstacles}``: the obstacles of all runtimes, the worst first, in their order."""
        rows = [self.of(*pair) for pair in zip(self._effective.runtimes, self._effective.verdicts)]
        obstacles = sorted(
            (obstacle for each in rows for obstacle in each.obstacles), key=lambda obstacle: obstacle.rank
        )
        if not self._effective.runtimes:
            obstacles.append(_no_runtime())
        answers = [each.ready for each in rows if each.runtime.reads]
        ready = False if False in answers else None if None in answers or not answers else True
        return {
            "ready": ready,
            "runtimes": [each.row() for each in rows],
            "obstacles": [obstacle.row() for obstacle in dict.fromkeys(obstacles)],
        }

    def of(self, runtime: Runtime, verdict: Verdict) -> RuntimeReadiness:
        """Return what stands between a container of *runtime* and its network."""
        if not runtime.reads:
            return RuntimeReadiness(runtime, verdict, None, "; ".join(runtime.notes), None, [], self._unused(runtime))
        obstacles = [*self._not_running(runtime), *self._no_network(runtime, verdict)]
        status = []
        for network, level in self._used(runtime, verdict):
            of_network = list(self._causes(runtime, network).find())
            answer = self._ask_plugins(runtime, network)
            status.append((network, answer))
            # A runtime that does not understand the network's version never asks.
            understood = all(obstacle.code != "unsupported_by_runtime" for obstacle in of_network)
            if answer.state == NOT_READY and understood:
                of_network.append(_not_ready(network, answer))
            obstacles += [
                obstacle._replace(level=level) if obstacle.level == ERROR else obstacle for obstacle in of_network
            ]
        mounts = [obstacle.evidence for obstacle in obstacles if obstacle.code == "noexec_mount"]
        obstacles += [obstacle for obstacle in self._built_in(runtime, verdict) if obstacle.evidence not in mounts]
        reported, doubt = self._ask(runtime, verdict)
        if reported is not None:
            obstacles += self._reported(runtime, verdict, reported, obstacles)
        obstacles = [obstacle._replace(runtime=runtime.name) for obstacle in obstacles]
        doubt = doubt or next((obstacle.message for obstacle in obstacles if obstacle.code in _DOUBTS), "")
        doubt = doubt or next((answer.message for _network, answer in status if answer.hangs), "")
        if doubt and reported is None and runtime.can_be_asked:
            obstacles.append(_unanswered(runtime, doubt))
        ready = False if any(obstacle.level == ERROR for obstacle in obstacles) else None if doubt else True
        return RuntimeReadiness(runtime, verdict, ready, doubt, reported, status, obstacles)

    # ---- the runtime

    def _unused(self, runtime: Runtime) -> List[Obstacle]:
        why = "; ".join(runtime.notes)
        text = f"{runtime.name} uses no CNI network"
        if self._kubelet and runtime.address and not self._running:
            remedy = f"remove cri from disabled_plugins in {runtime.config}, and restart it"
            return [Obstacle("cri_disabled", text, why, remedy, ERROR, runtime.name)]
        return [Obstacle("not_cni", text, why, "none, if that is intended", INFO, runtime.name)]

    def _not_running(self, runtime: Runtime) -> List[Obstacle]:
        if not runtime.profile.unit or runtime.pid:
            return []
        text = f"{runtime.name} is installed, but does not run"
        remedy = f"start it (systemctl start {runtime.unit}), and read its log (journalctl -u {runtime.unit})"
        evidence = f"it was found by {runtime.found}, and no process of root is one"
        return [Obstacle("not_running", text, evidence, remedy, WARNING if self._running else ERROR)]

    def _no_network(self, runtime: Runtime, verdict: Verdict) -> List[Obstacle]:
        if verdict.network is not None or (verdict.networks and not verdict.failed):
            return []
        where = runtime.conf_file or runtime.conf_dir
        reasons = [f"{os.path.basename(entry['file'])}: {entry['reason']}" for entry in verdict.not_chosen[:_MOST]]
        if verdict.broken:
            text = f"{runtime.name} loads no network, because it cannot load {verdict.broken[0]}"
            remedy = "fix the file, remove it, or give it another extension"
            return [Obstacle("broken_file", text, "; ".join(reasons), remedy, file=verdict.broken[0])]
        reason = verdict.failed or verdict.reason or "none of the files is used"
        text = f"{runtime.name} has no network: {reason}"
        evidence = "; ".join(reasons) or (f"{where} is empty" if os.path.isdir(where) else f"{where} does not exist")
        remedy = f"write a network to {where} (podwire.cni.cni_conf), or start the daemon that writes it"
        if self._effective.files and not self._effective.reads_here(runtime):
            remedy += f"; {self._effective.conf_dir} has networks, but {runtime.name} does not read it"
        return [Obstacle("no_network", text, evidence, remedy, file=where)]

    @staticmethod
    def _used(runtime: Runtime, verdict: Verdict) -> List[Tuple[Network, str]]:
        """Return the networks of the runtime's containers, with the level of what is wrong with each."""
        every = runtime.rules.choice == FIRST and not runtime.default_network
        named = verdict.network is None
        return [
            (network, ERROR if every or network.name == verdict.network else WARNING)
            for network in verdict.networks
            if every or named or network.name == verdict.network or runtime.rules.choice == NAMED
        ]

    def _causes(self, runtime: Runtime, network: Network) -> NetworkCauses:
        binaries = self._binaries(runtime, network)
        place = runtime.conf_dir, runtime.conf_file, runtime.folder
        if place not in self._conflicts:
            # Once for all networks: each is compared with all others.
            self._conflicts[place] = conflicts(runtime.conf_dir, self._effective.files_of(runtime), binaries)
        problems = self._conflicts[place].get(network.file.path, [])
        return NetworkCauses(runtime, network, problems, binaries, DEFAULT_DIR, self._other_dirs, self._kubelet)

    def _ask_plugins(self, runtime: Runtime, network: Network) -> PluginsStatus:
        loaded = network.loaded
        binaries = self._binaries(runtime, network)
        return status_of(network.name, loaded.version, loaded.plugins, network.file.path, binaries)

    def _binaries(self, runtime: Runtime, network: Network) -> Binaries:
        return self._effective.binaries_of(runtime, (network.loaded.types or [""])[0])

    def _built_in(self, runtime: Runtime, verdict: Verdict) -> List[Obstacle]:
        built_in = runtime.built_in
        if built_in is None or (verdict.network is None and runtime.rules.choice != OWN):
            return []
        obstacles = []
        for plugin in built_in.plugins:
            binaries = self._effective.binaries_of(runtime, plugin)
            for obstacle in plugin_obstacles(plugin, built_in.cni_version, binaries, self._other_dirs):
                text = f"{obstacle.message}, and {runtime.name} runs it for {built_in.purpose}"
                remedy = obstacle.remedy or "install plugins of a release that supports it"
                obstacles.append(obstacle._replace(message=text, remedy=remedy, network=built_in.name))
        return obstacles

    # ---- what it says itself

    def _ask(self, runtime: Runtime, verdict: Verdict) -> Tuple[Optional[CriStatus], str]:
        return ask_once(runtime, verdict.names, self._timeout) if runtime.can_be_asked else (None, "")

    @staticmethod
    def _reported(
        runtime: Runtime, verdict: Verdict, status: CriStatus, obstacles: Sequence[Obstacle]
    ) -> List[Obstacle]:
        place, remedy, evidence = (
            verdict.file or runtime.conf_dir,
            runtime.how_to_load,
            status.message or runtime.answer,
        )
        differs = mismatch(runtime, verdict, status)
        if differs.text:
            # An older state of the same network works, too; only another network is an obstacle.
            level = WARNING if differs.stale else ERROR
            return [Obstacle("not_loaded", f"{runtime.name} {differs.text}", evidence, remedy, level, file=place)]
        explained = any(obstacle.level == ERROR for obstacle in obstacles)
        if status.ready or explained or runtime.handler:
            return []
        text = f"{runtime.name} reports that its network is not ready"
        remedy = f"read its log (journalctl -u {runtime.unit})"
        return [Obstacle("network_not_ready", text, status.message, remedy)]


def _is_kubelet(process: Process) -> bool:
    """Tell it from other commands of the same program, such as ``k3s kubectl``. k3s writes its command line again."""
    return process.name.startswith("kube") or " ".join(process.argv[:2]).endswith((" server", " agent"))


# Obstacles that are no proof, but leave it open whether a container gets a network.
_DOUBTS = ("unsafe_permissions", "not_elf", "unreadable", "selinux_label")


def _not_ready(network: Network, answer: PluginsStatus) -> Obstacle:
    text = f"the network {network.name!r} is not ready: {answer.message}"
    remedy = "start or fix what the plugin needs, usually the daemon of its network"
    evidence = f"{answer.plugin} answers STATUS with the code {answer.code}"
    return Obstacle("status_not_ready", text, evidence, remedy, network=network.name, file=network.file.path)


def _unanswered(runtime: Runtime, doubt: str) -> Obstacle:
    text = f"it is not known whether {runtime.name} has loaded its network"
    remedy = f"read its log (journalctl -u {runtime.unit}); a plugin that hangs in STATUS blocks this answer"
    return Obstacle("not_answered", text, doubt, remedy, WARNING, runtime.name)


def _no_runtime() -> Obstacle:
    text = "no runtime that uses CNI was found on this host"
    return Obstacle("missing_runtime", text, "no process and no program of one", "install one", INFO)
