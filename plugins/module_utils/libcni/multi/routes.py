# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""Which network of a pod has the default route: the request, Multus' marks, and what has to change.

Multus documents that `default-route` moves the route to one network. Its releases do something else: v4.2.1 removes the
other networks' routes of both families though only one was asked for, and v4.2.2 and later remove none
(multus-cni#1552), edit the cache as if they had, and leave the answer as it was. `default_route_changes` follows the
documentation; it holds for the kernel, the cache and the answer alike.
"""

from __future__ import annotations

from .. import gojson, version
from ..errors import JSONError, VersionError
from ..fields import decode_cidr, is_ipv4
from .errors import NetworksError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from .delegates import Delegate

    _Result = t.Dict[str, t.Any]
    _Requests = t.Sequence[t.Optional[t.Sequence[str]]]

_DEFAULTS = {"0.0.0.0/0": "4", "::/0": "6"}
_OLD_KEYS = {"4": "ip4", "6": "ip6"}


class DefaultRoutes:
    """Changes to the default routes of one network: `remove_v4`, `remove_v6`, then one route via each of `gateways`."""

    __slots__ = ("gateways", "remove_v4", "remove_v6")

    def __init__(self, remove_v4: bool, remove_v6: bool, gateways: t.Sequence[str]) -> None:
        self.remove_v4 = remove_v4
        self.remove_v6 = remove_v6
        self.gateways = list(gateways)


def _check(requests: _Requests) -> None:
    every = [gateway for request in requests for gateway in request or ()]
    if max(len([gateway for gateway in every if is_ipv4(gateway) == v4]) for v4 in (True, False)) > 1:
        raise NetworksError(
            "multus does not support ECMP for default-route",
            rule="at most one IPv4 and one IPv6 address may be in default-route of all networks of a pod",
        )


def default_route_changes(requests: _Requests) -> list[DefaultRoutes]:
    """Return for each network what happens to its default routes, from their `default-route` (None: not given).

    A family is changed only where a gateway of that family is asked for: then its route is removed from every network,
    and added where it was asked for. An empty list asks for nothing, and leaves the network's own route. Raises
    `NetworksError`.
    """
    _check(requests)
    every = [gateway for request in requests for gateway in request or () if gateway]
    v4, v6 = any(map(is_ipv4, every)), not all(map(is_ipv4, every))
    return [DefaultRoutes(v4, v6, [gateway for gateway in request or () if gateway]) for request in requests]


def mark_default_routes(delegates: t.Sequence[Delegate]) -> None:
    """Set `filter_v4` and `filter_v6` as Multus does: IsFilterV4Gateway and IsFilterV6Gateway of its scratch file.

    They are not the documented meaning: every network that does not ask for a family itself is marked, whether another
    one asks or not. Raises `NetworksError`.
    """
    _check([delegate.default_route for delegate in delegates])
    for delegate in delegates:
        asked = [is_ipv4(gateway) for gateway in delegate.default_route or ()]
        delegate.filter_v4 = True not in asked
        delegate.filter_v6 = False not in asked


# ---- results, as JSON data of any version


def without_default_routes(result: t.Mapping[str, t.Any], v4: bool, v6: bool) -> _Result:
    """Return a result of any version without its IPv4 (`v4`) or IPv6 (`v6`) default routes. Raises `NetworksError`."""
    families = [family for family, wanted in (("4", v4), ("6", v6)) if wanted]
    out = dict(result)
    if _is_old(result):
        for family in families:
            part = _part(out, _OLD_KEYS[family])
            if part is not None and "routes" in part:
                # Go writes an empty list of this version as null.
                kept = _kept(_routes(part, f"{_OLD_KEYS[family]} routes"), [family])
                out[_OLD_KEYS[family]] = {**part, "routes": kept or None}
        return out
    if "routes" in out:
        out["routes"] = _kept(_routes(out, "routes"), families)
        if not out["routes"]:
            del out["routes"]
    return out


def with_default_routes(result: t.Mapping[str, t.Any], gateways: t.Sequence[str]) -> _Result:
    """Return a result of any version with a default route via each gateway. Raises `NetworksError`.

    A result of 0.2.0 takes routes only of the families in which it has an address.
    """
    out = dict(result)
    old = _is_old(result)
    for gateway in gateways:
        family = "4" if is_ipv4(gateway) else "6"
        key = _OLD_KEYS[family] if old else ""
        holder = _part(out, key) if old else out
        if holder is None:
            continue
        routes = _routes(holder, f"{key} routes" if old else "routes") if "routes" in holder else []
        # The IPv6 text is Multus' own; it is ::/0 in Go's and in this package's results.
        dst = "0.0.0.0/0" if family == "4" else "::/0" if old else "::0/0"
        changed = {**holder, "routes": [*routes, {"dst": dst, "gw": gateway}]}
        if old:
            out[key] = changed
        else:
            out = changed
    return out


def _is_old(result: t.Mapping[str, t.Any]) -> bool:
    """Tell whether a result has the shape of 0.1.0 and 0.2.0."""
    if "cniVersion" not in result:
        return True
    cni_version = result["cniVersion"]
    if not isinstance(cni_version, str):
        raise NetworksError(f"wrong cniVersion format: {_shown(cni_version)}")
    if cni_version in version.LEGACY:
        return True
    try:
        known = cni_version in version.ALL or version.greater_than_or_equal_to(cni_version, "1.0.0")
    except VersionError:
        known = False
    if not known:
        raise NetworksError(f"not supported version: {cni_version}")
    return False


def _part(result: _Result, key: str) -> _Result | None:
    if key not in result:
        return None
    if not isinstance(result[key], dict):
        raise NetworksError(f"wrong {key} format: {_shown(result[key])}")
    return dict(result[key])


def _routes(holder: t.Mapping[str, t.Any], what: str) -> list[t.Any]:
    if not isinstance(holder["routes"], list):
        raise NetworksError(f"wrong {what} format: {_shown(holder['routes'])}")
    return list(holder["routes"])


def _kept(routes: list[t.Any], families: t.Sequence[str]) -> list[t.Any]:
    return [route for route in routes if _family(route) not in families]


def _family(route: t.Any) -> str:
    """Return the family of a default route, "" for another route. One without dst is a default route, as for Go."""
    if not isinstance(route, dict):
        raise NetworksError(f"wrong route format: {_shown(route)}")
    if "dst" not in route:
        return "6" if ":" in str(route.get("gw", "")) else "4"
    if not isinstance(route["dst"], str):
        raise NetworksError(f"wrong dst format: {_shown(route['dst'])}")
    try:
        return _DEFAULTS.get(decode_cidr(route["dst"], ""), "")
    except JSONError:
        return ""


def _shown(value: t.Any) -> str:
    return "<nil>" if value is None else gojson.dumps(value).decode("utf-8")
