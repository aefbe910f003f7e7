# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What would make an ADD of a network fail on this host, found without trying one."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

from ...libcni.cache import DEFAULT_DIR
from ...libcni.version import is_at_least
from ..binaries.packages import about_plugin
from ..binaries.types import is_multus, named_plugins
from ..binaries.usable import Binaries, highest_common
from ..errors import HostError
from ..firewall.tools import tool_obstacles
from ..kernel.sysctls import read_global
from ..kinds import INTERFACE, bridge_of, forwards, kind_of, object_of, set_or_default, text_of
from ..paths import names_in
from ..problems import ERROR, INFO, WARNING, Finding, obstacle
from ..ranges import ranges_of
from ..runtimes.effective import Effective
from ..runtimes.profiles import FIRST
from ..runtimes.runtime import Network, Runtime
from .directory import conflicts
from .other_programs import OtherPrograms
from .plugins import found_plugin, missing_file, plugin_obstacles
from .state import state_obstacles
from .view import ConfView

# The conflicts with host and other files that make every ADD fail; the level of others is that of the rules.
_ALWAYS_FAIL = {"master_missing", "chain_order", "bridge_address"}
_CONFLICTS = {"host_overlap", "range_overlap", "subnet_overlap", "bridge_two_subnets", "shared_store", *_ALWAYS_FAIL}
_PROC = "/proc/sys/net"
FIRST_RELEASE = (1, 5)
# hashicorp/go-version, SemverRegexpRaw
_SEMVER = re.compile(r"v?(\d+(?:\.\d+)*)(?:-[0-9A-Za-z.~-]+)?(?:\+[0-9A-Za-z.~-]+)?")
_OLDEST = (0, 4, 0)
_TIMEOUT = 3.0


class Causes:
    """What a host has against the networks of its runtimes; *other_dirs* are where else plugins may be.

    ``kubelet``: a kubelet runs here. Asks plugins (VERSION), reads files and the kernel, and changes nothing.
    """

    def __init__(self, effective: Effective, other_dirs: Sequence[str], kubelet: bool) -> None:
        self._effective = effective
        self._other_dirs = other_dirs
        self._kubelet = kubelet
        self._conflicts: Dict[Tuple[str, ...], List[Finding]] = {}
        self._other_programs = OtherPrograms()

    def of(self, runtime: Runtime, network: Network) -> Iterator[Finding]:
        """Yield the obstacles of *network* in the order in which an ADD of *runtime* meets them."""
        plugins, binaries = network.plugins, self._effective.binaries_in(runtime.bin_dirs)
        parts = [
            self._binaries(runtime, network, binaries),
            _versions(runtime, network),
            state_obstacles(network.name, plugins, DEFAULT_DIR),
            *(_needs(plugin, binaries) for plugin in plugins),
            self._conflicts_of(runtime, network),
            tool_obstacles(plugins, {"portMappings": True}, binaries.bin_dirs),
            _kernel(plugins, self._kubelet),
            _addresses(runtime, plugins),
            self._other_programs.obstacles_of(plugins),
        ]
        for finding in itertools.chain.from_iterable(parts):
            yield finding._replace(network=network.name, file=finding.file or network.file.path)

    def _conflicts_of(self, runtime: Runtime, network: Network) -> Iterator[Finding]:
        """Yield where *network* conflicts with the host, or with other networks of its directory."""
        place = runtime.conf_dir, runtime.conf_file, runtime.folder
        if place not in self._conflicts:
            # Once for all networks: each is compared with all others.
            files = self._effective.files_of(runtime)
            view = ConfView(runtime.conf_dir, files, files, set(), {file.name for file in files}, at_each=True)
            self._conflicts[place] = [finding for finding in conflicts(view) if finding.code in _CONFLICTS]
        for finding in self._conflicts[place]:
            if finding.file == network.file.path:
                level = ERROR if finding.code in _ALWAYS_FAIL and finding.level != INFO else finding.level
                yield finding._replace(level=level, evidence=f"{finding.file}, {finding.pointer}")

    def _binaries(self, runtime: Runtime, network: Network, binaries: Binaries) -> Iterator[Finding]:
        names = [name for plugin in network.plugins for _pointer, name in named_plugins(plugin)]
        findings: List[Finding] = []
        for name in dict.fromkeys(names):
            if name in runtime.profile.bundled and not found_plugin(name, binaries.bin_dirs):
                continue
            findings.extend(plugin_obstacles(name, network.version or "0.1.0", binaries, self._other_dirs))
        # One mount, or one version, is one cause, however many plugins it concerns.
        refusing = [finding for finding in findings if finding.code == "unsupported_by_plugin"]
        yield from {(finding.code, finding.what): finding for finding in findings if finding not in refusing}.values()
        if refusing:
            evidence = "; ".join(finding.evidence for finding in refusing)
            yield refusing[0]._replace(evidence=evidence, remedy=_advice(names, binaries))


def _advice(names: Sequence[str], binaries: Binaries) -> str:
    answers = []
    for name in names:
        with contextlib.suppress(HostError):
            answers.append(binaries.ask(name)[1])
    best = highest_common(answers)
    write = f'write "cniVersion": "{best}", which all its plugins support, or ' if best else ""
    return write + "install plugins of a release that supports it"


def _versions(runtime: Runtime, network: Network) -> Iterator[Finding]:
    # Later releases of libcni understand results of 1.1 (Go: pkg/types/create).
    if runtime.libcni == "1.1" and is_at_least(network.version, "1.1.0"):
        text = f"{runtime.name} loads the network, but does not understand its version {network.version}"
        evidence = f"it contains libcni {runtime.libcni}, which refuses the result of every ADD"
        remedy = 'write "cniVersion": "1.0.0", or update the runtime'
        yield obstacle("unsupported_by_runtime", text, evidence, remedy)


def _needs(plugin: Dict[str, Any], binaries: Binaries) -> Iterator[Finding]:
    """Yield what single plugins need of the host."""
    kind, ipam = text_of(plugin, "type"), object_of(plugin, "ipam")
    if is_multus(plugin):
        from .multus import multus_obstacles

        yield from multus_obstacles(plugin, binaries)
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


def _kernel(plugins: Sequence[Mapping[str, Any]], kubelet: bool) -> Iterator[Finding]:
    path = f"{_PROC}/ipv4/ip_forward"
    is_off = any(map(forwards, plugins)) and read_global("ipv4/ip_forward") == "0"
    if is_off and os.statvfs(path).f_flag & os.ST_RDONLY:
        text = "the plugin cannot switch on the forwarding of packets"
        evidence = f"{path} is 0, and /proc/sys is mounted read-only"
        yield obstacle("ip_forward", text, evidence, "sysctl -w net.ipv4.ip_forward=1 outside of this namespace")
    for plugin in filter(forwards, plugins):
        own = read_global(f"ipv6/conf/{bridge_of(plugin)}/disable_ipv6")
        name, off = (bridge_of(plugin), own) if own else ("default", read_global("ipv6/conf/default/disable_ipv6"))
        if off != "0" and any(part.subnet.version == 6 for part in ranges_of(object_of(plugin, "ipam"))):
            text = f"the host has IPv6 off, so that {text_of(plugin, 'type')} cannot assign the IPv6 gateway"
            evidence = f"{_PROC}/ipv6/conf/{name}/disable_ipv6 is {off or 'missing'}"
            yield obstacle("ipv6_off", text, evidence, "set it to 0, or remove the IPv6 ranges")
    filtered = read_global("bridge/bridge-nf-call-iptables")
    if any(map(bridge_of, plugins)) and filtered != "1" and kubelet:
        text = "packets between pods of this node do not pass iptables, so that addresses of services do not work"
        evidence = f"{_PROC}/bridge/bridge-nf-call-iptables is {filtered or 'missing'}"
        remedy = "modprobe br_netfilter; sysctl -w net.bridge.bridge-nf-call-iptables=1"
        yield obstacle("bridge_netfilter", text, evidence, remedy, WARNING)


def _addresses(runtime: Runtime, plugins: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield an obstacle if the runtime wants an address, and no plugin assigns one."""
    if runtime.profile.choice != FIRST or not runtime.address:
        return
    makers = [plugin for plugin in plugins if kind_of(plugin).role == INTERFACE]
    third = [plugin for plugin in plugins if not kind_of(plugin).reference]
    if makers and not third and not any(text_of(object_of(plugin, "ipam"), "type") for plugin in makers):
        text = f"the network assigns no address, and {runtime.name} refuses a pod without one"
        evidence = f'{", ".join(text_of(plugin, "type") for plugin in makers)} has no "ipam" with a type'
        yield obstacle("no_addresses", text, evidence, 'write "ipam", for example with the type host-local')


def not_fingerprinted(plugins: Sequence[str], bin_dirs: Sequence[str]) -> Iterator[Finding]:
    """Yield why an agent that searches *bin_dirs* does not tell its servers of one of *plugins* that is there.

    They place jobs in bridge mode only where they know the release of each plugin that it needs (since 1.5; source:
    hashicorp/nomad client/fingerprint/plugins_cni.go:Fingerprint, nomad/job_endpoint_hooks.go).
    """
    for name in plugins:
        path = found_plugin(name, bin_dirs)
        why = _not_read_by_nomad(path, bin_dirs) if path else ""
        if why:
            text = f"Nomad does not know the release of the plugin {name}, so that no job in bridge mode is placed here"
            remedy = "install plugins of the project's own releases"
            remedy += ", and keep missing and empty directories out of cni_path"
            yield obstacle("not_fingerprinted", text, why, remedy)


def _not_read_by_nomad(path: str, bin_dirs: Sequence[str]) -> str:
    for directory in bin_dirs:
        if directory == os.path.dirname(path):
            break
        if not names_in(directory):
            return f"its search ends at {directory}, which is missing or empty"
    try:
        words = about_plugin(path, _TIMEOUT).split()
    except HostError:
        # What keeps root from running it is told elsewhere.
        return ""
    known = next(filter(None, map(_SEMVER.fullmatch, words)), None)
    if known is None:
        return f"{path} prints no version, but {' '.join(words[:8])!r}"
    numbers = tuple(int(number) for number in known.group(1).split("."))
    return f"{path} says that it is {known.group()}, and 0.4.0 is needed" if numbers < _OLDEST else ""
