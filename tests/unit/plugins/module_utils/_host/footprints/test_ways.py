# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What packets use instead of an object that is put back. What this kernel has is shown on it, in tests/host."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.chains import FoundChains
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.footprint import Footprint
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.object_kinds import HOST, Difference
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.ways import diversions
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.objects import KernelObject
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.footprints.states import link, route

MAY = ["packets may go that way"]
IN_20 = ["untagged packets of veth1 are in the VLAN 20"]
PVID, TAGGED, UNTAGGED = {"flags": 2}, {"flags": 0}, {"flags": 4}


def of(key, was, now, *others):
    recorded, lost = Footprint({key: KernelObject(was, ifindex=2)}), [Difference(HOST, key, was, now)]
    return diversions({HOST: {place: KernelObject(value) for place, value in others}}, FoundChains(), recorded, lost)


@pytest.mark.parametrize(
    ("was", "now", "other", "told"),
    [
        (PVID, None, PVID, IN_20),
        (PVID, TAGGED, PVID, IN_20),
        (PVID, None, TAGGED, []),
        (TAGGED, None, PVID, []),
        (PVID, TAGGED, TAGGED, []),
        (TAGGED, PVID, TAGGED, MAY),
        (PVID, UNTAGGED, PVID, IN_20 + MAY),
        (None, PVID, TAGGED, MAY),
    ],
)
def test_a_port_is_not_taken_from_another_vlan(was, now, other, told):
    others = (("vlan", "veth1", 20), other), (("vlan", "veth2", 30), PVID)
    assert of(("vlan", "veth1", 10), was, now, *others) == told


@pytest.mark.parametrize(
    ("family", "metric", "gateway", "told"),
    [
        (2, 100, "10.0.0.9", ["packets go through 10.0.0.9"]),
        (2, 100, "", ["packets go through eth1"]),
        (2, 50, "10.0.0.9", ["packets go through 10.0.0.9"]),
        # The lost one would be behind that of an address.
        (2, 50, "", []),
        (2, 20, "10.0.0.9", []),
        (10, 50, "fd00::9", ["packets go through fd00::9"]),
        (10, 20, "fd00::9", []),
    ],
)
def test_another_route_to_the_same_destination(family, metric, gateway, told):
    other = ("route", family, 254, "default/0", 0, metric, 1, "eth1"), route(gateway, 3 if gateway else 2).value
    lost, elsewhere = ("route", family, 254, "default/0", 0, 50, 1, "eth0"), ("route", family, 100, *other[0][3:])
    assert of(lost, route("10.0.0.1").value, None, other, (elsewhere, route("10.0.0.7").value)) == told


def test_the_same_way_with_another_metric():
    lost, other = (("route", 2, 254, "default/0", 0, metric, 1, "eth0") for metric in (0, 100))
    assert of(lost, route("10.0.0.1").value, None, (other, route("10.0.0.1").value)) == []


@pytest.mark.parametrize(
    ("key", "was", "now", "told"),
    [
        (("conf4", "eth0", "rp_filter"), 1, 2, MAY),
        (("conf4", "eth0", "rp_filter"), 2, 1, []),
        (("conf6", "eth0", "disable_ipv6"), 0, 1, []),
        (("sysctl", "ipv4/ip_forward"), "1", "0", []),
        (("sysctl", "ipv4/ip_forward"), "0", "1", MAY),
        (("sysctl", "core/somaxconn"), "500", "1", []),
        (("link", "eth0"), link(flags=0).value, link().value, MAY),
        (("link", "eth0"), link().value, link(flags=0, mtu=1400).value, []),
    ],
)
def test_what_lets_less_through_is_noticed(key, was, now, told):
    assert of(key, was, now) == told
