# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What ``cni_info`` reports on the kernel: interfaces and routes of the host and of its attachments."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ..addresses import written
from ..attachments import kernel_drift
from ..attachments.drift import FootprintDrift
from ..attachments.kernel_drift import Interface, KernelView
from ..attachments.records import Attached, Record
from ..attachments.request import Key
from ..footprints.object_kinds import phrases_of
from ..netlink import LOCAL_TABLE, Route
from ..netns import look
from ..problems import WARNING, problem

Rows = List[Dict[str, Any]]


def kernel(entries: Sequence[Attached], records: Mapping[Key, Record], cache_dir: str) -> Tuple[Dict[str, Any], Rows]:
    """Return what the kernel has: the host's interfaces and routes, and the same of each attachment; and problems.

    *records*: the existing records of attachments. Differences are those from footprints; for an attachment that has
    none, those from the result of its ADD.
    """
    drift = FootprintDrift(cache_dir)
    seen = look({attached.netns: () for attached in entries if attached.netns})
    identities = {path: there.identity for path, there in seen.items()}
    drift.compare(entries, identities)
    state = kernel_drift.read_kernel(entries, identities, [one for one in entries if one.key not in drift.footprints])
    routes: Dict[str, Rows] = {path: _routes(view) for path, view in state.inside.items()}
    rows = [
        dict(
            _inside(attached, state, routes[attached.netns]),
            differences=phrases_of(drift.of(attached.key).differences, True)
            if attached.key in drift.footprints
            else state.drift(attached, records.get(attached.key)),
        )
        for attached in entries
        if attached.netns in state.inside
    ]
    interfaces = sorted(state.host.interfaces.values(), key=lambda interface: interface.name)
    links = [{"name": interface.name, "master": interface.master, **_interface(interface)} for interface in interfaces]
    shared = [
        {"network": one.network, "differences": phrases_of(one.compared.differences, False)} for one in drift.shared
    ]
    problems = [problem(WARNING, "rules_unreadable", text) for text in drift.problems]
    found = {"links": links, "routes": _routes(state.host), "attachments": rows, "shared": shared}
    return found, [*state.missing.problems, *problems]


def _inside(attached: Attached, state: kernel_drift.Kernel, routes: Rows) -> Dict[str, Any]:
    interface = state.inside[attached.netns].interfaces.get(attached.key.ifname)
    other = state.host.other_end(interface) if interface else None
    row: Dict[str, Any] = {
        "network": attached.key.network,
        "container_id": attached.key.container_id,
        "ifname": attached.key.ifname,
        "netns": attached.netns,
        "routes": [route for route in routes if route["device"] == attached.key.ifname],
        "host_interface": other.name if other else "",
    }
    gone: Dict[str, Any] = {"kind": None, "mac": None, "mtu": None, "up": None, "addresses": []}
    row.update(_interface(interface) if interface else gone)
    return row


def _interface(interface: Interface) -> Dict[str, Any]:
    return {
        "kind": interface.kind,
        "mac": interface.mac,
        "mtu": interface.mtu,
        "up": interface.up,
        "addresses": [f"{written(raw)}/{length}" for raw, length in sorted(interface.addresses)],
    }


def _routes(view: KernelView) -> Rows:
    """Return the unicast routes outside of the local table, sorted."""
    wanted = [route for route in view.routes if route.unicast and route.table != LOCAL_TABLE]
    wanted.sort(key=lambda route: (*_order(route), view.name_of(route.link), route.gateway))
    # Every interface has a route to its link-local neighbours.
    return [_route(view, route) for route in wanted if not written(route.raw).startswith("fe80:")]


def _order(route: Route) -> Tuple[int, bytes, int, int]:
    return route.table, route.raw, route.length, route.metric


def _route(view: KernelView, route: Route) -> Dict[str, Any]:
    return {
        "family": "ipv4" if route.raw.startswith(b"4") else "ipv6",
        "dst": f"{written(route.raw)}/{route.length}",
        "gateway": written(route.gateway),
        "device": view.name_of(route.link),
        "source": written(route.source),
        "metric": route.metric,
        "table": route.table,
    }
