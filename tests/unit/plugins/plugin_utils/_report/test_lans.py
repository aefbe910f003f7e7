# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import random

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._report.commands import Commands
from ansible_collections.podwire.cni.plugins.plugin_utils._report.findings import causes_of
from ansible_collections.podwire.cni.plugins.plugin_utils._report.fleet import fleet, level, summary_of_fleet
from ansible_collections.podwire.cni.plugins.plugin_utils._report.page import findings_by_host
from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build
from ansible_collections.podwire.cni.plugins.plugin_utils.lans import DIFFERENT, DUPLICATE, SHARED, HostNetworks

RANGE = {"subnet": "192.0.2.0/24", "rangeStart": "192.0.2.170", "rangeEnd": "192.0.2.190"}
MACVLAN = {"type": "macvlan", "master": "eth0", "ipam": {"type": "host-local", "ranges": [[RANGE]]}}
ETH0 = {"name": "eth0", "kind": None, "master": "", "mtu": 1500}
PATH = "/etc/cni/net.d/10-lan.conflist"
PORT = {"name": "eth1", "kind": None, "master": "br0"}
VETH = {"name": "veth1", "kind": "veth", "master": "br0"}


def plugin(**changed):
    """Return a macvlan with other values; those of ipam's only range in *ranges*."""
    ipam = {"type": "host-local", "ranges": [[{**RANGE, **changed.get("ranges", {})}]]}
    return {**MACVLAN, "ipam": ipam, **changed}


def bridge(**changed):
    return plugin(type="bridge", bridge="br0", **changed)


def host(number, chain=None, used=(), links=None, network="lan", groups=("web",), steps=(), **more):
    """Return the record of a host that has an address of the LAN on eth0, leases of *used*, and *steps* of drift."""
    if links is None:
        links = [{**ETH0, "addresses": [f"192.0.2.{number}/24", "fe80::1/64"]}]
    owners = [{"container_id": f"c{ip}", "ips": [ip]} for ip in used]
    info = {
        "conf": [
            {
                "network": network,
                "path": PATH,
                "config": {"plugins": [MACVLAN if chain is None else chain, {"type": "tuning", "mtu": number}]},
            }
        ],
        "pools": [{"network": network, "owners": owners}],
        "kernel": {"links": links, "routes": []},
    }
    return build(f"web{number}", {"networks": {"actions": list(steps)}}, {**info, **more}, groups=groups)


def reasons(*records):
    """Return code and message of each host's reasons."""
    report = fleet(records)
    return {host["host"]: [tuple(reason.values()) for reason in host["attention"]] for host in report["hosts"]}


def codes(*records):
    told = reasons(*records)
    return [[code for code, _message in told[record["host"]]] for record in records]


def ranged(start, end):
    return plugin(ranges={"rangeStart": f"192.0.2.{start}", "rangeEnd": f"192.0.2.{end}"})


# ---- one address twice


def test_two_hosts_that_gave_out_one_address_are_not_clean():
    report = fleet([host(1, used=["192.0.2.171"]), host(2, used=["192.0.2.170", "192.0.2.171"]), host(3, {})])
    assert [level(host) for host in report["hosts"]] == ["attention", "attention", "clean"]
    assert summary_of_fleet(report) == ("2 of 3 hosts need attention: 2 with an address that another host uses")
    (cause,) = causes_of(findings_by_host(report), Commands(), {})
    assert cause.hosts == ["web1", "web2"]
    assert cause.reason == (
        "lan: 192.0.2.171 is in use twice: web1 and web2 use the same addresses of one LAN (192.0.2.170-192.0.2.190); "
        "give each host its own range (rangeStart, rangeEnd), or use whereabouts or dhcp"
    )


@pytest.mark.parametrize(
    "chain",
    [
        MACVLAN,
        {**MACVLAN, "type": "ipvlan"},
        {**MACVLAN, "type": "ipvlan", "mode": "l2"},
        {**MACVLAN, "type": "vlan", "vlanId": 5},
        {**MACVLAN, "type": "host-device", "device": "eth0"},
        {**MACVLAN, "Master": "eth0", "master": None, "TYPE": "macvlan"},
    ],
)
def test_every_kind_of_network_on_a_lan_counts(chain):
    used = ["192.0.2.171"]
    assert codes(host(1, chain, used), host(2, chain, used)) == [[DUPLICATE], [DUPLICATE]]


def test_attachments_count_as_leases_do_and_what_is_gone_or_dead_does_not():
    attached = {"network": "lan", "container_id": "c", "ips": ["192.0.2.9/24"], "netns_state": "same"}
    static = {**MACVLAN, "ipam": {"type": "static"}}

    def with_row(number, **changed):
        return host(number, static, attachments=[{**attached, **changed}])

    assert codes(with_row(1), with_row(2)) == [[DUPLICATE], [DUPLICATE]]
    assert codes(with_row(1), with_row(2, netns_state="gone")) == [[], []]
    leak = {"network": "lan", "container_id": "c192.0.2.171", "collectable": True}
    other = host(2, ranged(1, 9), ["192.0.2.171"], garbage=[leak])
    assert codes(host(1, ranged(171, 180), ["192.0.2.171"]), other) == [[], ["leaks"]]


def test_an_address_of_a_host_is_not_free_for_containers_of_another():
    told = reasons(host(1, ranged(2, 9)), host(5, ranged(10, 19), ["192.0.2.10"]))
    assert [[code for code, _message in rows] for rows in told.values()] == [[SHARED], [SHARED]]
    # It may move between hosts, as that of keepalived does.
    shared = [{**ETH0, "addresses": [f"192.0.2.{number}/24", "192.0.2.99/24"]} for number in (1, 5)]
    assert codes(host(1, ranged(20, 30), links=shared[:1]), host(5, ranged(40, 50), links=shared[1:])) == [[], []]


def test_a_router_of_the_lan_is_no_conflict():
    assert codes(host(1, ranged(1, 9)), host(10, ranged(11, 19))) == [[], []]


# ---- ranges


def test_ranges_that_overlap_need_attention_before_an_address_is_given_out():
    records = [host(1, ranged(20, 99)), host(2, ranged(90, 120)), host(3, ranged(110, 130)), host(4, ranged(140, 150))]
    told = reasons(*records)
    assert [[code for code, _message in rows] for rows in told.values()] == [[SHARED], [SHARED], [SHARED], []]
    (message,) = {message for rows in told.values() for _code, message in rows}
    assert message.startswith(
        "lan: web1, web2 and web3 use the same addresses of one LAN "
        "(192.0.2.20-192.0.2.99, 192.0.2.90-192.0.2.120 and 192.0.2.110-192.0.2.130); "
    )


def test_a_large_group_has_one_cause_that_names_three_hosts():
    report = fleet([host(number, links=[]) for number in range(200)])
    (cause,) = causes_of(findings_by_host(report), Commands(), {})
    assert len(cause.hosts) == 200 and "web0, web1, web10 and 197 more use" in cause.reason
    assert len(cause.reason) < 240


@pytest.mark.parametrize("family", ["192.0.2.0/24", "fd00:1::/64"])
def test_what_is_kept_apart_is_silent(family):
    first = family.partition("/")[0].rpartition("0" if "." in family else ":")[0]
    dot = "" if "." in family else ":"
    parts = [
        plugin(ranges={"subnet": family, "rangeStart": f"{first}{dot}{low}", "rangeEnd": f"{first}{dot}{low + 9}"})
        for low in (20, 30, 40)
    ]
    assert codes(*(host(number, part) for number, part in enumerate(parts, 1))) == [[], [], []]
    assert codes(*(host(number, parts[0]) for number in (1, 2))) == [[SHARED], [SHARED]]


def test_networks_of_other_names_on_one_lan_count_if_the_lan_is_known():
    assert codes(host(1), host(2, network="other")) == [[SHARED], [SHARED]]
    assert codes(host(1, links=[]), host(2, network="other", links=[])) == [[], []]


def test_static_addresses_are_ranges_of_one_address():
    static = {**MACVLAN, "ipam": {"type": "static", "addresses": [{"address": "192.0.2.175/24"}]}}
    assert codes(host(1, static), host(2, static)) == codes(host(1, static), host(2)) == [[SHARED], [SHARED]]


def test_the_interface_of_the_default_route_is_the_master_if_none_is_written():
    chain = {key: value for key, value in MACVLAN.items() if key != "master"}
    routes = [
        {"dst": "0.0.0.0/0", "device": "wan1", "table": 100},
        {"dst": "0.0.0.0/0", "device": "eth0", "table": 254},
    ]

    def with_route(number, subnet):
        links = [{**ETH0, "addresses": [f"{subnet}.{number}/24"]}]
        return host(number, chain, kernel={"links": links, "routes": routes})

    assert codes(with_route(1, "192.0.2"), with_route(2, "192.0.2")) == [[SHARED], [SHARED]]
    assert codes(with_route(1, "192.0.2"), with_route(2, "198.51.100")) == [[], []]


# ---- no false alarms


PRIVATE = [{"name": "br0", "kind": "bridge", "addresses": ["192.0.2.1/24"]}, VETH]


@pytest.mark.parametrize("links", [None, [], PRIVATE])
@pytest.mark.parametrize(
    "chain",
    [
        plugin(type="ptp"),
        bridge(isGateway=True),
        bridge(isGateway=True, ipMasq=True),
        bridge(isDefaultGateway=True),
        bridge(),
        {**MACVLAN, "linkInContainer": True},
        {**MACVLAN, "type": "ipvlan", "mode": "l3"},
        {**MACVLAN, "type": "ipvlan", "mode": "l3s"},
        plugin(type="dummy"),
        # Its bridge is in the container.
        {**plugin(type="tap"), "bridge": "eth0"},
        plugin(type="vendor"),
    ],
)
def test_the_same_private_network_on_each_host_is_normal(chain, links):
    assert codes(*(host(number, chain, ["192.0.2.171"], links) for number in (1, 2))) == [[], []]


@pytest.mark.parametrize(
    "ipam",
    [{"type": "dhcp"}, {"type": "whereabouts", "range": "192.0.2.0/24"}, {}, {"type": "host-local", "subnet": "x"}],
)
def test_what_assigns_addresses_for_all_hosts_is_silent(ipam):
    assert codes(*(host(number, {**MACVLAN, "ipam": ipam}) for number in (1, 2))) == [[], []]


def test_a_bridge_that_leads_out_of_the_host_is_on_the_lan():
    private = [{**PRIVATE[0], "addresses": []}, VETH]
    records = [host(number, bridge(), links=[*private, PORT]) for number in (1, 2)]
    assert codes(*records) == [[SHARED], [SHARED]]
    # A router behind it is as good as a port.
    routes = [{"dst": "0.0.0.0/0", "gateway": "192.0.2.254", "device": "br0", "table": 254}]
    kernel = {"links": private, "routes": routes}
    assert codes(*(host(number, bridge(), kernel=kernel) for number in (1, 2))) == [[SHARED], [SHARED]]
    assert codes(*(host(number, bridge(), links=private) for number in (1, 2))) == [[], []]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"ranges": {"gateway": "192.0.2.254"}}, True),
        ({"ranges": {"gateway": "192.0.2.254"}, "isGateway": True}, False),
        ({"ranges": {"gateway": "192.0.2.254"}, "ipMasq": True}, False),
        ({"ipam": {**MACVLAN["ipam"], "routes": [{"dst": "0.0.0.0/0", "gw": "192.0.2.254"}]}}, True),
        ({"ipam": {**MACVLAN["ipam"], "routes": [{"dst": "0.0.0.0/0"}]}}, False),
    ],
)
def test_a_bridge_that_does_not_exist_yet_is_on_a_lan_if_its_router_is_no_host(changed, told):
    records = [host(number, bridge(**changed), links=[]) for number in (1, 2)]
    assert codes(*records) == ([[SHARED], [SHARED]] if told else [[], []])


@pytest.mark.parametrize("kind", ["dummy", "bridge"])
def test_a_master_without_a_way_out_of_the_host_is_private(kind):
    links = [{**ETH0, "kind": kind, "addresses": ["192.0.2.1/24"]}]
    assert codes(*(host(number, links=links) for number in (1, 2))) == [[], []]


def test_two_sites_may_use_the_same_addresses():
    sites = [[{**ETH0, "addresses": [address, "fe80::1/64"]}] for address in ("10.1.0.5/24", "10.2.0.5/24")]
    used = ["192.0.2.171"]
    assert codes(host(1, used=used, links=sites[0]), host(2, used=used, links=sites[1])) == [[], []]
    vlans = [plugin(type="vlan", vlanId=number) for number in (5, 6)]
    assert codes(host(1, vlans[0]), host(2, vlans[1])) == [[], []]


def test_an_address_without_neighbours_does_not_tell_the_lan():
    records = [host(n, links=[{**ETH0, "addresses": [f"203.0.113.{n}/32"]}]) for n in (1, 2)]
    assert codes(*records) == [[SHARED], [SHARED]]


def test_the_addresses_of_the_interface_below_are_not_in_its_vlans():
    parts = [{**ranged(start, start + 8), "type": "vlan", "vlanId": 5} for start in (2, 20)]
    assert codes(host(21, parts[0]), host(3, parts[1])) == [[], []]


def test_one_host_never_conflicts_with_itself():
    assert codes(host(1, used=["192.0.2.171", "192.0.2.172"])) == [[]]


def test_a_host_that_was_not_inspected_lately_is_not_compared():
    times = ("2026-11-01T00:00:00Z", "2026-11-20T00:00:00Z", "2026-11-20T00:00:00Z")
    records = [{**host(number), "time": time} for number, time in enumerate(times, 1)]
    report = fleet(records, "2026-11-21T00:00:00Z")
    assert [[reason["code"] for reason in host["attention"]] for host in report["hosts"]] == [
        ["stale"],
        [SHARED],
        [SHARED],
    ]


def test_an_address_counts_once_whatever_files_a_network_has():
    rows = 3000
    links = [{"name": f"br{number}", "kind": "bridge", "master": "br0"} for number in range(rows)]
    conf = [{"network": f"n{number % 3}", "config": {**bridge(), "bridge": f"br{number}"}} for number in range(rows)]
    owners = [{"container_id": "c", "ips": [f"10.0.{number >> 8}.{number & 255}"]} for number in range(rows)]
    pools = [{"network": f"n{number % 3}", "owners": [owner]} for number, owner in enumerate(owners)]
    routes = [{"dst": f"10.{number}.0.0/16", "gateway": "10.0.0.1", "device": f"br{number}"} for number in range(rows)]
    uses = list(
        HostNetworks("h", (), {"conf": conf, "pools": pools, "kernel": {"links": links, "routes": routes}}).uses()
    )
    assert len(uses) == rows and sum(len(use.spans) for use in uses) == 2 * rows


# ---- networks that differ


MTU = (DIFFERENT, "lan: the MTU is 1500 on web1 and 9000 on web2 and web3; write one value for all of them")


def test_one_network_with_several_mtus_on_one_lan():
    parts = [(1, 20, 1500), (2, 30, 9000), (3, 40, 9000)]
    told = reasons(*(host(number, {**ranged(low, low + 9), "mtu": mtu}, groups=()) for number, low, mtu in parts))
    assert told == {"web1": [MTU], "web2": [MTU], "web3": [MTU]}


def test_the_mtu_of_the_interface_below_counts_if_none_is_written():
    def with_link(number, mtu):
        links = [{**ETH0, "mtu": mtu, "addresses": [f"192.0.2.{number}/24"]}]
        return host(number, ranged(number * 10, number * 10 + 5), links=links)

    assert codes(with_link(2, 1500), with_link(3, 9000)) == [[DIFFERENT], [DIFFERENT]]
    assert codes(with_link(2, 1500), with_link(3, 1500)) == [[], []]


@pytest.mark.parametrize(
    ("groups", "told"),
    [
        ([["web"], ["web"]], True),
        ([["ungrouped"], ["ungrouped"]], True),
        ([["web"], ["db"]], False),
        ([[], []], False),
        # The values are those of other groups.
        ([["web", "ams"], ["web", "fra"]], False),
    ],
)
def test_a_private_network_has_one_mtu_in_a_group(groups, told):
    records = [
        host(number, bridge(isGateway=True, mtu=1400 + number), groups=of_host) for number, of_host in enumerate(groups)
    ]
    assert codes(*records) == ([[DIFFERENT], [DIFFERENT]] if told else [[], []])


def test_a_host_that_differs_from_the_others_of_its_site_is_told_with_them():
    sites = [(1, "ams", 1450), (2, "ams", 1450), (3, "ams", 1500), (4, "fra", 8950), (5, "fra", 8950)]
    records = [host(number, bridge(mtu=mtu), groups=["web", site]) for number, site, mtu in sites]
    told = reasons(*records)
    message = "lan: the MTU is 1450 on web1 and web2 and 1500 on web3; write one value for all of them"
    assert told == {**{f"web{number}": [(DIFFERENT, message)] for number in (1, 2, 3)}, "web4": [], "web5": []}


def test_what_a_step_of_a_host_changes_is_no_difference_of_others():
    edited = host(1, bridge(mtu=1300), steps=[{"kind": "write", "target": PATH, "class": "safe"}])
    records = [host(number, bridge(mtu=1450)) for number in (2, 3)]
    assert codes(edited, *records) == [[], [], []]
    other = host(1, bridge(mtu=1300), steps=[{"kind": "write", "target": f"{PATH}x", "class": "safe"}])
    assert codes(other, *records) == [[DIFFERENT]] * 3


@pytest.mark.parametrize("links", [None, []])
def test_one_network_with_several_subnets(links):
    half = plugin(ranges={"subnet": "192.0.2.0/25", "rangeStart": "192.0.2.10", "rangeEnd": "192.0.2.20"})
    told = reasons(host(1, half, links=links), host(2, links=links))
    message = "lan: the subnet is 192.0.2.0/24 on web2 and 192.0.2.0/25 on web1; write one value for all of them"
    assert told == {"web1": [(DIFFERENT, message)], "web2": [(DIFFERENT, message)]}


def test_routed_networks_have_a_subnet_for_each_host():
    subnets = [{"subnet": f"10.55.{number}.0/24", "rangeStart": None, "rangeEnd": None} for number in (1, 2)]
    assert codes(*(host(n, bridge(isGateway=True, ranges=subnet)) for n, subnet in enumerate(subnets))) == [[], []]
    racks = [[{**ETH0, "addresses": [f"10.{number}.0.5/24"]}] for number in (1, 2)]
    records = [host(n, plugin(ranges=subnet), links=racks[n]) for n, subnet in enumerate(subnets)]
    assert codes(*records) == [[], []]


def test_a_family_that_only_one_host_has_is_no_other_subnet():
    both = {**MACVLAN, "ipam": {"type": "host-local", "ranges": [[RANGE], [{"subnet": "fd00::/64"}]]}}
    assert codes(host(1, both), host(2, ranged(20, 30))) == [[], []]


# ---- any data


@pytest.mark.parametrize("seed", range(20))
def test_data_of_any_shape_is_compared(seed):
    dice = random.Random(seed)
    junk = [None, 1, -1, 10**30, True, "", "x", "eth0", [], {}, ["x"], [None], {"type": 5}, "1.2.3.4/99", "::/0", "%"]

    def spoilt(value):
        if dice.random() < 0.15:
            return dice.choice(junk)
        if isinstance(value, dict):
            return {key: spoilt(entry) for key, entry in value.items()}
        return [spoilt(entry) for entry in value] if isinstance(value, list) else value

    records = [
        host(number, used=["192.0.2.171"], attachments=[{"network": "lan", "ips": ["1"]}]) for number in range(9)
    ]
    report = fleet([{**record, "info": spoilt(record["info"])} for record in records])
    assert json.dumps(report) and len(report["hosts"]) == 9
