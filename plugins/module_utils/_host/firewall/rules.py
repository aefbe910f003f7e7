# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of CNI plugins for single containers in the host's firewall: found, assigned to owners, and removed.

Chains that containers share (CNI-HOSTPORT-DNAT, CNI-FORWARD, CNI-ADMIN, ...), the per-bridge rules of ``ingressPolicy``
and rules that no plugin made are never in a set. firewalld's zones are not read.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from ..errors import HostError
from ..problems import WARNING, problem
from . import iptables, nftables
from .chains import (
    BACKENDS,
    FAMILIES,
    INCOMPATIBLE,
    LEGACY,
    NFT,
    NFT_FAMILIES,
    NFTABLES,
    NOT_INSTALLED,
    NOT_UNDERSTOOD,
    ChainKey,
    FoundChains,
    read_chains,
)
from .ownership import RuleSet, attribute


class FoundRules:
    """``sets``, sorted by their key, and ``problems``: what could not be read, so sets may be missing."""

    __slots__ = ("_chains", "problems", "sets")

    def __init__(self, chains: Optional[FoundChains] = None) -> None:
        self._chains = chains or FoundChains()
        self.sets: List[RuleSet] = []
        self.problems: List[Dict[str, Any]] = []

    def attribute(self, networks: Iterable[str], container_ids: Iterable[str]) -> None:
        """Complete the container IDs of the owners; see :func:`ownership.attribute`."""
        attribute(self.sets, networks, container_ids)

    def unknown(self, keys: Iterable[ChainKey]) -> List[ChainKey]:
        """Return those of the *keys* of rules (a chain's, and the rule) that are there and in no set."""
        known = {(one.backend, rule.chain, rule.text) for one in self.sets for rule in one.rules}
        found = []
        for key in keys:
            chain = self._chains.chains.get(key[:-1])
            text = key[-1] if key[1] == NFTABLES else f"-A {key[4]} {key[-1]}"
            if chain is not None and key[-1] in chain.rules and (key[1], key[4], text) not in known:
                found.append(key)
        return found


def read_rules() -> FoundRules:
    """Read iptables (both backends, both families) and nftables. Needs root; changes nothing."""
    return group_rules(read_chains())


def group_rules(chains: FoundChains) -> FoundRules:
    """Return the containers' rules among all *chains*."""
    found = FoundRules(chains)
    for backend in BACKENDS:
        for family in FAMILIES:
            found.sets += iptables.group_iptables(chains, backend, family)
    found.sets += nftables.group_nftables(chains)
    found.sets.sort(key=lambda one: one.key)
    # With a table that iptables cannot show, and without the tool, nft shows the chains of iptables-nft.
    hidden = any(key[1] == NFTABLES and key[2] in NFT_FAMILIES and key[-1].startswith("CNI-") for key in chains.chains)
    for place, error in chains.unread.items():
        if error.code == INCOMPATIBLE and not (hidden and place[2] in ("nat", "filter")):
            continue
        if error.code == NOT_INSTALLED and place[0] != LEGACY and not (hidden and place[0] == NFT):
            continue
        code = error.code if error.code == NOT_INSTALLED else NOT_UNDERSTOOD
        message = f"cannot read {' '.join(place[:2])}: {error.msg}"
        found.problems.append(problem(WARNING, code, message))
    return found


def remove_all_rules(rulesets: Sequence[RuleSet]) -> List[Tuple[RuleSet, Optional[HostError]]]:
    """Remove exactly what the sets had when they were read, with few transactions; what is already gone is no error.

    Returns each with the error that prevented it (``rules_unclear``: never removed; ``rules_changed``: it has gained
    rules since; ``rules_not_removed``; ``command_failed``), None if it is gone. Of one with an error, all stays.
    """
    groups: Dict[Tuple[str, str], List[RuleSet]] = {}
    for one in rulesets:
        # One transaction of nftables serves all families.
        family = "" if one.backend == NFTABLES else one.family
        groups.setdefault((one.backend, family), []).append(one)
    return [outcome for group in groups.values() for outcome in _remove_group(group)]


def _remove_group(group: Sequence[RuleSet]) -> List[Tuple[RuleSet, Optional[HostError]]]:
    try:
        _remove(group)
    except HostError as error:
        if len(group) == 1:
            return [(group[0], error)]
        # One set makes the transaction fail for all, so each gets its own.
        return [outcome for one in group for outcome in _remove_group([one])]
    return [(one, None) for one in group]


def _remove(group: Sequence[RuleSet]) -> None:
    for one in group:
        if one.unclear:
            raise HostError(f"not removed: {one.text}", code="rules_unclear")
    (nftables.remove_nftables if group[0].backend == NFTABLES else iptables.remove_iptables)(group)
