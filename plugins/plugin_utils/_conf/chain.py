# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about what a plugin needs of those before it in the list."""

from __future__ import annotations

from typing import Any, Iterator

from ansible_collections.podwire.cni.plugins.module_utils._host.problems import ERROR, WARNING

from .source import Finding

# Plugins that make the container's interface and certainly no bridge.
_WITHOUT_BRIDGE = frozenset(("ptp", "macvlan", "ipvlan", "vlan", "host-device", "dummy", "loopback", "sriov"))


def chain_findings(plugins: list[dict[str, Any]]) -> Iterator[Finding]:
    """Yield findings on a list's (folded, valid) plugins; pointers are relative to the list."""
    before: set[str] = set()
    for index, plugin in enumerate(plugins):
        kind = plugin.get("type", "")
        if kind == "ipvlan" and not before and not plugin.get("ipam", {}).get("type"):
            text = "ipvlan: ipam is missing, and without a plugin before it there are no addresses; write an ipam"
            yield Finding(ERROR, "schema", text, ("plugins", index))
        policy = plugin.get("ingressPolicy") or "open"
        if kind == "firewall" and policy != "open" and before & _WITHOUT_BRIDGE and "bridge" not in before:
            text = (
                "firewall: ingressPolicy %s has an effect on bridges only, and no plugin before it makes one; take the "
                "plugin bridge, or other rules"
            )
            yield Finding(WARNING, "no_effect", text % policy, ("plugins", index, "ingressPolicy"))
        before.add(kind)
