# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a network works: ADD, packets, CHECK and DEL of two containers in a private copy of the host."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ...libcni import gojson
from ...libcni.api import CNIConfig, RuntimeConf
from ...libcni.conf import NetworkConfigList, network_conf_from_bytes
from ...libcni.errors import CNIError, PluginError
from ...libcni.files import read_file
from ...libcni.invoke import find_in_path
from ...libcni.version import greater_than_or_equal_to
from ..addresses import family_of, packed, result_gateways
from ..binaries.types import types_of
from ..commands import find_command, run_command
from ..errors import HostError
from ..executor import SafeExecutor
from ..firewall.dump import FirewallDump
from ..firewall.kinds import is_in_firewalld
from ..firewall.tools import missing_tool
from ..json_text import parse_json
from ..kinds import REFERENCE, bridge_of, member_of, object_of, put_member, text_of
from ..netlink import host_addresses, links
from ..netns import Netns, visit
from ..secrets import one_line, scrub, secrets_of
from .host_copy import HostCopy
from .memory import Memory, forget
from .packets import (
    ALL,
    DEADLINE,
    OUTSIDE,
    QUICK,
    Flow,
    Trace,
    answers,
    connects,
    container_addresses,
    keeps_apart,
    same_host,
)
from .private_host import STORE, confine, new_netns, private_store, put_files, read_store, why_not_apart, work_apart

# Seconds for a plugin, and for all networks of a host.
_TIMEOUT, _TOTAL = 10.0, 20.0
# Which sysctls tuning may set (plugins/meta/tuning).
_ALLOWED = ("allowlist.conf", ["/etc/cni/tuning"])
_IFNAME = "eth0"
_MEMORY = "experiments"
_PUBLISHED, _INSIDE = 61998, 8080
# What is lost where others do not route to the address that a container keeps.
KEPT = "kept"
_MAPPING = [{"hostPort": _PUBLISHED, "containerPort": _INSIDE, "protocol": "tcp"}]
_ARGUMENTS = [
    ("IgnoreUnknown", "1"),
    ("K8S_POD_NAMESPACE", "default"),
    ("K8S_POD_NAME", "podwire-experiment"),
    ("K8S_POD_INFRA_CONTAINER_ID", "podwire-experiment"),
]
_FAMILIES: Dict[int, str] = {socket.AF_INET: "IPv4", socket.AF_INET6: "IPv6"}


class Lost(NamedTuple):
    """Packets that do not arrive: on which ``way``, in which family, ``by`` what, and that as a clause."""

    way: str
    family: str
    by: str
    why: str


class Failure(NamedTuple):
    """A verb that failed, what the ``plugin`` said ("": no plugin did), and its code (0: it gave none)."""

    verb: str
    said: str
    code: int = 0
    plugin: str = ""


class Observation(NamedTuple):
    """What an experiment has shown.

    ``unknown``: why there was none, or it is not the whole truth, "" if it is. ``failed``: the first verb that did.
    ``lost``: packets. ``left``: what DEL left behind.
    """

    unknown: str = ""
    failed: Optional[Failure] = None
    lost: Sequence[Lost] = ()
    left: Sequence[str] = ()


class Subject(NamedTuple):
    """A network to try: as a runtime loads it, where that finds plugins, and which ``rules`` it adds first."""

    name: str
    version: str
    plugins: Sequence[Mapping[str, Any]]
    bin_dirs: Sequence[str]
    rules: Sequence[Sequence[str]] = ()


class Experiment:
    """One network in a private copy of *host*."""

    def __init__(self, subject: Subject, host: HostCopy) -> None:
        self._subject = subject
        self._host = host
        self._files: Dict[str, Optional[bytes]] = {}
        self.unknown = next(filter(None, (_why_never(plugin, subject.bin_dirs) for plugin in subject.plugins)), "")
        plugins: List[Any] = [gojson.loads(gojson.dumps(plugin)) for plugin in subject.plugins]
        for number, plugin in enumerate(plugins):
            self._use_copies(plugin, number)
        data = {"cniVersion": subject.version, "name": subject.name, "plugins": plugins}
        self._config: NetworkConfigList = network_conf_from_bytes(gojson.dumps(data))
        ports: Dict[str, Any] = {"portMappings": _MAPPING}
        mapped = any(member_of(object_of(plugin, "capabilities"), "portmappings") is True for plugin in plugins)
        publishes = mapped and missing_tool(plugins, ports, subject.bin_dirs) is None
        self._capability_args: Dict[str, Any] = ports if publishes else {}

    def _use_copies(self, plugin: Dict[str, Any], number: int) -> None:
        """Let a plugin read copies of its files, and write to others."""
        ipam = object_of(plugin, "ipam")
        servers = text_of(ipam, "resolvconf")
        if servers:
            # /run, where it often leads, is empty in a copy.
            with contextlib.suppress(OSError):
                self._files[f"{STORE}/resolv{number}"] = read_file(servers, 1 << 16)
                put_member(ipam, "resolvConf", f"{STORE}/resolv{number}")
                put_member(plugin, "ipam", ipam)
        real = confine(plugin, number)
        if real:
            folder = os.path.join(private_store(number), self._subject.name)
            self._files.update(read_store(os.path.join(real, self._subject.name), folder))

    @property
    def memory(self) -> Memory:
        """What was seen when everything that goes in was the same."""
        types = types_of([dict(plugin) for plugin in self._subject.plugins])
        programs = [_identity(name, self._subject.bin_dirs) for name in types]
        leases = sorted(self._files.items())
        given = [self._subject, programs, leases, _identity(*_ALLOWED), self._host.digest]
        return Memory(_MEMORY, _name(self._subject), repr(given))

    # ---- in the private host

    def work(self) -> bytes:
        """Try the network, and return what was seen, as :meth:`understand` expects it."""
        outside = Netns(new_netns("outside"))
        self._host.make(outside)
        for tool, *rule in self._subject.rules:
            # Without the tool, the plugin says so.
            with contextlib.suppress(HostError):
                run_command([find_command(tool) or tool, *rule], _TIMEOUT)
        put_files(self._files)
        return json.dumps(self._try(outside)._asdict()).encode()

    def _try(self, outside: Netns) -> Observation:
        folders, cache = list(self._subject.bin_dirs), f"{STORE}/cache"
        cni = CNIConfig(folders, cache_dir=cache, timeout=_TIMEOUT, executor=SafeExecutor())
        rules = set(self._host.firewall.lines)
        runtimes: List[RuntimeConf] = []
        results: List[Dict[str, Any]] = []
        failed: Optional[Failure] = None
        for number in (1, 2):
            ports = self._capability_args if number == 1 else {}
            netns = new_netns(f"container{number}")
            runtime = RuntimeConf(f"podwire-experiment-{number}", netns, _IFNAME, _ARGUMENTS, ports)
            runtimes.append(runtime)
            try:
                results.append(cni.add_network_list(self._config, runtime).as_version("1.0.0").to_dict())
            except CNIError as error:
                if number == 2:
                    # Some networks are for one container: a device, a static address, a pool of one.
                    with contextlib.suppress(CNIError):
                        cni.del_network_list(self._config, runtimes.pop())
                    break
                return Observation(self._doubt(), self._failure("ADD", error))
            if number == 1 and greater_than_or_equal_to(self._config.cni_version, "0.4.0"):
                # The next container changes the MAC of a bridge, which some releases take for a fault.
                failed = self._why_failed("CHECK", partial(cni.check_network_list, self._config, runtime))
        ways = _Ways(self._host, outside, [Netns(runtime.net_ns) for runtime in runtimes], results)
        lost = ways.find(self._subject.plugins, bool(self._capability_args))
        for runtime in runtimes:
            failed = self._why_failed("DEL", partial(cni.del_network_list, self._config, runtime)) or failed
        names = [address for result in results for address in container_addresses(result)]
        return Observation(self._doubt(), failed, lost, self._left(runtimes, names, rules))

    def _doubt(self) -> str:
        return "; ".join(filter(None, [*self._host.doubts, *map(self._host.unlike, self._subject.plugins)]))

    def _why_failed(self, verb: str, call: Callable[[], None]) -> Optional[Failure]:
        try:
            call()
        except CNIError as error:
            return self._failure(verb, error)
        return None

    def _failure(self, verb: str, error: CNIError) -> Failure:
        known = secrets_of([gojson.loads(self._config.bytes)])
        if isinstance(error, PluginError):
            return Failure(verb, one_line(scrub(error.msg, known)), error.code, error.plugin)
        return Failure(verb, one_line(scrub(str(error), known)))

    def _left(self, runtimes: Sequence[RuntimeConf], names: Sequence[str], before: Set[str]) -> List[str]:
        stores = map(private_store, range(len(self._subject.plugins)))
        folders = [os.path.join(store, self._subject.name) for store in stores]
        left = [f"the lease of {name}" for folder in folders for name in names if os.path.exists(f"{folder}/{name}")]
        own = [*names, *(runtime.container_id for runtime in runtimes)]
        new = dict.fromkeys(line for line in FirewallDump().lines if line not in before)
        left += [f"the rule {line}" for line in new if any(name in line for name in own)]
        spaces = visit([Netns(runtime.net_ns) for runtime in runtimes], links).values()
        left += [f"the interface {link.name}" for space in spaces for link in space.values() if link.name == _IFNAME]
        return left


class _Ways:
    """The ways of packets that a network promises."""

    def __init__(
        self, host: HostCopy, outside: Netns, containers: Sequence[Netns], results: Sequence[Mapping[str, Any]]
    ) -> None:
        self._host = host
        self._outside = outside
        self._containers = containers
        self._results = results
        self._flows: List[Tuple[str, Flow]] = []
        self._lost: List[Lost] = []
        self._dark = ""

    def find(self, plugins: Sequence[Mapping[str, Any]], mapped: bool) -> List[Lost]:
        first, second = self._containers[0], self._containers[-1]
        ours, theirs = container_addresses(self._results[0]), container_addresses(self._results[-1])
        if len(self._results) < 2 or same_host(self._results, plugins):
            theirs = []
        routes = [str(route.get("dst")) for route in self._results[0].get("routes") or []]
        routed = {family_of(target) for target in routes if target in ALL}
        lan = next((entry for entry in map(self._host.beside, plugins) if entry[0]), None)
        if lan is not None:
            # Ports of a bridge reach each other without what is outside.
            self._dark = "" if any(map(bridge_of, plugins)) else self._host.why_dark(lan[0])
            self._host.be_neighbour(self._outside, lan, [*ours, *theirs], self._named_gateways())
        elif not any(member_of(plugin, "ipmasq") is True for plugin in plugins):
            # Whether the network outside does that, no copy can show.
            self._host.route_back(self._outside, ours)
        if not any(keeps_apart(plugin) for plugin in plugins):
            self._flows += [("container", Flow(first, second, address, 8081, 8081)) for address in theirs]
        for family in routed.intersection(map(family_of, ours)):
            way_out = self._host.way_out(family) if lan is None else lan[0]
            if way_out:
                self._send_by(way_out, "outside", Flow(first, self._outside, OUTSIDE[family], 443, 443))
            else:
                self._lost.append(Lost("outside", _FAMILIES[family], "route", "the host has no default route"))
        uplinks = self._host.uplinks() if mapped else {}
        for family in filter(uplinks.get, dict.fromkeys(map(family_of, ours))):
            address, name = uplinks[family]
            self._send_by(name, "published", Flow(self._outside, first, address, _PUBLISHED, _INSIDE))
        with Trace() as trace:
            # The first packets, and in one attempt: who has learned a gateway's MAC needs no answer to ARP.
            silent = [gateway for gateway in self._gateways() if not answers(first, gateway, trace)]
            for way, flow in self._flows:
                self._test(way, flow.address, partial(connects, flow, trace), trace)
                if way == "outside" and not lan and trace.peer in ours:
                    why = f"outside, a container keeps its own address ({trace.peer}), since nothing masquerades it"
                    self._lost.append(Lost(way, _FAMILIES[family_of(trace.peer)], KEPT, why))
            for gateway in silent:
                self._test("gateway", gateway, partial(answers, first, gateway, trace), trace)
        return self._lost

    def _send_by(self, name: str, way: str, flow: Flow) -> None:
        """Let packets be sent by an interface of the host, which are lost if it is dark."""
        why = self._host.why_dark(name)
        if why:
            self._lost.append(Lost(way, _FAMILIES[family_of(flow.address)], "link", why))
        else:
            self._flows.append((way, flow))

    def _test(self, way: str, address: str, attempt: Callable[[], bool], trace: Trace) -> None:
        family = _FAMILIES[family_of(address)]
        unexplained = [lost.why for lost in self._lost if not lost.by and lost.family == family]
        # One search for what nothing explains takes long enough.
        trace.most = QUICK if unexplained else DEADLINE
        if attempt():
            return
        by, why = ("link", self._dark) if self._dark else trace.explain(None if unexplained else attempt)
        # A host that is busy, or slow, has a second chance.
        if by or not attempt():
            self._lost.append(Lost(way, family, by, why))

    def _gateways(self) -> List[str]:
        """Return the gateways that answer: they are addresses of the host, or routers outside."""
        known = {*host_addresses(), *(packed(gateway.address) for gateway in self._host.gateways)}
        return [gateway for gateway in self._named_gateways() if packed(gateway) in known]

    def _named_gateways(self) -> List[str]:
        return list(dict.fromkeys(filter(packed, result_gateways(self._results[0]))))


def _why_never(plugin: Mapping[str, Any], bin_dirs: Sequence[str]) -> str:
    """Return why a plugin cannot be tried, "" if it can. One that is missing fails in any case."""
    kind, ipam = text_of(plugin, "type"), text_of(object_of(plugin, "ipam"), "type")
    for name in filter(None, (kind, ipam)):
        if name not in REFERENCE and os.access(_identity(name, bin_dirs)[0], os.X_OK):
            return f"what the plugin {name} talks to cannot be copied"
    if is_in_firewalld(plugin):
        return "firewalld cannot be copied"
    return why_not_apart(plugin)


def _identity(name: str, folders: Sequence[str]) -> List[Any]:
    """Return what differs if another file is found by a name, as plugins are."""
    try:
        path = find_in_path(name, folders)
        status = os.stat(path)
    except (CNIError, OSError) as error:
        return [str(error)]
    return [path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode]


def try_networks(subjects: Sequence[Subject]) -> List[Observation]:
    """Try networks in private copies of this host, several at a time; return the observations in their order."""
    observations: Dict[int, Observation] = {}
    try:
        host = HostCopy()
    except HostError as error:
        return [Observation(f"this host cannot be copied: {error.msg}") for _subject in subjects]
    waiting: List[Tuple[int, Callable[[], bytes], Memory]] = []
    for number, subject in enumerate(subjects):
        try:
            experiment = Experiment(subject, host)
        except (CNIError, HostError) as error:
            observations[number] = Observation(failed=Failure("ADD", one_line(str(error))))
            continue
        if experiment.unknown:
            observations[number] = Observation(experiment.unknown)
            continue
        memory = experiment.memory
        seen = memory.read()
        if seen is not None:
            observations[number] = _understood(seen)
        else:
            waiting.append((number, experiment.work, memory))
    needed = [path for subject in subjects for path in subject.bin_dirs]
    works = [work for _number, work, _memory in waiting]
    given = work_apart(works, needed, _TOTAL) if works else []
    for (number, _work, memory), answer in zip(waiting, given):
        observation = observations[number] = _understood(answer)
        if isinstance(answer, bytes) and not observation.unknown:
            memory.write(answer)
    return [observations[number] for number in range(len(subjects))]


def forget_others(subjects: Sequence[Subject]) -> None:
    """Forget what was seen of networks that are not among *subjects*."""
    forget(_MEMORY, [_name(subject) for subject in subjects])


def _name(subject: Subject) -> str:
    return f"{subject.name}/{list(subject.bin_dirs)}"


def _understood(given: Union[bytes, HostError]) -> Observation:
    if isinstance(given, HostError):
        late = f"there was no time to try it within {_TOTAL:g} s" if given.code == "too_many" else ""
        return Observation(": ".join(filter(None, [late or "it cannot be tried in a copy of this host", given.msg])))
    data = parse_json(given)
    failed = data["failed"] and Failure(*data["failed"])
    lost = [Lost(*map(str, entry)) for entry in data["lost"]]
    return Observation(str(data["unknown"]), failed, lost, list(map(str, data["left"])))
