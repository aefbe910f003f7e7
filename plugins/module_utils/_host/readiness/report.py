# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a container started now would get a working network, for each runtime, and what stands in between."""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...libcni.cache import DEFAULT_DIR
from ..binaries.usable import Binaries
from ..errors import HostError
from ..problems import ERROR, INFO, WARNING
from ..processes import Process, processes
from ..runtimes import asking, cri
from ..runtimes.effective import Effective
from ..runtimes.profiles import FIRST, NAMED, OWN, Runtime
from ..runtimes.requirements import built_in
from ..runtimes.rules import Network, Verdict
from ..runtimes.status import NOT_READY, UNKNOWN, PluginsStatus, status_of
from ..secrets import mask_text
from .asked import not_as_judged
from .network_causes import NetworkCauses, conflicts, plugin_obstacles
from .obstacle import Obstacle

# A runtime whose plugin hangs in STATUS does not answer within any time.
CRI_TIMEOUT = 5.0
# The most files that an explanation lists.
_MOST = 10
_DAEMONS = {"containerd-1.6", "containerd-1.7", "containerd-2.0", "containerd-2.1", "k3s", "rke2", "microk8s", "k0s"}
_DAEMONS |= {"crio", "openshift", "nomad", "buildkit"}
_RUNNING = "a running "
# Programs that are, or contain, a kubelet.
_KUBELETS = ("kubelet", "k3s", "rke2", "kubelite")


class RuntimeReadiness(NamedTuple):
    """``ready`` is None if it is not known, as ``doubt`` explains. ``reported``: its own answer, None if not asked."""

    runtime: Runtime
    verdict: Verdict
    ready: Optional[bool]
    doubt: str
    reported: Optional[cri.CriStatus]
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
        self._other_dirs = [*bin_dirs, *(path for one in effective.runtimes for path in one.bin_dirs)]
        self._kubelet = any(_is_kubelet(process) for process in processes(*_KUBELETS))
        self._conflicts: Dict[Tuple[str, ...], Dict[str, List[Dict[str, Any]]]] = {}
        self._running = [one for one in effective.runtimes if one.reads and one.found.startswith(_RUNNING)]

    def rows(self) -> Dict[str, Any]:
        """Return ``{ready, runtimes, obstacles}``: the obstacles of all runtimes, the worst first, in their order."""
        found = [self.of(runtime, verdict) for runtime, verdict in zip(*self._pairs())]
        obstacles = sorted((one for each in found for one in each.obstacles), key=lambda one: one.rank)
        if not self._effective.runtimes:
            obstacles.append(_no_runtime())
        answers = [each.ready for each in found if each.runtime.reads]
        ready = False if False in answers else None if None in answers or not answers else True
        return {
            "ready": ready,
            "runtimes": [each.row() for each in found],
            "obstacles": [one.row() for one in dict.fromkeys(obstacles)],
        }

    def _pairs(self) -> Tuple[List[Runtime], List[Verdict]]:
        return self._effective.runtimes, self._effective.verdicts

    def of(self, runtime: Runtime, verdict: Verdict) -> RuntimeReadiness:
        """Return what stands between a container of *runtime* and its network."""
        if not runtime.reads:
            return RuntimeReadiness(runtime, verdict, None, "; ".join(runtime.notes), None, [], self._unused(runtime))
        found = [*self._not_running(runtime), *self._no_network(runtime, verdict)]
        status = []
        for network, level in self._used(runtime, verdict):
            of_network = list(self._causes(runtime, network).find())
            answer = self._ask_plugins(runtime, network)
            status.append((network, answer))
            # A runtime that does not understand the network's version never asks.
            understood = all(one.code != "unsupported_by_runtime" for one in of_network)
            if answer.state == NOT_READY and understood:
                of_network.append(_not_ready(network, answer))
            found += [one._replace(level=level) if one.level == ERROR else one for one in of_network]
        told = [one.evidence for one in found if one.code == "noexec_mount"]
        found += [one for one in self._built_in(runtime, verdict) if one.evidence not in told]
        reported, doubt = self._ask(runtime, verdict)
        if reported is not None:
            found += self._reported(runtime, verdict, reported, found)
        found = [one._replace(runtime=runtime.name) for one in found]
        doubt = doubt or next((one.message for one in found if one.code in _DOUBTS), "")
        doubt = doubt or next((answer.message for _network, answer in status if _hangs(answer)), "")
        if doubt and reported is None and asking.can_be_asked(runtime):
            found.append(_unanswered(runtime, doubt))
        ready = False if any(one.level == ERROR for one in found) else None if doubt else True
        return RuntimeReadiness(runtime, verdict, ready, doubt, reported, status, found)

    # ---- the runtime

    def _unused(self, runtime: Runtime) -> List[Obstacle]:
        why = "; ".join(runtime.notes)
        text = f"{runtime.name} uses no CNI network"
        if self._kubelet and runtime.address and not self._running:
            remedy = f"remove cri from disabled_plugins in {runtime.config}, and restart it"
            return [Obstacle("cri_disabled", text, why, remedy, ERROR, runtime.name)]
        return [Obstacle("not_cni", text, why, "none, if that is intended", INFO, runtime.name)]

    def _not_running(self, runtime: Runtime) -> List[Obstacle]:
        if runtime.name not in _DAEMONS or runtime.found.startswith(_RUNNING):
            return []
        text = f"{runtime.name} is installed, but does not run"
        remedy = f"start it (systemctl start {_unit(runtime)}), and read its log (journalctl -u {_unit(runtime)})"
        evidence = f"it was found by {runtime.found}, and no process of root is one"
        return [Obstacle("not_running", text, evidence, remedy, WARNING if self._running else ERROR)]

    def _no_network(self, runtime: Runtime, verdict: Verdict) -> List[Obstacle]:
        if verdict.network is not None or (verdict.networks and not verdict.failed):
            return []
        where = runtime.conf_file or runtime.conf_dir
        reasons = [f"{os.path.basename(one['file'])}: {one['reason']}" for one in verdict.not_chosen[:_MOST]]
        broken = [one for one in verdict.not_chosen if str(one["reason"]).startswith("it cannot be loaded")]
        if broken:
            text = f"{runtime.name} loads no network, because it cannot load {broken[0]['file']}"
            remedy = "fix the file, remove it, or give it another extension"
            return [Obstacle("broken_file", text, "; ".join(reasons), remedy, file=broken[0]["file"])]
        reason = verdict.reason.replace("no network: ", "") or "none of the files is used"
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
        own = built_in(runtime)
        if own is None or (verdict.network is None and runtime.rules.choice != OWN):
            return []
        found = []
        for plugin in own.plugins:
            binaries = self._effective.binaries_of(runtime, plugin)
            for one in plugin_obstacles(plugin, own.cni_version, binaries, self._other_dirs):
                text = f"{one.message}, and {runtime.name} runs it for {own.purpose}"
                remedy = one.remedy or "install plugins of a release that supports it"
                found.append(one._replace(message=text, remedy=remedy, network=own.name))
        return found

    # ---- what it says itself

    def _ask(self, runtime: Runtime, verdict: Verdict) -> Tuple[Optional[cri.CriStatus], str]:
        if not asking.can_be_asked(runtime):
            return None, ""
        try:
            names = asking.networks_to_ask_for(verdict.networks, verdict.network or "")
            return asking.ask(runtime, names, self._timeout), ""
        except HostError as error:
            return None, error.msg

    @staticmethod
    def _reported(
        runtime: Runtime, verdict: Verdict, status: cri.CriStatus, found: Sequence[Obstacle]
    ) -> List[Obstacle]:
        differs = not_as_judged(runtime, verdict, status)
        if differs:
            remedy = f"restart it (systemctl restart {_unit(runtime)}), or write the file again with cni_conf"
            if runtime.name == "podman":
                remedy = f"compare podman network ls with {runtime.conf_dir}"
            evidence = status.message or _ANSWERS.get(runtime.name, "its answer to Status of CRI")
            text = f"{runtime.name} {differs}"
            # An older state of the same network works, too; only another network is an obstacle.
            level = WARNING if "older state" in differs else ERROR
            return [Obstacle("not_loaded", text, evidence, remedy, level, file=verdict.file or runtime.conf_dir)]
        explained = any(one.level == ERROR for one in found)
        if status.ready or explained or runtime.handler:
            return []
        text = f"{runtime.name} reports that its network is not ready"
        remedy = f"read its log (journalctl -u {_unit(runtime)})"
        return [Obstacle("network_not_ready", text, status.message, remedy)]


def _is_kubelet(process: Process) -> bool:
    """Tell it from other commands of the same program, such as ``k3s kubectl``. k3s writes its command line again."""
    return process.name.startswith("kube") or " ".join(process.argv[:2]).endswith((" server", " agent"))


_ANSWERS = {"nomad": "the fingerprint of its node", "podman": "podman network inspect"}

# Obstacles that are no proof, but leave it open whether a container gets a network.
_DOUBTS = ("unsafe_permissions", "not_elf", "unreadable", "selinux_label")


def _hangs(answer: PluginsStatus) -> bool:
    """Tell whether a plugin that has STATUS does not answer it."""
    return answer.state == UNKNOWN and "does not answer STATUS" in answer.message


def _not_ready(network: Network, answer: PluginsStatus) -> Obstacle:
    text = f"the network {network.name!r} is not ready: {answer.message}"
    remedy = "start or fix what the plugin needs, usually the daemon of its network"
    evidence = f"{answer.plugin} answers STATUS with the code {answer.code}"
    return Obstacle("status_not_ready", text, evidence, remedy, network=network.name, file=network.file.path)


def _unanswered(runtime: Runtime, doubt: str) -> Obstacle:
    text = f"it is not known whether {runtime.name} has loaded its network"
    remedy = f"read its log (journalctl -u {_unit(runtime)}); a plugin that hangs in STATUS blocks this answer"
    return Obstacle("not_answered", text, doubt, remedy, WARNING, runtime.name)


def _no_runtime() -> Obstacle:
    text = "no runtime that uses CNI was found on this host"
    return Obstacle("missing_runtime", text, "no process and no program of one", "install one", INFO)


def _unit(runtime: Runtime) -> str:
    return "containerd" if runtime.name.startswith("containerd-") else runtime.name
