# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of the commands ``iptables`` and ``nft`` the ADD of an attachment needs, and whether a plugin would find them.

Without its command, bridge fails only after it has made or removed the interface. So this is tested before any plugin
runs.
"""

from __future__ import annotations

import os
import shutil
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from ..libcni.conf import NetworkConfigList
from ..libcni.errors import PluginNotFoundError
from ..libcni.invoke import find_in_path
from .rule_claims import made_by
from .rules_owner import FIREWALL, IPMASQ, MACSPOOFCHK, PORTMAP

IPTABLES, NFT = "iptables", "nft"
_FIREWALLD = "/run/dbus/system_bus_socket"
# The plugins that can use nftables, by the option that selects it and the table that only they name.
_BACKENDS = {IPMASQ: ("ipMasqBackend", b"cni_plugins_masquerade"), PORTMAP: ("backend", b"cni_hostport")}


def missing_tool(
    config: NetworkConfigList, capability_args: Mapping[str, Any], bin_dirs: Sequence[str]
) -> Optional[Tuple[str, str]]:
    """Return (plugin, command) for the first plugin whose command is not in PATH, None if all are there."""
    for plugin in config.plugins:
        for kind in made_by(plugin.network, capability_args):
            tools = _tools(kind, plugin.network, bin_dirs)
            if tools and not any(map(shutil.which, tools)):
                return plugin.type, tools[0]
    return None


def _tools(kind: str, plugin: Mapping[str, Any], bin_dirs: Sequence[str]) -> List[str]:
    """Return the commands of which one is enough, the preferred one first; [] if this cannot be told."""
    if kind == MACSPOOFCHK:
        return [NFT]
    if kind == FIREWALL:
        # Without the option, firewalld is used if it runs.
        return [] if not plugin.get("backend") and os.path.exists(_FIREWALLD) else [IPTABLES]
    option, table = _BACKENDS[kind]
    # Most hosts have iptables, and then the binary is not read.
    default = not plugin.get(option) and shutil.which(IPTABLES) is not None
    if default or not _names(str(plugin["type"]), table, bin_dirs):
        return [IPTABLES]
    return {"iptables": [IPTABLES], "nftables": [NFT]}.get(str(plugin.get(option)), [IPTABLES, NFT])


def _names(plugin: str, text: bytes, bin_dirs: Sequence[str]) -> bool:
    """Tell whether the binary of *plugin* contains *text*. Releases before 1.6 and 1.7 know iptables only."""
    try:
        with open(find_in_path(plugin, bin_dirs), "rb") as stream:
            return text in stream.read()
    except (OSError, PluginNotFoundError):
        return False
