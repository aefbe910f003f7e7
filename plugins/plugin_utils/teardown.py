# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What teardown removes from a host, and what prevents it, by results of cni_info."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..module_utils._host.runtimes.profiles import CONFIGURABLE

Result = dict[str, Any]


def blockers_of(info: Result, networks: list[Result], unknown: list[Result]) -> list[str]:
    """Return why plugins and networks cannot be removed: what is not managed depends on them."""
    managed = {row["managed_as"] for row in networks}
    removed = {row["path"]: row["name"] for row in info["plugins"] if row["managed"] and not row["original"]}
    dependent: dict[str, Iterable[str]] = {
        "Attached by another tool to managed networks, or in a namespace that no path leads to": {
            row["container_id"] for row in unknown if row["network"] in managed
        },
        "Plugins that another program has replaced since they were installed": {
            row["path"] for row in info["plugins"] if row["edited"]
        },
        "Unmanaged networks that runtimes take, with the plugins that would be removed": _needing(networks, removed),
        "Plugins that unmanaged attachments need": set(removed.values()).intersection(
            name for row in unknown for name in row["plugins"]
        ),
    }
    blockers = {why: ", ".join(sorted(what)) for why, what in dependent.items()}
    return [f"{why}: {what}" for why, what in blockers.items() if what]


def _needing(networks: list[Result], removed: Result) -> Iterator[str]:
    """Yield the unmanaged networks that runtimes take from the directory, and that need plugins that are *removed*."""
    for row in networks:
        users = [] if row["managed"] else row["used_by"] or []
        names = sorted({removed[path] for user in users for path in user["plugins"] if path in removed})
        if names:
            runtimes = ", ".join(sorted({user["runtime"] for user in users}))
            yield f"{row['path']} ({runtimes}) needs {', '.join(names)}"


def sections_of(info: Result, pods: Result, unknown: list[Result], force: bool, pod_dir: str) -> dict[str, Result]:
    """Return the sections of cni_host that detach all but *unknown* containers, and restore runtimes and networks."""
    keys = ("network", "container_id", "ifname")
    attachments = [
        {**{key: row[key] for key in keys}, "state": "absent"} for row in info["attachments"] if row not in unknown
    ]
    sections: dict[str, Result] = {"runtime": {"runtime": list(CONFIGURABLE), "configure": {"state": "absent"}}}
    if attachments:
        # Their plugins and networks are removed as well, so no later run could detach what a DEL leaves now.
        sections["attachments"] = {"attachments": attachments, "force": True}
    for name, inspected, place in (("networks", info, {}), ("pod_networks", pods, {"conf_dir": pod_dir})):
        networks = _restored(inspected)
        if networks:
            sections[name] = {"networks": networks, "force": force, **place}
    return sections


def _restored(info: Result) -> list[Result]:
    """Return the networks of a directory to remove, and the files to restore."""
    managed = [row for row in info["conf"] if row["managed"]]
    adopted = {row["managed_as"] for row in managed if row["original"]}
    foreign = [row for row in info["aside"] if not row["managed"]]
    written = [row["managed_as"] for row in managed] + [row["network"] for row in info["aside"] if row["managed"]]
    # A managed network that replaced a file which was set aside is removed when that file is restored.
    back = adopted | {row["network"] for row in foreign}
    return [
        *({"name": name, "state": "absent"} for name in dict.fromkeys(written) if name not in back),
        *({"name": name, "state": "restored"} for name in sorted(adopted)),
        *({"file": row["original_path"].rpartition("/")[2], "state": "restored"} for row in foreign),
    ]
