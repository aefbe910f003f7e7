# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which firewall rules the plugins of an attachment made, and whether they still exist.

Only the existence of each kind of rules is checked. Their content is left to the plugin's own CHECK.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Sequence, Tuple

from ..addresses import packed
from ..firewall.ownership import FIREWALL, IPMASQ, MACSPOOFCHK, PORTMAP, RuleSet, chain_name, instance_hash, made_by
from .records import Attached

# Kind of rules -> the text that reports their loss.
_TEXTS = {
    IPMASQ: "its masquerading rules are gone",
    PORTMAP: "the rules of its port mappings are gone",
    FIREWALL: "its rules in the chain CNI-FORWARD are gone",
    MACSPOOFCHK: "its rules against MAC spoofing are gone",
}


class Missing:
    """Finds missing rules in what was read. If not all rules could be read, none count as missing."""

    __slots__ = ("_sets", "_whole", "problems")

    def __init__(self, sets: Iterable[RuleSet] = (), problems: Sequence[Dict[str, Any]] = ()) -> None:
        self._sets: Dict[Tuple[str, str], List[RuleSet]] = {}
        for one in sets:
            if one.rules and not one.inert:
                for name in (one.name, *one.addresses):
                    self._sets.setdefault((one.plugin, name), []).append(one)
        self._whole = not problems
        self.problems = list(problems)

    def of(self, attached: Attached) -> List[Tuple[str, str]]:
        """Return (kind, sentence without a full stop) for each kind of rules that *attached* has lost."""
        if not self._whole:
            return []
        return [(kind, _TEXTS[kind]) for kind in made_rules(attached) if not self._is_there(kind, attached)]

    def _is_there(self, kind: str, attached: Attached) -> bool:
        network, container_id, ifname = attached.key
        addresses = [address.partition("/")[0] for address in attached.ips]
        if kind == FIREWALL:
            return all((kind, address) in self._sets for address in addresses)
        if kind == MACSPOOFCHK:
            return (kind, f"{container_id}-{ifname}") in self._sets
        if kind == PORTMAP:
            return any((kind, name) in self._sets for name in (container_id, chain_name("DN-", network, container_id)))
        if (kind, instance_hash(network, ifname, container_id)) in self._sets:
            return True
        found = self._sets.get((kind, chain_name("", network, container_id)), [])
        return {_family(address) for address in addresses} <= {one.family for one in found}


def read_missing_rules(entries: Iterable[Attached]) -> Missing:
    """Read the firewall, if one of *entries* should have rules in it."""
    if not any(made_rules(attached) for attached in entries):
        return Missing()
    # Imported late: most networks have no rules.
    from ..firewall import rules

    found = rules.read_rules()
    return Missing(found.sets, found.problems)


def made_rules(attached: Attached) -> List[str]:
    """Return the kinds of rules that the plugins of *attached* make for it."""
    some = [made_by(plugin.network, attached.capability_args) for plugin in attached.config.plugins]
    kinds = dict.fromkeys(kind for kinds in some for kind in kinds)
    # All other kinds are for addresses.
    return [kind for kind in kinds if attached.ips or kind == MACSPOOFCHK]


def _family(address: str) -> str:
    return "ipv4" if packed(address).startswith(b"4") else "ipv6"
