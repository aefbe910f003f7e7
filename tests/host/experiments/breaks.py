# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A host that works, and what breaks it, one thing at a time, enumerated from what a copy of it is made of."""

from __future__ import annotations

import copy
import itertools
import os
import shutil
from pathlib import Path
from typing import Callable, Iterator, NamedTuple

from ansible_collections.podwire.cni.plugins.module_utils.libcni.kernel import unshare
from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import DEFAULT_ROUTE, PORTMAP, bridge, host_local

UPLINK, WORLD, BRIDGE, NETWORK = "pwxup0", "pwxworld", "pwxbr0", "pwxnet"
BIN_DIR = Path("/run/home/pwx-bin")
STORE = Path("/run/home/pwx-leases")
# What a container talks to, beside the gateway of the bridge.
INTERNET = {"IPv4": "203.0.113.9", "IPv6": "2001:db8:9::9"}
HOST = {"IPv4": "192.0.2.7", "IPv6": "2001:db8::7"}
ROUTES = [*DEFAULT_ROUTE, {"dst": "::/0"}]
CHAIN = [
    bridge(BRIDGE, ipMasq=True, ipam=host_local("10.88.7.0/24", "fd00:88:7::/64", dataDir=str(STORE), routes=ROUTES)),
    PORTMAP,
    {"type": "firewall"},
    {"type": "tuning", "sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"}},
]


class Break(NamedTuple):
    """One thing that is changed by *script*, or by *change* in the chain."""

    name: str
    script: str = ""
    change: Callable[[list], None] | None = None

    @property
    def chain(self) -> list:
        plugins = copy.deepcopy(CHAIN)
        if self.change is not None:
            self.change(plugins)
        return plugins


def make_host(generation: Path) -> None:
    shutil.rmtree(BIN_DIR, ignore_errors=True)
    shutil.copytree(generation, BIN_DIR)
    shutil.rmtree(STORE, ignore_errors=True)
    STORE.mkdir(parents=True)
    sh(
        f"""
        ip netns add {WORLD}
        ip link add {UPLINK} type veth peer name up1 netns {WORLD}
        ip link set {UPLINK} up
        ip -n {WORLD} link set up1 up
        ip -n {WORLD} link set lo up
        ip address add {HOST["IPv4"]}/24 dev {UPLINK}
        ip address add {HOST["IPv6"]}/64 dev {UPLINK} nodad
        ip -n {WORLD} address add 192.0.2.1/24 dev up1
        ip -n {WORLD} address add 2001:db8::1/64 dev up1 nodad
        ip -n {WORLD} address add {INTERNET["IPv4"]}/32 dev lo
        ip -n {WORLD} address add {INTERNET["IPv6"]}/128 dev lo nodad
        ip route add default via 192.0.2.1
        ip -6 route add default via 2001:db8::1
        sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
        """
    )


def on_a_new_host(generation: Path, script: str, observe: Callable[[], str]) -> str:
    """Return what *observe* says on a host that *script* has changed, in a namespace that only this case has."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            unshare()
            sh("ip link set lo up")
            make_host(generation)
            sh(script or "true")
            os.write(writer, observe().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    sh("for name in $(ls /run/netns); do ip netns delete $name; done")
    sh("rm -rf /run/home/pwx-* /run/podwire-cni/experiments /etc/cni/tuning; rmdir /etc/cni 2>/dev/null || true")
    return said


def remove_host() -> None:
    sh(
        f"""
        ip link delete {BRIDGE} 2>/dev/null || true
        ip netns delete {WORLD} 2>/dev/null || true
        nft flush ruleset
        sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0
        umount {STORE} 2>/dev/null || true
        rm -rf {BIN_DIR} {STORE} /etc/cni/tuning
        rmdir /etc/cni 2>/dev/null || true
        """
    )


def breaks() -> list[Break]:
    every = itertools.chain(_binaries(), _sysctls(), _rules(), _policies(), _links(), _masters(), _files(), _chains())
    return list(every)


def _binaries() -> Iterator[Break]:
    for name in ("bridge", "host-local", "portmap", "firewall", "tuning"):
        yield Break(f"binary {name} gone", f"rm {BIN_DIR}/{name}")
        yield Break(f"binary {name} cut", f"truncate -s 4096 {BIN_DIR}/{name}")
        yield Break(f"binary {name} not executable", f"chmod 0644 {BIN_DIR}/{name}")
        yield Break(f"binary {name} other program", f"cp /bin/false {BIN_DIR}/{name}")


# Not those whose effect is a matter of time, or that only change what nobody here sends.
_TOGGLED = {
    "ipv4": "accept_local arp_announce arp_filter arp_ignore arp_notify forwarding log_martians proxy_arp rp_filter "
    "route_localnet send_redirects src_valid_mark bc_forwarding drop_unicast_in_l2_multicast",
    "ipv6": "accept_ra autoconf disable_ipv6 forwarding proxy_ndp accept_redirects accept_source_route "
    "drop_unicast_in_l2_multicast keep_addr_on_down",
}


def _sysctls() -> Iterator[Break]:
    for family, names in _TOGGLED.items():
        for place, name in itertools.product(("all", "default", UPLINK), names.split()):
            path = f"/proc/sys/net/{family}/conf/{place}/{name}"
            toggle = f"[ $(cat {path}) = 0 ] && echo 1 > {path} || echo 0 > {path}"
            yield Break(f"{family} {place} {name} toggled", toggle)
    for name in ("ipv4/ip_forward", "bridge/bridge-nf-call-iptables", "bridge/bridge-nf-call-ip6tables"):
        yield Break(f"{name} off", f"[ ! -e /proc/sys/net/{name} ] || echo 0 > /proc/sys/net/{name}")


_MATCHES = {"all": "", "tcp": "-p tcp", "udp": "-p udp", "in": f"-i {UPLINK}", "icmp": "-p icmp"}


def _rules() -> Iterator[Break]:
    for family, tool in (("IPv4", "iptables"), ("IPv6", "ip6tables")):
        source = "10.88.7.0/24" if family == "IPv4" else "fd00:88:7::/64"
        icmp = "-p icmp" if family == "IPv4" else "-p ipv6-icmp"
        matches = {**_MATCHES, "icmp": icmp, "source": f"-s {source}", "destination": f"-d {source}"}
        for backend, hook in itertools.product(("nft", "legacy"), ("INPUT", "FORWARD", "OUTPUT")):
            for what, match in matches.items():
                if not (hook == "OUTPUT" and what == "in"):
                    rule = f"{tool}-{backend} -A {hook} {match} -j DROP"
                    yield Break(f"{family} {backend} {hook} drops {what}", rule)
        yield Break(f"{family} raw drops", f"{tool} -t raw -A PREROUTING -s {source} -j DROP")
        yield Break(f"{family} mangle drops", f"{tool} -t mangle -A FORWARD -s {source} -j DROP")
        yield Break(f"{family} rejects", f"{tool} -A FORWARD -j REJECT")
        yield Break(f"{family} nat takes", f"{tool} -t nat -A PREROUTING -p tcp -j REDIRECT --to-ports 9")
        yield Break(f"{family} accepts before", f"{tool} -A FORWARD -j ACCEPT; {tool} -P FORWARD DROP")


def _chain(family: str, hook: str, policy: str, rule: str = "") -> str:
    made = f"type filter hook {hook} priority 5; policy {policy};"
    added = f"; add rule {family} own c {rule}" if rule else ""
    return f"nft 'add table {family} own; add chain {family} own c {{ {made} }}{added}'"


_NFT_MATCHES = (
    "meta l4proto tcp",
    f'oifname "{BRIDGE}"',
    "ct state invalid",
    "ct state established",
    "tcp dport 1-1000",
)
_HOOKS = ("prerouting", "input", "forward", "output", "postrouting")


def _policies() -> Iterator[Break]:
    tools, backends = ("iptables", "ip6tables"), ("nft", "legacy")
    for tool, backend, hook in itertools.product(tools, backends, ("INPUT", "FORWARD", "OUTPUT")):
        yield Break(f"{tool} {backend} policy {hook}", f"{tool}-{backend} -P {hook} DROP")
    for family, hook in itertools.product(("inet", "ip", "ip6"), _HOOKS):
        yield Break(f"nftables {family} {hook} policy", _chain(family, hook, "drop"))
        for what in _NFT_MATCHES:
            if not (what.startswith("oif") and hook in ("prerouting", "input")):
                yield Break(f"nftables {family} {hook} {what}", _chain(family, hook, "accept", f"{what} drop"))
    for hook in ("prerouting", "forward", "input"):
        yield Break(f"nftables bridge {hook} policy", _chain("bridge", hook, "drop"))


def _links() -> Iterator[Break]:
    yield Break("uplink down", f"ip link set {UPLINK} down")
    yield Break("no default route", "ip route delete default")
    yield Break("no default route IPv6", "ip -6 route delete default")
    yield Break("blackholes", "ip route add blackhole 0.0.0.0/2; ip route add blackhole 192.0.0.0/2")
    yield Break("other table", "ip rule add from 10.88.7.0/24 table 77; ip route add blackhole default table 77")
    yield Break("rule prohibits", "ip rule add from 10.88.7.0/24 prohibit")
    yield Break("bridge is a veth", f"ip link add {BRIDGE} type veth peer name pwxpeer")
    make = f"ip link add {BRIDGE} type bridge; ip address add 10.88.7.1/16 dev {BRIDGE}"
    yield Break("bridge has another address", make)
    yield Break("bridge has a port", f"ip link add {BRIDGE} type bridge; ip link set {BRIDGE} up")
    yield Break("bridge without address", f"ip link add {BRIDGE} mtu 1280 type bridge")
    yield Break("subnet elsewhere", f"ip route add 10.88.7.0/24 dev {UPLINK}")
    yield Break("address on uplink", f"ip address add 10.88.7.2/32 dev {UPLINK}")


_LAN = {"type": "host-local", "dataDir": str(STORE), "subnet": "192.0.2.0/24", "rangeStart": "192.0.2.100"}


def _on_uplink(**keys: object) -> Callable[[list], None]:
    """Have a network with one plugin on the uplink instead."""

    def change(plugins: list) -> None:
        plugins[:] = [{"master": UPLINK, "ipam": _LAN, **keys}]

    return change


def _masters() -> Iterator[Break]:
    below, bridge = f"ip link add link {UPLINK} name pwxother type", _on_uplink(type="macvlan")
    yield Break("macvlan beside macvlan", f"{below} macvlan mode bridge", bridge)
    yield Break("macvlan beside passthru", f"{below} macvlan mode passthru", bridge)
    yield Break("macvlan beside passthru macvtap", f"{below} macvtap mode passthru", bridge)
    yield Break("passthru beside macvlan", f"{below} macvlan mode private", _on_uplink(type="macvlan", mode="passthru"))
    yield Break("macvlan on a port", f"ip link add pwxlan type bridge; ip link set {UPLINK} master pwxlan", bridge)


def _files() -> Iterator[Break]:
    folder = STORE / NETWORK
    full = f"mkdir {folder}; for n in $(seq 1 254); do printf 'other\\neth0' > {folder}/10.88.7.$n; done"
    yield Break("pool full", full)
    last = f"{full}; rm {folder}/10.88.7.99"
    yield Break("one lease left", last)
    yield Break("two leases left", f"{full}; rm {folder}/10.88.7.99 {folder}/10.88.7.98")
    yield Break("damaged lease", f"mkdir {folder}; echo > {folder}/10.88.7.2")
    yield Break("directory for the last lease", f"{last}; mkdir {folder}/10.88.7.99")
    yield Break("link for the last lease", f"{last}; ln -s nothing {folder}/10.88.7.99")
    yield Break("directory for the lock", f"mkdir -p {folder}/lock")
    yield Break("last reserved damaged", f"mkdir {folder}; echo x > {folder}/last_reserved_ip.0")
    allowed = "mkdir -p /etc/cni/tuning; printf '%s\\n' '{}' > /etc/cni/tuning/allowlist.conf"
    yield Break("tuning forbidden", allowed.format("^net.ipv4.nothing$"))
    yield Break("tuning allowed", allowed.format("^net.ipv4.conf.IFNAME.arp_filter$"))


def _set(place: int, path: str, value: object) -> Callable[[list], None]:
    def change(plugins: list) -> None:
        entry = plugins[place]
        *parents, last = path.split(".")
        for name in parents:
            entry = entry[name]
        entry[last] = value

    return change


_VALUES = [
    (0, "mtu", "1400"), (0, "mtu", 1400), (0, "mtu", 100000), (0, "mtu", 68), (0, "vlan", 5000), (0, "vlan", 5),
    (0, "isGateway", "yes"), (0, "isGateway", False), (0, "ipMasq", 1), (0, "ipMasq", False), (0, "bridge", ""),
    (0, "bridge", "a-name-that-is-too-long"), (0, "hairpinMode", True), (0, "promiscMode", True), (0, "bridge", UPLINK),
    (0, "isDefaultGateway", True), (0, "forceAddress", True), (0, "ipam.routes", ["0.0.0.0/0"]),
    (0, "ipam.routes", [{"dst": "0.0.0.0/0", "gw": "10.99.0.1"}]), (0, "ipam.routes", [{"dst": "10.0.0.0/33"}]),
    (0, "ipam.routes", []), (0, "ipam.ranges", [[]]), (0, "ipam.ranges", []),
    (0, "ipam.ranges", [[{"subnet": "10.88.7.0/31"}]]), (0, "ipam.ranges", [[{"subnet": "10.88.7.1/24"}]]),
    (0, "ipam.ranges", [[{"subnet": "10.88.7.0/24", "rangeStart": "10.88.8.1"}]]),
    (0, "ipam.ranges", [[{"subnet": "10.88.7.0/24", "gateway": "10.88.9.1"}]]), (0, "ipam.type", "nothing"),
    (0, "ipam.ranges", [[{"subnet": "192.0.2.0/24", "rangeStart": "192.0.2.100", "rangeEnd": "192.0.2.150"}]]),
    (0, "ipam.ranges", [[{"subnet": "10.88.7.0/24", "rangeStart": "10.88.7.9", "rangeEnd": "10.88.7.9"}]]),
    (0, "ipam.ranges", [[{"subnet": "10.88.7.0/30"}]]), (0, "ipam.resolvConf", "/nothing"), (0, "ipam.type", "static"),
    (1, "backend", "nft"), (1, "snat", False), (1, "markMasqBit", 40), (1, "conditionsV4", ["-d", "192.0.2.7"]),
    (1, "externalSetMarkChain", "KUBE-MARK-MASQ"), (1, "masqAll", True),
    (2, "backend", "iptables"), (2, "backend", "firewalld"), (2, "ingressPolicy", "same-bridge"), (2, "backend", 5),
    (2, "ingressPolicy", "nothing"), (2, "iptablesAdminChainName", "CNI-FORWARD"), (2, "ingressPolicy", "isolated"),
    (3, "sysctl", ["net.ipv4.conf.IFNAME.arp_filter=1"]), (3, "sysctl", {"net.ipv4.conf.IFNAME.nothing": "1"}),
    (3, "sysctl", {"kernel.panic": "1"}), (3, "mtu", 1300), (3, "mac", "02:00:00:00:00:07"), (3, "mac", "nothing"),
    (3, "sysctl", {"net.ipv4.conf.all.forwarding": "0"}), (3, "allmulti", True), (3, "txQLen", 5),
    (3, "sysctl", {"net.ipv6.conf.IFNAME.disable_ipv6": "1"}),
]  # fmt: skip


def _chains() -> Iterator[Break]:
    for place, path, value in _VALUES:
        yield Break(f"{CHAIN[place]['type']} {path}={value!r}"[:70], "", _set(place, path, value))
    for rate in ({"ingressRate": 1000000}, {"ingressRate": 1000000, "ingressBurst": 100000}, {"egressBurst": 1}):
        yield Break(
            f"bandwidth {sorted(rate)}", "", lambda plugins, rate=rate: plugins.append({"type": "bandwidth", **rate})
        )
    for place in range(len(CHAIN)):
        yield Break(f"without {CHAIN[place]['type']}", "", lambda plugins, place=place: plugins.pop(place) and None)
    yield Break("firewall first", "", lambda plugins: plugins.insert(0, plugins.pop(2)))
    yield Break("twice", "", lambda plugins: plugins.append({**plugins[0], "bridge": "pwxbr0"}))
