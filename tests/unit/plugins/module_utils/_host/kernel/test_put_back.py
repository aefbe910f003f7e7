# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Every object of a namespace, found by reading it, is taken away alone and put back as it was."""

from __future__ import annotations

import socket
import struct
import subprocess

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import netlink
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.attribution import Attribution, Party
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.object_kinds import KINDS, repair_order
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.state import other_end
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel import sysctls
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.links import (
    MAKEABLE,
    NotInPlace,
    Place,
    _other_end,
    pack_kind,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.objects import (
    KernelObject,
    follows,
    read_objects,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.writer import Writer
from ansible_collections.podwire.cni.plugins.module_utils._host.netns import Netns, apart, visit
from ansible_collections.podwire.cni.plugins.module_utils.libcni.kernel import attributes_in, pack_attribute

HERE, THERE = "", "/run/netns/put-there"

# One object of each kind that a plugin makes, and some that only an unknown one would.
MAKE = """
set -e
ip netns add put-there
ip link add br0 type bridge
ip link add port0 type veth peer name eth0 netns put-there
ip link set port0 master br0
ip link add up0 type veth peer name up1
for name in lo br0 port0 up0 up1; do ip link set $name up; done
for name in lo eth0; do ip -n put-there link set $name up; done
ip link add link up0 name mac0 netns put-there type macvlan mode bridge
ip -n put-there link set mac0 up
ip addr add 10.60.0.1/24 dev br0
ip addr add fd60::1/64 dev br0 nodad
ip -n put-there addr add 10.60.0.2/24 dev eth0
ip -n put-there addr add fd60::2/64 dev eth0 nodad
ip -n put-there addr add 10.61.0.2/24 dev mac0
ip -n put-there route add default via 10.60.0.1
ip -n put-there route add default via fd60::1
ip -n put-there route add 192.0.2.0/24 via 10.60.0.1 table 100 metric 7
ip -n put-there route add 198.51.100.0/24 dev mac0 src 10.61.0.2
ip -n put-there route add blackhole 203.0.113.0/24
ip -n put-there route add 192.0.2.128/25 nexthop via 10.60.0.1 dev eth0 nexthop via 10.61.0.1 dev mac0 weight 3
ip -n put-there route add 2001:db8::/32 nexthop via fd60::1 dev eth0 nexthop via fd60::3 dev eth0 weight 3
ip -n put-there rule add from 10.60.0.2 table 100 priority 500
ip -n put-there -6 rule add from fd60::2 table 100 priority 501
ip -n put-there neigh add 10.60.0.9 lladdr 0a:00:00:00:00:09 dev eth0 nud permanent
ip -n put-there neigh add proxy 10.60.0.8 dev eth0
bridge fdb add 0a:00:00:00:00:07 dev port0 master static
tc -n put-there qdisc add dev eth0 root handle 1: tbf rate 8mbit burst 16k latency 25ms
ip link add ifb9 type ifb 2>/dev/null && ip link set ifb9 up
tc qdisc add dev port0 ingress
tc filter add dev port0 parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev ifb9
tc qdisc add dev ifb9 root handle 1: htb default 10
tc class add dev ifb9 parent 1: classid 1:10 htb rate 8mbit
ip netns exec put-there sysctl -qw net.ipv4.conf.eth0.arp_filter=1 net.ipv6.conf.eth0.accept_ra=0 net.core.somaxconn=321
"""

DELETE = {
    "addr": lambda key: ["ip", "addr", "del", f"{key[2]}/{key[3]}", "dev", key[1]],
    "neigh": lambda key: ["ip", "neigh", "del", *(["proxy"] if key[3] else []), key[2], "dev", key[1]],
    "link": lambda key: ["ip", "link", "del", key[1]],
    "fdb": lambda key: ["bridge", "fdb", "del", bytes.fromhex(key[2]).hex(":"), "dev", key[1]],
    "qdisc": lambda key: ["tc", "qdisc", "del", "dev", key[1], "ingress" if key[3] == 0xFFFF0000 else "root"],
    "filter": lambda key: ["tc", "filter", "del", "dev", key[1], "parent", "ffff:"],
    "class": lambda key: ["tc", "class", "del", "dev", key[1], "classid", f"{key[3] >> 16:x}:{key[3] & 0xFFFF:x}"],
}


def run(*argv):
    subprocess.run(argv, check=True, stderr=subprocess.PIPE)


def delete(space, key, there):
    if key[0] in ("route", "rule"):
        inside(space, lambda: drop(space, key, there))
        return
    program, *arguments = DELETE[key[0]](key)
    if key[0] == "fdb":
        arguments.append("self" if there.value["flags"] & 2 else "master")
    run(program, *(["-n", "put-there"] if space else []), *map(str, arguments))


def inside(space, work):
    """Return what *work* returns in the host's namespace or in the other one."""
    return visit([Netns(space)], work)[space] if space else apart(work)


def drop(space, key, there):
    with Writer(space, {}, {}) as writer:
        writer.drop(key, there)


@pytest.fixture
def spaces():
    subprocess.run(["bash", "-c", MAKE], check=True)
    yield [HERE, THERE]
    subprocess.run(["ip", "netns", "del", "put-there"], check=True)
    for name in ("br0", "port0", "up0", "ifb9"):
        # The kernel removes the other ends of a namespace's veths some time after it.
        subprocess.run(["ip", "link", "del", name], check=False, stderr=subprocess.DEVNULL)


def look(spaces):
    return {space: inside(space, read_objects) for space in spaces}


def differing(recorded, present):
    return [
        (space, key)
        for space, objects in recorded.items()
        for key, there in objects.items()
        if not there.derived
        and (key not in present[space] or differs(space, key, there.value, present[space][key].value))
    ]


def differs(space, key, value, now):
    if key[0] != "link":
        return value != now
    # The MAC of a host's bridge is that of its ports.
    return any(value[name] != now[name] for name in value if not follows(space, name, value))


def put_all(recorded, spaces):
    """Put back what is missing, as a repair does: kind by kind, with a look after each."""
    for _round in range(40):
        missing = differing(recorded, look(spaces))
        if not missing:
            return []
        missing.sort(key=lambda one: repair_order(one[1], recorded[one[0]][one[1]]))
        first = min(missing, key=lambda one: list(KINDS).index(one[1][0]))
        present = look(spaces)

        def work(space=first[0], key=first[1], present=present):
            now = present[space].get(key)
            with Writer(space, recorded, {one: Netns(one) for one in recorded}) as writer:
                if key[0] in ("conf4", "conf6"):
                    values = zip(sysctls.compared_names(key[0]), recorded[space][key].value)
                    for place, (name, value) in enumerate(values):
                        if name and now.value[place] != value:
                            one = recorded[space][key]._replace(value=value)
                            writer.put((*key, name), one, now.value[place])
                else:
                    writer.put(key, recorded[space][key], None if now is None else now.value)

        inside(first[0], work)
    return missing


def test_every_object_is_put_back(spaces):
    recorded = look(spaces)
    kinds = {key[0] for objects in recorded.values() for key in objects}
    assert kinds >= set(DELETE) - {"fdb"} | {"route", "rule", "conf4", "conf6"}
    tried = set()
    for space, objects in recorded.items():
        for key, there in objects.items():
            made = key[0] != "link" or (key[1] != "lo" and there.value["kind"] in MAKEABLE)
            # The kernel's own routing rules are not deleted here: without them there is no network to read.
            default = key[0] == "rule" and key[2] in (0, 32766, 32767)
            if key[0] in (*DELETE, "route", "rule") and not there.derived and made and not default:
                delete(space, key, there)
                assert differing(recorded, look(spaces)), f"{key} was not deleted"
                assert put_all(recorded, spaces) == [], key
                present = look(spaces)[space]
                assert present[key].ifindex == there.ifindex, key
                tried.add(key[0])
    assert tried == {*DELETE, "route", "rule"}


@pytest.mark.parametrize("family, gateway", [("-4", "10.60.0.1"), ("-6", "fd60::1")])
def test_a_route_by_a_nexthop_object_is_put_back_without_it(spaces, family, gateway):
    # As systemd-networkd makes the default route of a router's advertisement since 256.
    run("ip", "-n", "put-there", "nexthop", "add", "id", "7", "via", gateway, "dev", "eth0")
    run("ip", "-n", "put-there", family, "route", "add", "default", "nhid", "7", "metric", "9", "proto", "ra")
    recorded = look(spaces)
    # Its routes go with it.
    run("ip", "-n", "put-there", "nexthop", "del", "id", "7")
    assert len(differing(recorded, look(spaces))) == 1
    assert put_all(recorded, spaces) == []


@pytest.mark.parametrize(
    "damage",
    [
        "ip -n put-there link set eth0 down",
        "ip -n put-there link set eth0 mtu 1300",
        "ip -n put-there link set eth0 address 0a:0a:0a:0a:0a:0a",
        "ip -n put-there link set eth0 txqueuelen 7",
        "ip -n put-there link set eth0 down; ip -n put-there link set eth0 name eth9",
        "ip link set port0 nomaster",
        "bridge link set dev port0 hairpin on",
        "ip link set br0 type bridge ageing_time 1234",
        "ip link set br0 promisc on",
        "ip -n put-there addr flush dev eth0",
        "ip -n put-there route flush dev eth0",
        # A route through a gateway needs the table main.
        "ip -n put-there rule del pref 32766; ip -n put-there link del eth0",
        "ip link del br0; ip -n put-there link del eth0; ip -n put-there link del mac0",
        "ip netns exec put-there sysctl -qw net.ipv4.conf.eth0.arp_filter=0 net.ipv6.conf.eth0.accept_ra=1",
        "tc class change dev ifb9 classid 1:10 htb rate 4mbit",
        "tc qdisc del dev ifb9 root; tc qdisc add dev ifb9 root handle 1: htb default 20",
        "tc -n put-there qdisc change dev eth0 root handle 1: tbf rate 4mbit burst 16k latency 25ms",
        "tc -n put-there qdisc del dev eth0 root; tc -n put-there qdisc add dev eth0 root handle 1: htb default 20",
        ("tc qdisc del dev ifb9 root; tc qdisc add dev ifb9 root handle 1: tbf rate 4mbit burst 16k latency 25ms"),
    ],
)
def test_settings_are_put_back(spaces, damage):
    recorded = look(spaces)
    subprocess.run(["bash", "-ec", damage], check=True)
    assert differing(recorded, look(spaces))
    assert put_all(recorded, spaces) == []


def test_packets_that_an_htb_counts_change_nothing(spaces):
    subprocess.run(["bash", "-ec", "tc class del dev ifb9 classid 1:10"], check=True)
    recorded = look(spaces)
    key = ("qdisc", "ifb9", 0xFFFFFFFF, 0x10000)
    shown = recorded[HERE][key].raw

    def send():
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as packets:
            packets.bind(("ifb9", 0x0800))
            packets.send(bytes(64))

    inside(HERE, send)
    present = look(spaces)
    assert present[HERE][key].raw != shown, "the packet was not counted"
    assert present[HERE][key].value == recorded[HERE][key].value


def test_what_only_its_owner_can_make_is_refused(spaces):
    recorded = look(spaces)
    key = ("link", "eth0")
    physical = recorded[THERE][key]._replace(value={**recorded[THERE][key].value, "kind": ""}, ifindex=99)
    with pytest.raises(NotInPlace, match="physical"):

        def work():
            with Writer(THERE, {THERE: {}}, {}) as writer:
                writer.put(("link", "gone0"), physical, None)

        inside(THERE, work)


def test_all_kinds_have_a_place_in_the_order(spaces):
    assert {key[0] for objects in look(spaces).values() for key in objects} <= set(KINDS)


def test_global_sysctls():
    everything = sysctls.read_globals()
    assert {("sysctl", "ipv4/ip_forward"), ("sysctl", "core/somaxconn"), ("sysctl", "ipv4/conf/all/rp_filter")} <= set(
        everything
    )
    assert not [name for _kind, name in everything if "/conf/lo/" in name or "/neigh/" in name]
    assert set(sysctls.read_globals(["ipv4/ip_forward", "no/such"])) == {("sysctl", "ipv4/ip_forward")}


@pytest.mark.parametrize("name", ["../../kernel/hostname", "ipv4/../../vm/swappiness", "/etc/passwd", ""])
def test_only_sysctls_of_the_network_are_written(name):
    with pytest.raises(ValueError, match="no sysctl"):
        sysctls.write_global(name, "1")


def test_names_and_places_of_interface_sysctls_belong_together():
    for kind in ("conf4", "conf6"):
        for place, name in enumerate(sysctls.compared_names(kind)):
            assert not name or sysctls.sysctl_place(kind, name) == place
    assert sysctls.compared_names("conf6")[2] == ""


@pytest.mark.parametrize(
    ("flags", "now", "expected"),
    [(1, None, (1, 1)), (0, None, (0, 1)), (5, None, (5, 5)), (1, 3, (1, 3)), (0, 0, (0, 0))],
)
def test_flags_of_a_vlan_are_sent_with_the_bits_that_count(flags, now, expected):
    """The kernel tells a mask of all bits, and refuses it."""
    told = {1: b"\5\0", 2: struct.pack("=II", flags, 0xFFFFFFFF)}
    packed = b"".join(pack_attribute(kind, value) for kind, value in told.items())
    present = b"" if now is None else struct.pack("=II", now, 0xFFFFFFFF)
    for kind, sent in (("vlan", struct.pack("=II", *expected)), ("macvlan", told[2])):
        info = attributes_in(pack_kind({1: kind.encode(), 2: packed}, {2}, present))[18]
        assert attributes_in(attributes_in(info)[2]) == {2: sent}


@pytest.mark.parametrize(
    "masters",
    [
        {"eth0": "vrf0", "vrf0": ""},
        {"a0": "br0", "br0": "vrf0", "vrf0": ""},
        {"a0": "z0", "b0": "vrf0", "vrf0": "", "z0": "vrf0"},
    ],
)
def test_a_master_comes_before_its_ports(masters):
    kinds = {"vrf0": "vrf", "br0": "bridge", "z0": "bridge"}
    links = {name: {"kind": kinds.get(name, "veth"), "master": master} for name, master in masters.items()}
    order = sorted(links, key=lambda name: (repair_order(("link", name), KernelObject(links[name])), name))
    for name, master in masters.items():
        assert not master or order.index(master) < order.index(name), order


# In a namespace of a container's own, its indexes are those of a pair between the host and another container.
CHOSEN = """
ip netns add put-nested
victim=$(ip -n put-there -json link show eth0 | tr ',' '\\n' | sed -n 's/.*"ifindex"://p')
port=$(ip -json link show port0 | tr ',' '\\n' | sed -n 's/.*"ifindex"://p')
ip netns add put-tenant
ip -n put-tenant link add eth0 index $victim type veth peer name x index $port netns put-nested
"""


@pytest.fixture
def tenant(spaces):
    subprocess.run(["bash", "-ec", CHOSEN], check=True)
    yield "/run/netns/put-tenant"
    for name in ("put-tenant", "put-nested"):
        subprocess.run(["ip", "netns", "del", name], check=True)


def test_indexes_that_a_container_chooses_make_its_interface_no_end_of_the_host(spaces, tenant):
    host, there, mine = (inside(space, read_objects) for space in (HERE, THERE, tenant))
    key = "link", "eth0"
    port = host["link", "port0"]
    assert there[key].ifindex == mine[key].ifindex == port.peer[0]
    assert there[key].peer == (port.ifindex, True)
    assert mine[key].peer == (0, True)
    links = inside(tenant, netlink.links)[mine[key].ifindex]
    assert (links.link, links.abroad) == (0, True)
    parties = [Party(("n", "tenant", "eth0"), [], mine), Party(("n", "web", "eth0"), [], there)]
    assert Attribution(host, parties).owners({("link", "port0"): 1}) == {("link", "port0"): ("n", "web", "eth0")}
    states = {space: inside(space, read_objects) for space in (HERE, THERE, tenant)}
    assert other_end(states[HERE], states[tenant], "eth0") == ""
    assert other_end(states[HERE], states[THERE], "eth0") == "port0"
    # Nor is it the lower device, or the other end, of what is made again.
    with pytest.raises(NotInPlace, match="not recorded"):
        _other_end(Place(HERE, {HERE: {}, tenant: mine}, {}), "port0", port)
