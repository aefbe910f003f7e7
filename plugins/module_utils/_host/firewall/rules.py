# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of CNI plugins for single containers in the host's firewall: found, assigned to owners, and removed.

Chains that containers share (CNI-HOSTPORT-DNAT, CNI-FORWARD, CNI-ADMIN, ...), the per-bridge rules of ``ingressPolicy``
and rules that no plugin made are never in a set. firewalld's zones are not read.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

from ..errors import HostError
from ..problems import WARNING, problem
from . import iptables, nftables
from .ownership import RuleSet, attribute


class FoundRules:
    """``sets``, sorted by their key, and ``problems``: what could not be read, so sets may be missing."""

    __slots__ = ("problems", "sets")

    def __init__(self) -> None:
        self.sets: List[RuleSet] = []
        self.problems: List[Dict[str, Any]] = []

    def attribute(self, networks: Iterable[str], container_ids: Iterable[str]) -> None:
        """Complete the container IDs of the owners; see :func:`ownership.attribute`."""
        attribute(self.sets, networks, container_ids)


def read_rules() -> FoundRules:
    """Read iptables (both backends, both families) and nftables. Needs root; changes nothing."""
    found = FoundRules()
    for backend in iptables.BACKENDS:
        for family in iptables.FAMILIES:
            if not _add(found, f"{backend} {family}", iptables.read_iptables, backend, family):
                _tell_missing(found, backend, family)
    _add(found, nftables.BACKEND, nftables.read_nftables)
    found.sets.sort(key=lambda one: one.key)
    return found


def _add(found: FoundRules, where: str, get: Callable[..., Optional[List[RuleSet]]], *arguments: str) -> bool:
    """Add what *get* returns for *arguments*; False if its tool is not installed."""
    try:
        sets = get(*arguments)
    except HostError as error:
        if error.code == iptables.INCOMPATIBLE and not _kernel_has_chains():
            return True
        message = f"cannot read {where}: {error.msg}"
        found.problems.append(problem(WARNING, "rules_unreadable", message))
        return True
    found.sets += sets or []
    return sets is not None


def _tell_missing(found: FoundRules, backend: str, family: str) -> None:
    """Add a problem if the kernel has tables whose tool is missing."""
    if backend == iptables.LEGACY or _kernel_has_chains():
        name = iptables.FAMILIES[family]
        message = f"the kernel has tables of {backend} ({family}), but {name}-save of that kind is not installed"
        found.problems.append(problem(WARNING, "rules_tool_missing", message))


def _kernel_has_chains() -> bool:
    """Tell whether tables of iptables-nft contain chains of CNI."""
    try:
        return nftables.has_chains_of_iptables()
    except HostError:
        # read_nftables reports it.
        return False


def remove_rules(ruleset: RuleSet) -> None:
    """Remove exactly what *ruleset* had when it was read; rules that are already gone are no error.

    Raises HostError ``rules_unclear`` (never removed), ``rules_changed`` (it has gained rules since),
    ``rules_not_removed`` or ``command_failed``. After an error, nothing of it was removed.
    """
    _remove([ruleset])


def remove_all_rules(rulesets: Sequence[RuleSet]) -> List[Tuple[RuleSet, Optional[HostError]]]:
    """Remove many sets with few transactions. Returns each with the error that prevented it, None if it is gone."""
    groups: Dict[Tuple[str, str], List[RuleSet]] = {}
    for one in rulesets:
        # One transaction of nftables serves all families.
        family = "" if one.backend == nftables.BACKEND else one.family
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
    (nftables.remove_nftables if group[0].backend == nftables.BACKEND else iptables.remove_iptables)(group)
