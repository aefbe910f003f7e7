# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The default routes that an ADD takes from the host.

A host that forwards IPv6 is a router, and routers do not take their default route from other routers: when a plugin
switches forwarding on, the kernel removes these routes (net/ipv6/addrconf.c: rt6_purge_dflt_routers), unless accept_ra
is 2. They do not come back.
"""

from __future__ import annotations

from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple

from ..libcni.gojson import fold
from . import netlink
from .kinds import KINDS, forwards, member_of, object_of, text_of
from .paths import kernel_text

_BY_ROUTER = 9
_FORWARDING = "/proc/sys/net/ipv6/conf/all/forwarding"


def uplinks_of_routers(
    plugins: Iterable[Mapping[str, Any]],
    capability_args: Optional[Mapping[str, Any]] = None,
    args: Iterable[Tuple[str, str]] = (),
) -> List[str]:
    """Return the interfaces that lose an announced default route when a chain of *plugins* is first added.

    *capability_args*, *args* (CNI_ARGS): those of the ADD, if known.
    """
    ip = dict(args).get("IP", "")
    switches = any(_forwards_ipv6(plugin, capability_args or {}, ip) for plugin in plugins)
    return _announced_uplinks() if switches and kernel_text(_FORWARDING) == "0" else []


def why_not_forward() -> str:
    """Return why IPv6 forwarding is not switched on before the remedy, "" if the host loses nothing."""
    settings = " ".join(map(_remedy, _announced_uplinks()))
    text = f"IPv6 forwarding needs {settings} first, or it takes the host's default route that a router announced"
    return text if settings else ""


def _remedy(uplink: str) -> str:
    return f"net.ipv6.conf.{uplink}.accept_ra=2"


def _announced_uplinks() -> List[str]:
    names = {index: link.name for index, link in netlink.links().items()}
    devices = [
        names.get(route.link, "")
        for route in netlink.routes()
        if route.raw[:1] == b"6" and not route.length and route.protocol == _BY_ROUTER
    ]
    return [name for name in dict.fromkeys(devices) if kernel_text(f"/proc/sys/net/ipv6/conf/{name}/accept_ra") == "1"]


def explain_uplinks(uplinks: Sequence[str]) -> str:
    """Return what happens to *uplinks*, and the remedy, as a sentence without a full stop."""
    settings = " ".join(map(_remedy, uplinks))
    return (
        "its first ADD with an IPv6 address switches IPv6 forwarding on, and the host loses its IPv6 default route on "
        f"{', '.join(uplinks)}, which a router announced; first set {settings} (sysctl -w, and in a file of "
        "/etc/sysctl.d, or with ifupdown accept_ra 2 in the inet6 stanza)"
    )


def _forwards_ipv6(plugin: Mapping[str, Any], capability_args: Mapping[str, Any], ip: str) -> bool:
    if not forwards(plugin):
        return False
    ipam, capabilities = object_of(plugin, "ipam"), object_of(plugin, "capabilities")
    kind = text_of(ipam, "type")
    if kind == "dhcp" or kind not in ("", *KINDS):
        # Nobody knows what others assign.
        return kind != "dhcp"
    passed = {name: value for name, value in capability_args.items() if capabilities.get(name) is True}
    runtime = passed or object_of(plugin, "runtimeconfig")
    in_args = object_of(object_of(plugin, "args"), "cni")
    return _name_ipv6([ipam, member_of(runtime, "ips"), member_of(runtime, "ipranges"), member_of(in_args, "ips"), ip])


def _name_ipv6(waiting: List[Any]) -> bool:
    """Tell whether values for IPAM have IPv6 addresses."""
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [inner for key, inner in value.items() if fold(key) not in ("routes", "dns")]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and value.count(":") > 1:
            return True
    return False
