# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``cni_info`` says of attachments: libcni's cache with our records, leases, and what the kernel has of them."""

from __future__ import annotations

import os
from typing import AbstractSet, Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..libcni import cache
from ..libcni.errors import CacheError, CNIError
from . import leases as store
from . import links, pools, rule_claims
from .attach_request import Key
from .attachments import RECORDS, Attached, Record, Records, attached_from_bytes
from .errors import HostError
from .kernel_drift import Kernel
from .kernel_view import from_namespace
from .netns import Seen, look, same
from .plugintypes import types_of
from .problems import WARNING, problem
from .secrets import mask

Rows = List[Dict[str, Any]]


def cached(cache_dir: str) -> Tuple[List[Attached], Rows]:
    """Return the attachments in a cache, sorted, and what in it is none."""
    folder = os.path.join(cache_dir, "results")
    found: List[Attached] = []
    problems: Rows = []
    for name in _names(folder):
        path = os.path.join(folder, name)
        data = cache.read_bytes(path)
        try:
            if data is None:
                raise CacheError("it cannot be read")
            entry = cache.Entry.from_bytes(data)
            key = Key(entry.network_name, entry.container_id, entry.if_name)
            if name != "-".join(key):
                raise CacheError("its content does not fit its name")
            found.append(attached_from_bytes(data, key, path))
        except CNIError as error:
            problems.append(problem(WARNING, "cache_damaged", f"this is no entry of libcni's cache: {error}", path))
    found.sort(key=lambda attached: attached.key)
    return found, problems


def _names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def attachments(cache_dir: str, entries: Sequence[Attached]) -> Tuple[Rows, Rows]:
    """Return a row for each cached attachment, and the problems of our records."""
    records = Records(cache_dir)
    rows: Rows = []
    problems: Rows = []
    names: Dict[str, List[str]] = {}
    for attached in entries:
        if attached.netns:
            names.setdefault(attached.netns, []).append(attached.key.ifname)
    seen = look(names)
    for attached in entries:
        record = None
        try:
            record = records.read(attached.key)
        except HostError as error:
            problems.append(problem(WARNING, error.code, error.msg, cache_dir))
        rows.append(_row(attached, record, seen.get(attached.netns, Seen())))
    problems.extend(_interrupted(cache_dir, {"-".join(attached.key) for attached in entries}))
    return rows, problems


def _row(attached: Attached, record: Optional[Record], seen: Seen) -> Dict[str, Any]:
    return {
        "network": attached.key.network,
        "container_id": attached.key.container_id,
        "ifname": attached.key.ifname,
        "netns": attached.netns,
        "netns_state": _netns_state(record, seen),
        "interface": attached.key.ifname in seen.links,
        "cni_version": attached.config.cni_version,
        "plugins": types_of([plugin.network for plugin in attached.config.plugins]),
        "args": mask(dict(attached.args)),
        "capability_args": mask(attached.capability_args),
        "ips": attached.ips,
        "result": mask(attached.result),
        "check_unusable": record.check if record else None,
    }


def _netns_state(record: Optional[Record], seen: Seen) -> str:
    """Return whether the namespace is still the one of the ADD."""
    if seen.identity is None:
        return "gone"
    if record is None or record.identity is None:
        return "unknown"
    return "same" if same(seen.identity, record.identity) else "other"


def _interrupted(cache_dir: str, known: AbstractSet[str]) -> Rows:
    folder = os.path.join(cache_dir, RECORDS)
    return [
        problem(
            WARNING,
            "interrupted",
            "an ADD was interrupted or could not be taken back; the next cni_attach of it begins with a DEL",
            os.path.join(folder, name),
        )
        for name in _names(folder)
        if name not in known and not name.startswith(".") and Records.is_adding(os.path.join(folder, name))
    ]


def leases(networks: Sequence[Tuple[str, Mapping[str, Any]]], entries: Sequence[Attached]) -> Tuple[Rows, Rows, Rows]:
    """Return host-local's reservations, how full the pools of *networks* are, and problems.

    The reservations of cached networks and of its default directory are included.
    """
    known = [*networks, *((entry.key.network, plugin.network) for entry in entries for plugin in entry.config.plugins)]
    every: List[store.Lease] = []
    problems: Rows = []
    for data_dir, network in store.stores(known):
        found, wrong = store.read(data_dir, network)
        every.extend(found)
        problems.extend(wrong)
    return [lease.row() for lease in every], pools.rows(networks, every), problems


def kernel(cache_dir: str, entries: Sequence[Attached]) -> Tuple[Dict[str, Any], Rows]:
    """Return what the kernel has: the host's interfaces and routes, and the same of each attachment; and problems.

    Needs pyroute2.
    """
    host = links.read_host()
    inside = links.read_namespaces(sorted({attached.netns for attached in entries if attached.netns}))
    views = {path: from_namespace(namespace) for path, namespace in inside.items()}
    state = Kernel(from_namespace(host), views, rule_claims.read(entries))
    records = Records(cache_dir)
    rows = [
        dict(
            _inside(attached, host, inside[attached.netns]),
            differences=state.drift(attached, _record_of(records, attached)),
        )
        for attached in entries
        if attached.netns in inside
    ]
    return {"links": host.rows(), "routes": host.routes, "attachments": rows}, state.missing.problems


def _record_of(records: Records, attached: Attached) -> Optional[Record]:
    try:
        return records.read(attached.key)
    except HostError:
        # The rows of the attachments tell of it.
        return None


def _inside(attached: Attached, host: links.Namespace, namespace: links.Namespace) -> Dict[str, Any]:
    interface = namespace.named(attached.key.ifname)
    other = links.host_end(host, interface) if interface else None
    return {
        "network": attached.key.network,
        "container_id": attached.key.container_id,
        "ifname": attached.key.ifname,
        "netns": attached.netns,
        "kind": interface.kind if interface else None,
        "mac": interface.mac if interface else None,
        "mtu": interface.mtu if interface else None,
        "up": interface.up if interface else None,
        "addresses": interface.addresses if interface else [],
        "routes": [route for route in namespace.routes if route["device"] == attached.key.ifname],
        "host_interface": other.name if other else "",
    }
