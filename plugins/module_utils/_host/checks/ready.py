# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What would make an ADD of one network fail, for the runtime that would run it."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

from ...libcni.errors import CNIError
from ...libcni.validate import validate_network_name
from ..addresses import packed
from ..binaries.types import is_multus, named_plugins
from ..binaries.usable import Binaries, highest_common
from ..confdir import ConfFile
from ..errors import HostError
from ..firewall.tools import missing_tool
from ..kinds import INTERFACE, bridge_of, kind_of, lease_dir, member_of, object_of, text_of
from ..leases import Lease, read_leases
from ..problems import ERROR, INFO, WARNING, Obstacle
from ..runtimes.profiles import FIRST
from ..runtimes.rules import Network
from ..runtimes.runtime import Runtime
from .directory import directory_problems
from .plugins import found_plugin, mount_point, plugin_obstacles
from .view import ConfView, Range, range_of, range_sets

# The newest result that each release of libcni understands (Go: pkg/types/create).
_NEWEST = {"1.1": (1, 0)}
# The conflicts with host and other files that make every ADD fail; the level of others is that of the rules.
_ALWAYS_FAIL = {"master_missing", "chain_order", "bridge_address"}
_CONFLICTS = {"host_overlap", "range_overlap", "subnet_overlap", "bridge_two_subnets", "shared_store", *_ALWAYS_FAIL}
_SOCKET = "/run/cni/dhcp.sock"
_FLANNEL = "/run/flannel/subnet.env"
_PROC = "/proc/sys/net"


def conflicts(conf_dir: str, files: Sequence[ConfFile], binaries: Binaries) -> Dict[str, List[Dict[str, Any]]]:
    """Return path -> problems for the files of a directory that conflict with each other or with the host."""
    view = ConfView(conf_dir, files, files, set(), {file.name for file in files})
    view.at_each = True
    by_path: Dict[str, List[Dict[str, Any]]] = {}
    for entry in directory_problems(view, binaries):
        if entry["code"] in _CONFLICTS:
            by_path.setdefault(str(entry["file"]), []).append(entry)
    return by_path


class NetworkCauses:
    """The obstacles of one *network* of *runtime*.

    *problems* are those of its file, as :func:`conflicts` returns them. *binaries* are those that it finds, and may
    also be in *other_dirs*. *kubelet*: a kubelet runs here.
    """

    def __init__(
        self,
        runtime: Runtime,
        network: Network,
        problems: Sequence[Dict[str, Any]],
        binaries: Binaries,
        cache_dir: str,
        other_dirs: Sequence[str] = (),
        kubelet: bool = False,
    ) -> None:
        self.runtime = runtime
        self.network = network
        self.problems = problems
        self.binaries = binaries
        self.cache_dir = cache_dir
        self.other_dirs = other_dirs
        self.kubelet = kubelet
        self.plugins: List[Dict[str, Any]] = list(network.loaded.plugins)
        self.version = network.loaded.version or "0.1.0"

    def find(self) -> Iterator[Obstacle]:
        """Yield the obstacles in the order in which an ADD meets them."""
        for obstacle in self._find():
            yield obstacle._replace(network=self.network.name, file=obstacle.file or self.network.file.path)

    def _find(self) -> Iterator[Obstacle]:
        yield from self._name()
        yield from self._binaries()
        yield from self._versions()
        yield from self._state()
        for plugin in self.plugins:
            yield from self._needs(plugin)
        yield from self._conflicts()
        yield from self._tools()
        yield from self._kernel()
        yield from self._addresses()

    def _name(self) -> Iterator[Obstacle]:
        try:
            validate_network_name(self.network.name)
        except CNIError as error:
            text = f"the name {self.network.name!r} of the network is not valid, and plugins refuse it"
            yield Obstacle("bad_name", text, str(error), "rename the network; use letters, digits, '.', '_' and '-'")

    def _binaries(self) -> Iterator[Obstacle]:
        names = [name for plugin in self.plugins for _pointer, name in named_plugins(plugin)]
        obstacles: List[Obstacle] = []
        for name in dict.fromkeys(names):
            if name in self.runtime.rules.bundled and not found_plugin(name, self.binaries.bin_dirs):
                continue
            obstacles.extend(plugin_obstacles(name, self.version, self.binaries, self.other_dirs))
        # One mount, or one version, is one cause, however many plugins it concerns.
        yield from {
            (obstacle.code, obstacle.message): obstacle
            for obstacle in obstacles
            if obstacle.code != "unsupported_by_plugin"
        }.values()
        refusing = [obstacle for obstacle in obstacles if obstacle.code == "unsupported_by_plugin"]
        if refusing:
            evidence = "; ".join(obstacle.evidence for obstacle in refusing)
            yield refusing[0]._replace(evidence=evidence, remedy=self._advice(names))

    def _advice(self, names: Sequence[str]) -> str:
        answers = []
        for name in names:
            try:
                answers.append(self.binaries.ask(name)[1])
            except HostError:
                continue
        best = highest_common(answers)
        write = f'write "cniVersion": "{best}", which all its plugins support, or ' if best else ""
        return write + "install plugins of a release that supports it"

    def _versions(self) -> Iterator[Obstacle]:
        newest = _NEWEST.get(self.runtime.libcni)
        if newest and _pair(self.version) > newest:
            text = f"{self.runtime.name} loads the network, but does not understand its version {self.version}"
            evidence = f"it contains libcni {self.runtime.libcni}, which refuses the result of every ADD"
            remedy = 'write "cniVersion": "1.0.0", or update the runtime'
            yield Obstacle("unsupported_by_runtime", text, evidence, remedy)

    def _state(self) -> Iterator[Obstacle]:
        """Yield directories that plugins and libcni write to, and cannot."""
        stores = [data_dir for data_dir in map(lease_dir, self.plugins) if data_dir]
        reasons: Dict[str, str] = {}
        for path in [*stores, self.cache_dir]:
            reasons.setdefault(_read_only_or_full(path), path)
        for why, path in reasons.items():
            if why:
                text = f"nothing can be written to {path}, where every ADD keeps its state"
                yield Obstacle("state_unwritable", text, why, "free space, or mount it writable")

    def _needs(self, plugin: Dict[str, Any]) -> Iterator[Obstacle]:
        """Yield what single plugins need of the host."""
        kind, ipam = text_of(plugin, "type"), object_of(plugin, "ipam")
        if is_multus(plugin):
            from .multus import multus_obstacles

            yield from multus_obstacles(plugin, self.binaries)
        if kind == "flannel":
            path = text_of(plugin, "subnetfile") or _FLANNEL
            if not os.path.exists(path):
                text = "the plugin flannel does not know the subnet of this node"
                yield Obstacle("no_flannel", text, f"{path} does not exist", "start flanneld, which writes the file")
        if text_of(ipam, "type") == "dhcp":
            path = text_of(ipam, "daemonsocketpath") or _SOCKET
            if not os.path.exists(path):
                text = "the CNI DHCP daemon, which assigns the addresses, does not run"
                remedy = "start it (cni_dhcp_daemon of the role podwire.cni.plugins)"
                yield Obstacle("no_dhcp_daemon", text, f"its socket {path} does not exist", remedy)
        for path in (text_of(plugin, "kubeconfig"), text_of(object_of(plugin, "kubernetes"), "kubeconfig")):
            if path and not os.path.exists(path):
                text = f"the plugin {kind} cannot reach the API of Kubernetes"
                remedy = "start the daemon of the network (DaemonSet), which writes the file"
                yield Obstacle("no_kubeconfig", text, f"{path} does not exist", remedy)
        device = text_of(plugin, "device") if kind == "host-device" else ""
        if device and not os.path.exists(f"/sys/class/net/{device}") and "/" not in device:
            text = f"host-device: the host has no interface {device} to give to a container"
            yield Obstacle("no_device", text, f"/sys/class/net/{device} does not exist", "write an existing interface")
        data_dir = lease_dir(plugin)
        if data_dir:
            yield from self._pools(ipam, data_dir)

    def _pools(self, ipam: Mapping[str, Any], data_dir: str) -> Iterator[Obstacle]:
        """Yield the sets of ranges that have no free address: a container needs one of each."""
        sets = [entries for _pointer, entries in range_sets(ipam)]
        if not any(sets):
            text = "host-local has no range to take an address from"
            yield Obstacle("no_range", text, "its configuration has neither subnet nor ranges", 'write "ranges"')
        leases = read_leases(data_dir, self.network.name)[0] if sets else []
        for entries in sets:
            known = [part for part in map(range_of, entries) if part is not None]
            if entries and len(known) < len(entries):
                text = "host-local refuses one of its ranges, and so every ADD"
                evidence = "; ".join(str(member_of(entry, "subnet")) for entry in entries)
                yield Obstacle(
                    "bad_range", text, f"the subnets are {evidence}", "correct subnet, rangeStart and rangeEnd"
                )
            elif entries:
                yield from _full(known, leases)

    def _conflicts(self) -> Iterator[Obstacle]:
        for entry in self.problems:
            always = entry["code"] in _ALWAYS_FAIL and entry["level"] != INFO
            level = ERROR if always else entry["level"]
            message, _semicolon, remedy = str(entry["message"]).rpartition("; ")
            evidence = f"{entry['file']}, {entry['pointer']}"
            yield Obstacle(entry["code"], message or remedy, evidence, remedy, level, file=entry["file"])

    def _tools(self) -> Iterator[Obstacle]:
        missing = missing_tool(self.plugins, {}, self.binaries.bin_dirs)
        if missing:
            text = f"the plugin {missing[0]} needs the command {missing[1]}"
            evidence = f"{missing[1]} is not in PATH ({os.environ.get('PATH', '')})"
            yield Obstacle("missing_tool", text, evidence, f"install it (package {missing[1]})")

    def _kernel(self) -> Iterator[Obstacle]:
        bridges = [plugin for plugin in self.plugins if bridge_of(plugin)]
        forwards = any(member_of(bridge, "isgateway") is True for bridge in bridges)
        forwards = forwards or any(text_of(plugin, "type") == "ptp" for plugin in self.plugins)
        path = f"{_PROC}/ipv4/ip_forward"
        if forwards and _first_line(path) == "0" and os.path.exists(path) and _is_read_only(path):
            text = "the plugin cannot switch on the forwarding of packets"
            evidence = f"{path} is 0, and /proc/sys is mounted read-only"
            yield Obstacle("ip_forward", text, evidence, "sysctl -w net.ipv4.ip_forward=1 outside of this namespace")
        path = f"{_PROC}/bridge/bridge-nf-call-iptables"
        if bridges and _first_line(path) != "1" and self.kubelet:
            text = "packets between pods of this node do not pass iptables, so that addresses of services do not work"
            evidence = f"{path} is {_first_line(path) or 'missing'}"
            remedy = "modprobe br_netfilter; sysctl -w net.bridge.bridge-nf-call-iptables=1"
            yield Obstacle("bridge_netfilter", text, evidence, remedy, WARNING)

    def _addresses(self) -> Iterator[Obstacle]:
        """Yield an obstacle if the runtime wants an address, and no plugin assigns one."""
        if self.runtime.rules.choice != FIRST or not self.runtime.address:
            return
        makers = [plugin for plugin in self.plugins if kind_of(plugin).role == INTERFACE]
        third = [plugin for plugin in self.plugins if not kind_of(plugin).reference]
        if makers and not third and not any(text_of(object_of(plugin, "ipam"), "type") for plugin in makers):
            text = f"the network assigns no address, and {self.runtime.name} refuses a pod without one"
            kinds = ", ".join(text_of(plugin, "type") for plugin in makers)
            evidence = f'{kinds} has no "ipam" with a type'
            yield Obstacle("no_addresses", text, evidence, 'write "ipam", for example with the type host-local')


def _full(ranges: Sequence[Range], leases: Sequence[Lease]) -> Iterator[Obstacle]:
    inside = [lease for lease in leases if any(packed(lease.ip) in part for part in ranges)]
    size = sum(part.size for part in ranges)
    if ranges and len(inside) >= size:
        owners = sorted({lease.container_id or "(nobody)" for lease in inside})
        text = f"host-local has no free address in {', '.join(part.text for part in ranges)}"
        evidence = f"{len(inside)} of {size} addresses are reserved, by {', '.join(owners[:5])}"
        evidence += f" and {len(owners) - 5} more" if len(owners) > 5 else ""
        remedy = "collect what dead containers have left (podwire.cni.cni_gc), or configure a larger range"
        yield Obstacle("pool_full", text, evidence, remedy)


def _pair(version: str) -> Tuple[int, int]:
    major, _dot, rest = version.partition(".")
    minor = rest.partition(".")[0]
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (0, 0)


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii") as stream:
            return stream.readline().strip()
    except (OSError, ValueError):
        return ""


def _is_read_only(path: str) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _read_only_or_full(path: str) -> str:
    """Return why nothing can be written to the directory *path*, or to where it would be made; "" if it can."""
    existing = path
    while not os.path.lexists(existing) and existing != "/":
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        return f"{existing} is not a directory"
    try:
        status = os.statvfs(existing)
    except OSError as error:
        raise HostError(f"cannot examine {existing}: {error.strerror}", code="unreadable") from error
    if status.f_flag & os.ST_RDONLY:
        return f"{existing} is on a file system that is mounted read-only ({mount_point(existing)})"
    if status.f_blocks and not status.f_bavail:
        return f"the file system of {existing} is full ({mount_point(existing)})"
    if status.f_files and not status.f_favail:
        return f"the file system of {existing} has no free inodes ({mount_point(existing)})"
    return ""
