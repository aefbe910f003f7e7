# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a container started now would get a working network, for each runtime, and what stands in between."""

from __future__ import annotations

import contextlib
import itertools
import os
from functools import cached_property
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ...libcni.cache import DEFAULT_DIR
from ...libcni.version import is_at_least
from ..binaries.types import is_multus, named_plugins
from ..binaries.usable import Binaries, highest_common
from ..checks.directory import conflicts
from ..checks.nomad import FIRST_RELEASE, not_fingerprinted
from ..checks.other_programs import OtherPrograms, two_firewalls
from ..checks.plugins import found_plugin, missing_file, mount_point, plugin_obstacles
from ..checks.view import ConfView
from ..confdir import ConfFile
from ..errors import HostError
from ..firewall.tools import tool_obstacles
from ..kernel.sysctls import read_global
from ..kinds import INTERFACE, bridge_of, forwards, kind_of, lease_dir, member_of, object_of, set_or_default, text_of
from ..paths import directory_above
from ..problems import ERROR, INFO, WARNING, Finding, obstacle
from ..processes import Process, processes
from ..ranges import ranges_of
from ..runtimes.asking import NOT_READY, PluginsStatus, Reply, ask_once, mismatch, status_of
from ..runtimes.cri import CriStatus
from ..runtimes.effective import Effective
from ..runtimes.profiles import FIRST, NAMED, OWN, BuiltIn
from ..runtimes.runtime import Network, Runtime
from ..secrets import mask_text
from .experiment import KEPT, Failure, Lost, Observation, Subject, forget_others, try_networks
from .pools import Pools

# The most files that an explanation lists.
_MOST = 10
# Programs that are, or contain, a kubelet.
_KUBELETS = ("kubelet", "k3s", "rke2", "kubelite")
# The conflicts with host and other files that make every ADD fail; the level of others is that of the rules.
_ALWAYS_FAIL = {"master_missing", "chain_order", "bridge_address"}
_CONFLICTS = {"host_overlap", "range_overlap", "subnet_overlap", "bridge_two_subnets", "shared_store", *_ALWAYS_FAIL}
_PROC = "/proc/sys/net"
# What tuning writes down before it changes it (plugins/meta/tuning/tuning.go: createBackup).
_PUT_BACK = ("mac", "mtu", "promisc", "allmulti", "txqlen")


def all_of(answers: Sequence[Optional[bool]]) -> Optional[bool]:
    """Return False if one is, None if one is not known or there is none, else True."""
    return False if False in answers else None if None in answers or not answers else True


class RuntimeReadiness(NamedTuple):
    """``ready`` is None if it is not known, as ``doubt`` explains. ``reported``: its own answer, None if not asked."""

    runtime: Runtime
    ready: Optional[bool]
    doubt: str
    reported: Optional[CriStatus]
    status: List[Tuple[Network, PluginsStatus]]
    obstacles: List[Finding]

    def row(self) -> Dict[str, Any]:
        answer = self.reported
        status = [dict(answer.row(), network=network.name, file=network.file.path) for network, answer in self.status]
        return {
            "runtime": self.runtime.name,
            "handler": self.runtime.handler,
            "conf_dir": self.runtime.conf_file or self.runtime.conf_dir,
            "network": self.runtime.verdict.network,
            "ready": self.ready,
            "unknown": mask_text(self.doubt),
            "reported": answer and dict(answer.row(), message=mask_text(answer.message)),
            "status": status,
        }


class Readiness:
    """Examines *runtimes* of *effective*: asks plugins (VERSION, STATUS) and runtimes, and changes nothing."""

    def __init__(self, effective: Effective, runtimes: Sequence[Runtime], bin_dirs: Sequence[str]) -> None:
        self._effective = effective
        self.binaries_in = effective.binaries_in
        self._runtimes = runtimes
        self.other_dirs = [*bin_dirs, *(path for runtime in effective.runtimes for path in runtime.bin_dirs)]
        self.kubelet = any(_is_kubelet(process) for process in processes(*_KUBELETS))
        self._conflicts: Dict[Tuple[str, ...], List[Finding]] = {}
        self.pools = Pools(effective.runtimes)
        self.other_programs = OtherPrograms()
        self._running = [runtime for runtime in effective.runtimes if runtime.reads and runtime.pid]
        used = [(runtime, *use) for runtime in runtimes for use in self._used(runtime)]
        own = {network.file.path for _runtime, network, level in used if level == ERROR}
        self._users = {network.file.path: runtime for runtime, network, _level in used}
        self._others = [network for network in effective.declared() if network.file.path not in own]
        self._subjects = [self._subject(runtime, network) for runtime, network, _level in used]
        self._subjects += [self._subject(self._users.get(other.file.path), other) for other in self._others]

    def rows(self) -> Dict[str, Any]:
        """Return ``{ready, runtimes, obstacles}``: the obstacles of all runtimes, the worst first, in their order."""
        forget_others(self._subjects)
        rows = [self.of(runtime) for runtime in self._runtimes]
        obstacles = [finding for each in rows for finding in each.obstacles]
        if any(each.runtime.reads for each in rows):
            obstacles += two_firewalls()
        unused = (finding for finding in self.of_others() if finding.file not in self._users)
        # They keep no container from the network that it gets.
        obstacles += [finding._replace(level=WARNING) if finding.level == ERROR else finding for finding in unused]
        obstacles = sorted([*obstacles, *self._unused_directories(obstacles)], key=lambda finding: finding.rank)
        if not self._runtimes:
            text = "no runtime that uses CNI was found on this host"
            obstacles.append(obstacle("missing_runtime", text, "no process and no program of one", "install one", INFO))
        return {
            "ready": all_of([each.ready for each in rows if each.runtime.reads]),
            "runtimes": [each.row() for each in rows],
            "obstacles": [finding.obstacle() for finding in dict.fromkeys(obstacles)],
        }

    def of(self, runtime: Runtime, reply: Optional[Reply] = None) -> RuntimeReadiness:
        """Return what stands between a container of *runtime* and its network; *reply*: if it was asked already."""
        if not runtime.reads:
            why = "; ".join(runtime.notes)
            return RuntimeReadiness(runtime, None, why, None, [], [self._unused(runtime, why)])
        obstacles = [*runtime.findings, *self._not_running(runtime), *self._no_network(runtime)]
        status = []
        for network, level in self._used(runtime):
            observation = self._observations[repr(self._subject(runtime, network))]
            findings = list(NetworkCauses(self, runtime, network).find())
            binaries, file = self.binaries_in(runtime.bin_dirs), network.file.path
            answer = status_of(network.name, network.version, network.plugins, file, binaries)
            status.append((network, answer))
            # A runtime that does not understand the network's version never asks.
            understood = all(finding.code != "unsupported_by_runtime" for finding in findings)
            if answer.state == NOT_READY and understood:
                findings.append(_not_ready(network, answer))
            explained = any(finding.level == ERROR for finding in findings)
            findings += shown_by(observation, network, explained, _replaced(observation, network, binaries))
            obstacles += [finding._replace(level=level) if finding.level == ERROR else finding for finding in findings]
        if runtime.name == "podman":
            obstacles += self.pools.of_stopped([network for network, _level in self._used(runtime)])
        mounts = [finding.evidence for finding in obstacles if finding.code == "noexec_mount"]
        obstacles += [finding for finding in self._built_in(runtime) if finding.evidence not in mounts]
        obstacles += self._untried(runtime)
        asked = runtime.can_be_asked
        if reply is None:
            reply = ask_once(runtime, runtime.verdict.names) if asked else Reply(None, "")
        reported = reply.status
        if reported is not None:
            explained = any(finding.level == ERROR for finding in obstacles)
            obstacles += self._reported(runtime, reported, explained)
        doubts = ["" if reported else reply.why, *(finding.what for finding in obstacles if not finding.decides)]
        doubt = next(filter(None, [*doubts, *(answer.message for _network, answer in status if answer.hangs)]), "")
        if reply.code == "cri_not_loaded":
            obstacles.append(not_loaded(runtime, reply.why))
        elif doubt and reported is None and asked:
            text = f"it is not known whether {runtime.name} has loaded its network"
            hanging = [network.name for network, answer in status if answer.hangs]
            remedy = _log_of(runtime)
            if hanging:
                remedy += f"; the plugin that hangs in STATUS ({', '.join(hanging)}) blocks this answer"
            obstacles.append(obstacle("not_answered", text, doubt, remedy, WARNING))
        obstacles = [finding._replace(runtime=runtime.name) for finding in obstacles]
        ready = False if any(finding.level == ERROR for finding in obstacles) else None if doubt else True
        return RuntimeReadiness(runtime, ready, doubt, reported, status, obstacles)

    def of_others(self) -> Iterator[Finding]:
        """Yield what is wrong with declared networks that no container gets without naming them."""
        for network in self._others:
            subject = self._subject(self._users.get(network.file.path), network)
            seen, binaries = self._observations[repr(subject)], self.binaries_in(subject.bin_dirs)
            yield from shown_by(seen, network, False, _replaced(seen, network, binaries))

    @cached_property
    def _observations(self) -> Dict[str, Observation]:
        """What trials have shown. The unused networks are last, if there is no time for all."""
        subjects = {repr(subject): subject for subject in self._subjects}
        return dict(zip(subjects, try_networks(list(subjects.values()))))

    def _subject(self, runtime: Optional[Runtime], network: Network) -> Subject:
        bin_dirs = runtime.bin_dirs if runtime else dict.fromkeys(self.other_dirs)
        rules = runtime.built_in.rules if runtime and runtime.built_in and runtime.built_in.name == network.name else ()
        return Subject(network.name, network.version or "0.1.0", network.plugins, tuple(bin_dirs), rules)

    def conflicts_of(self, runtime: Runtime, network: Network) -> List[Finding]:
        """Return where *network* conflicts with the host, or with other networks of its directory."""
        place = runtime.conf_dir, runtime.conf_file, runtime.folder
        if place not in self._conflicts:
            # Once for all networks: each is compared with all others.
            files = self._effective.files_of(runtime)
            view = ConfView(runtime.conf_dir, files, files, set(), {file.name for file in files})
            view.at_each = True
            self._conflicts[place] = [finding for finding in conflicts(view) if finding.code in _CONFLICTS]
        return [finding for finding in self._conflicts[place] if finding.file == network.file.path]

    # ---- the runtime

    def _unused_directories(self, obstacles: Sequence[Finding]) -> List[Finding]:
        """Return which directories no runtime uses, unless *obstacles* say of it what it lacks for that reason."""
        told = {("bin_dir_unused", finding.runtime) for finding in obstacles if finding.code == "missing_plugin"}
        told |= {("conf_dir_unused", "") for finding in obstacles if finding.code == "no_network"}
        return [finding for finding in self._effective.unused() if (finding.code, finding.runtime) not in told]

    def _unused(self, runtime: Runtime, why: str) -> Finding:
        text = f"{runtime.name} uses no CNI network"
        finding = obstacle("not_cni", text, why, "none, if that is intended", INFO)
        if runtime.refuses:
            remedy = "remove network_backend from containers.conf, and make its networks again (podman network create)"
            finding = obstacle("no_cni", f"{runtime.name} starts no container", why, remedy)
        if self.kubelet and runtime.address and not self._running:
            remedy = f"remove cri from disabled_plugins in {runtime.config}, and restart it"
            finding = obstacle("cri_disabled", text, why, remedy)
        return finding._replace(runtime=runtime.name)

    def _not_running(self, runtime: Runtime) -> List[Finding]:
        if not runtime.profile.unit or runtime.pid:
            return []
        text = f"{runtime.name} is installed, but does not run"
        remedy = f"start it (systemctl start {runtime.unit}), and {_log_of(runtime)}"
        evidence = f"it was found by {runtime.evidence}, and root runs no process of it"
        return [obstacle("not_running", text, evidence, remedy, WARNING if self._running else ERROR)]

    def _no_network(self, runtime: Runtime) -> List[Finding]:
        verdict = runtime.verdict
        if verdict.network is not None or (verdict.networks and not verdict.failed):
            return []
        where = runtime.conf_file or runtime.conf_dir
        reasons = [f"{os.path.basename(entry['file'])}: {entry['reason']}" for entry in verdict.not_chosen[:_MOST]]
        if verdict.broken:
            text = f"{runtime.name} loads no network, because it cannot load {verdict.broken[0]}"
            remedy = "fix the file, remove it, or give it another extension"
            return [obstacle("broken_file", text, "; ".join(reasons), remedy, file=verdict.broken[0])]
        reason = verdict.failed or verdict.reason or "none of the files is used"
        text = f"{runtime.name} has no network: {reason}"
        evidence = "; ".join(reasons) or (f"{where} is empty" if os.path.isdir(where) else f"{where} does not exist")
        remedy = f"write a network to {where} (podwire.cni.cni_conf), or start the daemon that writes it"
        if self._effective.files and not self._effective.reads_here(runtime):
            remedy += f"; {self._effective.conf_dir} has networks, but {runtime.name} does not read it"
        return [obstacle("no_network", text, evidence, remedy, file=where)]

    @staticmethod
    def _used(runtime: Runtime) -> List[Tuple[Network, str]]:
        """Return the networks of the runtime's containers, with the level of what is wrong with each."""
        verdict = runtime.verdict
        every = runtime.profile.choice == FIRST and not runtime.default_network
        return [
            (network, ERROR if every or network.name == verdict.network else WARNING)
            for network in [*_built_by(runtime), *verdict.networks]
            if every or verdict.network in (None, network.name) or runtime.profile.choice == NAMED
        ]

    def _untried(self, runtime: Runtime) -> Iterator[Finding]:
        name = runtime.verdict.network
        if name is None or name in (used.name for used, _level in self._used(runtime)):
            return
        text = f"it is not known whether the network {name!r} works: {runtime.name} builds it itself"
        yield obstacle("not_tried", text, runtime.profile.own, "try it with a container", INFO)._replace(decides=False)

    def _built_in(self, runtime: Runtime) -> Iterator[Finding]:
        used = runtime.verdict.network is not None or runtime.profile.choice == OWN
        built_in = (runtime.built_in if used else None) or BuiltIn("", "", (), "")
        if runtime.name == "nomad-bridge" and runtime.release >= FIRST_RELEASE:
            yield from not_fingerprinted(built_in.plugins, runtime.bin_dirs)
        binaries = self.binaries_in(runtime.bin_dirs)
        # One whose chain is known is examined as those of files are.
        for plugin in () if built_in.chain else built_in.plugins:
            for finding in plugin_obstacles(plugin, built_in.cni_version, binaries, self.other_dirs):
                text = f"{finding.what}, and {runtime.name} runs it for {built_in.purpose}"
                remedy = finding.remedy or "install plugins of a release that supports it"
                yield finding._replace(what=text, remedy=remedy, network=built_in.name)

    @staticmethod
    def _reported(runtime: Runtime, status: CriStatus, explained: bool) -> Iterator[Finding]:
        """Yield what is wrong with what the runtime says; *explained*: an error says already why it is not ready."""
        differs = mismatch(runtime, status)
        if differs is not None:
            # An older state of the same network works, too; only another network is an obstacle.
            yield differs._replace(evidence=status.message or runtime.answer, remedy=runtime.how_to_load)
        elif not (status.ready or explained or runtime.handler):
            text = f"{runtime.name} reports that its network is not ready"
            yield obstacle("network_not_ready", text, status.message, _log_of(runtime))


def _built_by(runtime: Runtime) -> List[Network]:
    """Return the network that a runtime builds itself, none if its containers do not use it, or it is not known."""
    built_in, verdict = runtime.profile.own_network or runtime.built_in, runtime.verdict
    if built_in is None or not built_in.chain or verdict.network is None or verdict.file:
        return []
    return [Network(ConfFile(runtime.name, runtime.config), verdict.network, built_in.cni_version, built_in.chain)]


def not_loaded(runtime: Runtime, refusal: str) -> Finding:
    text = f"{runtime.name} runs without its CRI plugin, so that no pod can start"
    remedy = f"correct {runtime.config or 'its configuration'}, and restart it"
    return obstacle("cri_not_loaded", text, refusal, remedy, file=runtime.config)


def _log_of(runtime: Runtime) -> str:
    return f"read its log (journalctl -u {runtime.unit})"


def _is_kubelet(process: Process) -> bool:
    """Tell it from other commands of the same program, such as ``k3s kubectl``. k3s writes its command line again."""
    return process.name.startswith("kube") or " ".join(process.argv[:2]).endswith((" server", " agent"))


def _not_ready(network: Network, answer: PluginsStatus) -> Finding:
    text = f"the network {network.name!r} is not ready: {answer.message}"
    remedy = "start or fix what the plugin needs, usually the daemon of its network"
    evidence = f"{answer.plugin} answers STATUS with the code {answer.code}"
    file = network.file.path
    return obstacle("status_not_ready", text, evidence, remedy, file=file)._replace(network=network.name)


def _replaced(seen: Observation, network: Network, binaries: Binaries) -> str:
    """Return which plugins, up to the one that has failed, are not what was installed ("" if all else is explained)."""
    paths: List[str] = []
    if seen.failed is None and all(lost.by for lost in seen.lost):
        return ""
    for plugin in network.plugins:
        paths += [found_plugin(name, binaries.bin_dirs) for _pointer, name in named_plugins(plugin)]
        if seen.failed is not None and seen.failed.plugin == text_of(plugin, "type"):
            break
    return ", ".join(path for path in dict.fromkeys(paths) if path and binaries.is_replaced(path))


def shown_by(observation: Observation, network: Network, explained: bool, replaced: str = "") -> Iterator[Finding]:
    """Yield what it has shown; *explained*: why ADD fails is said. *replaced*: plugins that are not those installed."""
    file = network.file.path
    failed, findings = observation.failed, []
    unexplained = [_failure(failed, network)] if failed and not (explained and failed.verb == "ADD") else []
    # What nothing explains may be for what could not be copied.
    losses = [lost for lost in observation.lost if lost.by or not observation.unknown]
    kept = [lost for lost in losses if lost.by == KEPT]
    findings += [_kept(kept, network)] if kept else []
    losses = [lost for lost in losses if lost.by != KEPT]
    for why in dict.fromkeys(lost.why for lost in losses):
        alike = [lost for lost in losses if lost.why == why]
        (findings if alike[0].by else unexplained).append(_loss(alike, network))
    if observation.left:
        text = f"DEL of the network {network.name!r} leaves something behind"
        remedy = "update the plugins; podwire.cni.cni_gc collects what containers leave"
        findings.append(obstacle("leaked", text, "; ".join(observation.left), remedy, WARNING))
    if observation.unknown:
        text = f"it is not known whether the network {network.name!r} works: {observation.unknown}"
        evidence = "no container was tried in a copy of this host, or not all of it is copied"
        findings.append(obstacle("not_tried", text, evidence, "try it with a container", INFO)._replace(decides=False))
    if replaced:
        remedy = f"install {replaced} again (podwire.cni.cni_plugins), which is not what it has installed"
        unexplained = [finding._replace(remedy=remedy) for finding in unexplained]
    for finding in [*unexplained, *findings]:
        yield finding._replace(network=network.name, file=file)


def _failure(failed: Failure, network: Network) -> Finding:
    text = f"{failed.verb} of the network {network.name!r} fails in a copy of this host: {failed.said}"
    evidence = f"the plugin {failed.plugin} " + (f"returned the code {failed.code}" if failed.code else "gave no code")
    evidence = evidence if failed.plugin else f"no plugin of {', '.join(network.types)} was run for it"
    if failed.verb == "ADD":
        remedy = f"correct {network.file.path or 'its configuration'}, or what the plugin names"
        return obstacle("add_fails", text, evidence, remedy)
    code, level = ("check_unusable", INFO) if failed.verb == "CHECK" else ("del_failed", WARNING)
    return obstacle(code, text, evidence, "update the plugins, if the configuration is right", level)


_WAYS = {
    "gateway": "from a container to its gateway",
    "container": "from a container to another",
    "outside": "from a container to what is outside of the host",
    "published": "from outside to a published port",
}


def _loss(losses: Sequence[Lost], network: Network) -> Finding:
    ways = [f"{_WAYS[lost.way]} ({lost.family})" for lost in losses]
    text = f"packets of the network {network.name!r} do not arrive: {losses[0].why}"
    minor = all(lost.way == "published" or (lost.way == "gateway" and lost.by) for lost in losses)
    level = INFO if losses[0].by == "route" else WARNING if minor else ERROR
    evidence = f"in a copy of this host, they are lost {', '.join(ways)}"
    return obstacle("packets_lost", text, evidence, _REMEDIES[losses[0].by], level)


def _kept(losses: Sequence[Lost], network: Network) -> Finding:
    families = ", ".join(lost.family for lost in losses)
    text = f"containers of the network {network.name!r} get no answers from outside ({families}), unless others route"
    remedy = 'write "ipMasq": true, or false if the network outside routes their addresses to this host'
    # Who has written it knows that they are routed.
    routers = [plugin for plugin in network.plugins if bridge_of(plugin) or text_of(plugin, "type") == "ptp"]
    known = not routers or any(member_of(plugin, "ipmasq") is False for plugin in routers)
    evidence, level = "; ".join(lost.why for lost in losses), INFO if known else WARNING
    return obstacle("not_masqueraded", f"{text} their addresses to this host", evidence, remedy, level)


_REMEDIES = {
    "rule": "add a rule before it that accepts the traffic of the network",
    "policy": 'accept the traffic of the network there; in FORWARD of iptables, the plugin "firewall" does so',
    "link": "connect it, or set it up (ip link set NAME up)",
    "route": "none, if its containers do not have to reach anything else",
    "rp_filter": "set the sysctl rp_filter of the interface to 2 or 0, or route answers by the same interface",
    "": "compare the routes and addresses of the host with those that the network needs",
}


class NetworkCauses:
    """What would make an ADD of one *network* of *runtime* fail."""

    def __init__(self, readiness: Readiness, runtime: Runtime, network: Network) -> None:
        self.readiness = readiness
        self.runtime = runtime
        self.network = network
        self.binaries = readiness.binaries_in(runtime.bin_dirs)
        self.plugins: List[Dict[str, Any]] = list(network.plugins)
        self.version = network.version or "0.1.0"

    def find(self) -> Iterator[Finding]:
        """Yield the obstacles in the order in which an ADD meets them."""
        parts = [self._binaries(), self._versions(), self._state(), *map(self._needs, self.plugins), self._conflicts()]
        parts.append(tool_obstacles(self.plugins, {"portMappings": True}, self.binaries.bin_dirs))
        parts += [self._kernel(), self._addresses(), self.readiness.other_programs.obstacles_of(self.plugins)]
        for finding in itertools.chain.from_iterable(parts):
            yield finding._replace(network=self.network.name, file=finding.file or self.network.file.path)

    def _binaries(self) -> Iterator[Finding]:
        names = [name for plugin in self.plugins for _pointer, name in named_plugins(plugin)]
        findings: List[Finding] = []
        for name in dict.fromkeys(names):
            if name in self.runtime.profile.bundled and not found_plugin(name, self.binaries.bin_dirs):
                continue
            findings.extend(plugin_obstacles(name, self.version, self.binaries, self.readiness.other_dirs))
        # One mount, or one version, is one cause, however many plugins it concerns.
        refusing = [finding for finding in findings if finding.code == "unsupported_by_plugin"]
        yield from {(finding.code, finding.what): finding for finding in findings if finding not in refusing}.values()
        if refusing:
            evidence = "; ".join(finding.evidence for finding in refusing)
            yield refusing[0]._replace(evidence=evidence, remedy=self._advice(names))

    def _advice(self, names: Sequence[str]) -> str:
        answers = []
        for name in names:
            with contextlib.suppress(HostError):
                answers.append(self.binaries.ask(name)[1])
        best = highest_common(answers)
        write = f'write "cniVersion": "{best}", which all its plugins support, or ' if best else ""
        return write + "install plugins of a release that supports it"

    def _versions(self) -> Iterator[Finding]:
        # Later releases of libcni understand results of 1.1 (Go: pkg/types/create).
        if self.runtime.libcni == "1.1" and is_at_least(self.version, "1.1.0"):
            text = f"{self.runtime.name} loads the network, but does not understand its version {self.version}"
            evidence = f"it contains libcni {self.runtime.libcni}, which refuses the result of every ADD"
            remedy = 'write "cniVersion": "1.0.0", or update the runtime'
            yield obstacle("unsupported_by_runtime", text, evidence, remedy)

    def _state(self) -> Iterator[Finding]:
        """Yield directories that plugins and libcni write to, and cannot."""
        stores = [os.path.join(data_dir, self.network.name) for data_dir in map(lease_dir, self.plugins) if data_dir]
        tunings = [plugin for plugin in self.plugins if any(member_of(plugin, name) for name in _PUT_BACK)]
        backups = [set_or_default(plugin, "dataDir") for plugin in tunings if text_of(plugin, "type") == "tuning"]
        reasons: Dict[Tuple[str, str], str] = {}
        for path in [*stores, *backups, os.path.join(DEFAULT_DIR, "results")]:
            reasons.setdefault(_why_unwritable(path), path)
        for (why, remedy), path in reasons.items():
            if why:
                text = f"nothing can be written to {path}, where every ADD keeps its state"
                yield obstacle("state_unwritable", text, why, remedy)

    def _needs(self, plugin: Dict[str, Any]) -> Iterator[Finding]:
        """Yield what single plugins need of the host."""
        kind, ipam = text_of(plugin, "type"), object_of(plugin, "ipam")
        if is_multus(plugin):
            from ..checks.multus import multus_obstacles

            yield from multus_obstacles(plugin, self.binaries)
        if kind == "flannel":
            text = "the plugin flannel does not know the subnet of this node"
            remedy = "start flanneld, which writes the file"
            yield from missing_file(set_or_default(plugin, "subnetFile"), "no_flannel", text, remedy)
        if text_of(ipam, "type") == "dhcp":
            text = "the CNI DHCP daemon, which assigns the addresses, does not run: it has no socket"
            remedy = "start it (cni_dhcp_daemon of the role podwire.cni.plugins)"
            yield from missing_file(set_or_default(ipam, "daemonSocketPath"), "no_dhcp_daemon", text, remedy)
        for path in (text_of(plugin, "kubeconfig"), text_of(object_of(plugin, "kubernetes"), "kubeconfig")):
            text = f"the plugin {kind} cannot reach the API of Kubernetes"
            remedy = "start the daemon of the network (DaemonSet), which writes the file"
            yield from missing_file(path, "no_kubeconfig", text, remedy)
        device = text_of(plugin, "device") if kind == "host-device" else ""
        if device and "/" not in device:
            text = f"host-device: the host has no interface {device} to give to a container"
            yield from missing_file(f"/sys/class/net/{device}", "no_device", text, "write an existing interface")
        data_dir = lease_dir(plugin)
        if data_dir:
            yield from self.readiness.pools.obstacles(ipam, data_dir, self.network.name)

    def _conflicts(self) -> Iterator[Finding]:
        for entry in self.readiness.conflicts_of(self.runtime, self.network):
            level = ERROR if entry.code in _ALWAYS_FAIL and entry.level != INFO else entry.level
            yield entry._replace(level=level, evidence=f"{entry.file}, {entry.pointer}")

    def _kernel(self) -> Iterator[Finding]:
        path = f"{_PROC}/ipv4/ip_forward"
        is_off = any(map(forwards, self.plugins)) and read_global("ipv4/ip_forward") == "0"
        if is_off and os.statvfs(path).f_flag & os.ST_RDONLY:
            text = "the plugin cannot switch on the forwarding of packets"
            evidence = f"{path} is 0, and /proc/sys is mounted read-only"
            yield obstacle("ip_forward", text, evidence, "sysctl -w net.ipv4.ip_forward=1 outside of this namespace")
        for plugin in filter(forwards, self.plugins):
            own = read_global(f"ipv6/conf/{bridge_of(plugin)}/disable_ipv6")
            name, off = (bridge_of(plugin), own) if own else ("default", read_global("ipv6/conf/default/disable_ipv6"))
            if off != "0" and any(part.subnet.version == 6 for part in ranges_of(object_of(plugin, "ipam"))):
                text = f"the host has IPv6 off, so that {text_of(plugin, 'type')} cannot assign the IPv6 gateway"
                evidence = f"{_PROC}/ipv6/conf/{name}/disable_ipv6 is {off or 'missing'}"
                yield obstacle("ipv6_off", text, evidence, "set it to 0, or remove the IPv6 ranges")
        filtered = read_global("bridge/bridge-nf-call-iptables")
        if any(map(bridge_of, self.plugins)) and filtered != "1" and self.readiness.kubelet:
            text = "packets between pods of this node do not pass iptables, so that addresses of services do not work"
            evidence = f"{_PROC}/bridge/bridge-nf-call-iptables is {filtered or 'missing'}"
            remedy = "modprobe br_netfilter; sysctl -w net.bridge.bridge-nf-call-iptables=1"
            yield obstacle("bridge_netfilter", text, evidence, remedy, WARNING)

    def _addresses(self) -> Iterator[Finding]:
        """Yield an obstacle if the runtime wants an address, and no plugin assigns one."""
        if self.runtime.profile.choice != FIRST or not self.runtime.address:
            return
        makers = [plugin for plugin in self.plugins if kind_of(plugin).role == INTERFACE]
        third = [plugin for plugin in self.plugins if not kind_of(plugin).reference]
        if makers and not third and not any(text_of(object_of(plugin, "ipam"), "type") for plugin in makers):
            text = f"the network assigns no address, and {self.runtime.name} refuses a pod without one"
            evidence = f'{", ".join(text_of(plugin, "type") for plugin in makers)} has no "ipam" with a type'
            yield obstacle("no_addresses", text, evidence, 'write "ipam", for example with the type host-local')


def _why_unwritable(path: str) -> Tuple[str, str]:
    """Return why nothing can be written to the directory *path*, or to where it would be made, and what helps."""
    existing, why = directory_above(path)
    if why:
        return why, f"move {existing} away, so that the directory can be made"
    status = os.statvfs(existing)
    if status.f_flag & os.ST_RDONLY:
        point = mount_point(existing)
        return f"{existing} is on a file system that is mounted read-only ({point})", f"mount -o remount,rw {point}"
    if (status.f_blocks and not status.f_bavail) or (status.f_files and not status.f_favail):
        return f"the file system of {existing} ({mount_point(existing)}) is full", "remove files there"
    if not os.access(existing, os.W_OK):
        return f"{existing} is immutable, or something else denies it", f"chattr -i {existing}"
    return "", ""
