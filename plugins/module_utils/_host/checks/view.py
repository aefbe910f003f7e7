# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A directory of networks to check, as it is or as a plan will leave it, and the rules of each network by itself."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Sequence, Set, Tuple

from ..confdir import ConfFile
from ..hostview import HostView
from ..kinds import META, kind_of, member_of, object_of, text_of
from ..model import Bridge, Placed, Pool, Uses, chain_of
from ..problems import ERROR, INFO, WARNING, Finding
from ..ranges import IP, Subnet, interface_of, ip_of
from ..struct import field, struct

_RATES = ("ingressrate", "egressrate")


@struct
class ConfView:
    """``before`` is the current state, ``files`` the planned one, both in the order of the runtimes.

    ``managed`` are the names of the managed files, ``wanted`` those of the requested networks' files, ``own_drop_ins``
    those of their drop-ins (``NETWORK/FILE``). ``at_each``: an overlap is reported at both files. ``host`` has the
    other directories.
    """

    conf_dir: str
    before: Sequence[ConfFile]
    files: Sequence[ConfFile]
    managed: Set[str]
    wanted: Set[str]
    host: HostView = field(default_factory=HostView)
    own_drop_ins: Set[str] = field(default_factory=set)
    at_each: bool = False

    def loaded(self) -> List[ConfFile]:
        """Return the files that hold a network."""
        return [file for file in self.files if file.network and not file.error]

    def level(self, *files: ConfFile) -> str:
        """Return the level of a problem between *files*: between unmanaged files it is only a note."""
        return WARNING if any(file.name in self.managed | self.wanted for file in files) else INFO

    def certain(self, file: ConfFile) -> str:
        """Return the level of a problem that makes every ADD of *file* fail: an error if the file will be written."""
        return ERROR if file.name in self.wanted else self.level(file)


# ---- what is wrong with a single network, whatever else is in its directory and on its host


def network_problems(view: ConfView, file: ConfFile, uses: Uses) -> Iterator[Finding]:
    """Yield the problems of the chain of one network, and of the addresses that it *uses*."""
    chain = chain_of(file)
    yield from _chain_order(view, file, chain)
    for placed in chain:
        yield from _capability(view, file, placed)
        yield from _static_gateways(view, file, placed)
    for pool in uses.pools:
        yield from _gateway(view, pool)
    for bridge in uses.bridges:
        yield from _two_gateways(view, bridge)


def _chain_order(view: ConfView, file: ConfFile, chain: List[Placed]) -> Iterator[Finding]:
    makers = [placed for placed in chain if kind_of(placed.plugin).alone]
    if chain and kind_of(chain[0].plugin).role == META:
        first = text_of(chain[0].plugin, "type")
        what = f"{first} comes first, but works on the interface that another plugin creates, so every ADD fails"
        remedy = f"put it after {text_of(makers[0].plugin, 'type')}" if makers else "begin with one such as bridge"
        yield _at(view.certain(file), "chain_order", what, remedy, chain[0])
    for placed in makers[1:]:
        what = (
            f"{text_of(placed.plugin, 'type')} creates the container's interface, which "
            f"{text_of(makers[0].plugin, 'type')} has created already, so every ADD fails"
        )
        yield _at(view.certain(file), "chain_order", what, "move it to a network of its own", placed)


def _capability(view: ConfView, file: ConfFile, placed: Placed) -> Iterator[Finding]:
    plugin, kind = placed.plugin, text_of(placed.plugin, "type")
    capabilities = object_of(plugin, "capabilities")
    # Values written there stay unless a runtime passes other ones.
    written = object_of(plugin, "runtimeconfig")
    ports = capabilities.get("portMappings") is True or member_of(written, "portmappings")
    if kind == "portmap" and not ports:
        why = "runtimes pass them only to plugins that declare the capability"
        what = f"portmap never gets port mappings, because {why}"
        remedy = 'write "capabilities": {"portMappings": true}'
        yield _at(view.level(file), "capability_missing", what, remedy, placed)
    limits = [plugin, object_of(written, "bandwidth")]
    # A runtime may spell its key in any way in which the capability is spelled: the plugin ignores case.
    limited = member_of(capabilities, "bandwidth") is True or any(
        member_of(place, rate) for place in limits for rate in _RATES
    )
    if kind == "bandwidth" and not limited:
        what = "bandwidth has no limits, and runtimes pass none without the capability"
        remedy = 'write "capabilities": {"bandwidth": true}, or ingressRate and ingressBurst'
        yield _at(view.level(file), "capability_missing", what, remedy, placed)


def _at(level: str, code: str, what: str, remedy: str, placed: Placed, place: str = "") -> Finding:
    return Finding(level, code, what, remedy, placed.path, placed.pointer + place)


def _static_gateways(view: ConfView, file: ConfFile, placed: Placed) -> Iterator[Finding]:
    for place, address, gateway in _static(placed.plugin):
        interface, ip = interface_of(address), ip_of(gateway)
        if interface and ip and interface.version == ip.version and not _reaches(interface.network, ip):
            what = f"static: the gateway {gateway} is not in the subnet of {address}, so no container can reach it"
            remedy = "write an address of that subnet"
            yield _at(view.level(file), "gateway_outside", what, remedy, placed, place)


def _gateway(view: ConfView, pool: Pool) -> Iterator[Finding]:
    subnet, gateway = pool.range.subnet, pool.range.gateway
    if not _reaches(subnet, gateway):
        what = (
            f"host-local: the gateway {gateway} is not in the subnet {subnet}, so no container can reach it, and ADD "
            "fails where a route leads through it (network is unreachable)"
        )
        remedy = f"write an address of the subnet, such as {subnet.network_address + 1}"
        yield Finding(view.level(pool.file), "gateway_outside", what, remedy, pool.path, pool.pointer + "/gateway")


def _reaches(subnet: Subnet, gateway: IP) -> bool:
    return gateway in subnet or (subnet.version == 6 and gateway.is_link_local)


def _static(plugin: Dict[str, Any]) -> Iterator[Tuple[str, str, str]]:
    ipam = object_of(plugin, "ipam")
    addresses = member_of(ipam, "addresses") if text_of(ipam, "type") == "static" else None
    for index, entry in enumerate(addresses if isinstance(addresses, list) else []):
        if isinstance(entry, dict) and text_of(entry, "gateway"):
            yield f"/ipam/addresses/{index}/gateway", text_of(entry, "address"), text_of(entry, "gateway")


def _two_gateways(view: ConfView, bridge: Bridge) -> Iterator[Finding]:
    """Yield the problem of a single network with two IPv4 gateways on its bridge, which can have only one."""
    pools = [pool for pool in bridge.pools if pool.range.subnet.version == 4] if bridge.gateway else []
    for pool in pools[1:]:
        if pool.gateway == pools[0].gateway:
            continue
        always = pool.group != pools[0].group and not bridge.force
        effect = "every ADD fails" if always else "containers of one of the subnets lose their gateway"
        what = (
            f"the bridge {bridge.name} would get the gateways {pools[0].gateway} and {pool.gateway}, but can have only "
            f"one IPv4 address: {effect}"
        )
        remedy = "keep one subnet here, and move the other to a network with a bridge of its own"
        level = view.certain(bridge.file) if always else view.level(bridge.file)
        yield Finding(level, "bridge_two_subnets", what, remedy, pool.path, pool.pointer)
