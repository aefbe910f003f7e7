# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugins' chains and rules in iptables, of either backend.

Removed with one transaction of iptables-restore, which fails as a whole if a rule or chain has changed since it was
read.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, NamedTuple, Sequence, Set

from .. import commands
from ..errors import HostError
from .chains import FAMILIES, TIMEOUT, FoundChains, read_iptables, tool, words_of
from .kinds import FIREWALL, IPMASQ, PORTMAP, chain_name
from .ownership import Rule, RuleOwner, RuleSet, chain_kind, of_forward, of_iptables, single_address

TRIES = 3
# The chain from which each kind of a container's chains is entered.
_ENTRIES = {"": "POSTROUTING", "DN-": "CNI-HOSTPORT-DNAT", "SN-": "CNI-HOSTPORT-SNAT"}
_FORWARD = "CNI-FORWARD"


class Line(NamedTuple):
    """One rule: its chain, the words after the chain, the line of iptables-save."""

    chain: str
    words: List[str]
    text: str

    def after(self, *options: str) -> List[str]:
        """Return the values of *options*."""
        return [value for option, value in zip(self.words, self.words[1:]) if option in options]


def group_iptables(found: FoundChains, backend: str, family: str) -> List[RuleSet]:
    """Return the containers' rules of one backend and family."""
    nat, filters = (found.table(backend, family, table) for table in ("nat", "filter"))
    return _chains(backend, family, nat, _lines(nat)) + _forwards(
        backend, family, _lines({_FORWARD: filters.get(_FORWARD, [])})
    )


def _lines(table: Mapping[str, Sequence[str]]) -> List[Line]:
    """Return the rules that name a chain of CNI, or are in one."""
    return [
        Line(chain, words_of(rule), f"-A {chain} {rule}")
        for chain, rules in table.items()
        for rule in rules
        if "CNI-" in chain or "CNI-" in rule
    ]


def _chains(backend: str, family: str, chains: Iterable[str], lines: Sequence[Line]) -> List[RuleSet]:
    """Return one set for each chain that a plugin made for one container."""
    jumps: Dict[str, List[Line]] = {}
    inside: Dict[str, List[Line]] = {}
    for line in lines:
        inside.setdefault(line.chain, []).append(line)
        for target in line.after("-j", "-g"):
            jumps.setdefault(target, []).append(line)
    sets = []
    for chain in sorted(chains):
        prefix = chain_kind(chain)
        if prefix is not None:
            sets.append(_chain(backend, family, chain, prefix, jumps.get(chain, []), inside.get(chain, [])))
    return sets


def _chain(
    backend: str, family: str, chain: str, prefix: str, jumps: Sequence[Line], inside: Sequence[Line]
) -> RuleSet:
    owners: Set[RuleOwner] = set()
    unclear = ""
    for line in jumps:
        named = _owners(line)
        owners |= named
        if line.chain != _ENTRIES[prefix]:
            unclear = f"a rule in {line.chain} that no plugin makes jumps to it"
        elif not named:
            unclear = f"a rule in {line.chain} without a plugin's comment jumps to it"
    for line in inside:
        owners |= _owners(line)
    owner = owners.pop() if len(owners) == 1 else RuleOwner()
    if owners or (
        owner.container_id is not None and chain_name(prefix, owner.network or "", owner.container_id) != chain
    ):
        unclear = "its comments and the hash in its name identify different containers"
        owner = RuleOwner()
    return RuleSet(
        backend,
        family,
        PORTMAP if prefix else IPMASQ,
        chain,
        owner,
        addresses=_addresses(family, prefix, jumps, inside),
        chains=[chain],
        rules=[Rule("nat", line.chain, line.text) for line in [*jumps, *inside]],
        unclear=unclear,
        inert=not jumps,
    )


def _owners(line: Line) -> Set[RuleOwner]:
    return {owner for owner in map(of_iptables, line.after("--comment")) if owner is not None}


def _addresses(family: str, prefix: str, jumps: Iterable[Line], inside: Iterable[Line]) -> List[str]:
    if prefix == "DN-":
        # 10.1.0.2:80 or [fd00::2]:80
        targets = [value for line in inside for value in line.after("--to-destination")]
        return [target.rpartition(":")[0].strip("[]") for target in targets]
    lines = jumps if prefix == "" else inside
    sources = [value for line in lines for value in line.after("-s")]
    return [address for address in (single_address(family, source) for source in sources) if address]


def _forwards(backend: str, family: str, lines: Iterable[Line]) -> List[RuleSet]:
    """Return one set for each address that the plugin firewall lets through; only the address identifies the owner."""
    rules: Dict[str, List[Rule]] = {}
    for line in lines:
        address = of_forward(family, line.words)
        if address:
            rules.setdefault(address, []).append(Rule("filter", line.chain, line.text))
    return [
        RuleSet(backend, family, FIREWALL, address, addresses=[address], rules=rules[address])
        for address in sorted(rules)
    ]


def remove_iptables(sets: Sequence[RuleSet]) -> None:
    """Remove *sets*, all of one backend and family, in one transaction; rules that are already gone are no error.

    Raises HostError ``rules_changed`` if one of them has gained rules since it was read, ``rules_not_removed`` if the
    transaction failed. Nothing is removed then.
    """
    backend, family = sets[0].backend, sets[0].family
    restore = tool(backend, family, "restore")
    error = HostError(
        f"{FAMILIES[family]}-restore of {backend} is not installed, so its rules stay; install it and run again",
        code="rules_not_removed",
    )
    # A plugin's DEL may remove a rule after the reading, and then the transaction fails.
    for _try in range(TRIES if restore is not None else 0):
        found = FoundChains()
        read_iptables(found, backend, family)
        for place in ((), ("nat",), ("filter",)):
            found.require(backend, family, *place)
        script = _script(sets, {present.key: present for present in group_iptables(found, backend, family)})
        if not script:
            return
        argv = [str(restore), "--noflush", "--wait=10"]
        done = commands.run_command(argv, TIMEOUT, script.encode("utf-8", "surrogateescape"))
        if done.rc == 0:
            return
        error = not_removed(argv, done)
    raise error


def not_removed(argv: Sequence[str], done: commands.Done) -> HostError:
    """Return the HostError for a transaction that failed."""
    error = commands.failure(argv, f"exit status {done.rc}", done.stderr)
    return HostError(f"{error.msg}; nothing was removed", code="rules_not_removed")


def _script(sets: Sequence[RuleSet], present: Dict[object, RuleSet]) -> str:
    """Return the input for iptables-restore, "" if there is nothing to do."""
    wanted: Dict[str, List[str]] = {}
    chains: List[str] = []
    for one in sets:
        now = present.get(one.key)
        if now is None:
            continue
        check_unchanged(one, now)
        for rule in now.rules:
            wanted.setdefault(rule.table, []).append("-D" + rule.text[2:])
        chains += [f"-X {chain}" for chain in now.chains]
    if chains:
        wanted.setdefault("nat", []).extend(chains)
    return "".join(f"*{table}\n" + "\n".join(lines) + "\nCOMMIT\n" for table, lines in wanted.items())


def check_unchanged(one: RuleSet, now: RuleSet) -> None:
    """Raise HostError ``rules_changed`` if the set now has something that it did not have when it was read."""
    if set(now.rules) - set(one.rules) or set(now.chains) - set(one.chains):
        raise HostError(
            f"{one.plugin} {one.name} ({one.backend} {one.family}) has gained rules since it was inspected, so it is "
            "in use and was left; if it is not in use, run again",
            code="rules_changed",
        )
