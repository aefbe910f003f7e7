# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Which network of a pod has the default route: the request, and what has to change.

Multus documents that `default-route` moves the route to one network. Its releases do something else: v4.2.1 removes the
other networks' routes of both families though only one was asked for, and v4.2.2 and later remove none
(multus-cni#1552), edit the cache as if they had, and leave the answer as it was. `default_route_changes` follows the
documentation; it holds for the kernel, the cache and the answer alike.
"""

from __future__ import annotations

from .. import gojson, types, version
from ..fields import UNSET, is_ipv4
from .errors import NetworksError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

DEFAULTS = {"4": "0.0.0.0/0", "6": "::/0"}


class DefaultRoutes:
    """Changes to a network's default routes: those of `families` ("4", "6") go, one via each of `gateways` comes."""

    __slots__ = ("families", "gateways")

    def __init__(self, families: t.Iterable[str] = (), gateways: t.Iterable[str] = ()) -> None:
        self.families = list(families)
        self.gateways = list(gateways)


def default_route_changes(requests: t.Sequence[t.Sequence[str] | None]) -> list[DefaultRoutes]:
    """Return for each network what happens to its default routes, from their `default-route` (None: not given).

    A family is changed only where a gateway of that family is asked for: then its route is removed from every network,
    and added where it was asked for. An empty list asks for nothing, and leaves the network's own route. Raises
    `NetworksError`.
    """
    families = sorted(family_of(gateway) for request in requests for gateway in request or () if gateway)
    if len(set(families)) < len(families):
        raise NetworksError("at most one IPv4 and one IPv6 address may be in default-route of all networks of a pod")
    return [DefaultRoutes(families, filter(None, request or ())) for request in requests]


def family_of(address: str) -> str:
    """Return the family of an address: "4" or "6"."""
    return "4" if is_ipv4(address) else "6"


def with_default_routes(result: types.Result, families: t.Container[str], gateways: t.Iterable[str]) -> types.Result:
    """Return a result without the default routes of `families`, and with one via each gateway.

    A result of 0.2.0 takes routes only of the families in which it has an address.
    """
    if result.version in version.LEGACY and not result.ips:
        return result
    data = result.as_version(version.CURRENT).to_dict()
    routes = [route for route in data.get("routes", []) if _default_family(route) not in families]
    routes += [{"dst": DEFAULTS[family_of(gateway)], "gw": gateway} for gateway in gateways]
    return types.create_from_bytes(gojson.dumps({**data, "routes": routes})).as_version(result.version)


def _default_family(route: t.Mapping[str, str]) -> str:
    """Return the family of a default route, "" for another route. One without dst is a default route, as for Go."""
    dst = route.get("dst", UNSET)
    if dst == UNSET:
        return family_of(route.get("gw", ""))
    return next((family for family, default in DEFAULTS.items() if default == dst), "")
