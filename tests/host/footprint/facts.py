# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is set to, as its own tools tell it: iproute2, iptables, nft and sysctl, not the code that is tested."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Iterable, Mapping

from ansible_collections.podwire.cni.tests.host.host import sh

# One shell for all tools, as most of the time is their start.
_TOOLS = {
    "links": "ip -json -details link",
    "addresses": "ip -json address",
    "routes": "ip -json -details route show table all",
    "rules": "ip -json -details rule",
    "rules6": "ip -6 -json -details rule",
    "neighbours": "ip -json neighbour show nud permanent",
    "vlans": "bridge -json vlan",
    "fdb": "bridge -json fdb",
    "nft": "nft -j list ruleset 2>/dev/null",
    "iptables-nft": "iptables-nft-save 2>/dev/null",
    "ip6tables-nft": "ip6tables-nft-save 2>/dev/null",
    "iptables-legacy": "[ -s /proc/net/ip_tables_names ] && iptables-legacy-save || true",
    "ip6tables-legacy": "[ -s /proc/net/ip6_tables_names ] && ip6tables-legacy-save || true",
    "sysctls": "sysctl -a -e --pattern '^net[.]' 2>/dev/null",
}
_END = "----- end of a tool -----"
# What changes by itself, as ports come and go: counters, timers, states, numbers.
_VOLATILE_LINK = (
    *("ifindex", "link_index", "operstate", "flags"),
    *("promiscuity", "allmulti", "num_tx_queues", "num_rx_queues"),
)
_VOLATILE_BRIDGE = re.compile(r"timer|root_|topology|bridge_id|designated|hello_timer|fdb_n_learned")
_VOLATILE_SYSCTL = re.compile(
    r"conntrack_(count|max|buckets)|nf_conntrack_max|inet_peer|\.tcp_fastopen_key|neigh\.|\.mtu$"
)
_COUNTERS = re.compile(r" *\[\d+:\d+\]")

Fact = tuple[str, ...]


class Facts:
    """``items``: single facts and how often each is so; ``chains``: the rules of each chain in their order."""

    def __init__(self, items: Counter[Fact], chains: Mapping[Fact, list[str]]) -> None:
        self.items = items
        self.chains = dict(chains)

    def missing_in(self, other: Facts, allowed: Iterable[re.Pattern[str]] = ()) -> list[str]:
        """Return what of these facts is no longer so, unless it matches one of *allowed*."""
        gone = [" ".join(item) for item in (self.items - other.items)]
        for place, rules in self.chains.items():
            left = iter(other.chains.get(place, ()))
            gone += [f"{' '.join(place)}: {rule} is gone, or at another place" for rule in rules if rule not in left]
        return sorted(text for text in gone if not any(pattern.search(text) for pattern in allowed))

    def changed_by(self, before: Facts, after: Facts) -> Facts:
        """Return these facts after somebody has made of *before* what is in *after*."""
        items = self.items - (before.items - after.items) + (after.items - before.items)
        chains: dict[Fact, list[str]] = {}
        for place, rules in after.chains.items():
            known = Counter(self.chains.get(place, ())) + (Counter(rules) - Counter(before.chains.get(place, ())))
            kept = [rule for rule in rules if known[rule] > 0 and not known.subtract([rule])]
            if kept:
                chains[place] = kept
        return Facts(items, chains)


def read_facts() -> Facts:
    script = "".join(f"{command}\necho '{_END}'\n" for command in _TOOLS.values())
    texts = dict(zip(_TOOLS, sh(script).split(f"{_END}")))
    items: Counter[Fact] = Counter()
    chains: dict[Fact, list[str]] = {}
    for link in json.loads(texts["links"]):
        _add_link(items, link)
    for link in json.loads(texts["addresses"]):
        for address in link["addr_info"]:
            if address["scope"] != "link":
                kept = {name: value for name, value in address.items() if not name.endswith("life_time")}
                kept.pop("tentative", None)
                items["address", link["ifname"], _text(kept)] += 1
    for name in ("routes", "rules", "rules6", "neighbours", "vlans", "fdb"):
        for entry in json.loads(texts[name].strip() or "[]"):
            if not _passing(name, entry):
                if "flags" in entry:
                    # A bridge without ports has no carrier.
                    entry["flags"] = [flag for flag in entry["flags"] if flag not in ("linkdown", "dead")]
                items[name, _text(entry)] += 1
    for name in ("iptables-nft", "ip6tables-nft", "iptables-legacy", "ip6tables-legacy"):
        _add_saved(name, texts[name], items, chains)
    _add_nft(texts["nft"], items, chains)
    for line in texts["sysctls"].splitlines():
        if line.strip() and not _VOLATILE_SYSCTL.search(line.partition(" = ")[0]):
            items["sysctl", line] += 1
    return Facts(items, chains)


def _add_link(items: Counter[Fact], link: dict[str, Any]) -> None:
    name = link["ifname"]
    flags = [flag for flag in link["flags"] if flag in ("UP", "PROMISC", "ALLMULTI", "NOARP")]
    items["link", name, "flags", _text(flags)] += 1
    for setting, value in link.items():
        if setting == "linkinfo":
            data = value.get("info_data") or {}
            for inner, told in data.items():
                # A change of the topology makes STP forget sooner for a while.
                if not (_VOLATILE_BRIDGE.search(inner) or (inner == "ageing_time" and data.get("stp_state"))):
                    items["link", name, f"{value['info_kind']} {inner}", _text(told)] += 1
        elif setting not in _VOLATILE_LINK and not setting.startswith(("stats", "tso_", "gso_", "gro_")):
            items["link", name, setting, _text(value)] += 1


def _passing(name: str, entry: dict[str, Any]) -> bool:
    """Tell whether an entry comes and goes with interfaces."""
    if name == "routes":
        target = str(entry.get("dst", ""))
        return entry.get("protocol") == "kernel" and (":" in target or entry.get("type") in ("multicast", "anycast"))
    if name == "fdb":
        # An interface joins groups some time after it was made.
        return entry.get("state") != "permanent" or bool(int(entry["mac"][:2], 16) & 1)
    return False


def _add_saved(tool: str, text: str, items: Counter[Fact], chains: dict[Fact, list[str]]) -> None:
    table = ""
    for line in text.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith(":"):
            items[tool, table, _COUNTERS.sub("", line)] += 1
        elif line.startswith("-A "):
            chains.setdefault((tool, table, line.split()[1]), []).append(line)


def _add_nft(text: str, items: Counter[Fact], chains: dict[Fact, list[str]]) -> None:
    for entry in json.loads(text.strip() or '{"nftables": []}')["nftables"]:
        ((kind, told),) = entry.items()
        if kind == "metainfo" or told.get("table", told.get("name")) in ("filter", "nat", "mangle", "raw", "security"):
            # Those of iptables-nft have been read.
            continue
        told.pop("handle", None)
        plain = re.sub(r'\{"counter": \{[^}]*\}\}', '"counter"', json.dumps(told, sort_keys=True))
        if kind == "rule":
            chains.setdefault(("nft", told["family"], told["table"], told["chain"]), []).append(plain)
        else:
            items["nft", kind, plain] += 1


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
