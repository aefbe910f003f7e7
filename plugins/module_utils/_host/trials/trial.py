# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The test of one network: ADD, CHECK, packets and DEL in namespaces that exist only for it, and a search for leaks."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...libcni.conf import NetworkConfigList, PluginConfig
from .. import netlink
from ..addresses import family_of, packed, result_interfaces, result_ips
from ..attachments.remains import Departed, Row, drop_remains
from ..attachments.request import Key, Networks
from ..attachments.store import Attached
from ..attachments.verbs import Verbs, can_check, empty_netns
from ..binaries.types import types_of
from ..binaries.usable import Binaries
from ..errors import HostError
from ..hostview import HostView
from ..kinds import REFERENCE, bridge_of, lease_dir, member_of, object_of
from ..leases import read_leases
from ..netns import Netns, visit
from ..plan import Plan
from ..ranges import leases_in, range_of, range_sets
from ..struct import field, struct
from .packets import ALL, OUTSIDE, Attempt, Flow, answers, connects, container_addresses, keeps_apart, same_host

# Seconds for a gateway or a container to answer, and the port of a container.
_DEADLINE, _PORT = 5.0, 8080


def targets(result: Mapping[str, Any]) -> Dict[str, str]:
    """Return the gateways in a result of any version, each with the address of the container that uses it."""
    sources: Dict[str, str] = {}
    for entry in result_ips(result):
        gateway, own = entry.get("gateway"), entry.get("address", entry.get("ip"))
        if isinstance(gateway, str) and isinstance(own, str):
            source = own.partition("/")[0]
            if packed(gateway) and packed(source):
                sources.setdefault(gateway, source)
    return sources


def gateways_on_host(gateways: Iterable[str]) -> List[str]:
    """Return those that are addresses of this host. Link-local ones need an interface and are left out."""
    addresses = netlink.host_addresses()
    on_host = (gateway for gateway in gateways if packed(gateway) in addresses)
    return [gateway for gateway in on_host if not gateway.lower().startswith("fe80:")]


def published_at(result: Mapping[str, Any]) -> List[str]:
    """Return an address of the host for each family of the container: its uplink's, or what else it can answer to."""
    parts = [part for part in (result, result.get("ip4"), result.get("ip6")) if isinstance(part, dict)]
    routes = [str(route.get("dst")) for part in parts for route in part.get("routes") or []]
    routed = {family_of(route) for route in routes if route in ALL}
    addresses = []
    for family in dict.fromkeys(map(family_of, container_addresses(result))):
        near = [gateway for gateway in gateways_on_host(targets(result)) if family_of(gateway) == family]
        # Nothing is sent.
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((OUTSIDE[family], 9))
            address = probe.getsockname()[0]
            if family in routed and not address.startswith("fe80:"):
                near.insert(0, address)
        addresses += near[:1]
    return addresses


@contextlib.contextmanager
def free_port() -> Iterator[int]:
    """Hold a TCP port of the host that no process uses, and no rule of its firewall names."""
    from ..firewall.dump import FirewallDump

    rules = ""
    # The search for leaks reports what cannot be read.
    with contextlib.suppress(HostError):
        rules = repr(FirewallDump().rules)
    with contextlib.ExitStack() as held:
        while True:
            family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
            holder = held.enter_context(socket.socket(family, socket.SOCK_STREAM))
            if family == socket.AF_INET6:
                holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            holder.bind(("", 0))
            port = holder.getsockname()[1]
            if str(port) not in rules:
                yield port
                return


def has_one_address(config: NetworkConfigList) -> bool:
    """Tell whether host-local has no address for a second container."""
    for plugin in config.plugins:
        place = lease_dir(plugin.network)
        leases = read_leases(place, config.name)[0] if place else []
        for _pointer, entries in range_sets(object_of(plugin.network, "ipam")) if place else ():
            ranges = [part for part in map(range_of, entries) if part is not None]
            if ranges and len(leases_in(ranges, leases)) + 1 >= sum(part.size for part in ranges):
                return True
    return False


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
    packets: bool
    timeout: float
    check_mode: bool
    pod: Optional[Mapping[str, Any]] = None

    def conventions(self, container_id: str) -> Tuple[List[Tuple[str, str]], Dict[str, Any]]:
        """Return the pairs of CNI_ARGS and the capability arguments of the pod. Raises HostError ``bad_pod``."""
        if self.pod is None:
            return [], {}
        from ..attachments.pod import arguments_of

        return arguments_of(self.pod, container_id, [], {}, "pod")


@struct
class Trial:
    """The test of one network.

    ``bin_dirs`` are where its plugins are. ``alone``: why only one container can have the network, "" if several can.
    ``ready`` (STATUS), ``add``, ``check``, ``ping``, ``container`` (packets to another one), ``published`` (a port),
    ``deleted``: the result of each, None if it did not run. ``notes`` tell why one did not run, or does not count.
    """

    network: str
    file: str
    bin_dirs: Sequence[str]
    config: Optional[NetworkConfigList] = None
    alone: str = ""
    status: str = PLANNED
    reason: str = ""
    ready: Optional[str] = None
    add: Optional[str] = None
    check: Optional[str] = None
    ping: Optional[str] = None
    container: Optional[str] = None
    published: Optional[str] = None
    deleted: Optional[str] = None
    ips: Optional[List[str]] = None
    leaks: List[Dict[str, Any]] = field(default_factory=list)
    notes: List[Dict[str, str]] = field(default_factory=list)
    error: Optional[Dict[str, Any]] = None

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
        shown = {name: value for name, value in vars(self).items() if name not in ("config", "alone", "deleted")}
        return {**shown, "del": self.deleted}


class SmokePlan(Plan):
    """The plan, and the trial of each network. A test is not a change, because it leaves nothing behind."""

    def __init__(self, cache_dir: str) -> None:
        super().__init__()
        self._cache_dir = cache_dir
        self.trials: List[Trial] = []
        # For each runtime that uses one of the networks: what it executes beyond their plugins.
        self.runtimes: List[Dict[str, Any]] = []

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
            for folder in ("results", "podwire", ""):
                # What could not be removed stays, so that the next run can try again.
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.join(self._cache_dir, folder))


class Container:
    """A container of a test. ``made``: the interfaces of the host that its ADD made. ``gone``: nothing is attached."""

    def __init__(self, attached: Attached) -> None:
        self.attached = attached
        self.netns = Netns(attached.netns)
        self.added = self.gone = False
        self.made: Dict[Tuple[Any, ...], Any] = {}
        self._host = netlink.links()
        self._inside = self._look_inside()

    @property
    def result(self) -> Mapping[str, Any]:
        return self.attached.result or {}

    def _look_inside(self) -> Mapping[int, netlink.Link]:
        return visit([self.netns], netlink.links).get(self.netns.path, {})

    def note(self, attached: Attached) -> None:
        """Note what an ADD made on the host: the interfaces in its result, and the other ends of veths."""
        from ..kernel.objects import KernelObject

        self.attached, self.added = attached, True
        names = {str(entry.get("name")) for entry in result_interfaces(self.result)}
        ends = {link.link for index, link in self._look_inside().items() if index not in self._inside and link.abroad}
        for index, link in netlink.links().items():
            if index not in self._host and (link.name in names or index in ends):
                self.made["link", link.name] = KernelObject({"kind": link.kind, "mtu": link.mtu}, ifindex=index)

    def left_inside(self) -> List[Row]:
        """Return what is left in the namespace after the DEL. It goes with the namespace."""
        names = [link.name for index, link in sorted(self._look_inside().items()) if index not in self._inside]
        texts = {name: f"the interface {name} is still in the container" for name in names}
        return [{"kind": "link", "id": name, "message": text, "removed": True} for name, text in texts.items()]


def remove_new_bridges(config: NetworkConfigList, before: Mapping[int, netlink.Link]) -> None:
    """Remove the bridges of the network that were not among the interfaces *before* and have no ports."""
    names = {bridge_of(plugin.network) for plugin in config.plugins}
    present = netlink.links()
    ports = {link.master for link in present.values()}
    for index, link in present.items():
        if index not in before and link.kind == "bridge" and link.name in names and index not in ports:
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
        config = trial.config
        if config is None:
            return
        containers: List[Container] = []
        try:
            before = netlink.links()
            with contextlib.ExitStack() as held:
                try:
                    self._try(trial, config, containers, held)
                    self._end(trial, containers)
                except BaseException:
                    # The process was told to terminate.
                    for container in containers:
                        self._undo(container.attached)
                    raise
            remove_new_bridges(config, before)
        except HostError as error:
            trial.fail(error)
        except OSError as error:
            text = f"cannot create a network namespace or hold a port to test {trial.network}: {error.strerror}"
            trial.fail(HostError(text, code="no_netns"))
        if trial.leaks:
            what = "; ".join(str(leak["message"]) for leak in trial.leaks)
            trial.fail(HostError(f"{trial.network}: DEL left something behind: {what}", code="leaked"))
        elif not trial.error:
            trial.status = PASSED

    def _try(
        self, trial: Trial, config: NetworkConfigList, containers: List[Container], held: contextlib.ExitStack
    ) -> None:
        """Attach *containers* and send their packets."""
        self._ask_status(trial, config)
        packets = self._settings.packets
        port = held.enter_context(free_port()) if packets and any(map(_publishes, config.plugins)) else 0
        why = self._why_one(trial, config) if packets else None
        # CHECK of old portmaps cannot pass with a port, so the first container has none if there is a second.
        first = self._container(config, port if why else 0, containers, held)
        trial.add = self._add(trial, first)
        if trial.add == FAILED:
            return
        trial.ips = first.attached.ips
        if self._settings.ping:
            self._ping_gateways(trial, first)
        if packets and why is None and not container_addresses(first.result):
            why, port = ("no_address", "the network assigns no address to send packets to"), 0
        if why is not None:
            trial.note(why[0], f"tested with one container: {why[1]}")
        elif packets:
            second = self._container(config, port, containers, held)
            trial.container = self._add(trial, second)
            if not second.added:
                return
            if same_host([first.result, second.result], [plugin.network for plugin in config.plugins]):
                trial.container = None
                trial.note("one_container", "no packets were sent: both containers got the same address or MAC")
                return
            self._send_between(trial, first, second)
        if port:
            self._send_to_port(trial, containers[-1], port)

    def _container(
        self, config: NetworkConfigList, port: int, containers: List[Container], held: contextlib.ExitStack
    ) -> Container:
        """Return a new one, with *port* of the host as one of its own."""
        # No other container has ever had this id.
        key = Key(config.name, f"podwire-smoke-{os.urandom(6).hex()}", _IFNAME)
        args, capability_args = self._settings.conventions(key.container_id)
        asked = capability_args.pop("portMappings", [])
        # Two containers cannot have the same ports.
        ports = [] if containers else asked
        if port:
            ports = [*ports, {"hostPort": port, "containerPort": _PORT, "protocol": "tcp"}]
        if ports:
            capability_args["portMappings"] = ports
        netns = held.enter_context(empty_netns())
        containers.append(Container(Attached(key, config, netns, args, capability_args, None)))
        return containers[-1]

    def _add(self, trial: Trial, container: Container) -> str:
        try:
            added = self._verbs.add(container.attached, False)
        except HostError as error:
            container.gone = error.code != "cleanup_failed"
            trial.fail(error)
            return FAILED
        container.note(added.attached)
        if trial.check is None and added.check is not None:
            trial.check = UNUSABLE
            text = f"{trial.network}: CHECK fails right after a successful ADD ({added.check}); it can never pass here"
            trial.note("check_unusable", text)
            self._plan.warn("check_unusable", text)
        elif trial.check is None and can_check(container.attached.config):
            trial.check = PASSED
        return PASSED

    def _end(self, trial: Trial, containers: Sequence[Container]) -> None:
        """Detach *containers* and look for leaks."""
        departed = []
        for container in containers:
            attached = container.attached
            if container.added:
                try:
                    self._verbs.detach(attached, attached.netns)
                    container.gone = True
                except HostError as error:
                    trial.fail(error)
            # A veth that is left goes with the namespace.
            trial.leaks += container.left_inside()
            departed.append(Departed(attached.key, time.time(), container.made, attached.config, attached.ips))
        trial.deleted = PASSED if all(container.gone for container in containers) else FAILED
        trial.leaks += self._drop_remains(departed)
        for container in containers:
            if container.gone:
                self._verbs.store.remove(container.attached.key)

    def _drop_remains(self, departed: Sequence[Departed]) -> List[Row]:
        """Remove what DELs have left, and return the rows that report it."""
        dropped = drop_remains(departed, self._settings.cache_dir)
        for message in dropped.problems:
            self._plan.warn("rules_unreadable", f"{message}; rules that were left there go undetected")
        return [row for rows in dropped.rows.values() for row in rows]

    def _ask_status(self, trial: Trial, config: NetworkConfigList) -> None:
        """Ask the plugins whether they are ready. ADD is tried in any case: containerd does so, too."""
        from ..runtimes.asking import NOT_READY, READY, STATUS_TIMEOUT, status_of

        plugins = [plugin.network for plugin in config.plugins]
        timeout = min(self._settings.timeout, STATUS_TIMEOUT)
        answer = status_of(trial.network, config.cni_version, plugins, trial.file, self._binaries, timeout)
        if answer.state == READY:
            trial.ready = PASSED
        elif answer.state == NOT_READY:
            trial.ready = FAILED
            text = f"{trial.network}: {answer.message}; runtimes report that the node is not ready until this is fixed"
            trial.fail(HostError(text, code="not_ready"))
        elif answer.plugin:
            # A version without STATUS is not worth a note.
            trial.note("status_unknown", answer.message)

    def _why_one(self, trial: Trial, config: NetworkConfigList) -> Optional[Tuple[str, str]]:
        """Return (code, clause) for why the network is tested with one container, None if with two."""
        plugins = [plugin.network for plugin in config.plugins]
        if trial.alone:
            return "one_container", trial.alone
        if any(keeps_apart(plugin) for plugin in plugins):
            return "kept_apart", "the network keeps its containers apart"
        if self._settings.pod is not None and not REFERENCE.issuperset(types_of(plugins)):
            return "one_container", "a pod can have only one in the network"
        if has_one_address(config):
            return "one_container", "host-local has no address for another"
        return None

    def _ping_gateways(self, trial: Trial, container: Container) -> None:
        sources = targets(container.result)
        on_host = gateways_on_host(sources)
        if not on_host:
            gateways = ", ".join(sources)
            what = f"{gateways} is not an address of this host" if gateways else "the result names none"
            trial.note("no_gateway", f"no gateway to ping: {what}")
            return
        trial.ping = PASSED
        for gateway in on_host:
            if not answers(container.netns, gateway, Attempt(_DEADLINE), sources[gateway]):
                trial.ping = FAILED
                text = f"{trial.network}: the gateway {gateway} does not answer pings from {sources[gateway]}"
                advice = "check the bridge and the host's firewall, or set ping: false if it must not answer"
                trial.fail(HostError(f"{text}; {advice}", code="ping_failed"))

    def _send_between(self, trial: Trial, first: Container, second: Container) -> None:
        sources = {family_of(address): address for address in container_addresses(first.result)}
        for address in container_addresses(second.result):
            source = sources.get(family_of(address), "")
            if not connects(Flow(first.netns, second.netns, address, _PORT, _PORT, source), Attempt(_DEADLINE)):
                trial.container = FAILED
                what = f"packets from one container to another ({source} to {address}) are lost"
                trial.fail(_lost(trial.network, what, "container_unreachable"))

    def _send_to_port(self, trial: Trial, container: Container, port: int) -> None:
        addresses = published_at(container.result)
        if not addresses:
            trial.note("no_address", "no published port: the host has no address at which a container can answer")
            return
        trial.published = PASSED
        for address in addresses:
            if not connects(Flow(None, container.netns, address, port, _PORT), Attempt(_DEADLINE)):
                trial.published = FAILED
                what = f"packets of the host to a published port ({address}, TCP {port}) are lost"
                trial.fail(_lost(trial.network, what, "port_unreachable"))

    def _undo(self, given: Attached) -> None:
        """Undo an ADD that was interrupted at any point."""
        # If that fails, its record stays, so that the next run can undo it.
        with contextlib.suppress(HostError):
            cached = self._verbs.store.read(given.key).attached
            self.take_back(cached or given, given.netns)

    def take_back(self, attached: Attached, netns: str = "") -> None:
        """Undo what a killed run has left. Raises HostError ``del_failed``; then it stays for the next run.

        Without a namespace, the plugin bridge leaves its rules, so DEL alone is not enough.
        """
        self._drop_remains([self._verbs.detach(attached, netns)])
        self._verbs.store.remove(attached.key)


def _publishes(plugin: PluginConfig) -> bool:
    """Tell whether a plugin publishes ports for everyone, the host included."""
    conditions = (member_of(plugin.network, name) for name in ("conditionsv4", "conditionsv6"))
    return bool(plugin.capabilities.get("portMappings")) and not any(conditions)


def _lost(network: str, what: str, code: str) -> HostError:
    advice = "check the host's firewall, forwarding and routes, or set packets: false if they must not arrive"
    more = "the playbook explain names what drops them, if a runtime uses the network"
    return HostError(f"{network}: {what}; {advice}; {more}", code=code)
