# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.checks import addresses
from ansible_collections.podwire.cni.plugins.module_utils._host.checks.view import network_problems
from ansible_collections.podwire.cni.plugins.module_utils._host.model import uses_of_network


def local(*subnets, **keys):
    return dict({"type": "host-local", "ranges": [[{"subnet": subnet}] for subnet in subnets]}, **keys)


def bridge(name, *subnets, **keys):
    return dict({"type": "bridge", "bridge": name, "isGateway": True, "ipam": local(*subnets)}, **keys)


def rules(view, uses):
    """Yield the problems with addresses, of each network and between them."""
    for file, use in zip(view.loaded(), uses):
        yield from network_problems(view, file, use)
    for problem in addresses.address_problems(view, uses):
        if problem.code != "shared_store":
            yield problem


def stores(view, uses):
    return [row for row in addresses.address_problems(view, uses) if row.code == "shared_store"]


@pytest.fixture
def check(directory, codes):
    def run(rule=rules, **options):
        view = directory.view(**options)
        return codes(rule(view, [uses_of_network(file) for file in view.loaded()]))

    return run


@pytest.fixture
def messages(directory):
    def run(rule=rules):
        view = directory.view()
        return [entry.message for entry in rule(view, [uses_of_network(file) for file in view.loaded()])]

    return run


# ---- gateways


@pytest.mark.parametrize(
    ("subnet", "gateway", "outside"),
    [
        ("10.1.0.0/24", "10.1.0.254", False),
        ("10.1.0.0/24", "10.1.1.1", True),
        ("10.1.0.0/24", "1.1.1.1", True),
        ("fd00:1::/64", "fd00:1::1", False),
        ("fd00:1::/64", "fd00:2::1", True),
        ("fd00:1::/64", "fe80::1", False),
    ],
)
def test_a_gateway_has_to_be_in_its_subnet(directory, check, subnet, gateway, outside):
    ipam = {"type": "host-local", "ranges": [[{"subnet": subnet, "gateway": gateway}]]}
    directory.add("a", {"type": "ptp", "ipam": ipam})
    place = ("warning", "gateway_outside", "/net.d/10-a.conflist", "/plugins/0/ipam/ranges/0/0/gateway")
    assert check() == ([place] if outside else [])


def test_a_gateway_of_the_old_form_is_looked_at_too(directory, check, messages):
    directory.add("a", {"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.1.0.0/24", "Gateway": "10.2.0.1"}})
    assert check() == [("warning", "gateway_outside", "/net.d/10-a.conflist", "/plugins/0/ipam/gateway")]
    assert "such as 10.1.0.1" in messages()[0]


@pytest.mark.parametrize(
    ("address", "gateway", "outside"),
    [
        ("10.1.0.5/24", "10.1.0.1", False),
        ("10.1.0.5/24", "10.1.1.1", True),
        ("fd00::5/64", "fe80::1", False),
        ("fd00::5/64", "fd01::1", True),
        ("10.1.0.5", "10.2.0.1", False),
        ("nonsense", "10.2.0.1", False),
        ("10.1.0.5/24", "fd00::1", False),
    ],
)
def test_a_static_gateway_has_to_be_in_its_subnet(directory, check, address, gateway, outside):
    entries = [{"address": "10.9.0.1/24"}, {"address": address, "gateway": gateway}]
    directory.add("a", {"type": "ptp", "ipam": {"type": "static", "addresses": entries}})
    place = ("warning", "gateway_outside", "/net.d/10-a.conflist", "/plugins/0/ipam/addresses/1/gateway")
    assert check() == ([place] if outside else [])


# ---- bridges


def test_two_subnets_on_one_bridge(directory, check, messages):
    directory.add("a", bridge("b0", "10.1.0.0/24"))
    directory.add("b", bridge("b0", "10.2.0.0/24"))
    assert check() == [("warning", "bridge_two_subnets", "/net.d/10-b.conflist", "/plugins/0/bridge")]
    words = ("10.2.0.1/24", "10.1.0.1/24", "'a'", "10-a.conflist", "b0")
    assert all(word in messages()[0] for word in words)
    assert check(wanted=[])[0][0] == "info"


def test_the_bridge_without_a_name_is_cni0(directory, check):
    plain = {"type": "bridge", "isDefaultGateway": True, "ipam": local("10.1.0.0/24")}
    directory.add("a", plain)
    directory.add("b", bridge("cni0", "10.2.0.0/24"))
    assert [entry[1] for entry in check()] == ["bridge_two_subnets"]


def test_several_ipv6_subnets_go_together_unless_they_overlap(directory, check):
    directory.add("a", bridge("b0", "fd00:1::/64"))
    directory.add("b", bridge("b0", "fd00:2::/64"))
    directory.add("c", bridge("b0", "fd00:1::/48"))
    assert check()[:2] == [
        ("warning", "bridge_shared", "/net.d/10-b.conflist", "/plugins/0/bridge"),
        ("warning", "bridge_two_subnets", "/net.d/10-c.conflist", "/plugins/0/bridge"),
    ]


def test_one_bridge_of_two_networks(directory, check):
    directory.add("a", bridge("b0", "10.1.0.0/24"))
    directory.add("b", bridge("b0", isGateway=False))
    directory.add("c", bridge("b1", isGateway=False))
    directory.add("d", bridge("b1", isGateway=False))
    assert check() == [
        ("warning", "bridge_shared", "/net.d/10-b.conflist", "/plugins/0/bridge"),
        ("info", "bridge_shared", "/net.d/10-d.conflist", "/plugins/0/bridge"),
    ]


def test_networks_of_other_vlans_or_of_one_name_share_nothing(directory, check):
    directory.add("a", bridge("b0", "10.1.0.0/24", vlan=1))
    directory.add("b", bridge("b0", "10.2.0.0/24", vlan=2))
    directory.add("b", bridge("b0", "10.2.0.0/24", vlan=2), name="20-b.conflist")
    assert check() == []


@pytest.mark.parametrize("delegate", [{"isDefaultGateway": True}, {"type": "flannel"}])
def test_flannel_makes_a_bridge_too(directory, check, delegate):
    directory.add("a", {"type": "flannel", "delegate": delegate})
    directory.add("b", bridge("cni0", "10.2.0.0/24"))
    assert check() == [("warning", "bridge_shared", "/net.d/10-b.conflist", "/plugins/0/bridge")]


def test_the_worst_of_several_networks_on_a_bridge_is_told(directory, check, messages):
    directory.add("a", {"type": "flannel"})
    directory.add("b", bridge("cni0", "10.2.0.0/24"))
    directory.add("c", bridge("cni0", "10.3.0.0/24"))
    directory.add("c", bridge("cni0", "10.3.0.0/24"), name="20-c.conflist")
    assert [entry[1:3] for entry in check()] == [
        ("bridge_shared", "/net.d/10-b.conflist"),
        ("bridge_two_subnets", "/net.d/10-c.conflist"),
    ]
    assert "'b' in 10-b.conflist" in messages()[1]


def test_two_gateways_of_one_network_never_work(directory, check):
    place = "/plugins/0/ipam/ranges/1/0"
    directory.add("a", bridge("b0", "10.1.0.0/24", "10.2.0.0/24"))
    assert check() == [("error", "bridge_two_subnets", "/net.d/10-a.conflist", place)]
    directory.files.clear()
    directory.add("a", bridge("b0", "10.1.0.0/24", "10.2.0.0/24", forceAddress=True))
    assert check() == [("warning", "bridge_two_subnets", "/net.d/10-a.conflist", place)]
    directory.files.clear()
    ranges = [[{"subnet": "10.1.0.0/24"}, {"subnet": "10.2.0.0/24"}]]
    directory.add("a", bridge("b0", ipam={"type": "host-local", "ranges": ranges}))
    assert check() == [("warning", "bridge_two_subnets", "/net.d/10-a.conflist", "/plugins/0/ipam/ranges/0/1")]


@pytest.mark.parametrize(
    "plugin",
    [
        bridge("b0", "10.1.0.0/24", "fd00:1::/64", "fd00:2::/64"),
        bridge("b0", "10.1.0.0/24", "10.2.0.0/24", isGateway=False),
        {"type": "ptp", "ipam": local("10.1.0.0/24", "10.2.0.0/24")},
    ],
)
def test_several_subnets_may_go_together(directory, check, plugin):
    directory.add("a", plugin)
    assert check() == []


# ---- subnets


def test_overlapping_subnets(directory, check, messages):
    directory.add("a", bridge("b0", "10.1.0.0/16"))
    directory.add("b", bridge("b1", "10.1.5.0/24"))
    directory.add("c", bridge("b2", "10.2.0.0/24"))
    assert check() == [("warning", "subnet_overlap", "/net.d/10-b.conflist", "/plugins/0/ipam/ranges/0/0/subnet")]
    assert all(word in messages()[0] for word in ("10.1.5.0/24", "10.1.0.0/16", "'a'", "10-a.conflist"))


def test_the_network_that_is_asked_for_is_the_one_to_change(directory, check):
    directory.add("a", bridge("b0", "10.1.0.0/16"))
    directory.add("b", bridge("b1", "10.1.5.0/24"))
    assert check(wanted=["10-a.conflist"])[0][2] == "/net.d/10-a.conflist"
    assert check(wanted=[])[0][0] == "info"


def test_a_pair_is_named_once(directory, check):
    directory.add("a", bridge("b0", "10.1.0.0/24", "fd00:1::/64"))
    directory.add("b", bridge("b1", "10.1.0.0/24", "fd00:1::/64"))
    assert len(check()) == 1


def test_ptp_networks_share_a_subnet_but_no_address(directory, check):
    def ptp(first, last):
        entry = {"subnet": "10.1.0.0/24", "rangeStart": first, "rangeEnd": last}
        return {"type": "ptp", "ipam": {"type": "host-local", "ranges": [[entry]]}}

    directory.add("a", ptp("10.1.0.10", "10.1.0.19"))
    directory.add("b", ptp("10.1.0.20", "10.1.0.29"))
    assert check() == []
    directory.add("c", ptp("10.1.0.29", "10.1.0.39"))
    assert check() == [("warning", "range_overlap", "/net.d/10-c.conflist", "/plugins/0/ipam/ranges/0/0/subnet")]


def test_on_one_link_only_addresses_may_not_overlap(directory, check):
    directory.add("a", {"type": "macvlan", "master": "eth0", "ipam": local("10.1.0.0/24")})
    directory.add("b", {"type": "ipvlan", "master": "eth0", "ipam": local("10.1.0.0/24")})
    directory.add("c", {"type": "macvlan", "master": "eth1", "ipam": local("10.1.0.0/24")})
    directory.add("d", {"type": "vlan", "master": "eth0", "vlanId": 5, "ipam": local("10.1.0.0/24")})
    assert check() == [("warning", "range_overlap", "/net.d/10-b.conflist", "/plugins/0/ipam/ranges/0/0/subnet")]


def test_a_subnet_on_a_bridge_and_outside(directory, check):
    directory.add("a", bridge("b0", "10.1.0.0/24"))
    directory.add("b", {"type": "macvlan", "master": "eth0", "ipam": local("10.1.0.0/24")})
    assert [entry[1] for entry in check()] == ["subnet_overlap"]


def test_magic_words_and_other_ipam_plugins_take_nothing(directory, check):
    directory.add("a", {"type": "calico", "ipam": {"type": "host-local", "subnet": "usePodCidr"}})
    directory.add("b", {"type": "ipvlan", "ipam": {"type": "whereabouts", "range": "10.1.0.0/24"}})
    directory.add("c", bridge("b1", "10.1.0.0/24"))
    assert check() == []


# ---- stores


def test_one_list_with_two_users_of_one_store(directory, check, messages):
    directory.add("a", {"type": "bridge", "ipam": local("10.1.0.0/24")}, {"type": "tap", "ipam": local("10.1.0.0/24")})
    assert check(stores) == [("warning", "shared_store", "/net.d/10-a.conflist", "/plugins/1/ipam")]
    assert "duplicate allocation" in messages(stores)[0]
    directory.files.clear()
    directory.add("a", {"type": "bridge", "ipam": local("10.1.0.0/24")}, {"type": "tap", "ipam": local("10.2.0.0/24")})
    assert "counts for the other" in messages(stores)[0]
    directory.files.clear()
    other = local("10.1.0.0/24", dataDir="/run/x")
    directory.add("a", {"type": "bridge", "ipam": local("10.1.0.0/24")}, {"type": "tap", "ipam": other})
    assert check(stores) == []


def test_one_name_in_two_files_with_other_ranges(directory, check):
    directory.add("a", bridge("b0", "10.1.0.0/24"))
    directory.add("a", bridge("b0", "10.1.0.0/24"), name="20-a.conflist")
    assert check(stores) == []
    directory.add("a", bridge("b0", "10.2.0.0/24"), name="30-a.conflist")
    assert check(stores) == [("warning", "shared_store", "/net.d/30-a.conflist", "/plugins/0/ipam")]


def test_a_store_inside_of_another(directory, check):
    directory.add("a", bridge("b0", "10.1.0.0/24"))
    directory.add("b", bridge("b1", ipam=local("10.2.0.0/24", dataDir="/var/lib/cni/networks/a/")))
    assert check(stores) == [("warning", "shared_store", "/net.d/10-b.conflist", "/plugins/0/ipam")]
