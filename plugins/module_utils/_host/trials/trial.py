# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The test of one network: ADD, CHECK, ping and DEL in a namespace that exists only for it, and a search for leaks."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...libcni.conf import NetworkConfigList
from .. import netlink
from ..addresses import packed, result_addresses
from ..attachments.attached import Attached
from ..attachments.executors import EmptyNetns
from ..attachments.networks import Networks
from ..attachments.remains import Departed, Row, drop_remains
from ..attachments.request import Key
from ..attachments.verbs import Verbs, can_check
from ..binaries.usable import Binaries
from ..errors import HostError
from ..hostview import HostView
from ..kinds import bridge_of
from ..netns import Netns, visit
from ..plan import Plan
from .packets import Attempt, answers

# Seconds for a gateway to answer.
_DEADLINE = 5.0


class Target(NamedTuple):
    """A ``gateway``, and the container's address (``source``) that uses it."""

    gateway: str
    source: str


def targets(result: Mapping[str, Any]) -> List[Target]:
    """Return the gateways in a result of any version, each once."""
    ips = result.get("ips")
    entries = [entry for entry in ips if isinstance(entry, dict)] if isinstance(ips, list) else []
    # Results before 0.3.0.
    old = [entry for entry in (result.get("ip4"), result.get("ip6")) if isinstance(entry, dict)]
    found: Dict[str, Target] = {}
    for entry in entries + old:
        gateway, own = entry.get("gateway"), entry.get("address", entry.get("ip"))
        if isinstance(gateway, str) and isinstance(own, str):
            source = own.partition("/")[0]
            if packed(gateway) and packed(source):
                found.setdefault(gateway, Target(gateway, source))
    return list(found.values())


def gateways_on_host(found: List[Target]) -> List[Target]:
    """Return those whose gateway is an address of this host. Link-local ones need an interface and are left out."""
    here = netlink.host_addresses()
    return [one for one in found if packed(one.gateway) in here and not one.gateway.lower().startswith("fe80:")]


PLANNED, PASSED, FAILED, SKIPPED = "planned", "passed", "failed", "skipped"
UNUSABLE = "unusable"
TAKE_BACK = "take_back"


class SmokeSettings(NamedTuple):
    """The options of cni_smoke. ``networks`` None: all that can be tested without harm. ``timeout`` in seconds.

    ``pod``: the options in POD_ARGUMENTS, None to test without a pod.
    """

    conf_dir: str
    bin_dirs: Sequence[str]
    cache_dir: str
    networks: Optional[Sequence[str]]
    ping: bool
    timeout: float
    check_mode: bool
    pod: Optional[Mapping[str, Any]] = None

    def conventions(self, container_id: str) -> Tuple[List[Tuple[str, str]], Dict[str, Any]]:
        """Return the pairs of CNI_ARGS and the capability arguments of the pod. Raises HostError ``bad_pod``."""
        if self.pod is None:
            return [], {}
        from ..attachments.pod import arguments_of

        return arguments_of(self.pod, container_id, [], {}, "pod")[:2]


class Trial:
    """The test of one network.

    ``bin_dirs`` are where its plugins are. ``ready`` (STATUS), ``add``, ``check``, ``ping``, ``deleted``: the result of
    each, None if it did not run. ``notes`` tell why one did not run, or does not count.
    """

    def __init__(self, network: str, file: str, bin_dirs: Sequence[str]) -> None:
        self.network = network
        self.file = file
        self.bin_dirs = list(bin_dirs)
        self.config: Optional[NetworkConfigList] = None
        self.status = PLANNED
        self.reason = ""
        self.ready: Optional[str] = None
        self.add: Optional[str] = None
        self.check: Optional[str] = None
        self.ping: Optional[str] = None
        self.deleted: Optional[str] = None
        self.ips: Optional[List[str]] = None
        self.leaks: List[Dict[str, Any]] = []
        self.notes: List[Dict[str, str]] = []
        self.error: Optional[Dict[str, Any]] = None

    def note(self, code: str, message: str) -> None:
        self.notes.append({"code": code, "message": message})

    def skip(self, reason: str, message: str) -> None:
        self.status, self.reason = SKIPPED, reason
        self.note(reason, message)

    def fail(self, error: HostError) -> None:
        """Mark the test as failed. Only the first error is kept."""
        self.status = FAILED
        if self.error is None:
            self.error = dict(error.facts, code=error.code, message=error.msg)

    def row(self) -> Dict[str, Any]:
        """Return the module's result for this network."""
        return {
            "network": self.network,
            "file": self.file,
            "bin_dirs": self.bin_dirs,
            "status": self.status,
            "reason": self.reason,
            "ready": self.ready,
            "add": self.add,
            "check": self.check,
            "ping": self.ping,
            "del": self.deleted,
            "ips": self.ips,
            "leaks": self.leaks,
            "notes": self.notes,
            "error": self.error,
        }


class SmokePlan(Plan):
    """The plan, and the trial of each network. A test is not a change, because it leaves nothing behind."""

    def __init__(self) -> None:
        super().__init__()
        self.trials: List[Trial] = []
        # For each runtime that uses one of the networks: what it executes beyond their plugins.
        self.runtimes: List[Dict[str, Any]] = []
        self.finish: Callable[[], None] = lambda: None

    @property
    def changed(self) -> bool:
        return any(step.kind == TAKE_BACK for step in self.steps)

    @property
    def pending(self) -> bool:
        return bool(self.steps)

    def apply(self, workers: int = 1) -> None:
        try:
            super().apply(1)
        finally:
            self.finish()


class Interfaces:
    """The interfaces of the host and of one namespace before an ADD. ``made``: those of the host that the ADD made."""

    def __init__(self, netns: Netns) -> None:
        self._netns = netns
        self._host = netlink.links()
        self._inside = self._look_inside()
        self.made: Dict[Tuple[Any, ...], Any] = {}

    def _look_inside(self) -> Mapping[int, netlink.Link]:
        return visit([self._netns], netlink.links).get(self._netns.path, {})

    def note(self, result: Mapping[str, Any]) -> None:
        """Note what an ADD with that *result* made on the host: the interfaces in it, and the other ends of veths."""
        from ..kernel.objects import KernelObject

        entries = result.get("interfaces")
        names = {str(e.get("name")) for e in entries if isinstance(e, dict)} if isinstance(entries, list) else set()
        ends = {link.link for index, link in self._look_inside().items() if index not in self._inside and link.abroad}
        for index, link in netlink.links().items():
            if index not in self._host and (link.name in names or index in ends):
                self.made["link", link.name] = KernelObject({"kind": link.kind, "mtu": link.mtu}, ifindex=index)

    def left_inside(self) -> List[Row]:
        """Return what is left in the namespace after the DEL. It goes with the namespace."""
        return [
            {
                "kind": "link",
                "id": link.name,
                "message": f"the interface {link.name} is still in the container",
                "removed": True,
            }
            for index, link in sorted(self._look_inside().items())
            if index not in self._inside
        ]

    def remove_new_bridges(self, config: NetworkConfigList) -> None:
        """Remove the bridges of the network that did not exist before and have no ports."""
        names = {bridge_of(plugin.network) for plugin in config.plugins}
        present = netlink.links()
        ports = {link.master for link in present.values()}
        for index, link in present.items():
            if index not in self._host and link.kind == "bridge" and link.name in names and index not in ports:
                netlink.delete_link(index, link.name)


_IFNAME = "eth0"


class Trier:
    """Tests the networks of one plan whose plugins are in the bin_dirs of *settings*, one after the other."""

    def __init__(self, settings: SmokeSettings, cache_dir: str, plan: SmokePlan) -> None:
        self.bin_dirs = settings.bin_dirs
        self.networks = Networks(settings.conf_dir, settings.bin_dirs, HostView())
        self._settings = settings
        self._verbs = Verbs(settings.bin_dirs, cache_dir, settings.timeout)
        self._plan = plan
        self._binaries = Binaries(settings.bin_dirs, HostView())

    def run(self, trial: Trial) -> None:
        """Test one network and record the result in *trial*. It leaves nothing behind, whatever happens."""
        if trial.config is None:
            return
        # No other container has ever had this id.
        key = Key(trial.network, f"podwire-smoke-{os.urandom(6).hex()}", _IFNAME)
        try:
            with EmptyNetns() as netns:
                interfaces = Interfaces(Netns(netns))
                args, capability_args = self._settings.conventions(key.container_id)
                given = Attached(key, trial.config, netns, args, capability_args, None)
                try:
                    self._try(trial, given, interfaces)
                except BaseException:
                    # The process was told to terminate.
                    self._undo(given)
                    raise
                # A veth that is left goes with the namespace.
                trial.leaks += interfaces.left_inside()
                departed = Departed(key, time.time(), interfaces.made, trial.config, trial.ips or ())
                trial.leaks += self._drop_remains(departed)
            if trial.deleted == PASSED:
                self._verbs.store.remove(key)
            interfaces.remove_new_bridges(trial.config)
        except HostError as error:
            trial.fail(error)
        except OSError as error:
            text = f"cannot create a network namespace to test {trial.network} in: {error.strerror}"
            trial.fail(HostError(text, code="no_netns"))
        if trial.leaks:
            what = "; ".join(str(leak["message"]) for leak in trial.leaks)
            trial.fail(HostError(f"{trial.network}: DEL left something behind: {what}", code="leaked"))
        elif not trial.error:
            trial.status = PASSED

    def _drop_remains(self, departed: Departed) -> List[Row]:
        """Remove what a DEL has left, and return the rows that report it."""
        dropped = drop_remains([departed], self._settings.cache_dir)
        for message in dropped.problems:
            self._plan.warn("rules_unreadable", f"{message}; rules that were left there go undetected")
        return [row for rows in dropped.rows.values() for row in rows]

    def _try(self, trial: Trial, given: Attached, interfaces: Interfaces) -> None:
        self._ask_status(trial, given.config)
        try:
            trial.add = FAILED
            added = self._verbs.add(given, False)
        except HostError as error:
            trial.deleted = FAILED if error.code == "cleanup_failed" else PASSED
            trial.fail(error)
            return
        trial.add = PASSED
        result = added.attached.result or {}
        trial.ips = result_addresses(result)
        interfaces.note(result)
        if added.check is not None:
            trial.check = UNUSABLE
            text = f"{trial.network}: CHECK fails right after a successful ADD ({added.check}); it can never pass here"
            trial.note("check_unusable", text)
            self._plan.warn("check_unusable", text)
        elif trial.config is not None and can_check(trial.config):
            trial.check = PASSED
        if self._settings.ping:
            self._ping_gateways(trial, given.netns, targets(result))
        try:
            trial.deleted = FAILED
            self._verbs.detach(added.attached, given.netns, interfaces.made)
            trial.deleted = PASSED
        except HostError as error:
            trial.fail(error)

    def _ask_status(self, trial: Trial, config: NetworkConfigList) -> None:
        """Ask the plugins whether they are ready. ADD is tried in any case: containerd does so, too."""
        from ..runtimes.asking import NOT_READY, READY, STATUS_TIMEOUT, status_of

        plugins = [plugin.network for plugin in config.plugins]
        timeout = min(self._settings.timeout, STATUS_TIMEOUT)
        found = status_of(trial.network, config.cni_version, plugins, trial.file, self._binaries, timeout)
        if found.state == READY:
            trial.ready = PASSED
        elif found.state == NOT_READY:
            trial.ready = FAILED
            text = f"{trial.network}: {found.message}; runtimes report that the node is not ready until this is fixed"
            trial.fail(HostError(text, code="not_ready"))
        elif found.plugin:
            # A version without STATUS is not worth a note.
            trial.note("status_unknown", found.message)

    def _ping_gateways(self, trial: Trial, netns: str, targets: List[Target]) -> None:
        here = gateways_on_host(targets)
        if not here:
            gateways = ", ".join(target.gateway for target in targets)
            what = f"{gateways} is not an address of this host" if gateways else "the result names none"
            trial.note("no_gateway", f"no gateway to ping: {what}")
            return
        trial.ping, container = PASSED, Netns(netns)
        for target in here:
            if not answers(container, target.gateway, Attempt(_DEADLINE), target.source):
                trial.ping = FAILED
                text = (
                    f"{trial.network}: the gateway {target.gateway} does not answer pings from {target.source}; check "
                    "the bridge and the host's firewall, or set ping: false if it must not answer"
                )
                trial.fail(HostError(text, code="ping_failed"))

    def _undo(self, given: Attached) -> None:
        """Undo an ADD that was interrupted at any point."""
        try:
            cached = self._verbs.store.read(given.key).attached
            self._take_back(cached or given, given.netns)
        except HostError:
            # Its record stays, so that the next run can undo it.
            return

    def take_back(self, attached: Attached) -> None:
        """Undo what a killed run has left. Raises HostError ``del_failed``; then it stays for the next run.

        Without a namespace, the plugin bridge leaves its rules, so DEL alone is not enough.
        """
        self._take_back(attached, "")

    def _take_back(self, attached: Attached, netns: str) -> None:
        self._drop_remains(self._verbs.detach(attached, netns))
        self._verbs.store.remove(attached.key)
