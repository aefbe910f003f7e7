# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of a host and its containers, taken with iproute2, iptables and nft.

What tells whether a repair was complete must not be the code that repairs. A picture has only what lasts: no counters,
timers, learned entries, link-local addresses. Rules of others, with the address 203.0.113.9, are left out.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ansible_collections.podwire.cni.plugins.module_utils._host.netns import Netns, visit
from ansible_collections.podwire.cni.tests.host.host import sh

OTHERS = "203.0.113.9"
_FLAGS = {"UP", "PROMISC", "ALLMULTI", "NOARP"}
# What bridges and their ports tell of the spanning tree and of what they have learned.
_PASSING = re.compile(
    r"_timer$|^(tcn?|topology_change.*|root_.*|bridge_id|designated_.*|state|id|no|config_pending|hold|proto_down.*)$"
    r"|^(fdb_n_learned|message_age.*|forward_delay_.*|mcast_.*|port_.*|cost|timer_.*|group_addr|used|expires)$"
)
# The addresses of multicast groups that an interface listens to come and go.
_LASTING_NEIGHBOUR = re.compile(r"PERMANENT|^(?!33:33:|01:00:5e).*permanent")
_SYSCTLS_FOLLOWING = frozenset(("mtu", "stable_secret"))
_XTABLES = frozenset(("filter", "nat", "mangle", "raw", "security"))
_BUILT_IN = re.compile(r":[A-Z]+ ACCEPT")
_NFT_PASSING = frozenset(("handle", "packets", "bytes"))


def take(spaces: dict[str, str]) -> dict[str, Any]:
    """Return section -> content. *spaces*: name of each namespace -> its path; "" is the host."""
    found: dict[str, Any] = {}
    for name, path in spaces.items():
        label, where = name or "host", f"-n {name}" if name else ""
        parts = f"{sh(_commands(where))}\n".split("=====\n")
        for section, lines in (
            ("links", _links(parts[0], inside=bool(name))),
            ("addresses", _addresses(parts[0])),
            ("routes", _routes(parts[1], parts[2])),
            ("rules", sorted(parts[3].splitlines())),
            ("traffic", _traffic(parts[4])),
            ("neighbours", sorted(filter(_LASTING_NEIGHBOUR.search, parts[5].splitlines()))),
        ):
            found[f"{label} {section}"] = lines
        names = [link["ifname"] for link in json.loads(parts[0])]
        found[f"{label} sysctls"] = visit([Netns(path)], lambda: sysctls(names))[path] if path else sysctls(names)  # noqa: B023 - called at once
    found["iptables"] = _iptables()
    found["nftables"] = _nftables()
    return found


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return what differs between two pictures."""
    found = []
    for section in one:
        was, now = one[section], other[section]
        if isinstance(was, dict):
            keys = sorted(key for key in was.keys() | now.keys() if was.get(key) != now.get(key))
            found += [f"{section}: {key} was {was.get(key)}, is {now.get(key)}" for key in keys]
        elif was != now:
            found += [f"{section}: - {line}" for line in was if line not in now]
            found += [f"{section}: + {line}" for line in now if line not in was]
            if sorted(was) == sorted(now):
                found.append(f"{section}: in another order: {now}")
    return found


def _commands(where: str) -> str:
    # Without a queue (noqueue, or noop while it is down), an interface has no filters.
    return f"""
        ip {where} -json -d address; echo =====
        ip {where} -4 -json -d -N route show table all; echo =====
        ip {where} -6 -json -d -N route show table all; echo =====
        ip {where} rule; ip {where} -6 rule; echo =====
        tc {where} qdisc show | while read -r _ kind number _ device rest; do
          echo "qdisc $kind $number dev $device $rest"
          [[ $kind = no* ]] || for parent in ingress root; do
            tc {where} filter show dev $device $parent 2>/dev/null | sed "s/^/$device $parent /" || true
          done
        done; echo =====
        ip {where} neighbour
        bridge {where} fdb
    """


def _links(text: str, inside: bool) -> dict[str, Any]:
    found = {}
    for link in json.loads(text):
        info = link.get("linkinfo", {})
        kind = info.get("info_kind", "")
        shown = {key: link.get(key) for key in ("ifindex", "mtu", "txqlen", "master", "ifalias", "link", "link_index")}
        shown["flags"] = sorted(_FLAGS.intersection(link["flags"]))
        if inside or kind not in ("veth", "bridge"):
            shown["address"] = link.get("address")
        shown["kind"] = kind
        for part in ("info_data", "info_slave_data"):
            data = info.get(part, {})
            shown[part] = {key: value for key, value in data.items() if not _PASSING.search(key)}
        found[link["ifname"]] = shown
    return found


def _addresses(text: str) -> list[str]:
    return sorted(
        " ".join(str(part) for part in (link["ifname"], *_address(address)))
        for link in json.loads(text)
        for address in link["addr_info"]
        if not address["local"].startswith("fe80:")
    )


def _address(address: dict[str, Any]) -> list[Any]:
    return [address.get(key) for key in ("local", "prefixlen", "address", "broadcast", "scope", "metric")]


def _routes(four: str, six: str) -> list[str]:
    # By number: unicast is 1, broadcast 3, anycast 4, multicast 5; 2 is the kernel's protocol, 255 the local table.
    found = []
    for family, text in ((4, four), (6, six)):
        for route in json.loads(text or "[]"):
            kind, table, made = (str(route.get(key, "")) for key in ("type", "table", "protocol"))
            by_kernel = kind in ("3", "4", "5", "broadcast", "anycast", "multicast") or (
                family == 6 and table in ("255", "local")
            )
            if by_kernel or (made in ("2", "kernel") and route["dst"].startswith(("fe80:", "::1"))):
                continue
            keys = ("type", "dst", "gateway", "dev", "table", "prefsrc", "metric", "scope", "protocol")
            found.append(" ".join(f"{key} {route[key]}" for key in keys if key in route))
    return sorted(found)


def _traffic(text: str) -> dict[str, list[str]]:
    """Return what each interface has, in order."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        # The kernel chooses the numbers of default disciplines and of actions.
        if re.match(r"qdisc (noqueue|fq_codel|pfifo_fast) 0:", line):
            continue
        line = re.sub(r" refcnt \d+|\s+index \d+ ref \d+ bind \d+| (not_in_hw|chain \d+)", "", line).strip()
        line = re.sub(r"\(rule hit \d+ success \d+\)|\(success \d+ ?\)", "", line)
        words = line.split()
        found.setdefault(words[4] if words[0] == "qdisc" else words[0], []).append(line)
    return found


def sysctls(names: list[str]) -> dict[str, str]:
    """Return the sysctls of interfaces of this thread's namespace, and those that plugins set for all."""
    root = Path("/proc/sys/net")
    paths = [root / name for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding", "core/somaxconn")]
    for family in ("ipv4", "ipv6"):
        for name in names:
            folder = root / family / "conf" / name
            paths += sorted(folder.iterdir()) if folder.exists() else []
    found = {}
    for path in paths:
        if path.name not in _SYSCTLS_FOLLOWING:
            try:
                found[str(path.relative_to(root))] = path.read_text().strip()
            except OSError:
                continue
    return found


def _iptables() -> dict[str, list[str]]:
    """Return the rules of each chain in order, and the chains that plugins have made."""
    found: dict[str, list[str]] = {}
    for tool in ("iptables-nft", "ip6tables-nft", "iptables-legacy", "ip6tables-legacy"):
        family = "ip6" if tool.startswith("ip6") else "ip"
        names = Path(f"/proc/net/{family}_tables_names")
        if tool.endswith("legacy") and not (names.exists() and names.read_text().strip()):
            continue
        table = ""
        for line in sh(f"{tool}-save 2>/dev/null").splitlines():
            if line.startswith("*"):
                table = line
            elif line.startswith(":") and not _BUILT_IN.match(line):
                found.setdefault(f"{tool} {table} {line[1:].split()[0]}", [])
            elif line.startswith("-A ") and OTHERS not in line:
                found.setdefault(f"{tool} {table} {line.split()[1]}", []).append(line)
    return found


def _nftables() -> dict[str, list[str]]:
    """Return the rules of each chain of tables that are not those of iptables."""
    found: dict[str, list[str]] = {}
    for entry in json.loads(sh("nft -j list ruleset"))["nftables"]:
        ((kind, body),) = entry.items()
        table = body.get("table", body.get("name"))
        if kind == "metainfo" or table == "pwf_other" or (body["family"] in ("ip", "ip6") and table in _XTABLES):
            continue
        place = f"{body['family']} {table}"
        if kind == "rule":
            text = json.dumps([_lasting(body["expr"]), body.get("comment")])
            found.setdefault(f"{place} {body['chain']}", []).append(text)
        elif kind == "chain":
            found.setdefault(f"{place} {body['name']}", []).insert(
                0, json.dumps({key: body.get(key) for key in ("type", "hook", "prio", "policy")})
            )
        else:
            found[f"{place} {kind} {body['name']}"] = [json.dumps(_lasting(body), sort_keys=True)]
    return found


def _lasting(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _lasting(value) for key, value in part.items() if key not in _NFT_PASSING}
    return [_lasting(entry) for entry in part] if isinstance(part, list) else part
