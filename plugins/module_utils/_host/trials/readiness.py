# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a container started now would get a working network, for each runtime, and what stands in between."""

from __future__ import annotations

import os
import time
from functools import cached_property
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..binaries.types import named_plugins
from ..binaries.usable import Binaries
from ..checks.causes import FIRST_RELEASE, Causes, not_fingerprinted
from ..checks.other_programs import two_firewalls
from ..checks.plugins import found_plugin, plugin_obstacles
from ..confdir import ConfFile
from ..kinds import bridge_of, member_of, text_of
from ..problems import ERROR, INFO, WARNING, Finding, obstacle
from ..processes import Process, processes
from ..runtimes.asking import NOT_READY, PluginsStatus, Reply, ask_once, ask_until, mismatch, status_of
from ..runtimes.cri import CriStatus
from ..runtimes.effective import Effective
from ..runtimes.profiles import FIRST, NAMED, OWN, BuiltIn
from ..runtimes.runtime import Network, Runtime
from ..secrets import mask_text
from ..struct import grouped
from .experiment import KEPT, Failure, Lost, Observation, Subject, forget_others, try_networks
from .pools import Pools

# The most files that an explanation lists.
_MOST = 10
# Programs that are, or contain, a kubelet.
_KUBELETS = ("kubelet", "k3s", "rke2", "kubelite")
# A load takes milliseconds once the runtime has noticed the file.
DEADLINE = 2.0


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
        self._causes = Causes(effective, self.other_dirs, self.kubelet)
        self._pools = Pools(effective.runtimes)
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
            findings = [*self._causes.of(runtime, network), *self._pools.of(network)]
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
            obstacles += self._pools.of_stopped([network for network, _level in self._used(runtime)])
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
            text = f"{runtime.name} loads no network, because it cannot load {verdict.broken}"
            remedy = "fix the file, remove it, or give it another extension"
            return [obstacle("broken_file", text, "; ".join(reasons), remedy, file=verdict.broken)]
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
    built_in, verdict = runtime.built_in, runtime.verdict
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
    for alike in grouped((lost.why, lost) for lost in losses if lost.by != KEPT).values():
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


# ---- whether the runtimes have loaded what was written


def confirm_plan(plan: Any, bin_dirs: Sequence[str], deadline: float = DEADLINE) -> Optional[bool]:
    """Ask the runtimes until *deadline* seconds have passed whether they have loaded what a ConfPlan has written.

    Returns True if all have loaded what their verdicts say and nothing else is known to keep a container from its
    network, False if one has not, None if that is not known; warns of each that is not confirmed. Runtimes that are not
    running, read another directory, or have to be restarted are not asked.
    """
    effective, end = plan.judged, time.monotonic() + deadline
    asked = effective.asked(plan.restarting) if effective is not None else []
    if effective is None or not asked:
        return None
    readiness = Readiness(effective, asked, bin_dirs)
    answers = [_confirm_one(runtime, end, readiness) for runtime in asked]
    others = [_in_words(finding) for finding in readiness.of_others() if finding.level == ERROR]
    for text in (text for _answer, texts in [*answers, (None, others)] for text in texts):
        plan.warn("not_confirmed", text)
    return all_of([answer for answer, _texts in answers])


def _in_words(finding: Finding) -> str:
    # What a runtime has answered is in the text of not_loaded.
    shown = f" ({finding.evidence})" if finding.evidence and finding.code != "not_loaded" else ""
    return finding._replace(what=finding.what + shown).message


def _confirm_one(runtime: Runtime, end: float, readiness: Readiness) -> Tuple[Optional[bool], List[str]]:
    verdict = runtime.verdict
    end += runtime.settles
    reply = ask_until(runtime, verdict.names, end, lambda status: getattr(mismatch(runtime, status), "what", ""))
    row = readiness.of(runtime, reply)
    # An older state is not what was written. That the files give it no network is what the plan says.
    failed = [finding for finding in row.obstacles if finding.level == ERROR or finding.code == "not_loaded"]
    failed = [finding for finding in failed if finding.code not in ("no_network", "broken_file")]
    if failed:
        words = "; ".join(map(_in_words, failed))
        return False, [f"containers of {runtime.name} would not get their network: {words}"]
    if row.doubt:
        return None, [f"it is not known whether containers of {runtime.name} get their network: {row.doubt}"]
    return (True if verdict.networks or verdict.network is not None else None), []
