# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Masquerading rules that a DEL of bridge or ptp leaves behind.

Both remove the rules of the addresses that they find on the container's interface
(plugins/main/bridge/bridge.go:cmdDel). If the interface has lost its addresses, or is gone with its namespace, the
rules stay. They apply to the next container that gets the address, and a later DEL of the same container fails because
its chain is still referenced.
"""

from __future__ import annotations

from typing import Optional, Tuple

from ..errors import HostError
from ..firewall.kinds import IPMASQ, chain_name, instance_hash, made_by
from ..netns import visit
from .kernel_drift import made_rules, parse_address, read_here
from .records import Attached


def makes(attached: Attached) -> bool:
    """Tell whether the network of *attached* masquerades."""
    if attached.result is None:
        # The addresses of an interrupted ADD are not known.
        return any(IPMASQ in made_by(plugin.network, attached.capability_args) for plugin in attached.config.plugins)
    return IPMASQ in made_rules(attached)


def would_stay(attached: Attached, netns: str) -> bool:
    """Tell whether a DEL in *netns* ("" if it is gone) would miss an address that rules were made for."""
    if not makes(attached):
        return False
    view = visit([netns], read_here).get(netns) if netns else None
    here = view.interfaces.get(attached.key.ifname) if view else None
    return here is None or any(parse_address(ip) not in here.addresses for ip in attached.ips)


def remove_masquerading(attached: Attached) -> Tuple[bool, Optional[HostError]]:
    """Remove all masquerading rules of *attached*. Returns whether there were any, and the error that kept one."""
    # Imported late: DEL usually removes them.
    from ..firewall import rules

    network, container_id, ifname = attached.key
    names = (chain_name("", network, container_id), instance_hash(network, ifname, container_id))
    found = [one for one in rules.read_rules().sets if one.plugin == IPMASQ and one.name in names]
    kept = [error for _one, error in rules.remove_all_rules(found) if error is not None]
    return bool(found), kept[0] if kept else None
