# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The whole firewall of a namespace as its tools write it, to be put into another namespace."""

from __future__ import annotations

import os
from typing import Any, Collection, Dict, List, Tuple

from .. import commands
from ..errors import HostError
from ..json_text import parse_json
from .chains import (
    FAMILIES,
    LEGACY,
    NFT,
    NFT_FAMILIES,
    NFTABLES,
    NOT_INSTALLED,
    TABLE,
    FoundChains,
    dump_iptables,
    parse_iptables,
    printed,
    tool,
)


class FirewallDump:
    """The rules of this thread's namespace. ``missing``: why some are not in it, each as a clause."""

    def __init__(self) -> None:
        self.missing: List[str] = []
        self._iptables: Dict[Tuple[str, str], str] = {}
        self._tables: Dict[Tuple[str, str], str] = {}
        self._nft = commands.find_command("nft")
        # The tool would load the module.
        self._ipset = commands.find_command("ipset") if os.path.isdir("/sys/module/ip_set") else None
        self._sets = printed([self._ipset, "save"]) if self._ipset is not None else ""
        tables = self._list_tables()
        for kind, family in NFT_FAMILIES.items():
            self._read_iptables(LEGACY, family)
            # Without tables of its family, iptables-nft has nothing to show.
            shown = self._read_iptables(NFT, family) if any(table[0] == kind for table in tables) else ()
            tables = [table for table in tables if table[0] != kind or table[1] not in shown]
        for kind, name in tables if self._nft is not None else ():
            self._tables[kind, name] = printed([str(self._nft), "-s", "list", "table", kind, name])
        queues = any("NFQUEUE" in text for text in self._iptables.values())
        if queues or any(" queue" in text for text in self._tables.values()):
            self.missing.append("packets are given to a program (queue), which a copy does not have")

    def _list_tables(self) -> List[Tuple[str, str]]:
        if self._nft is None:
            self.missing.append("nft is not installed, so that rules of nftables are not known")
            return [(kind, "") for kind in NFT_FAMILIES]
        entries: Any = parse_json(printed([self._nft, "-j", "list", "tables"]))["nftables"]
        return [(entry[TABLE]["family"], entry[TABLE]["name"]) for entry in entries if TABLE in entry]

    def _read_iptables(self, backend: str, family: str) -> Collection[str]:
        """Read one backend; return the tables that it shows."""
        firewall = FoundChains()
        try:
            text = dump_iptables(backend, family)
        except HostError as error:
            self.missing.append(error.msg)
            return ()
        shown = parse_iptables(firewall, backend, family, text)
        self.missing += [error.msg for error in firewall.unread.values()]
        if shown:
            self._iptables[backend, family] = text
        return shown

    @property
    def rules(self) -> List[Any]:
        """All rules, without counters and times."""
        lines = [
            (*place, [_without_counters(line) for line in text.splitlines() if not line.startswith("#")])
            for place, text in self._iptables.items()
        ]
        return [lines, sorted(self._tables.items()), self._sets]

    @property
    def lines(self) -> List[str]:
        """All lines of the tools, without counters."""
        texts = [*self._iptables.values(), *self._tables.values()]
        return [_without_counters(line.strip()) for text in texts for line in text.splitlines()]

    def restore(self) -> List[str]:
        """Make the rules in this thread's namespace. Return what could not be made, each as a clause."""
        failed = []
        if self._ipset is not None and self._sets:
            # Rules of iptables name them.
            try:
                printed([self._ipset, "restore"], self._sets.encode("utf-8", "surrogateescape"))
            except HostError as error:
                failed.append(f"the sets of ipset cannot be made again: {error.msg}")
        for (backend, family), text in self._iptables.items():
            try:
                path = tool(backend, family, "restore")
                if path is None:
                    raise HostError(f"{FAMILIES[family]}-restore is not installed", code=NOT_INSTALLED)
                printed([path], text.encode("utf-8", "surrogateescape"))
            except HostError as error:
                failed.append(f"the rules of {backend} ({family}) cannot be made again: {error.msg}")
        for (kind, name), text in self._tables.items():
            try:
                printed([str(self._nft), "-f", "-"], text.encode("utf-8", "surrogateescape"))
            except HostError as error:
                failed.append(f"the table {name} of {NFTABLES} ({kind}) cannot be made again: {error.msg}")
        return failed


def _without_counters(line: str) -> str:
    """Return a line of iptables-save; only those of chains have counters, which come last."""
    return line.rpartition(" [")[0] if line.startswith(":") and line.endswith("]") else line
