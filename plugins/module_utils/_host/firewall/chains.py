# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""All chains of a host's firewall with their rules in order: iptables of both backends, and nftables.

A chain has the key ``(chain, backend, family, table, name)``. Tables, sets and maps of nftables have such keys with
their own kind. Rules of iptables are lines of iptables-save without "-A CHAIN", those of nftables are JSON without
counters and handles.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from typing import Any, Container, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from .. import commands
from ..errors import HostError
from ..json_text import parse_json
from ..paths import kernel_text
from ..struct import field, struct

# Texts; readers of whole states keep them among keys that have numbers, too.
ChainKey = Tuple[Any, ...]
CHAIN, TABLE = "chain", "table"
LEGACY, NFT, NFTABLES = "iptables-legacy", "iptables-nft", "nftables"
BACKENDS = (NFT, LEGACY)
FAMILIES = {"ipv4": "iptables", "ipv6": "ip6tables"}
NFT_FAMILIES = {"ip": "ipv4", "ip6": "ipv6"}
TIMEOUT = 30
INCOMPATIBLE = "rules_incompatible"
NOT_INSTALLED = "rules_tool_missing"
NOT_UNDERSTOOD = "rules_unreadable"
# What iptables-nft shows of its tables is the better text: nft does not know all of their matches.
_XTABLES = frozenset(("filter", "nat", "mangle", "raw", "security"))
_NAMES = {"ipv4": "/proc/net/ip_tables_names", "ipv6": "/proc/net/ip6_tables_names"}
_WORD = r'"(?:[^"\\]|\\.)*"|[^\s"]+'
_WORDS = re.compile(_WORD, re.ASCII | re.DOTALL)
# Texts in quotes may contain line breaks, and then what looks like a line is none.
_RULE = re.compile(rf"-A (\S+)((?: +(?:{_WORD}))*) *$", re.ASCII | re.DOTALL | re.MULTILINE)
_CHAIN = re.compile(r":(\S+) (\S+)(?: \[\d+:\d+\])?", re.ASCII)
_TABLE = re.compile(r"\*(\S+)", re.ASCII)
_INCOMPATIBLE = re.compile(r"# Table `([^']*)' is incompatible")
_PLAIN = re.compile(r"[^\x00-\x20\x7f\"'\\]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SHOWN = 80
_ENTRIES = frozenset((TABLE, CHAIN, "rule", "set", "map"))
_PASSING = frozenset(("handle", "packets", "bytes", "used", "expires", "index"))
_OF_A_BASE_CHAIN = ("type", "hook", "prio", "policy", "dev")
NO_POLICY = "-"
"""What iptables shows for a chain that is not built in."""


class Chain(NamedTuple):
    """A chain, table, set or map: ``body`` is its policy (iptables) or its properties, ``rules`` rules or elements."""

    body: Any
    rules: List[str]


@struct
class FoundChains:
    """What was read: ``chains``, of those of nftables the ``handles`` of their rules, and what is ``unread``.

    ``unread``: (backend, family, table, chain), or the beginning of it for all of a table, family or backend, () for
    everything -> why.
    A line that nothing is known of stands in the place of the chain.
    """

    chains: Dict[ChainKey, Chain] = field(default_factory=dict)
    handles: Dict[ChainKey, List[int]] = field(default_factory=dict)
    unread: Dict[Tuple[str, ...], HostError] = field(default_factory=dict)

    def why_unread(self, key: ChainKey) -> Optional[HostError]:
        """Return why nothing is known of a chain, or of the table that *key* ends with; None if it was read."""
        errors = (self.unread.get(key[1:end]) for end in range(1, 6))
        return next((error for error in errors if error is not None), None)

    def table(self, backend: str, family: str, table: str) -> Dict[str, List[str]]:
        """Return the rules of each chain of one table."""
        return {key[4]: chain.rules for key, chain in self.chains.items() if key[:4] == (CHAIN, backend, family, table)}


def read_chains() -> FoundChains:
    """Read the firewall of this thread's namespace. Needs root; changes nothing."""
    firewall = FoundChains()
    entries = _query_nft(firewall)
    shown: Set[Tuple[str, str]] = set()
    for kind, family in NFT_FAMILIES.items():
        read_iptables(firewall, LEGACY, family)
        # Without tables of its family, iptables-nft has nothing to show.
        has_tables = entries is None or any(_is_of_iptables(entry, kind) for entry in entries)
        shown.update((kind, table) for table in read_iptables(firewall, NFT, family, has_tables))
    if entries is not None:
        parse_nftables(firewall, entries, shown)
    return firewall


# ---- iptables


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


def switched_backends(keys: Iterable[ChainKey]) -> Dict[ChainKey, str]:
    """Return (backend of iptables, family) that have rules of *keys* and that plugins no longer use -> present backend.

    Plugins run ``iptables`` and ``ip6tables``, whichever backend that is. A command that cannot be run tells nothing.
    """
    places = dict.fromkeys((str(key[1]), str(key[2])) for key in keys if key[0] == CHAIN and key[1] in BACKENDS)
    switched: Dict[ChainKey, str] = {}
    for backend, family in places:
        path = shutil.which(FAMILIES[family])
        with contextlib.suppress(HostError):
            said = commands.run_command([path, "--version"], TIMEOUT).stdout if path is not None else b""
            present = NFT if b"nf_tables" in said else LEGACY
            if said.startswith(f"{FAMILIES[family]} v".encode()) and present != backend:
                switched[backend, family] = present
    return switched


def read_iptables(firewall: FoundChains, backend: str, family: str, has_tables: bool = True) -> Set[str]:
    """Add the chains of one backend and family, if it *has_tables*. Returns the tables that it shows."""
    try:
        dump = dump_iptables(backend, family, has_tables)
    except HostError as error:
        firewall.unread[backend, family] = error
        return set()
    return parse_iptables(firewall, backend, family, dump)


def dump_iptables(backend: str, family: str, has_tables: bool = True, options: Sequence[str] = ()) -> str:
    """Return what iptables-save prints with *options*, "" if there are no tables. Raises HostError."""
    # Without tables of the old backend, running its tool would make the kernel create them.
    if backend != NFT and not kernel_text(_NAMES[family]):
        return ""
    save = tool(backend, family, "save")
    if save is None:
        text = f"{FAMILIES[family]}-save of {backend} is not installed; install it (package iptables)"
        raise HostError(text, code=NOT_INSTALLED)
    return printed([save, *options]) if has_tables else ""


def printed(argv: List[str], stdin: bytes = b"") -> str:
    """Return what a command of the firewall prints. Raises HostError."""
    done = commands.run_command(argv, TIMEOUT, stdin)
    if done.rc != 0:
        raise commands.failure(argv, f"exit status {done.rc}", done.stderr)
    return done.stdout.decode("utf-8", "surrogateescape")


def parse_iptables(firewall: FoundChains, backend: str, family: str, dump: str) -> Set[str]:
    """Add what iptables-save has printed, whatever it is. Returns the tables that it shows."""
    table, tables, place = "", set(), 0
    while place < len(dump):
        rule = _RULE.match(dump, place)
        end = rule.end() if rule else dump.find("\n", place)
        line = dump[place:end] if end >= 0 else dump[place:]
        place += len(line) + 1
        section, chain, hidden = _TABLE.fullmatch(line), _CHAIN.fullmatch(line), _INCOMPATIBLE.match(line)
        if hidden:
            text = (
                f"the table {hidden.group(1)} of {backend} ({family}) contains rules that were made with nft and that "
                "iptables cannot show; move those rules to a table of their own"
            )
            firewall.unread[backend, family, hidden.group(1)] = HostError(text, code=INCOMPATIBLE)
        elif section:
            table = section.group(1)
            tables.add(table)
        elif line == "COMMIT":
            table = ""
        elif table and chain:
            firewall.chains[CHAIN, backend, family, table, chain.group(1)] = Chain(chain.group(2), [])
        elif table and rule:
            key = CHAIN, backend, family, table, rule.group(1)
            firewall.chains.setdefault(key, Chain("-", [])).rules.append(rule.group(2).strip(" "))
        elif line.strip() and not line.startswith("#"):
            # Outside of a table, the line that begins one was not understood.
            where = (backend, family, table, _chain_in(line)) if table else (backend, family)
            firewall.unread.setdefault(where, _not_understood(f"{FAMILIES[family]}-save of {backend}", line))
    return (tables & _XTABLES) - {key[2] for key in firewall.unread if key[:2] == (backend, family) and len(key) == 3}


def _chain_in(line: str) -> str:
    """Return the chain of a line of iptables-save that is not understood; the line if it names none."""
    name = re.match(r"(?:-A |:)(\S+)", line)
    return name.group(1) if name else line


def _not_understood(whose: str, text: str) -> HostError:
    return HostError(f"{whose} printed {text[:_SHOWN]!r}, which is not understood", code=NOT_UNDERSTOOD)


def words_of(rule: str) -> List[str]:
    """Return the words of a rule of iptables, without the quotes and backslashes that xtables_save_string adds."""
    return [
        re.sub(r"\\(.)", r"\1", word[1:-1], flags=re.DOTALL) if word.startswith('"') else word
        for word in _WORDS.findall(rule)
    ]


def rule_line(rule: str) -> str:
    """Return a rule of iptables, built from its words, for iptables-restore. Raises ValueError if that is another rule.

    iptables-restore reads lines, so that what follows a line break in a comment would be a rule of its own.
    """
    words = words_of(rule)
    parts = []
    for word in words:
        escaped = re.sub(r'(["\\\'])', r"\\\1", word)
        parts.append(word if _PLAIN.fullmatch(word) else f'"{escaped}"')
    line = " ".join(parts)
    read = _RULE.fullmatch(f"-A - {rule}".rstrip(" "))
    if not read or _CONTROL.search(line) or words_of(line) != words:
        raise ValueError(f"the rule {rule[:_SHOWN]!r} cannot be written as it was read")
    return line


# ---- nftables


def read_nftables(firewall: FoundChains) -> None:
    """Add what nft shows."""
    entries = _query_nft(firewall)
    if entries is not None:
        parse_nftables(firewall, entries)


def _query_nft(firewall: FoundChains) -> Optional[List[Any]]:
    """Return the entries of nft's JSON, None if they cannot be read, which is noted."""
    argv = ["nft", "-j", "list", "ruleset"]
    try:
        path = commands.find_command("nft")
        if path is None:
            raise HostError("nft is not installed; install it (package nftables)", code=NOT_INSTALLED)
        argv[0] = path
        entries = parse_json(printed(argv))["nftables"]
    except HostError as error:
        firewall.unread[(NFTABLES,)] = error
        return None
    except (ValueError, KeyError, TypeError):
        firewall.unread[(NFTABLES,)] = commands.failure(argv, "its output is not JSON of nftables")
        return None
    return entries if isinstance(entries, list) else [entries]


def _is_of_iptables(entry: Any, family: str) -> bool:
    """Tell whether an entry of nft's JSON may be a table of iptables-nft."""
    table = entry.get(TABLE, {}) if isinstance(entry, dict) else None
    return not isinstance(table, dict) or (table.get("family") == family and table.get("name") in _XTABLES)


def parse_nftables(firewall: FoundChains, entries: Any, shown: Container[Tuple[str, str]] = ()) -> None:
    """Add the entries of nft's JSON, whatever they are, but for tables (family, name) that iptables has *shown*."""
    for entry in entries if isinstance(entries, list) else [entries]:
        family = table = name = ""
        try:
            ((kind, body),) = entry.items()
            if kind not in _ENTRIES:
                continue
            family, table = _text(body["family"]), _text(body["name" if kind == TABLE else "table"])
            name = "" if kind == TABLE else _text(body["chain" if kind == "rule" else "name"])
            if (family, table) not in shown:
                _add_entry(firewall, kind, (NFTABLES, family, table), name, body)
        except (AttributeError, KeyError, TypeError, ValueError):
            where = (NFTABLES, *(part for part in (family, table, name) if part))
            text = repr(entry)
            firewall.unread.setdefault(where if table else (*where, "", "", text), _not_understood("nft", text))


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("no text")
    return value


def _add_entry(firewall: FoundChains, kind: str, place: ChainKey, name: str, body: Mapping[str, Any]) -> None:
    if kind == TABLE:
        # nft shows it from 1.1 on.
        comment = {"comment": body["comment"]} if isinstance(body.get("comment"), str) else {}
        firewall.chains[(TABLE, *place)] = Chain(comment, [])
    elif kind == CHAIN:
        base = {key: body[key] for key in _OF_A_BASE_CHAIN if body.get(key) is not None}
        firewall.chains[(CHAIN, *place, name)] = Chain(base, [])
    elif kind == "rule":
        key, handle = (CHAIN, *place, name), int(body["handle"])
        firewall.chains.setdefault(key, Chain({}, [])).rules.append(rule_text(body))
        firewall.handles.setdefault(key, []).append(handle)
    else:
        elements = list(body.get("elem") or ())
        texts = sorted(json.dumps(_lasting(element), sort_keys=True) for element in elements)
        rest = {key: value for key, value in body.items() if key not in ("elem", "handle")}
        # The elements of a set with timeouts come and go.
        dynamic = "timeout" in rest or "timeout" in rest.get("flags", ()) or "dynamic" in rest.get("flags", ())
        firewall.chains[(kind, *place, name)] = Chain(_lasting(rest), [] if dynamic else texts)


def rule_text(rule: Mapping[str, Any]) -> str:
    """Return a rule of nft's JSON without what changes by itself."""
    statements = rule.get("expr") or []
    if not isinstance(statements, list) or not all(isinstance(statement, dict) for statement in statements):
        raise TypeError("no statements")
    shown: Dict[str, Any] = {"expr": _lasting(statements)}
    comment = rule.get("comment")
    if comment is not None:
        if not isinstance(comment, str):
            raise TypeError("no comment")
        shown["comment"] = comment
    return json.dumps(shown, sort_keys=True)


def _lasting(part: Any) -> Any:
    if isinstance(part, dict):
        kept = {key: _lasting(value) for key, value in part.items() if key not in _PASSING}
        # A counter without its numbers is written as null.
        return {key: None if key == "counter" and value == {} else value for key, value in kept.items()}
    return [_lasting(entry) for entry in part] if isinstance(part, list) else part


def jumps_of(backend: str, rule: str) -> List[str]:
    """Return the chains that a rule leads to."""
    if backend != NFTABLES:
        words = words_of(rule)
        return [target for option, target in zip(words, words[1:]) if option in ("-j", "-g")]
    return re.findall(r'"(?:jump|goto)": \{"target": "([^"]+)"', rule)


def survives(place: ChainKey, rule: str) -> bool:
    """Tell whether a *rule* or element that was read would be the same when it is put back."""
    if place[0] not in (CHAIN, TABLE):
        return True
    try:
        replayed(str(place[1]), rule)
    except ValueError:
        return False
    return True


def replayed(backend: str, rule: str) -> Any:
    """Return a rule as the command gets it: a line of iptables-restore, or JSON of nft. Raises ValueError."""
    if backend != NFTABLES:
        return rule_line(rule)
    try:
        content = parse_json(rule)
        if rule_text(content) == rule:
            return content
    except (AttributeError, TypeError) as error:
        raise ValueError(str(error)) from error
    raise ValueError("no rule of nftables")
