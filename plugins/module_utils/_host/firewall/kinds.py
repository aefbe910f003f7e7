# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of firewall rules that plugins make, which of them a plugin makes for an attachment, and their names.

Sources: plugins/pkg/utils/utils.go (chains of iptables), pkg/ip/ipmasq_nftables_linux.go.
"""

from __future__ import annotations

import hashlib
from typing import Any, List, Mapping

from ..kinds import member_of, object_of, text_of

# The plugins that make rules for one container, as far as their rules differ.
IPMASQ = "ipmasq"
PORTMAP = "portmap"
FIREWALL = "firewall"
MACSPOOFCHK = "macspoofchk"

CHAIN_LENGTH = 28


def made_by(plugin: Mapping[str, Any], capability_args: Mapping[str, Any]) -> List[str]:
    """Return the kinds of rules that a plugin makes for an attachment with addresses."""
    kind = text_of(plugin, "type")
    kinds = []
    if kind in ("bridge", "ptp") and member_of(plugin, "ipmasq") is True:
        kinds.append(IPMASQ)
    if kind == "bridge" and member_of(plugin, "macspoofchk") is True:
        kinds.append(MACSPOOFCHK)
    # The names of capabilities are no fields of a struct: their case counts.
    declares = object_of(plugin, "capabilities").get("portMappings") is True
    if kind == "portmap" and declares and capability_args.get("portMappings"):
        kinds.append(PORTMAP)
    if kind == "firewall" and text_of(plugin, "backend") in ("", "iptables"):
        kinds.append(FIREWALL)
    return kinds


def is_in_firewalld(plugin: Mapping[str, Any]) -> bool:
    """Tell whether firewalld keeps the rules of a plugin."""
    if text_of(plugin, "type") != "firewall" or text_of(plugin, "backend") == "iptables":
        return False
    # Imported late: few networks have the plugin.
    from ..processes import is_running

    return is_running("firewalld")


def chain_name(prefix: str, network: str, container_id: str) -> str:
    """Return the name of a container's chain of iptables (Go: MustFormatChainNameWithPrefix)."""
    return f"CNI-{prefix}{_digest(network + container_id)}"[:CHAIN_LENGTH]


def instance_hash(network: str, ifname: str, container_id: str) -> str:
    """Return the hash in the comment of a masquerading rule of nftables (Go: hashForInstance)."""
    return f"{_digest(network)[:16]}-{_digest(ifname + ':' + container_id)[:16]}"


def _digest(text: str) -> str:
    return hashlib.sha512(text.encode("utf-8", "surrogateescape")).hexdigest()
