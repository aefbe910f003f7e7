# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import pools
from ansible_collections.podwire.cni.plugins.module_utils._host.leases import Lease


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
        ({"subnet": "10.1.0.0/31"}, [], 0),
        ({"subnet": "10.1.0.0"}, [], 0),
        ({"subnet": 7, "ranges": {"no": "list"}}, [], 0),
        ({"ranges": [[{"subnet": "x/y"}, "no"], "no"]}, [], 0),
    ],
)
def test_ranges_are_those_of_the_plugin(ipam, texts, size):
    found = pools.ranges_of(ipam)
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
    (row,) = pools.rows([("demo", {"ipam": ipam}), ("flat", {"type": "bridge"})], leases)
    assert row == {
        "network": "demo",
        "data_dir": "/data",
        "ranges": ["10.1.0.1-10.1.0.6"],
        "size": 5,
        "used": 2,
        "free": 3,
        "outside": 1,
        "owners": [
            {"container_id": "", "ips": ["10.9.0.3"]},
            {"container_id": "web", "ips": ["10.1.0.2", "10.1.0.3"]},
        ],
    }
