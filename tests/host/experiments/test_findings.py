# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What an experiment has seen is one finding: what drops packets by its name, and which verb of which plugin fails."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.runtime import Network
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.experiment import Subject, try_networks
from ansible_collections.podwire.cni.plugins.module_utils._host.trials.readiness import shown_by
from ansible_collections.podwire.cni.tests.host.experiments.breaks import (
    BIN_DIR,
    BRIDGE,
    CHAIN,
    NETWORK,
    UPLINK,
    WORLD,
    on_a_new_host,
)
from ansible_collections.podwire.cni.tests.host.host import needs, sh

IPV4 = [{**CHAIN[0], "ipam": {**CHAIN[0]["ipam"], "ranges": [[{"subnet": "10.88.7.0/24"}]]}}]
UNMASQUERADED = [{key: value for key, value in IPV4[0].items() if key != "ipMasq"}]
FORWARDED = "iptables -A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT"
# As the programs write them, as far as they matter to packets.
UFW = f"""
for name in ufw-before-forward ufw-user-forward ufw-reject-forward; do iptables -N $name; done
{FORWARDED.replace("FORWARD", "ufw-before-forward")}
for name in ufw-before-forward ufw-reject-forward; do iptables -A FORWARD -j $name; done
iptables -A ufw-before-forward -j ufw-user-forward
iptables -P FORWARD DROP
"""
DOCKER = """
iptables -N DOCKER-USER; iptables -N DOCKER-FORWARD
for name in DOCKER-USER DOCKER-FORWARD; do iptables -A FORWARD -j $name; done
iptables -A DOCKER-FORWARD -i docker0 -j ACCEPT
"""
# As for a VPN, which marks what goes through its own table. The kernel finds the way back of ARP in the main one.
MARKED = f"""
ip link add {BRIDGE} up type bridge; ip route add 10.88.7.0/24 dev {BRIDGE} table 78
iptables -t mangle -A OUTPUT -d 10.88.7.0/24 -j MARK --set-mark 1; ip rule add fwmark 1 table 78
for name in {UPLINK} {BRIDGE}; do ip rule add to 10.88.7.0/24 iif $name table 78; done
ip route add 10.88.7.0/25 via 192.0.2.1; sysctl -qw net.ipv4.conf.all.rp_filter=1
"""
# name -> (what the host has, code and level of the finding, words in its message)
DROPPING = {
    "ufw": (UFW, "packets_lost", "error", "the policy of the chain FORWARD of the table filter (ip) drops them"),
    "Docker's policy": (
        f"{DOCKER} iptables -P FORWARD DROP",
        "packets_lost",
        "error",
        "the policy of the chain FORWARD of the table filter (ip) drops them",
    ),
    "DOCKER-USER": (
        f"{DOCKER} iptables -A DOCKER-USER -i {BRIDGE} -p tcp -j DROP",
        "packets_lost",
        "error",
        f'a rule of the chain DOCKER-USER of the table filter (ip) drops them (iifname "{BRIDGE}"',
    ),
    "an own table": (
        "nft 'add table inet corp; add chain inet corp guard { type filter hook forward priority 5; policy drop; }'",
        "packets_lost",
        "error",
        "the policy of the chain guard of the table corp (inet) drops them",
    ),
    "a rule of iptables-legacy": (
        "iptables-legacy -A FORWARD -p tcp --dport 443 -j DROP",
        "packets_lost",
        "error",
        "a rule of iptables-legacy drops them (ipv4 -A FORWARD -p tcp -m tcp --dport 443 -j DROP)",
    ),
    "the policy of iptables-legacy": (
        "iptables-legacy -P FORWARD DROP",
        "packets_lost",
        "error",
        "a rule of iptables-legacy drops them (ipv4 :FORWARD DROP)",
    ),
    "rp_filter": (MARKED, "packets_lost", "error", "(sysctl rp_filter)"),
    "no masquerading": ("", "not_masqueraded", "warning", "get no answers from outside (IPv4)"),
}
EVIDENCE = {"packets_lost": "to what is outside of the host (IPv4)", "not_masqueraded": "nothing masquerades it"}


def findings(chain):
    """Return what an experiment with *chain* has shown, as rows."""
    [seen] = try_networks([Subject(NETWORK, "1.0.0", chain, [str(BIN_DIR)])])
    network = Network(SimpleNamespace(path="/etc/cni/net.d/10-pods.conflist"), NETWORK, "1.0.0", chain)
    return [f"{one.code} {one.level}: {one.what} [{one.evidence}]" for one in shown_by(seen, network, False)]


@pytest.mark.parametrize("name", DROPPING)
def test_what_drops_packets_is_named(name, generation, generations):
    script, code, level, words = DROPPING[name]
    chain = UNMASQUERADED if code == "not_masqueraded" else IPV4
    said = on_a_new_host(generations[generation], script, lambda: "\n".join(findings(chain)))
    [finding] = [line for line in said.splitlines() if not line.startswith("check_unusable")]
    assert finding.startswith(f"{code} {level}: ")
    message, _bracket, evidence = finding.partition(" [")
    assert words in message
    assert EVIDENCE[code] in evidence


def test_containers_on_an_interface_without_carrier_reach_nobody(generation, generations):
    ipam = {key: value for key, value in IPV4[0]["ipam"].items() if key != "routes"}
    chain, script = [{"type": "macvlan", "master": UPLINK, "ipam": ipam}], f"ip -n {WORLD} link set up1 down"
    said = on_a_new_host(generations[generation], script, lambda: "\n".join(findings(chain)))
    assert said.startswith("packets_lost error: ")
    assert f"the interface {UPLINK} of the host has no carrier" in said and "to another (IPv4)" in said


REAL = 'exec -a "$0" "${0%/*}/real"'
# name -> (what the plugin does instead of the real one, the findings)
FAILING = {
    "CHECK": (
        f"""[ $CNI_COMMAND != CHECK ] || {{ echo '{{"code": 7, "msg": "the veth is odd"}}'; exit 1; }}; {REAL}""",
        "check_unusable info: CHECK of the network 'pwxnet' fails in a copy of this host: ",
        "the veth is odd [the plugin bridge returned the code 7]",
    ),
    "DEL": (
        f"""[ $CNI_COMMAND != DEL ] || {{ echo '{{"code": 999, "msg": "no way back"}}'; exit 1; }}; {REAL}""",
        "del_failed warning: DEL of the network 'pwxnet' fails in a copy of this host: ",
        "no way back [the plugin bridge returned the code 999]",
    ),
    "something left": (
        f"[ $CNI_COMMAND != DEL ] || exit 0; {REAL}",
        "leaked warning: DEL of the network 'pwxnet' leaves something behind",
        "[the lease of 10.88.7.2; the lease of 10.88.7.3; ",
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_verb_that_fails_after_the_add_is_a_finding(name, generations):
    script, begin, words = FAILING[name]

    def observe():
        plugin = Path(BIN_DIR, "bridge")
        plugin.rename(BIN_DIR / "real")
        plugin.write_text(f"#!/bin/bash\n{script}\n")
        plugin.chmod(0o755)
        return "\n".join(findings(IPV4))

    said = on_a_new_host(generations["new"], "", observe).splitlines()
    finding = said[0]
    # A DEL that fails leaves something, too.
    assert [line.partition(" ")[0] for line in said[1:]] == (["leaked"] if name == "DEL" else [])
    assert finding.startswith(begin)
    assert words in finding
    if name == "something left":
        assert "the interface eth0" in finding
        assert "the rule " in finding


# What cannot be in a copy -> what it needs, the master, words of the reason.
UNLIKE = {
    "ip tuntap add pwxtun mode tun; ip link set pwxtun up": ([], "pwxtun", "pwxtun is no Ethernet interface"),
    f"tc qdisc add dev {UPLINK} root tbf rate 8bit burst 10 latency 1ms": (
        [],
        UPLINK,
        "the queueing discipline tbf is not copied",
    ),
    "ip link add pwxbond type bond; ip link set pwxup0 down; ip link set pwxup0 master pwxbond": (
        ["bond"],
        "pwxup0",
        "pwxup0 is a port of pwxbond",
    ),
}


@pytest.mark.parametrize("script", UNLIKE)
def test_a_master_that_is_another_in_the_copy_is_not_known(script, generations):
    kinds, master, words = UNLIKE[script]
    needs(*kinds)
    chain = [{"type": "macvlan", "master": master, "ipam": {"type": "static", "addresses": []}}]
    said = on_a_new_host(generations["new"], script, lambda: "\n".join(findings(chain)))
    assert f"not_tried info: it is not known whether the network 'pwxnet' works: {words}" in said


# What a link of the host is, and a network that it excludes.
EXCLUDED = {
    "a VLAN of the same ID": ("vlan id 5", {"type": "vlan", "vlanId": 5}),
    "an ipvlan beside a macvlan": ("macvlan", {"type": "ipvlan"}),
    "a macvlan beside an ipvlan": ("ipvlan", {"type": "macvlan"}),
}


@pytest.mark.parametrize("name", EXCLUDED)
def test_what_a_link_of_the_host_excludes_fails_in_the_copy(name, generations):
    link, plugin = EXCLUDED[name]
    needs(link, "vlan id 6" if plugin["type"] == "vlan" else plugin["type"])
    chain = [{"master": UPLINK, "ipam": {"type": "static", "addresses": []}, **plugin}]
    script = f"ip link add link {UPLINK} name pwxother type {link}"
    said = on_a_new_host(generations["new"], script, lambda: "\n".join(findings(chain)))
    assert said.startswith("add_fails error: ")


def test_nothing_is_said_of_a_network_that_works(generation, generations):
    said = on_a_new_host(generations[generation], "", lambda: "\n".join(findings(IPV4)))
    assert not said or (generation == "old" and said.startswith("check_unusable"))
    assert sh("ip rule").count("77") == 0
