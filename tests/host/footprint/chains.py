# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The chains of plugins whose footprints are broken: all reference plugins, each with the options that leave traces.

A chain is data. One whose ``needs`` the kernel lacks is skipped; virtual machines have them all.
"""

from __future__ import annotations

import copy
from pathlib import Path
from types import MappingProxyType
from typing import Any, Mapping, NamedTuple

BRIDGE_NAME = "pwf0"
PARENT, DEVICE = "pwf-up0", "pwf-dev0"
"""Devices of the host, for plugins that take one: the parent of others, and one that moves into the container."""
HOST_PORT, CONTAINER_PORT = 18080, 80
VLAN_ID = 5

_DEFAULT4, _DEFAULT6 = {"dst": "0.0.0.0/0"}, {"dst": "::/0"}
_RANGES4, _RANGES6 = [{"subnet": "10.88.0.0/16"}], [{"subnet": "fd00:88::/64"}]
_HOST_LOCAL = {"type": "host-local", "ranges": [_RANGES4], "routes": [_DEFAULT4]}
_DUAL = {"type": "host-local", "ranges": [_RANGES4, _RANGES6], "routes": [_DEFAULT4, _DEFAULT6]}
_STATIC = {"type": "static", "addresses": [{"address": "10.88.0.9/16", "gateway": "10.88.0.1"}], "routes": [_DEFAULT4]}
_BRIDGE = {"type": "bridge", "bridge": BRIDGE_NAME, "isGateway": True, "ipam": _HOST_LOCAL}
_PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}
_BANDWIDTH = {"type": "bandwidth", "capabilities": {"bandwidth": True}}
_PORTS = {"portMappings": [{"hostPort": HOST_PORT, "containerPort": CONTAINER_PORT, "protocol": "tcp"}]}
_LIMITS = {
    "bandwidth": {"ingressRate": 80000000, "ingressBurst": 800000, "egressRate": 80000000, "egressBurst": 800000}
}
_TUNING = {
    "type": "tuning",
    "sysctl": {"net.core.somaxconn": "500", "net.ipv4.conf.IFNAME.arp_filter": "1"},
    "mtu": 1400,
    "promisc": True,
    "allmulti": True,
    "mac": "c2:11:22:33:44:55",
}

OLD, NEW = "old", "new"
BOTH = (OLD, NEW)
IN, OUT, PUBLISHED, NEIGHBOUR, INSIDE = "in", "out", "published", "neighbour", "inside"
"""Connections: from the host, to the outside, through the published port, from the parent's link, within."""


class Chain(NamedTuple):
    """One chain: its plugins, capability args, and the generations of plugins that have its options.

    ``connections`` are those that can be open through the container. ``masqueraded``: outside, no route leads to the
    container. ``needs``: the kind of interface, for ``ip link add``, without which the chain cannot run; ``program``: a
    program that it needs.
    """

    name: str
    plugins: list[dict[str, Any]]
    capability_args: Mapping[str, Any] = MappingProxyType({})
    generations: tuple[str, ...] = BOTH
    connections: tuple[str, ...] = (IN, OUT)
    dual: bool = False
    masqueraded: bool = False
    needs: str = ""
    program: str = ""

    @property
    def network(self) -> str:
        return f"pwf-{self.name}"

    def conflist(self, leases: Path) -> dict[str, Any]:
        """Return the network's conflist, with the leases of host-local in a directory of the test."""
        plugins = copy.deepcopy(self.plugins)
        for plugin in plugins:
            if plugin.get("ipam", {}).get("type") == "host-local":
                plugin["ipam"]["dataDir"] = str(leases)
        return {"cniVersion": "1.0.0", "name": self.network, "plugins": plugins}


CHAINS = {
    chain.name: chain
    for chain in (
        Chain("loopback", [{"type": "loopback"}], connections=(INSIDE,)),
        Chain("bridge", [_BRIDGE]),
        Chain(
            "bridge-dual-masq",
            [{**_BRIDGE, "ipMasq": True, "hairpinMode": True, "ipam": _DUAL}],
            dual=True,
            masqueraded=True,
        ),
        Chain(
            "bridge-masq-nft",
            [{**_BRIDGE, "ipMasq": True, "ipMasqBackend": "nftables"}],
            generations=(NEW,),
            masqueraded=True,
        ),
        Chain("bridge-spoof", [{**_BRIDGE, "macspoofchk": True}]),
        Chain(
            "bridge-isolation",
            [{**_BRIDGE, "portIsolation": True, "promiscMode": True, "mtu": 1400}],
            generations=(NEW,),
        ),
        Chain("ptp-masq", [{"type": "ptp", "ipMasq": True, "ipam": _HOST_LOCAL}], masqueraded=True),
        Chain("macvlan", [{"type": "macvlan", "master": PARENT, "ipam": _HOST_LOCAL}], connections=(NEIGHBOUR,)),
        Chain(
            "host-device", [{"type": "host-device", "device": DEVICE, "ipam": _HOST_LOCAL}], connections=(NEIGHBOUR,)
        ),
        # Without a program behind it, a tap carries nothing.
        Chain("tap", [{"type": "tap", "ipam": _HOST_LOCAL}], generations=(NEW,), connections=()),
        Chain("static", [{**_BRIDGE, "ipam": _STATIC}]),
        Chain("portmap", [_BRIDGE, _PORTMAP], _PORTS, connections=(IN, OUT, PUBLISHED)),
        Chain(
            "portmap-dual", [{**_BRIDGE, "ipam": _DUAL}, _PORTMAP], _PORTS, connections=(IN, OUT, PUBLISHED), dual=True
        ),
        Chain(
            "portmap-nft",
            [_BRIDGE, {**_PORTMAP, "backend": "nftables"}],
            _PORTS,
            generations=(NEW,),
            connections=(IN, OUT, PUBLISHED),
        ),
        Chain("bandwidth", [_BRIDGE, _BANDWIDTH], _LIMITS),
        Chain("firewall", [_BRIDGE, {"type": "firewall"}]),
        Chain(
            "firewall-same-bridge", [_BRIDGE, {"type": "firewall", "ingressPolicy": "same-bridge"}], generations=(NEW,)
        ),
        Chain("firewall-isolated", [_BRIDGE, {"type": "firewall", "ingressPolicy": "isolated"}], generations=(NEW,)),
        Chain("tuning", [_BRIDGE, _TUNING]),
        Chain("sbr", [_BRIDGE, {"type": "sbr"}]),
        Chain(
            "full",
            [
                {**_BRIDGE, "ipMasq": True, "hairpinMode": True},
                _PORTMAP,
                _BANDWIDTH,
                {"type": "firewall"},
                {"type": "tuning", "sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"}},
            ],
            {**_PORTS, **_LIMITS},
            connections=(IN, OUT, PUBLISHED),
            masqueraded=True,
        ),
        Chain(
            "vlan",
            [{"type": "vlan", "master": PARENT, "vlanId": VLAN_ID, "ipam": _HOST_LOCAL}],
            connections=(NEIGHBOUR,),
            needs=f"vlan id {VLAN_ID}",
        ),
        Chain(
            "ipvlan",
            [{"type": "ipvlan", "master": PARENT, "ipam": _HOST_LOCAL}],
            connections=(NEIGHBOUR,),
            needs="ipvlan",
        ),
        Chain(
            "dummy", [{"type": "dummy", "ipam": _HOST_LOCAL}], generations=(NEW,), connections=(INSIDE,), needs="dummy"
        ),
        # A connection out of the container would need a program that knows of the VRF.
        Chain("vrf", [_BRIDGE, {"type": "vrf", "vrfname": "pwf-vrf"}], connections=(IN,), needs="vrf table 77"),
        Chain(
            "dhcp",
            [{"type": "macvlan", "master": PARENT, "ipam": {"type": "dhcp"}}],
            connections=(NEIGHBOUR,),
            program="dnsmasq",
        ),
    )
}
"""By name."""
