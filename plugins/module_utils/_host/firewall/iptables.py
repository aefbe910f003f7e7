# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugins' chains and rules in iptables, of either backend.

Read with iptables-save, and removed with one transaction of iptables-restore, which fails as a whole if a rule or
chain has changed since it was read.
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Set

from .. import commands
from ..errors import HostError
from .kinds import FIREWALL, IPMASQ, PORTMAP, chain_name
from .ownership import Rule, RuleOwner, RuleSet, chain_kind, of_iptables

LEGACY = "iptables-legacy"
NFT = "iptables-nft"
BACKENDS = (NFT, LEGACY)
FAMILIES = {"ipv4": "iptables", "ipv6": "ip6tables"}
TIMEOUT = 30
TRIES = 3
# The chain from which each kind of a container's chains is entered.
_ENTRIES = {"": "POSTROUTING", "DN-": "CNI-HOSTPORT-DNAT", "SN-": "CNI-HOSTPORT-SNAT"}
_FORWARD = "CNI-FORWARD"
_NAMES = {"ipv4": "/proc/net/ip_tables_names", "ipv6": "/proc/net/ip6_tables_names"}
_HOST_BITS = {"ipv4": "/32", "ipv6": "/128"}
INCOMPATIBLE = "rules_incompatible"
_INCOMPATIBLE = re.compile("^# Table `(nat|filter)' is incompatible", re.MULTILINE)
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')


class Line(NamedTuple):
    """One rule of a dump: its chain, the words after the chain, the whole line."""

    chain: str
    words: List[str]
    text: str

    def after(self, *options: str) -> List[str]:
        """Return the values of *options*."""
        return [value for option, value in zip(self.words, self.words[1:]) if option in options]


class IptablesTable:
    """The chains and rules of one table that mention CNI."""

    __slots__ = ("chains", "lines")

    def __init__(self) -> None:
        self.chains: List[str] = []
        self.lines: List[Line] = []


def tool(backend: str, family: str, verb: str) -> Optional[str]:
    """Return the path of the command for *verb* (``save`` or ``restore``), None if it is not installed.

    The command without a backend in its name can be of either; ``--version`` tells which. Raises HostError.
    """
    base = FAMILIES[family]
    suffix = backend.partition("-")[2]
    path = commands.find_command(f"{base}-{suffix}-{verb}")
    if path is not None:
        return path
    path = commands.find_command(f"{base}-{verb}")
    if path is None:
        return None
    is_nft = b"nf_tables" in commands.run_command([path, "--version"], TIMEOUT).stdout
    return path if is_nft == (backend == NFT) else None


def iptables_in_use(backend: str, family: str) -> bool:
    """Tell whether tables of *backend* may exist; running the tool would make the kernel create them."""
    if backend == NFT:
        return True
    try:
        with open(_NAMES[family], encoding="ascii", errors="replace") as stream:
            return bool(stream.read(4096).strip())
    except OSError:
        return False


def read_iptables(backend: str, family: str) -> Optional[List[RuleSet]]:
    """Return the containers' rules, None if the tool is not installed.

    Raises HostError, with the code :data:`INCOMPATIBLE` if a table cannot be shown.
    """
    if not iptables_in_use(backend, family):
        return []
    save = tool(backend, family, "save")
    if save is None:
        return None
    done = commands.run_command([save], TIMEOUT)
    if done.rc != 0:
        raise commands.failure([save], f"exit status {done.rc}", done.stderr)
    dump = done.stdout.decode("utf-8", "surrogateescape")
    hidden = _INCOMPATIBLE.search(dump)
    if hidden:
        raise HostError(
            f"the table {hidden.group(1)} of {backend} ({family}) contains rules that were made with nft and that "
            "iptables cannot show, so it shows no rule of that table; move those rules to a table of their own",
            code=INCOMPATIBLE,
        )
    return group_iptables(backend, family, dump)


def group_iptables(backend: str, family: str, dump: str) -> List[RuleSet]:
    """Return the containers' rules in the output of iptables-save."""
    tables = parse_iptables(dump)
    return _chains(backend, family, tables.get("nat", IptablesTable())) + _forwards(
        backend, family, tables.get("filter", IptablesTable())
    )


def parse_iptables(dump: str) -> Dict[str, IptablesTable]:
    """Return the tables of a dump. Only rules that name a chain of CNI are kept."""
    tables: Dict[str, IptablesTable] = {}
    table = IptablesTable()
    for text in dump.split("\n"):
        if text.startswith("*"):
            table = tables.setdefault(text[1:], IptablesTable())
        elif text.startswith(":CNI-"):
            table.chains.append(text[1:].partition(" ")[0])
        elif text.startswith("-A ") and "CNI-" in text:
            words = _split(text)
            table.lines.append(Line(words[1], words[2:], text))
    return tables


def _split(text: str) -> List[str]:
    """Return the words of a line, without the quotes and backslashes that xtables_save_string adds."""
    words = []
    for found in _WORD.finditer(text):
        quoted, plain = found.groups()
        words.append(plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
    return words


def _chains(backend: str, family: str, table: IptablesTable) -> List[RuleSet]:
    """Return one set for each chain that a plugin made for one container."""
    jumps: Dict[str, List[Line]] = {}
    inside: Dict[str, List[Line]] = {}
    for line in table.lines:
        inside.setdefault(line.chain, []).append(line)
        for target in line.after("-j", "-g"):
            jumps.setdefault(target, []).append(line)
    sets = []
    for chain in sorted(set(table.chains)):
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
    return [address for address in (_single(family, source) for source in sources) if address]


def _single(family: str, network: str) -> str:
    """Return the address of a network of one address, "" for a larger one."""
    address, bits = network[: -len(_HOST_BITS[family])], _HOST_BITS[family]
    return address if network.endswith(bits) else ""


def _forwards(backend: str, family: str, table: IptablesTable) -> List[RuleSet]:
    """Return one set for each address that the plugin firewall lets through; only the address identifies the owner."""
    rules: Dict[str, List[Rule]] = {}
    for line in table.lines:
        if line.chain != _FORWARD:
            continue
        address = _forwarded(family, line.words)
        if address:
            rules.setdefault(address, []).append(Rule("filter", line.chain, line.text))
    return [
        RuleSet(backend, family, FIREWALL, address, addresses=[address], rules=rules[address])
        for address in sorted(rules)
    ]


def _forwarded(family: str, words: Sequence[str]) -> str:
    """Return the address of a rule in exactly one of the plugin's two forms, "" for any other rule."""
    to_it = ["-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "ACCEPT"]
    if len(words) > 2 and [words[0], *words[2:]] in (["-d", *to_it], ["-s", "-j", "ACCEPT"]):
        return _single(family, words[1])
    return ""


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
        present = read_iptables(backend, family)
        if present is None:
            break
        script = _script(sets, {one.key: one for one in present})
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
