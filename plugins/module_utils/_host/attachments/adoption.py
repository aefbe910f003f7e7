# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Attachments that exist although neither the cache nor a record has them, read from the kernel.

The evidence that an attachment made an interface is a lease of host-local for its container and ifname, in a subnet of
the network, whose address is on that interface.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Set, Tuple

from ...libcni import gojson, types
from ...libcni.conf import NetworkConfigList
from ...libcni.errors import CNIError
from .. import leases
from ..addresses import packed
from ..footprints.object_kinds import destination_of, text_of_mac
from ..footprints.state import other_end
from ..kernel.objects import State, read_objects
from ..kinds import bridge_of, object_of
from ..netlink import MAIN_TABLE, UNICAST
from ..netns import Netns, visit
from ..ranges import ip_of, ranges_of
from .request import WantedAttachment
from .store import Attached


def find_adoptable(wanted: WantedAttachment, config: NetworkConfigList, container: Netns) -> Optional[Attached]:
    """Return the attachment *wanted* with a result made from the kernel's state; None without evidence of it."""
    inside = visit([container], read_objects).get(container.path, {})
    if ("link", wanted.key.ifname) not in inside:
        return None
    leased = _leased(wanted, config)
    on_interface = [key for key in inside if key[:2] == ("addr", wanted.key.ifname)]
    addresses = [(str(key[2]), int(key[3])) for key in on_interface if packed(str(key[2])) in leased]
    if not addresses:
        return None
    try:
        result = types.create("1.0.0", gojson.dumps(_result(wanted, config, inside, addresses)))
        data = result.as_version(config.cni_version).to_dict()
    except CNIError:
        return None
    return Attached(wanted.key, config, wanted.netns, wanted.args, wanted.capability_args, data)


def _leased(wanted: WantedAttachment, config: NetworkConfigList) -> Set[bytes]:
    """Return the addresses, packed, that host-local reserves for the interface in subnets of the network."""
    network, container_id, ifname = wanted.key
    plugins = [(network, plugin.network) for plugin in config.plugins]
    ipams = [object_of(plugin, "ipam") for _name, plugin in plugins]
    ipams.append({"ranges": wanted.capability_args.get("ipRanges")})
    ranges = [ip_range for ipam in ipams for ip_range in ranges_of(ipam)]
    addresses = set()
    for data_dir, name in leases.lease_stores(plugins):
        for lease in leases.read_leases(data_dir, name)[0] if name == network else ():
            # Old releases of host-local do not write the interface's name.
            own = lease.container_id == container_id and lease.ifname in ("", ifname)
            if own and any(ip_of(lease.ip) in ip_range.subnet for ip_range in ranges):
                addresses.add(packed(lease.ip))
    return addresses


def _result(
    wanted: WantedAttachment, config: NetworkConfigList, inside: State, addresses: Sequence[Tuple[str, int]]
) -> Dict[str, Any]:
    """Return the result of version 1.0.0: bridge, host end and interface, its addresses, routes through gateways."""
    host, ifname = read_objects(), wanted.key.ifname
    ends = [*(bridge_of(plugin.network) for plugin in config.plugins), other_end(host, inside, ifname)]
    interfaces = [_interface(host, name) for name in ends if ("link", name) in host]
    interfaces.append({**_interface(inside, ifname), "sandbox": wanted.netns})
    routes = [
        {"dst": destination_of(key), "gw": route.value["gw"]}
        for key, route in inside.items()
        if key[0] == "route"
        and (key[2], key[6], key[7]) == (MAIN_TABLE, UNICAST, ifname)
        and route.value["gw"]
        and not route.derived
    ]
    ips = []
    for address, length in addresses:
        entry: Dict[str, Any] = {"address": f"{address}/{length}", "interface": len(interfaces) - 1}
        gateway = next((route["gw"] for route in routes if (":" in route["gw"]) == (":" in address)), "")
        ips.append(dict(entry, gateway=gateway) if gateway else entry)
    return {"cniVersion": "1.0.0", "interfaces": interfaces, "ips": ips, "routes": routes}


def _interface(state: State, name: str) -> Dict[str, Any]:
    return {"name": name, "mac": text_of_mac(state["link", name].value["mac"])}
