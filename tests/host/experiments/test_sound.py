# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Networks that work, on hosts on which they work: an experiment finds no fault, whatever is special about them."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.trials.experiment import Subject, try_networks
from ansible_collections.podwire.cni.tests.host.experiments.breaks import BIN_DIR, STORE, UPLINK, WORLD, on_a_new_host
from ansible_collections.podwire.cni.tests.host.experiments.truth import what_happens
from ansible_collections.podwire.cni.tests.host.host import needs

DEFAULT4, DEFAULT6 = [{"dst": "0.0.0.0/0"}], [{"dst": "::/0"}]
LEASES = {"type": "host-local", "dataDir": str(STORE)}
LAN = {**LEASES, "subnet": "192.0.2.0/24", "rangeStart": "192.0.2.100", "gateway": "192.0.2.1"}
LAN6 = {**LEASES, "subnet": "2001:db8::/64", "rangeStart": "2001:db8::100", "gateway": "2001:db8::1"}
PODS = {**LEASES, "subnet": "10.88.7.0/24", "routes": DEFAULT4}
ONE = {"rangeStart": "10.88.7.9", "rangeEnd": "10.88.7.9"}
BRIDGE = {"type": "bridge", "bridge": "pwxbr0", "isGateway": True, "ipMasq": True, "ipam": PODS}
ON_LAN = {"type": "bridge", "bridge": "pwxlan", "ipam": {**LAN, "routes": DEFAULT4}}
FILTERED = f"ip link add pwxlan up type bridge vlan_filtering 1; ip link set {UPLINK} master pwxlan"
FILTERING = f"{FILTERED}; bridge vlan add dev {UPLINK} vid 5"
NO_FORWARDING = "sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0"


def macvlan(ipam, **keys):
    return {"type": "macvlan", "master": UPLINK, "ipam": ipam, **keys}


def static(address, **keys):
    return {"type": "static", "addresses": [{"address": address, **keys}]}


def vlan(ipam):
    return {"type": "vlan", "master": UPLINK, "vlanId": 5, "ipam": ipam}


def ipvlan(ipam, **keys):
    return {"type": "ipvlan", "master": UPLINK, "ipam": ipam, **keys}


def on_another(name, link):
    """Return a script that moves the host's address and way out to an interface upon the uplink, or that it is in."""
    return f"""
    {link}; ip address flush dev {UPLINK}; ip address add 192.0.2.7/24 dev {name}
    ip route replace default via 192.0.2.1 dev {name}
    """


TAGGED = f"""
ip -n {WORLD} address flush dev up1 scope global; ip -n {WORLD} link add link up1 name up1.5 up type vlan id 5
ip -n {WORLD} address add 192.0.2.1/24 dev up1.5; ip -n {WORLD} address add 2001:db8::1/64 dev up1.5 nodad
"""
ON_VLAN = TAGGED + on_another("pwx.5", f"ip link add link {UPLINK} name pwx.5 up type vlan id 5")
IN_BOND = f"ip link add pwxbond up type bond; ip link set {UPLINK} down; ip link set {UPLINK} master pwxbond"
BOND = on_another("pwxbond", IN_BOND)


def fault(chain, script, version, plugins, real=False):
    """Return what an experiment says of a network on a host changed by *script*, "" if sound; and what is *real*."""

    def observe():
        ways = what_happens(chain) if real else set()
        fails = ["ADD"] if ways is None else sorted(ways)
        [seen] = try_networks([Subject("pwxsound", version, chain, [str(BIN_DIR)])])
        # CHECKs of some releases fail for sound networks.
        failed = [seen.failed] if seen.failed is not None and seen.failed.verb != "CHECK" else []
        return f"tried: {seen.unknown}{[*failed, *seen.lost, *seen.left, *fails] or ''}"

    said = on_a_new_host(plugins, script, observe)
    assert said.startswith("tried: ")
    return said.partition("tried: ")[2]


# name -> (chain, what is special about the host, version)
SOUND = {
    "loopback": ([{"type": "loopback"}], "", "1.0.0"),
    "no addresses": ([{"type": "bridge", "bridge": "pwxbr0"}], "", "1.0.0"),
    "no gateway": ([{"type": "bridge", "bridge": "pwxbr0", "ipam": {**PODS, "routes": []}}], "", "1.0.0"),
    "masquerading by others": (
        [{**BRIDGE, "ipMasq": False}],
        f"iptables -t nat -A POSTROUTING -s 10.88.7.0/24 -o {UPLINK} -j MASQUERADE",
        "1.0.0",
    ),
    "an old version": ([BRIDGE], "", "0.2.0"),
    "no version": ([BRIDGE], "", "0.1.0"),
    "one free address": ([{**BRIDGE, "ipam": {**PODS, **ONE}}], "", "1.0.0"),
    "a static address": ([{**BRIDGE, "ipam": static("10.88.7.9/24", gateway="10.88.7.1")}], "", "1.0.0"),
    "a fixed MAC": ([BRIDGE, {"type": "tuning", "mac": "02:00:00:00:00:07"}], "", "1.0.0"),
    "isolated containers": ([{**BRIDGE, "portIsolation": True}], "", "1.0.0"),
    "isolated by the firewall": ([BRIDGE, {"type": "firewall", "ingressPolicy": "isolated"}], "", "1.0.0"),
    "ptp": ([{"type": "ptp", "ipMasq": True, "ipam": PODS}], "", "1.0.0"),
    "tap": ([{"type": "tap", "ipam": {**PODS, "routes": []}}], "", "1.0.0"),
    "macvlan": ([macvlan({**LAN, "routes": DEFAULT4})], NO_FORWARDING, "1.0.0"),
    "macvlan, IPv6": ([macvlan({**LAN6, "routes": DEFAULT6})], "", "1.0.0"),
    "macvlan, passthru": ([macvlan(LAN, mode="passthru")], "", "1.0.0"),
    "macvlan, private": ([macvlan(LAN, mode="private")], "", "1.0.0"),
    "macvlan, static": ([macvlan(static("192.0.2.50/24", gateway="192.0.2.1"))], "", "1.0.0"),
    "macvlan, FORWARD drops": ([macvlan({**LAN, "routes": DEFAULT4})], "iptables -P FORWARD DROP", "1.0.0"),
    "a macvlan beside the host's own": (
        [macvlan({**LAN, "routes": DEFAULT4})],
        f"""
        ip link add link {UPLINK} name pwxown up type macvlan mode bridge; ip address add 192.0.2.9/24 dev pwxown
        ip tuntap add pwxtun mode tun; ip address add 10.9.9.1/24 dev pwxtun; ip link set pwxtun up
        """,
        "1.0.0",
    ),
    "macvlan, another router": ([macvlan({**LAN, "gateway": "192.0.2.254", "routes": DEFAULT4})], "", "1.0.0"),
    "a device": ([{"type": "host-device", "device": UPLINK}], "", "1.0.0"),
    "the host's own bridge": (
        [ON_LAN],
        f"""
        ip link add pwxlan type bridge; ip link set {UPLINK} master pwxlan; ip link set pwxlan up
        ip address add 192.0.2.8/24 dev pwxlan; ip address flush dev {UPLINK}; ip route replace default via 192.0.2.1
        {NO_FORWARDING}
        """,
        "1.0.0",
    ),
    "the host's own bridge, and no way out for the host": (
        [ON_LAN],
        f"ip link add pwxlan up type bridge; ip link set {UPLINK} master pwxlan; ip route delete default",
        "1.0.0",
    ),
    "a route in another table": (
        [BRIDGE],
        """
        ip route delete default; ip route add default via 192.0.2.1 table 77
        ip rule add from all table 77 priority 32768
        """,
        "1.0.0",
    ),
    "two routers": (
        [BRIDGE],
        f"""
        ip route replace default nexthop via 192.0.2.1 dev {UPLINK} nexthop via 192.0.2.2 dev {UPLINK} weight 2
        ip -6 route replace default nexthop via 2001:db8::1 dev {UPLINK} nexthop via 2001:db8::2 dev {UPLINK}
        """,
        "1.0.0",
    ),
    "a router with IPv6 only": (
        [BRIDGE],
        f"ip -n {WORLD} address add fe80::77/64 dev up1; ip route replace default via inet6 fe80::77 dev {UPLINK}",
        "1.0.0",
    ),
    # systemd-networkd makes one of what a router announces, since 256.
    "a nexthop object": (
        [BRIDGE],
        f"ip nexthop add id 7 via 192.0.2.1 dev {UPLINK}; ip route replace default nhid 7",
        "1.0.0",
    ),
    "only web pages may leave": (
        [BRIDGE],
        """
        iptables -A FORWARD -p tcp -m multiport --dports 443,8080,8081 -j ACCEPT
        iptables -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
        iptables -P FORWARD DROP
        """,
        "1.0.0",
    ),
    "no packets from odd addresses": ([BRIDGE], "iptables -A FORWARD -d 198.18.0.0/15 -j DROP", "1.0.0"),
    "a name server elsewhere": (
        [{**BRIDGE, "ipam": {**PODS, "resolvConf": "/run/home/pwx-resolv"}}],
        "echo nameserver 192.0.2.53 > /run/home/pwx-resolv",
        "1.0.0",
    ),
    "comments with brackets": ([BRIDGE], "iptables -A FORWARD -m comment --comment 'a [b] c' -j ACCEPT", "1.0.0"),
    "a name that needs quotes": ([BRIDGE], "ip link add 'pw\"x' type veth peer name pwxother", "1.0.0"),
    "other containers, and their limits": (
        [BRIDGE],
        """
        ip link add pwxbr0 up type bridge
        for number in 1 2 3; do
          ip netns add pwxpod$number; ip link add pwxend$number type veth peer name eth0 netns pwxpod$number
          ip link set pwxend$number master pwxbr0 up
          tc qdisc add dev pwxend$number root handle 1: tbf rate 1mbit burst 32kbit latency 400ms
        done
        """,
        "1.0.0",
    ),
    "the gateway is on a pair of the host": (
        [{"type": "bridge", "bridge": "pwxbr0", "ipam": {**PODS, "gateway": "10.88.7.1"}}],
        f"""
        ip link add pwxbr0 up type bridge; ip link add pwxgw0 type veth peer name pwxgw1
        ip link set pwxgw1 up master pwxbr0; ip link set pwxgw0 up; ip address add 10.88.7.1/24 dev pwxgw0
        iptables -t nat -A POSTROUTING -s 10.88.7.0/24 -o {UPLINK} -j MASQUERADE
        # Else packets are seen by iptables on the bridge first, and no more when they leave.
        sysctl -qew net.bridge.bridge-nf-call-iptables=0
        """,
        "1.0.0",
    ),
    "IPv6 is off": ([BRIDGE], "sysctl -qw net.ipv6.conf.{all,default}.disable_ipv6=1", "1.0.0"),
}  # fmt: skip


# name -> (what the kernel needs, chain, what is special about the host)
OTHER_KINDS = {
    "vlan": (["vlan id 6"], [vlan({**LAN, "routes": DEFAULT4})], TAGGED),
    "vlan, IPv6": (["vlan id 6"], [vlan({**LAN6, "routes": DEFAULT6})], TAGGED),
    "vlan on a bridge": (["vlan id 6"], [{**ON_LAN, "vlan": 5}], f"{FILTERING}; {TAGGED}"),
    "vlan on a bridge, untagged outside": (["vlan id 6"], [{**ON_LAN, "vlan": 5}], f"{FILTERING} pvid untagged"),
    "vlan on a bridge that has the gateway": (["vlan id 6"], [{**BRIDGE, "vlan": 5}], ""),
    "vlan on a bridge whose gateway the host has": (
        ["vlan id 6"],
        [{"type": "bridge", "bridge": "pwxbr0", "vlan": 5, "ipam": {**PODS, "gateway": "10.88.7.1"}}],
        f"""
        ip link add pwxbr0 up type bridge vlan_filtering 1; bridge vlan add dev pwxbr0 vid 5 self
        ip link add link pwxbr0 name pwxbr0.7 up type vlan id 5; ip address add 10.88.7.1/24 dev pwxbr0.7
        iptables -t nat -A POSTROUTING -s 10.88.7.0/24 -o {UPLINK} -j MASQUERADE
        """,
    ),
    "an interface of a VLAN": (["vlan id 6"], [{**macvlan({**LAN, "routes": DEFAULT4}), "master": "pwx.5"}], ON_VLAN),
    "ipvlan": (["ipvlan"], [ipvlan({**LAN, "routes": DEFAULT4})], ""),
    "ipvlan, IPv6": (["ipvlan"], [ipvlan({**LAN6, "routes": DEFAULT6})], ""),
    "macvlan on a bond": (["bond"], [{**macvlan({**LAN, "routes": DEFAULT4}), "master": "pwxbond"}], BOND),
    "the way out by a bond": (["bond"], [BRIDGE], BOND),
    "the way out by a VLAN": (["vlan id 6"], [BRIDGE], ON_VLAN),
}


@pytest.mark.parametrize("name", OTHER_KINDS)
def test_links_of_all_kinds_work(name, generations):
    kinds, chain, script = OTHER_KINDS[name]
    needs(*kinds)
    assert fault(chain, script, "1.0.0", generations["new"], real=True) == ""


def test_a_bridge_with_containers_is_behind_the_host(generations):
    script = """
    ip link add pwxbr0 up type bridge; ip address add 10.88.7.1/24 dev pwxbr0; ip netns add pwxpod
    ip link add pwxend master pwxbr0 up type veth peer name eth0 netns pwxpod; ip -n pwxpod link set eth0 up
    """
    said = fault([{**BRIDGE, "ipMasq": False}], script, "1.0.0", generations["new"])
    assert said.count("Lost(") == 1
    assert "by='kept'" in said


@pytest.mark.parametrize("mode", ["l3", "l3s"])
def test_ipvlans_of_layer_3_are_behind_the_host(mode, generations):
    needs("ipvlan")
    chain = [ipvlan({**LEASES, "subnet": "10.88.9.0/24", "routes": DEFAULT4}, mode=mode)]
    said = fault(chain, f"ip -n {WORLD} route add 10.88.9.0/24 via 192.0.2.7", "1.0.0", generations["new"], real=True)
    assert said.count("Lost(") == 1
    assert "by='kept'" in said


@pytest.mark.parametrize("name", SOUND)
def test_a_network_that_works_has_no_fault(name, generations):
    assert fault(*SOUND[name], generations["new"], real="pair" in name) == ""
