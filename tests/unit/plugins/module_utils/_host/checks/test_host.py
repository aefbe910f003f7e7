# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.addresses import packed
from ansible_collections.podwire.cni.plugins.module_utils._host.checks import addresses as host_rules
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.model import uses_of_network
from ansible_collections.podwire.cni.plugins.module_utils._host.netlink import Link, Route
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import raising

SUBNET = "/plugins/0/ipam/subnet"


class Kernel:
    """What the kernel would answer."""

    def __init__(self, monkeypatch):
        self.links = {}
        self.addresses = {}
        self.routes = []
        for name, answer in (("links", "links"), ("host_addresses", "addresses"), ("routes", "routes")):
            monkeypatch.setattr(host_rules, name, lambda answer=answer: getattr(self, answer))

    def link(self, name, *addresses, kind=""):
        index = len(self.links) + 1
        self.links[index] = Link(index, name, kind, 0, 0, True, False)
        for address in addresses:
            ip, _slash, length = address.partition("/")
            self.addresses[packed(ip)] = (index, int(length))
        return index

    def route(self, destination, link=0, remote=False, **more):
        ip, _slash, length = destination.partition("/")
        self.routes.append(Route(packed(ip), int(length), link, remote, **more))


@pytest.fixture
def kernel(monkeypatch):
    return Kernel(monkeypatch)


@pytest.fixture
def check(directory, codes):
    def run(**options):
        return codes(problems(directory, **options))

    return run


def problems(directory, **options):
    view = directory.view(**options)
    return list(host_rules.host_problems(view, [uses_of_network(file) for file in view.loaded()]))


def network(kind="bridge", subnet="10.1.0.0/24", **keys):
    return dict({"type": kind, "isGateway": True, "ipam": {"type": "host-local", "subnet": subnet}}, **keys)


def test_the_subnet_of_an_interface(directory, kernel, check):
    kernel.route("10.1.0.0/16", kernel.link("eth0", "10.1.0.7/16"))
    directory.add("a", network())
    assert check() == [("warning", "host_overlap", "/net.d/10-a.conflist", SUBNET)]
    (problem,) = problems(directory)
    assert "the address 10.1.0.7/16 of the interface eth0, and packets" in problem.message
    assert check(wanted=[])[0][0] == "info"


def test_ipv6_and_other_subnets(directory, kernel, check):
    kernel.link("eth0", "10.1.1.7/24", "fd00:1::7/64")
    directory.add("a", network())
    directory.add("b", network(subnet="fd00:1::/80"))
    assert check() == [("warning", "host_overlap", "/net.d/10-b.conflist", SUBNET)]


@pytest.mark.parametrize("kind", ["macvlan", "ipvlan", "vlan", "host-device"])
def test_outside_of_the_host_its_own_subnet_is_the_right_one(directory, kernel, check, named, kind):
    kernel.link("eth0", "10.1.0.7/16")
    directory.add("a", network(kind, master="eth0"))
    assert check() == []


def test_a_bridge_without_gateway_joins_the_hosts_network(directory, kernel, check):
    kernel.link("br0", "10.1.0.7/24", kind="bridge")
    directory.add("a", network(bridge="br0", isGateway=False))
    assert check() == []


def test_what_the_network_itself_has_made_is_no_overlap(directory, kernel, check):
    kernel.route("10.1.0.0/24", kernel.link("b0", "10.1.0.1/24", kind="bridge"))
    kernel.route("10.2.0.5/32", kernel.link("veth1", "10.2.0.1/32", kind="veth"))
    directory.add("a", network(bridge="b0"))
    directory.add("b", network("ptp", "10.2.0.0/24"))
    assert check() == []


def test_a_bridge_that_is_left_of_another_name(directory, kernel, check):
    kernel.link("old0", "10.1.0.1/24", kind="bridge")
    directory.add("a", network(bridge="new0"))
    assert [entry[1] for entry in check()] == ["host_overlap"]


def test_routes(directory, kernel, check):
    kernel.route("10.1.0.64/26", kernel.link("tun0"))
    kernel.route("10.1.0.128/26")
    kernel.route("10.1.0.192/27", remote=True)
    directory.add("a", network())
    assert check() == [("warning", "host_overlap", "/net.d/10-a.conflist", SUBNET)]
    message = problems(directory)[0].message
    assert "10.1.0.64/26 on the interface tun0" in message
    assert "10.1.0.128/26 and the host's route to 10.1.0.192/27," in message


def test_a_route_to_a_wider_network_is_only_to_be_known(directory, kernel, check):
    kernel.route("10.0.0.0/8", kernel.link("eth0"), remote=True)
    directory.add("a", network())
    assert check() == [("info", "host_overlap", "/net.d/10-a.conflist", SUBNET)]


def test_default_routes_and_those_of_other_tables_take_nothing(directory, kernel, check):
    kernel.route("0.0.0.0/0", kernel.link("eth0"), remote=True)
    kernel.route("10.1.0.64/26", kernel.link("tun0"), table=100)
    kernel.route("10.1.0.1/32", 1, table=255, unicast=False)
    directory.add("a", network())
    assert check() == []


def test_many_routes_make_one_message(directory, kernel):
    for number in range(100):
        kernel.route("10.1.0.%d/32" % number, remote=True)
    directory.add("a", network())
    (problem,) = problems(directory)
    assert "and 97 more" in problem.message


# ---- the bridge that is there


@pytest.mark.parametrize(
    ("addresses", "keys", "wrong"),
    [
        (["10.9.0.1/24"], {}, True),
        (["10.1.0.1/16"], {}, True),
        (["10.1.0.1/24", "10.9.0.1/24"], {}, False),
        (["fd00::1/64"], {}, False),
        ([], {}, False),
        (["10.9.0.1/24"], {"forceAddress": True}, False),
        (["10.9.0.1/24"], {"isGateway": False}, False),
        (["10.9.0.1/24"], {"vlan": 5}, False),
    ],
)
def test_another_address_on_the_bridge(directory, kernel, check, addresses, keys, wrong):
    kernel.link("b0", *addresses, kind="bridge")
    directory.add("a", network(bridge="b0", **keys))
    place = ("warning", "bridge_address", "/net.d/10-a.conflist", "/plugins/0/bridge")
    assert check() == ([place] if wrong else [])
    words = (*addresses, "10.1.0.1/24", "ip link delete dev b0", '"forceAddress": true')
    assert all(word in problem.message for problem in problems(directory) for word in words)


# ---- asking the kernel


def test_a_kernel_that_does_not_answer_is_no_error(directory, monkeypatch):
    monkeypatch.setattr(host_rules, "links", raising(HostError("cannot ask the kernel: no", code="kernel_unreadable")))
    directory.add("a", network())
    (problem,) = problems(directory)
    assert (problem.level, problem.code) == ("info", "kernel_unreadable")


def test_nobody_is_asked_for_networks_that_take_nothing(directory, monkeypatch):
    monkeypatch.setattr(host_rules, "links", None)
    directory.add("a", {"type": "loopback"})
    assert problems(directory) == []


def test_the_real_kernel_answers():
    kernel = host_rules.read_host_kernel()
    assert str(kernel.addresses["lo"][0]) == "127.0.0.1/8"
    assert "127.0.0.0/8" in [str(taken.subnet) for taken in kernel.taken]


@pytest.fixture
def named(monkeypatch):
    """The names under which the host has interfaces, alternative ones included."""
    names = {"eth0", "enp3s0"}

    def index(name):
        if name not in names:
            raise OSError(19, "No such device")
        return 1

    monkeypatch.setattr(host_rules.socket, "if_nametoindex", index)
    return names


@pytest.mark.parametrize("kind", ["macvlan", "ipvlan", "vlan"])
def test_a_master_that_the_host_lacks_is_a_warning(directory, kernel, check, named, kind):
    directory.add("a", {"type": kind, "master": "eth9"})
    assert check() == [("warning", "master_missing", "/net.d/10-a.conflist", "/plugins/0/master")]
    assert check(wanted=[]) == [("info", "master_missing", "/net.d/10-a.conflist", "/plugins/0/master")]
    assert "eth9" in problems(directory)[0].message
    named.add("eth9")
    assert check() == []


@pytest.mark.parametrize(
    "plugin",
    [
        {"type": "macvlan", "master": "eth0"},
        {"type": "macvlan", "master": "enp3s0"},
        {"type": "macvlan"},
        {"type": "macvlan", "master": ""},
        {"type": "macvlan", "master": 5},
        {"type": "ipvlan", "master": "net1", "linkInContainer": True},
        {"type": "host-device", "device": "eth9"},
        {"type": "acme", "master": "eth9"},
        {"type": "flannel", "delegate": {"type": "ipvlan", "master": "eth0"}},
    ],
)
def test_a_master_that_is_there_or_not_of_the_host_is_none(directory, kernel, check, named, plugin):
    kernel.route("::/0", kernel.link("eth0"), remote=True)
    directory.add("a", plugin)
    assert check() == []


def test_a_master_in_a_delegate_and_one_that_another_network_makes(directory, kernel, check, named):
    directory.add("a", {"type": "flannel", "delegate": {"type": "macvlan", "Master": "eth9"}})
    assert [entry[3] for entry in check()] == ["/plugins/0/delegate/master"]
    directory.files.clear()
    directory.add("a", {"type": "macvlan", "master": "apps0"})
    directory.add("b", {"type": "ipvlan", "master": "apps0.7"})
    assert len(check()) == 2
    directory.add("c", {"type": "bridge", "bridge": "apps0"}, {"type": "bridge", "bridge": "apps0", "vlan": 7})
    assert check() == []


@pytest.mark.parametrize("kind", ["macvlan", "ipvlan"])
def test_without_a_master_the_host_needs_a_default_route(directory, kernel, check, kind):
    directory.add("a", {"type": kind})
    kernel.route("10.0.0.0/8", kernel.link("eth0"))
    kernel.route("0.0.0.0/0", 1, remote=True, table=77)
    kernel.route("0.0.0.0/0", unicast=False)
    assert check() == [("warning", "master_missing", "/net.d/10-a.conflist", "/plugins/0")]
    kernel.route("0.0.0.0/0", 1, remote=True)
    assert check() == []


def test_a_chained_ipvlan_and_a_kernel_that_does_not_answer_need_no_default_route(
    directory, kernel, check, monkeypatch
):
    directory.add("a", {"type": "bridge"}, {"type": "ipvlan"})
    assert check() == []

    monkeypatch.setattr(host_rules, "routes", raising(HostError("no", code="kernel_unreadable")))
    directory.add("b", {"type": "macvlan"})
    assert check() == []


def test_an_interface_of_the_kernel_itself_is_found():
    assert host_rules._is_there("lo")
    for name in ("no such one", "a\0b", "\ud800", "x" * 5000):
        assert not host_rules._is_there(name)
