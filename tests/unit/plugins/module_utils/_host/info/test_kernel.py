# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is reported of a namespace, compared with what pyroute2 reads of it."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import netns
from ansible_collections.podwire.cni.plugins.module_utils._host.info import kernel
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.objects import read_objects
from ansible_collections.podwire.cni.plugins.module_utils.libcni.kernel import unshare

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes interfaces")
FAMILIES = {2: "ipv4", 10: "ipv6"}
WORLD = """
link add br0 address 0a:00:00:00:00:01 type bridge
link add veth0 mtu 1450 type veth peer name veth1
link set veth0 master br0
link set lo up
link set br0 up
link set veth0 up
link set veth1 up
link add down0 type veth peer name down1
address add 10.1.0.1/24 dev br0
address add 10.2.0.1 peer 10.2.0.2/32 dev veth1
address add fd00::1/64 dev br0 nodad
address add 10.8.0.1/24 dev br0 valid_lft 600 preferred_lft 600
address add fd08::1/64 dev br0 nodad valid_lft 600 preferred_lft 600
address add 10.9.0.1/24 dev down0
route add 10.3.0.0/16 via 10.1.0.9 metric 7
route add default via 10.1.0.8 src 10.1.0.1
route add default via fd00::9 metric 5
route add 10.4.0.0/16 via 10.1.0.9 table 100
route add blackhole 10.5.0.0/16
route add 10.6.0.0/16 nexthop via 10.1.0.9 nexthop via 10.1.0.8
route add 10.7.0.0/16 via inet6 fd00::9
route add fd07::/64 via fd00::9 expires 600
"""


def wait_for_link_local():
    """The kernel gives a bridge this address when it has noticed its first port, up to a second later."""
    deadline = time.monotonic() + 20
    command = ["ip", "-oneline", "address", "show", "dev", "br0", "scope", "link"]
    while not subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def world():
    """Return a function that runs another one in a namespace that has a bit of everything."""

    def run(read):
        def work():
            unshare()
            subprocess.run(["ip", "-batch", "-"], input=WORLD, text=True, check=True)
            wait_for_link_local()
            return read()

        return netns.apart(work)

    return run


def test_the_rows_say_what_pyroute2_says(world):
    pyroute2 = pytest.importorskip("pyroute2")

    def both():
        state = read_objects()
        with pyroute2.IPRoute() as netlink:
            return state, list(netlink.get_links()), list(netlink.get_addr()), list(netlink.get_routes())

    state, links, addresses, routes = world(both)
    names = {link["index"]: link.get_attr("IFLA_IFNAME") for link in links}
    told = {}
    for link in links:
        info = link.get_attr("IFLA_LINKINFO")
        told[link.get_attr("IFLA_IFNAME")] = {
            "kind": (info.get_attr("IFLA_INFO_KIND") if info else "") or "",
            "mac": link.get_attr("IFLA_ADDRESS"),
            "mtu": link.get_attr("IFLA_MTU"),
            "up": bool(link["flags"] & 1),
            "addresses": [],
        }
    for one in addresses:
        address = one.get_attr("IFA_LOCAL") or one.get_attr("IFA_ADDRESS")
        told[names[one["index"]]]["addresses"].append("%s/%d" % (address, one["prefixlen"]))
    shown = {name: kernel._interface(state, name) for name in names.values()}
    for rows in (told, shown):
        for row in rows.values():
            row["addresses"].sort()
    assert shown == told

    expected = []
    for one in routes:
        table = one.get_attr("RTA_TABLE") or one["table"]
        destination = one.get_attr("RTA_DST") or ("0.0.0.0" if one["family"] == 2 else "::")
        if one["family"] in FAMILIES and one["type"] == 1 and table != 255 and not destination.startswith("fe80:"):
            expected.append(
                {
                    "family": FAMILIES[one["family"]],
                    "dst": "%s/%d" % (destination, one["dst_len"]),
                    "gateway": one.get_attr("RTA_GATEWAY") or "",
                    "device": names.get(one.get_attr("RTA_OIF"), ""),
                    "source": one.get_attr("RTA_PREFSRC") or "",
                    "metric": one.get_attr("RTA_PRIORITY") or 0,
                    "table": table,
                }
            )
    rows = kernel._routes(state)
    assert sorted(rows, key=str) == sorted(expected, key=str)
    # All that was made is in there, but for the one that drops packets.
    assert {row["dst"] for row in rows} >= {"10.%d.0.0/16" % number for number in (3, 4, 6, 7)} | {"0.0.0.0/0", "::/0"}
    assert "10.5.0.0/16" not in {row["dst"] for row in rows}


def test_a_path_that_leads_nowhere_or_to_the_host_is_left_out():
    assert netns.visit([netns.Netns("/nowhere"), netns.Netns("/proc/self/ns/net")], lambda: 1) == {}
