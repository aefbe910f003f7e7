# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firewall rules that a DEL leaves behind.

bridge and ptp remove the masquerading rules of the addresses that they find on the container's interface
(plugins/main/bridge/bridge.go:cmdDel). If the interface has lost its addresses, or is gone with its namespace, the
rules stay. They apply to the next container that gets the address, and a later DEL of the same container fails because
its chain is still referenced. No plugin finds rules in another backend of iptables than the present one.
"""

from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

from ...libcni.errors import CacheError
from ..errors import HostError
from ..firewall.chains import CHAIN, ChainKey
from ..firewall.kinds import IPMASQ, made_by
from ..netns import Netns, visit
from .kernel_drift import made_rules, parse_address, read_here
from .records import Attached
from .request import Key

Deleted = Tuple[Attached, List[ChainKey]]
"""An attachment after its DEL, and the rules in its footprint."""
_RULE = 6


def makes(attached: Attached) -> bool:
    """Tell whether the network of *attached* masquerades."""
    if attached.result is None:
        # The addresses of an interrupted ADD are not known.
        return any(IPMASQ in made_by(plugin.network, attached.capability_args) for plugin in attached.config.plugins)
    return IPMASQ in made_rules(attached)


def would_stay(attached: Attached, container: Netns) -> bool:
    """Tell whether a DEL in *container*, which may be gone, would miss an address that rules were made for."""
    if not makes(attached):
        return False
    view = visit([container], read_here).get(container.path)
    here = view.interfaces.get(attached.key.ifname) if view else None
    return here is None or any(parse_address(ip) not in here.addresses for ip in attached.ips)


def recorded_rules(cache_dir: str, key: Key) -> List[ChainKey]:
    """Return the firewall rules in the footprint of an attachment, as keys of their chains and the rule."""
    # Imported late, as below: only detaching needs it.
    from ..footprints.note import Notes

    footprint = Notes(cache_dir).attachment(key)
    objects = footprint.host if footprint is not None else {}
    return [place for place, there in objects.items() if place[0] == CHAIN and len(place) == _RULE and there.value]


def remove_rules(cache_dir: str, deleted: Sequence[Deleted]) -> Dict[Key, HostError]:
    """Remove the firewall rules that DELs have left, with one reading for all. Returns what kept rules."""
    from . import leaks

    detached = {attached.key: (attached.config, attached.ips) for attached, _rules in deleted}
    recorded = {attached.key: places for attached, places in deleted}
    try:
        rows = leaks.rules_left(detached, [], cache_dir, recorded=recorded)
    except CacheError as error:
        rows = {key: [{"message": str(error), "removed": False}] for key in detached}
    kept = {key: [str(row["message"]) for row in some if not row["removed"]] for key, some in rows.items()}
    return {key: HostError("; ".join(texts), code="rules_not_removed") for key, texts in kept.items() if texts}


def remove_masquerading(attached: Attached) -> None:
    """Remove all masquerading rules of *attached*, as far as possible."""
    from . import leaks

    leaks.rules_left({attached.key: (attached.config, ())}, [], kinds=(IPMASQ,))
