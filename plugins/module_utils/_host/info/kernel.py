# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What ``cni_info`` reports on the kernel: interfaces and routes of the host and of its attachments."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from ..addresses import packed
from ..attachments.drift import find_recorded_drift
from ..attachments.store import Attached
from ..footprints.object_kinds import HOST, destination_of, phrases_of, text_of_mac
from ..footprints.state import Drift, other_end, read_spaces
from ..kernel.objects import ObjectKey, State
from ..netlink import LOCAL_TABLE, UNICAST, UP
from ..problems import WARNING, Finding

Rows = List[Dict[str, Any]]


def kernel(entries: Sequence[Attached], cache_dir: str) -> Tuple[Dict[str, Any], List[Finding]]:
    """Return what the kernel has: the host's interfaces and routes, and the same of each attachment; and problems."""
    drifts = find_recorded_drift(cache_dir, entries)
    spaces = drifts.reading.spaces or read_spaces({HOST: []}).spaces
    host = spaces[HOST]
    rows = [
        _attachment(drifts.by_owner[attached.key], host, spaces[attached.netns])
        for attached in entries
        if attached.key in drifts.by_owner and attached.netns in spaces
    ]
    names = sorted(str(key[1]) for key in host if key[0] == "link")
    links = [{"name": name, "master": host["link", name].value["master"], **_interface(host, name)} for name in names]
    problems = [Finding(WARNING, "rules_unreadable", text) for text in drifts.problems]
    return {"links": links, "routes": _routes(host), "attachments": rows, "shared": drifts.shared_rows()}, problems


def _attachment(drift: Drift, host: State, inside: State) -> Dict[str, Any]:
    network, container_id, ifname = drift.owner
    row: Dict[str, Any] = {
        "network": network,
        "container_id": container_id,
        "ifname": ifname,
        "netns": drift.netns,
        "routes": [route for route in _routes(inside) if route["device"] == ifname],
        "host_interface": other_end(host, inside, ifname),
    }
    return {**row, **_interface(inside, ifname), "differences": phrases_of(drift.differences, True)}


def _interface(state: State, name: str) -> Dict[str, Any]:
    link = state.get(("link", name))
    if link is None:
        return {"kind": None, "mac": None, "mtu": None, "up": None, "addresses": []}
    addresses = [(packed(str(key[2])), f"{key[2]}/{key[3]}") for key in state if key[:2] == ("addr", name)]
    return {
        "kind": link.value["kind"],
        "mac": text_of_mac(link.value["mac"]),
        "mtu": link.value["mtu"],
        "up": bool(link.value["flags"] & UP),
        "addresses": [text for _raw, text in sorted(addresses)],
    }


def _routes(state: State) -> Rows:
    """Return the unicast routes outside of the local table, sorted."""
    keys = [key for key in state if key[0] == "route" and key[6] == UNICAST and key[2] != LOCAL_TABLE]
    # Every interface has a route to its link-local neighbours.
    rows = [_route(key, state[key].value) for key in keys if not str(key[3]).startswith("fe80:")]
    return sorted(rows, key=_order)


def _order(row: Dict[str, Any]) -> Tuple[Any, ...]:
    address, _slash, length = row["dst"].partition("/")
    return row["table"], packed(address), int(length), row["metric"], row["device"], packed(row["gateway"])


def _route(key: ObjectKey, value: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "family": "ipv4" if key[1] == 2 else "ipv6",
        "dst": destination_of(key),
        "gateway": value["gw"],
        "device": key[7],
        "source": value["src"],
        "metric": key[5],
        "table": key[2],
    }
