# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.addresses import DEFAULT_DATA_DIR
from ansible_collections.podwire.cni.plugins.module_utils._host.leases import Lease
from ansible_collections.podwire.cni.plugins.module_utils._host.model import pool_rows
from ansible_collections.podwire.cni.plugins.module_utils._host.ranges import ranges_of


@pytest.mark.parametrize(
    "ipam, texts, size",
    [
        ({"subnet": "10.1.0.0/24"}, ["10.1.0.1-10.1.0.254"], 253),
        ({"subnet": "10.1.0.0/24", "gateway": "10.2.0.1"}, ["10.1.0.1-10.1.0.254"], 254),
        ({"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.10", "rangeEnd": "10.1.0.19"}, ["10.1.0.10-10.1.0.19"], 10),
        (
            {"ranges": [[{"subnet": "10.1.0.0/30"}], [{"subnet": "fd00::/126"}]]},
            ["10.1.0.1-10.1.0.2", "fd00::1-fd00::3"],
            3,
        ),
        ({"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.0", "rangeEnd": "::ffff:a01:9"}, ["10.1.0.0-10.1.0.9"], 9),
        ({"subnet": "10.1.0.0/24", "rangeEnd": "10.1.1.9"}, [], 0),
        ({"subnet": "10.1.0.0/31"}, [], 0),
        ({"subnet": "10.1.0.0"}, [], 0),
        ({"subnet": 7, "ranges": {"no": "list"}}, [], 0),
        ({"ranges": [[{"subnet": "x/y"}, "no"], "no"]}, [], 0),
    ],
)
def test_ranges_are_those_of_the_plugin(ipam, texts, size):
    found = ranges_of(ipam)
    assert [one.text for one in found] == texts
    assert sum(one.size for one in found) == size


def test_a_pool_says_what_is_used_and_by_whom():
    leases = [
        Lease("/data", "demo", "10.1.0.2", "web", "eth0"),
        Lease("/data", "demo", "10.1.0.3", "web", "eth1"),
        Lease("/data", "demo", "10.9.0.3", "", ""),
        Lease("/other", "demo", "10.1.0.4", "db", "eth0"),
    ]
    ipam = {"type": "host-local", "dataDir": "/data/", "subnet": "10.1.0.0/29"}
    (row,) = pool_rows([("demo", {"ipam": ipam}), ("flat", {"type": "bridge"})], leases)
    assert row == {
        "network": "demo",
        "data_dir": "/data",
        "family": "ipv4",
        "ranges": ["10.1.0.1-10.1.0.6"],
        "size": 5,
        "used": 2,
        "free": 3,
        "outside": 1,
        "owners": [{"container_id": "", "ips": ["10.9.0.3"]}, {"container_id": "web", "ips": ["10.1.0.2", "10.1.0.3"]}],
    }


def counted(rows):
    return [(row["family"], row["size"], row["used"], row["free"], row["outside"]) for row in rows]


def test_pools_are_counted_per_address_family():
    ipam = {"type": "host-local", "dataDir": "/d", "ranges": [[{"subnet": "10.1.0.0/30"}], [{"subnet": "fd00::/64"}]]}
    leases = [Lease("/d", "demo", ip, "web", "eth0") for ip in ("10.1.0.2", "fd00::2", "fd09::9")]
    rows = pool_rows([("demo", {"ipam": ipam})], leases)
    # IPv4 is full, however many addresses IPv6 has left.
    assert counted(rows) == [("ipv4", 1, 1, 0, 0), ("ipv6", 2**64 - 2, 1, 2**64 - 3, 1)]
    assert [row["owners"][0]["ips"] for row in rows] == [["10.1.0.2"], ["fd00::2", "fd09::9"]]
    assert [row["ranges"] for row in rows] == [["10.1.0.1-10.1.0.2"], ["fd00::1-fd00::ffff:ffff:ffff:ffff"]]


def test_a_family_without_ranges_has_a_row_if_it_has_leases():
    network = ("demo", {"ipam": {"type": "host-local", "subnet": "10.1.0.0/30"}})
    (v4, v6) = pool_rows([network], [Lease(DEFAULT_DATA_DIR, "demo", "fd00::2", "web", "eth0")])
    assert (v4["family"], v4["owners"]) == ("ipv4", [])
    assert counted([v6]) == [("ipv6", 0, 0, 0, 1)]
    assert counted(pool_rows([("demo", {"ipam": {"type": "host-local"}})], [])) == [("ipv4", 0, 0, 0, 0)]


def test_a_network_in_two_files_has_its_addresses_once():
    network = ("demo", {"ipam": {"type": "host-local", "subnet": "10.1.0.0/30"}})
    assert counted(pool_rows([network, network], [])) == [("ipv4", 1, 0, 1, 0)]


@pytest.mark.parametrize("length", ["\u00b2", "\u0664", "9" * 5000, "-1", "+8", "1_0", "33", ""])
def test_a_subnet_whose_prefix_is_no_number_of_bits_is_none(length):
    assert ranges_of({"subnet": "10.9.0.0/" + length}) == []
