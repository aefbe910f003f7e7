# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Attachments that exist although neither the cache nor a record has them, read from the kernel.

The evidence that an attachment made an interface is a lease of host-local for its container and ifname, in a subnet of
the network, whose address is on that interface.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Set

from ...libcni import gojson, types
from ...libcni.conf import NetworkConfigList
from ...libcni.errors import CNIError
from .. import leases
from ..addresses import packed, written
from ..checks import pools
from ..errors import HostError
from ..footprints.note import Notes
from ..footprints.object_kinds import HOST
from ..footprints.state import compare, read_look, wanted_keys
from ..kinds import bridge_of, object_of
from ..netlink import MAIN_TABLE
from ..netns import Netns, look, visit
from .drift import Rebuild
from .kernel_drift import Address, Interface, KernelView, read_here
from .outcome import AttachPlan, AttachSettings
from .records import Attached
from .request import WantedAttachment


def find_adoptable(wanted: WantedAttachment, config: NetworkConfigList, container: Netns) -> Optional[Attached]:
    """Return the attachment *wanted* with a result made from the kernel's state; None without evidence of it."""
    inside = visit([container], read_here).get(container.path)
    interface = inside.interfaces.get(wanted.key.ifname) if inside else None
    if inside is None or interface is None:
        return None
    leased = _leased(wanted, config)
    addresses = [address for address in interface.addresses if address[0] in leased]
    if not addresses:
        return None
    try:
        result = types.create("1.0.0", gojson.dumps(_result(wanted, config, inside, interface, addresses)))
        data = result.as_version(config.cni_version).to_dict()
    except CNIError:
        return None
    return Attached(wanted.key, config, wanted.netns, wanted.args, wanted.capability_args, data)


def write_adopted(settings: AttachSettings, adopted: Sequence[Attached], plan: AttachPlan) -> None:
    """Write the footprints of adopted attachments, and what they share with others."""
    for attached in adopted:
        try:
            why = _write_one(settings.cache_dir, attached, settings.rebuild) if settings.rebuild else ""
        except HostError as error:
            why = error.msg
        if why:
            text = f"{attached.key}: its footprint is not known ({why}), so only the result of its ADD is compared"
            plan.warn("footprint_missing", text)


def _write_one(cache_dir: str, attached: Attached, rebuild: Rebuild) -> str:
    """Write what a rehearsal of the ADD shows of an attachment and its network, as far as it is so now.

    Return why there is no footprint, "" if there is one. Raises HostError.
    """
    notes = Notes(cache_dir)
    if notes.attachment(attached.key) is not None:
        return ""
    rebuilt = rebuild([attached])
    footprint = rebuilt.attachments.get(attached.key)
    if footprint is None:
        return rebuilt.obstacles.get(attached.key, "")
    network = attached.key.network
    shared = {name: objects for name, objects in rebuilt.shared.items() if name in ("", network)}
    wanted = wanted_keys(attached.netns, [footprint, *shared.values()])
    identity = look({attached.netns: ()})[attached.netns].identity
    present = read_look(wanted, [Netns(attached.netns, identity)])
    for one in (footprint, *shared.values()):
        for difference in compare(present, one, attached.netns).lost:
            (one.host if difference.space == HOST else one.inside).pop(difference.key, None)
    footprint.identity = identity
    notes.write_attachment(attached.key, footprint)
    for name, one in shared.items():
        known = notes.network(name) if name else notes.host()
        one.host.update(known.host if known is not None else {})
        if name:
            notes.write_network(name, one)
        else:
            notes.write_host(one)
    notes.write_order({**{place: list(rules) for place, rules in rebuilt.order.items()}, **notes.order()})
    return ""


def _leased(wanted: WantedAttachment, config: NetworkConfigList) -> Set[bytes]:
    """Return the addresses, packed, that host-local reserves for the interface in subnets of the network."""
    network, container_id, ifname = wanted.key
    plugins = [(network, plugin.network) for plugin in config.plugins]
    ipams = [object_of(plugin, "ipam") for _name, plugin in plugins]
    ipams.append({"ranges": wanted.capability_args.get("ipRanges")})
    ranges = [one for ipam in ipams for one in pools.ranges_of(ipam)]
    found = set()
    for data_dir, name in leases.lease_stores(plugins):
        for lease in leases.read_leases(data_dir, name)[0] if name == network else ():
            family, number = pools.address_number(packed(lease.ip))
            # Old releases of host-local do not write the interface's name.
            own = lease.container_id == container_id and lease.ifname in ("", ifname)
            if own and any(one.family == family and one.first <= number <= one.last for one in ranges):
                found.add(packed(lease.ip))
    return found


def _result(
    wanted: WantedAttachment,
    config: NetworkConfigList,
    inside: KernelView,
    interface: Interface,
    addresses: List[Address],
) -> Dict[str, Any]:
    """Return the result of version 1.0.0: bridge, host end and interface, its addresses, routes through gateways."""
    host = read_here()
    ends = [*(host.interfaces.get(bridge_of(plugin.network)) for plugin in config.plugins), host.other_end(interface)]
    interfaces: List[Dict[str, Any]] = [{"name": end.name, "mac": end.mac} for end in ends if end]
    interfaces.append({"name": interface.name, "mac": interface.mac, "sandbox": wanted.netns})
    routes = [
        route
        for route in inside.routes
        if route.link == interface.number and route.gateway and route.table == MAIN_TABLE and route.unicast
    ]
    ips = []
    for raw, length in addresses:
        entry: Dict[str, Any] = {"address": f"{written(raw)}/{length}", "interface": len(interfaces) - 1}
        gateway = next((route.gateway for route in routes if route.gateway[:1] == raw[:1]), b"")
        ips.append(dict(entry, gateway=written(gateway)) if gateway else entry)
    return {
        "cniVersion": "1.0.0",
        "interfaces": interfaces,
        "ips": ips,
        "routes": [{"dst": f"{written(route.raw)}/{route.length}", "gw": written(route.gateway)} for route in routes],
    }
