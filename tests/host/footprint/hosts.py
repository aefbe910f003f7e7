# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts made up from a seed: what an administrator has set up, networks on it, and what happens to both."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.upkeep import repair_all
from ansible_collections.podwire.cni.tests.host.footprint.facts import Facts, read_facts
from ansible_collections.podwire.cni.tests.host.footprint.site import flush_legacy, links
from ansible_collections.podwire.cni.tests.host.host import Host, sh, wait_until, with_iptables

BRIDGE, MADE, UPLINK = "br0", "cni7", "up0"
# Container IDs and networks that are also words of rules, tables and chains.
WORDS = ("web", "api", "nat", "filter", "br0", "accept", "input", "10.88.0.2", "CNI-FORWARD", "tcp")
OUTSIDE = "pwu-outside"
RUNTIME_CACHE = Path("/var/lib/cni")
NO_CACHE = "/run/home/none"
EVERYTHING = {"min_age": "0", "allow_empty": True, "scope": ["attachments", "leases", "rules", "cache", "links"]}
# What an ADD sets explicitly on an interface that leads to the container, and for the whole host.
SET_BY_ADDS = (
    re.compile(r"^sysctl net\.ipv[46]\.(ip_forward|conf\.\S+\.(forwarding|accept_redirects)) "),
    re.compile(rf"^sysctl net\.ipv[46]\.conf\.({BRIDGE}|{UPLINK})\.(accept_ra|route_localnet) "),
)
_ADDED = f"ip address add 10.89.0.250/32 dev {MADE}"
_TABLES = tuple(
    f"nft -f - <<'END'\n{text}\nEND"
    for text in (
        f"""table inet admin {{
          chain input {{
            type filter hook input priority 5
            iifname "{BRIDGE}" tcp dport 22 drop
            ip saddr 10.88.0.2 counter accept comment "web"
          }}
        }}""",
        "table ip cni_admin { chain web { ip saddr 10.88.0.0/16 counter; }; }",
        "table bridge web { chain forward { type filter hook forward priority 0; accept; }; }",
    )
)


class GeneratedHost:
    """One host. ``log`` tells what was done, as commands and names of steps. *done* counts it, by verbs."""

    def __init__(self, seed: int, host: Host, work: Path, generations: dict[str, Path], done: Counter[str]) -> None:
        self._choice = random.Random(seed)
        self._work = work
        self.log: list[str] = []
        self._done = done
        # Whether plugins refuse an ADD, for a reason that is none of the collection's.
        self._refuses = False
        self.generation = self._choice.choice(("old", "new"))
        self.backend = self._choice.choice(("nft", "nft", "legacy"))
        conf_dir = work / "net.d"
        conf_dir.mkdir()
        self.cache = work / "cache"
        defaults = {"bin_dirs": [str(generations[self.generation])], "cache_dir": str(self.cache)}
        self.host = host.with_defaults(conf_dir=str(conf_dir), **defaults)
        # A rehearsal hides /run.
        self._environment = {"PATH": with_iptables(self.backend, Path("/opt/pwu-path"))}
        self._sysctls = _sysctls()
        self._links = set(links())
        self.networks: dict[str, dict[str, Any]] = {}
        self.containers: list[dict[str, Any]] = []
        self.attached: set[str] = set()

    def _sh(self, script: str) -> None:
        self.log.append(script)
        sh(script)

    def _try(self, verb: str, script: str) -> None:
        self.log.append(script)
        self._done[verb] += sh(f"{script}\necho done", check=False).endswith("done")

    def _some(self, things: list[str]) -> str:
        return "\n".join(thing for thing in things if self._choice.random() < 0.6)

    # ---- the host

    def make(self) -> None:
        pick = self._choice.choice
        both = [f"iptables-{self.backend}", f"iptables-{pick(('nft', 'legacy'))}"]
        self._sh(
            f"""
            ip netns add {OUTSIDE}
            ip link add {UPLINK} type veth peer name up1 netns {OUTSIDE}
            ip -n {OUTSIDE} link set up1 up
            ip link set {UPLINK} up
            ip address add 192.0.2.1/24 dev {UPLINK}
            ip link add {BRIDGE} address 02:00:00:00:01:01 type bridge stp_state {pick((0, 1))} \
              ageing_time {pick((30000, 12345))} mcast_snooping {pick((0, 1))} forward_delay {pick((200, 1500))}
            ip link set {BRIDGE} mtu {pick((1400, 1500, 1450))} txqueuelen {pick((1000, 55))} up
            ip address add 10.88.0.1/16 {pick(("", "brd +"))} dev {BRIDGE}
            ip address add fd00:88::1/64 dev {BRIDGE} nodad
            ip route add default via 192.0.2.2 metric {pick((0, 7))}
            sysctl -q -w net.ipv4.ip_forward={pick((0, 1))} net.ipv6.conf.{BRIDGE}.accept_ra={pick((0, 1))}
            """
        )
        self._sh(
            self._some(
                [
                    f"ip address add 10.88.0.250/32 dev {BRIDGE}",
                    f"ip address add 192.0.2.50/32 dev {UPLINK}",
                    f"ip address add fd00:88::250/128 dev {BRIDGE} nodad",
                    f"ip link set {BRIDGE} alias web",
                    f"ip link add admin0 type veth peer name admin1 && ip link set admin0 master {BRIDGE}",
                    f"ip link set {BRIDGE} allmulticast on",
                    f"ip route add 198.51.100.0/24 via 10.88.0.9 dev {BRIDGE} proto static",
                    f"ip route add 203.0.113.0/25 via 10.88.0.2 dev {BRIDGE} metric 50",
                    f"ip route add 203.0.113.128/25 dev {BRIDGE} table 100",
                    "ip rule add from 10.88.0.0/16 lookup 100 pref 500",
                    "ip rule add from 10.88.0.2 lookup 100 pref 32765",
                    f"ip rule add iif {BRIDGE} lookup 100 pref 501",
                    f"ip neighbour add 10.88.0.77 lladdr 02:00:00:00:00:77 dev {BRIDGE}",
                    f"bridge fdb add 02:00:00:00:00:78 dev {BRIDGE} self",
                    f"ip link add vrf0 type vrf table 9 && ip link set {UPLINK} master vrf0 || true",
                    f"sysctl -q -w net.ipv4.conf.{BRIDGE}.rp_filter=2 net.ipv4.tcp_fin_timeout=33",
                    f"sysctl -q -w net.ipv4.conf.{BRIDGE}.route_localnet=1 net.ipv4.conf.{BRIDGE}.proxy_arp=1",
                    *(rule for tool in both for rule in _rules(tool)),
                    *_TABLES,
                ]
            )
        )
        self._make_networks()
        for word in self._choice.sample(WORDS, self._choice.randint(1, 3)):
            namespace = f"pwu-{word.lower()}"
            self._sh(f"ip netns add {namespace}; ip -n {namespace} link set lo up")
            network = pick(sorted(self.networks))
            self.containers.append({"network": network, "container_id": word, "netns": namespace})
        for number, container in enumerate(self.containers):
            if pick((True, False)):
                ports = [{"hostPort": 18080 + number, "containerPort": 80, "protocol": "tcp"}]
                container["capability_args"] = {"portMappings": ports}

    def _make_networks(self) -> None:
        for name in self._choice.sample(WORDS[:6], self._choice.randint(1, 2)):
            plugins = [self._main(), *self._chained()]
            types = {plugin["type"] for plugin in plugins}
            self._refuses = self._refuses or {"macvlan", "bandwidth"} <= types or len(plugins[0]["ipam"]["ranges"]) > 1
            conf = {"cniVersion": self._choice.choice(("0.4.0", "1.0.0")), "name": name, "plugins": plugins}
            self.networks[name] = conf
            Path(self.host.defaults["conf_dir"], f"{name}.conflist").write_text(json.dumps(conf))
            self.log.append(f"network {json.dumps(conf)}")

    def _main(self) -> dict[str, Any]:
        store, flip = str(self._work / "leases"), self._choice.choice

        def ipam(*subnets: str, **more: str) -> dict[str, Any]:
            ranges = [[{"subnet": subnet, **(more if not at else {})}] for at, subnet in enumerate(subnets)]
            return {"type": "host-local", "dataDir": store, "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}

        masquerades = {"ipMasq": flip((True, False)), "hairpinMode": flip((True, False))}
        own = [{"type": "bridge", "bridge": BRIDGE, **masquerades, "ipam": ipam("10.88.0.0/16", gateway="10.88.0.1")}]
        return flip(
            [
                *own,
                {**own[0], "isGateway": True},
                {**own[0], "isDefaultGateway": True, "ipam": {**own[0]["ipam"], "routes": []}},
                {**own[0], "isGateway": True, "ipam": ipam("10.88.0.0/16", "fd00:88::/64")},
                {
                    **own[0],
                    "bridge": MADE,
                    "isGateway": True,
                    "promiscMode": not masquerades["hairpinMode"],
                    "ipam": ipam("10.89.0.0/16"),
                },
                {"type": "ptp", "ipMasq": flip((True, False)), "ipam": ipam("10.90.0.0/24")},
                {"type": "macvlan", "master": UPLINK, "ipam": ipam("192.0.2.0/24", rangeStart="192.0.2.100")},
            ]
        )

    def _chained(self) -> list[dict[str, Any]]:
        found = [
            {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True},
            {"type": "bandwidth", "ingressRate": 80000000, "ingressBurst": 800000},
            {"type": "firewall"},
            {"type": "tuning", "sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"}},
        ]
        return [plugin for plugin in found if self._choice.random() < 0.5]

    def remove(self) -> None:
        names = [OUTSIDE, *(container["netns"] for container in self.containers)]
        sh("".join(f"ip netns delete {name} 2>/dev/null || true\n" for name in names))

        def removed() -> bool:
            new = set(links()) - self._links
            sh("".join(f"ip link delete {name} 2>/dev/null || true\n" for name in new))
            return not new

        wait_until(removed)
        sh("nft flush ruleset; for number in 500 501 32765; do ip rule delete pref $number 2>/dev/null || true; done")
        sh("ip route flush type unreachable")
        flush_legacy()
        shutil.rmtree(RUNTIME_CACHE, ignore_errors=True)
        shutil.rmtree("/run/podwire-cni/rehearsals", ignore_errors=True)
        shutil.rmtree("/opt/pwu-path")
        now = _sysctls()
        changed = {name: value for name, value in self._sysctls.items() if now.get(name, value) != value}
        for name, value in changed.items():
            with contextlib.suppress(OSError):
                Path("/proc/sys", name.replace(".", "/")).write_text(value)

    # ---- what happens

    def steps(self) -> list[Any]:
        """Return steps at random, ADDs first. A step of the administrator returns what the host has from then on."""
        harm = [self.break_something, self.administrate]
        repairs = [self.repair, self.remediate, self.audit, self.service]
        others = [self.attach, self.detach, self.renew, self.collect, self.die, self.abandon, self.report]
        weights = [6, 2, *(2 for _verb in repairs), *(1 for _verb in others)]
        return [self.attach, *self._choice.choices([*harm, *repairs, *others], weights, k=self._choice.randint(6, 12))]

    def _run(self, verb: str, module: str, host: Host | None = None, **arguments: Any) -> None:
        self.log.append(f"{module} {json.dumps(arguments)}")
        result = (host or self.host).attempt(module, environment=self._environment, **arguments)
        steps = result.get("plan") or result.get("actions", [])
        told = [f"{step['class']} {step['target']}: {step['reason']}" for step in steps]
        self.log.append(f"  -> {result.get('msg') or result.get('changed')} {told}")
        story = "\n".join(self.log)
        assert "Traceback" not in json.dumps(result), story
        assert not result.get("failed") or (self._refuses and result["code"] == "add_failed"), story
        self._done[verb] += sum(step.get("state", "done") == "done" and step["class"] != "foreign" for step in steps)

    def attach(self) -> None:
        self._run("attach", "cni_attach", attachments=self.containers)
        self.attached = {container["container_id"] for container in self.containers}

    def detach(self) -> None:
        one = self._choice.choice(self.containers)
        absent = {name: one[name] for name in ("network", "container_id")}
        self._run("detach", "cni_attach", attachments=[{**absent, "state": "absent"}])
        self.attached.discard(one["container_id"])

    def renew(self) -> None:
        one = self._choice.choice(self.containers)
        namespace = one["netns"]
        self._sh(f"ip netns delete {namespace}; ip netns add {namespace}; ip -n {namespace} link set lo up")
        self._run("renew", "cni_attach", attachments=[one])

    def die(self) -> None:
        namespace = self._choice.choice(self.containers)["netns"]
        self._sh(f"ip netns delete {namespace}")
        self.collect()
        self._sh(f"ip netns add {namespace}; ip -n {namespace} link set lo up")

    def abandon(self) -> None:
        """Give a network up: its containers end, its configuration goes, and what they left is collected."""
        network = self._choice.choice(sorted(self.networks))
        file = Path(self.host.defaults["conf_dir"], f"{network}.conflist")
        ended = [container["netns"] for container in self.containers if container["network"] == network]
        self._sh("".join(f"ip netns delete {namespace}\n" for namespace in ended) + f"rm {file}")
        self.collect()
        self._sh("".join(f"ip netns add {namespace}; ip -n {namespace} link set lo up\n" for namespace in ended))
        file.write_text(json.dumps(self.networks[network]))

    def report(self) -> None:
        self._run("check", "cni_attach", attachments=self._living(), check_mode=True)
        self._run("info", "cni_info", gather=["kernel", "audit"])

    def repair(self) -> None:
        self._run("repair", "cni_attach", attachments=self._living(), on_drift="repair")

    def remediate(self) -> None:
        attachments = {"attachments": self._living(), "on_drift": "repair"}
        self._run("remediate", "cni_host", attachments=attachments, audit=True)

    def audit(self) -> None:
        """Look at the same attachments as if a runtime had made them, and put back what they have lost."""
        shutil.rmtree(RUNTIME_CACHE, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            shutil.copytree(self.cache / "results", RUNTIME_CACHE / "results")
        self._run("audit", "cni_host", self.host.with_defaults(cache_dir=NO_CACHE), audit=True)
        shutil.rmtree(RUNTIME_CACHE, ignore_errors=True)

    def service(self) -> None:
        self.log.append("the repair service")
        path, os.environ["PATH"] = os.environ["PATH"], self._environment["PATH"]
        try:
            repaired, _left = repair_all(str(self.cache))
        finally:
            os.environ["PATH"] = path
        self._done["service"] += len(repaired)

    def collect(self) -> None:
        self._run("gc", "cni_gc", **EVERYTHING)

    def _living(self) -> list[dict[str, Any]]:
        living = [container for container in self.containers if container["container_id"] in self.attached]
        return living or self.containers

    def break_something(self) -> None:
        """Break what an ADD has made."""
        namespace = self._choice.choice(self.containers)["netns"]
        ends = [name for name in links() if name.startswith("veth")]
        end = self._choice.choice(ends) if ends else "none"
        tools = [f"{family}-{backend}" for family in ("iptables", "ip6tables") for backend in ("nft", self.backend)]
        lines = [
            (tool, table, line)
            for tool in tools
            for table, line in _saved(tool)
            if re.search(r" -j CNI-|-A CNI-(?!ADMIN)", line)
        ]
        ways = [
            f"ip -n {namespace} route flush dev eth0",
            f"ip -n {namespace} address flush dev eth0 scope global",
            f"ip -n {namespace} link set eth0 down",
            f"ip -n {namespace} link delete eth0",
            f"ip -n {namespace} rule delete pref 32766",
            f"ip link set {end} down",
            f"ip link set {end} nomaster",
            f"ip link delete {end}",
            f"ip link set {MADE} down",
            # What the administrator has added to it would go as well.
            *(f"ip {words} {MADE}" for words in ("address flush dev", "link delete") if _ADDED not in self.log),
            "nft delete table ip cni_hostport",
            "rm -f " + str(self._work / "leases" / "*" / "1*"),
        ]
        if lines:
            tool, table, line = self._choice.choice(lines)
            ways += [f"{tool} -t {table} -D{line[2:]}", f"{tool} -t {table} -F {line.split()[1]}"] * 3
            if line.split()[1] in ("FORWARD", "POSTROUTING", "PREROUTING", "OUTPUT", "INPUT"):
                ways = [way for way in ways if " -F " not in way]
        way = self._choice.choice(ways)
        # An ADD of a container that is not attached needs the table main.
        self._refuses = self._refuses or "rule delete" in way
        self._try("break", way)

    def administrate(self) -> tuple[Facts, Facts]:
        """Change what the host has of its own; return the facts before and after."""
        tool = f"iptables-{self._choice.choice((self.backend, 'nft'))}"
        ways = [
            f"ip address delete 10.88.0.250/32 dev {BRIDGE}",
            f"ip address add 10.88.0.251/32 dev {BRIDGE}",
            f"ip address add 192.0.2.51/32 dev {UPLINK}",
            _ADDED,
            f"ip route replace 198.51.100.0/24 via 10.88.0.8 dev {BRIDGE} proto static",
            f"ip route add 198.51.100.64/26 via 10.88.0.2 dev {BRIDGE}",
            f"ip route add unreachable 203.0.113.{self._choice.randint(1, 9)}",
            "ip route replace default via 192.0.2.3 metric 7",
            "ip rule delete pref 500",
            f"ip link set {BRIDGE} txqueuelen {self._choice.randint(60, 90)}",
            f"ip link set {BRIDGE} type bridge stp_state {self._choice.randint(0, 1)} ageing_time 23456",
            f"ip link set {BRIDGE} mtu {self._choice.choice((1420, 1500))}",
            f"{tool} -A INPUT -i {BRIDGE} -p tcp --dport {self._choice.randint(1, 99)} -j DROP",
            f"{tool} -D INPUT 1",
            f"{tool} -I FORWARD 1 -s 10.88.0.2 -m comment --comment web -j ACCEPT",
            f"{tool} -t nat -I POSTROUTING 1 -s 10.88.0.2 -m comment --comment 'name: web id: api' -j RETURN",
            f"{tool} -N CNI-ADMIN; {tool} -A CNI-ADMIN -d 10.88.0.2 -j RETURN",
            "nft add rule inet admin input ip saddr 203.0.113.7 drop",
            "nft delete table inet admin",
            f"sysctl -q -w net.ipv4.tcp_fin_timeout={self._choice.randint(30, 60)}",
            f"sysctl -q -w net.ipv4.conf.{BRIDGE}.rp_filter={self._choice.randint(0, 2)}",
        ]
        before = read_facts()
        self._try("administrate", self._choice.choice(ways))
        return before, read_facts()


def _rules(tool: str) -> list[str]:
    return [
        f"{tool} -A INPUT -i {BRIDGE} -p tcp --dport 22 -j DROP",
        f"{tool} -A INPUT -i {BRIDGE} -m comment --comment 'CNI of web' -j ACCEPT",
        f"{tool} -N WEB-CNI-x && {tool} -A WEB-CNI-x -s 10.88.0.2 -j RETURN && {tool} -A FORWARD -j WEB-CNI-x",
        f"{tool} -A FORWARD -s 10.88.0.2 -m comment --comment 'name: web id: api' -j ACCEPT",
        f"{tool} -A FORWARD -i {BRIDGE} ! -o {BRIDGE} -j DROP",
        f"{tool} -t nat -A POSTROUTING -s 10.88.0.0/16 ! -o {BRIDGE} -j MASQUERADE",
        f"{tool} -t nat -A PREROUTING -p tcp --dport 80 -m comment --comment web -j DNAT --to-destination 10.88.0.2:80",
    ]


def _saved(tool: str) -> list[tuple[str, str]]:
    if tool.endswith("legacy"):
        names = Path(f"/proc/net/{tool.partition('tables')[0]}_tables_names")
        if not (names.exists() and names.read_text().strip()):
            return []
    table, found = "", []
    for line in sh(f"{tool}-save 2>/dev/null || true").splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith("-A "):
            found.append((table, line))
    return found


def _sysctls() -> dict[str, str]:
    lines = sh("sysctl -a -e --pattern '^net[.]' 2>/dev/null").splitlines()
    return {name: value for name, _is, value in (line.partition(" = ") for line in lines)}
