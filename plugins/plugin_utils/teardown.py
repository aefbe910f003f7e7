# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What teardown removes from a host, and what prevents it, by results of cni_info."""

from __future__ import annotations

from typing import Any

from ..module_utils._host.runtimes.profiles import CONFIGURABLE

Result = dict[str, Any]


def blockers_of(info: Result, networks: list[Result], unknown: list[Result]) -> list[str]:
    """Return why plugins and networks cannot be removed: what is not managed depends on them."""
    managed = {row["managed_as"] for row in networks}
    removed = {row["name"] for row in info["plugins"] if row["managed"] and not row["original"]}
    others = [*(row for row in networks if not row["managed"]), *unknown]
    dependent = {
        "Attached by another tool to managed networks, or in a namespace that no path leads to": {
            row["container_id"] for row in unknown if row["network"] in managed
        },
        "Plugins that another program has replaced since they were installed": {
            row["path"] for row in info["plugins"] if row["edited"]
        },
        "Plugins that unmanaged networks or attachments need": removed.intersection(
            name for row in others for name in row["plugins"]
        ),
    }
    return [f"{why}: {', '.join(sorted(what))}" for why, what in dependent.items() if what]


def sections_of(info: Result, pods: Result, unknown: list[Result], force: Result, pod_dir: str) -> dict[str, Result]:
    """Return the sections of cni_host that detach all but *unknown* containers, and restore runtimes and networks."""
    keys = ("network", "container_id", "ifname")
    attachments = [
        {**{key: row[key] for key in keys}, "state": "absent"} for row in info["attachments"] if row not in unknown
    ]
    sections: dict[str, Result] = {"runtime": {"runtime": list(CONFIGURABLE), "configure": {"state": "absent"}}}
    if attachments:
        # Their plugins and networks are removed as well, so no later run could detach what a DEL leaves now.
        sections["attachments"] = {"attachments": attachments, "force": True}
    for name, found, place in (("networks", info, {}), ("pod_networks", pods, {"conf_dir": pod_dir})):
        networks = _restored(found)
        if networks:
            sections[name] = {"networks": networks, **force, **place}
    return sections


def _restored(found: Result) -> list[Result]:
    """Return the networks of a directory to remove, and the files to restore."""
    managed = [row for row in found["conf"] if row["managed"]]
    adopted = {row["managed_as"] for row in managed if row["original"]}
    foreign = [row for row in found["aside"] if not row["managed"]]
    written = [row["managed_as"] for row in managed] + [row["network"] for row in found["aside"] if row["managed"]]
    # A managed network that replaced a file which was set aside is removed when that file is restored.
    back = adopted | {row["network"] for row in foreign}
    return [
        *({"name": name, "state": "absent"} for name in dict.fromkeys(written) if name not in back),
        *({"name": name, "state": "restored"} for name in sorted(adopted)),
        *({"file": row["original_path"].rpartition("/")[2], "state": "restored"} for row in foreign),
    ]
