# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh

pytestmark = pytest.mark.parametrize("generation", ["old", "new"], scope="module")


@pytest.fixture(scope="module")
def info(spoiled_cache, odd_leases, gather):
    return gather()


def test_each_attachment_is_there_with_the_state_of_its_namespace(info):
    rows = [
        (row["network"], row["container_id"], row["ifname"], row["netns_state"], row["interface"], row["cni_version"])
        for row in info["attachments"]
    ]
    assert rows == [
        ("pwi", "gone", "eth0", "gone", False, "1.0.0"),
        ("pwi", "other", "eth0", "other", False, "1.0.0"),
        ("pwi", "unknown", "eth2", "unknown", True, "1.0.0"),
        ("pwi", "web", "eth0", "same", True, "1.0.0"),
        ("pwiptp", "web", "eth1", "same", True, "0.4.0"),
    ]


def test_an_attachment_is_described_without_its_secrets(info, attached, generation):
    web = info["attachments"][3]
    assert web["netns"] == "/run/netns/pwi-web"
    assert web["plugins"] == ["bridge", "host-local", "portmap"]
    assert web["args"] == {"IgnoreUnknown": "true", "K8S_TOKEN": "********"}
    assert web["capability_args"] == {"portMappings": [{"hostPort": 8076, "containerPort": 80, "protocol": "tcp"}]}
    assert web["ips"] == attached[0]["ips"]
    assert web["result"] == attached[0]["result"]
    # The CHECK of portmap 1.1.1 fails if there is a port mapping.
    assert (web["check_unusable"] or {}).get("plugin", "") == ("portmap" if generation == "old" else "")


def test_damage_in_the_cache_is_reported(info, site):
    problems = [problem for problem in info["problems"] if problem["file"].startswith(str(site.cache_dir))]
    assert sorted(str(Path(problem["file"]).relative_to(site.cache_dir)) for problem in problems) == [
        "podwire/pwi-cut-eth0",
        "podwire/pwi-gone-eth0",
        "results/junk",
        "results/pwi-copy-eth0",
    ]
    codes = sorted(problem["code"] for problem in problems)
    assert codes == ["cache_damaged", "cache_damaged", "interrupted", "record_unreadable"]
    assert {problem["level"] for problem in problems} == {"warning"}


def test_leases_are_there_by_address(info, attached, site):
    leases = [lease for lease in info["leases"] if lease["network"] == "pwi"]
    assert sorted(lease["container_id"] for lease in leases) == ["", "dead", "gone", "old", "other", "unknown", "web"]
    assert [lease["ip"] for lease in leases[-3:]] == ["10.76.0.98", "10.76.0.99", "10.76.0.200"]
    assert [lease["ifname"] for lease in leases[-3:]] == ["", "", "eth0"]
    assert {lease["data_dir"] for lease in leases} == {str(site.lease_dir)}
    web = next(lease for lease in leases if lease["container_id"] == "web")
    assert f"{web['ip']}/24" == attached[0]["ips"][0]
    ptp = [lease for lease in info["leases"] if lease["network"] == "pwiptp"]
    assert [(lease["container_id"], lease["data_dir"]) for lease in ptp] == [("web", "/var/lib/cni/networks")]
    problems = [problem for problem in info["problems"] if problem["code"].startswith("lease")]
    assert [(problem["code"], Path(problem["file"]).name) for problem in problems] == [
        ("lease_empty", "10.76.0.98"),
        ("lease_unknown", "notes"),
    ]


def test_a_pool_counts_its_leases_and_names_their_owners(info):
    pool = next(pool for pool in info["pools"] if pool["network"] == "pwi")
    assert pool["used"] == 7
    assert pool["free"] == pool["size"] - 7
    assert pool["outside"] == 0
    owners = [owner["container_id"] for owner in pool["owners"]]
    assert owners == ["", "dead", "gone", "old", "other", "unknown", "web"]


def test_a_lease_without_other_evidence_is_a_leak(info):
    assert [leak["id"] for leak in info["garbage"] if leak["container_id"] == "dead"] == ["10.76.0.200"]


def test_the_cache_tells_where_leases_are_without_configurations(info, site):
    unconfigured = site.run("cni_info", conf_dir=f"{site.work}/none", gather=["leases"])
    assert unconfigured["leases"] == info["leases"]


def test_the_kernel_has_the_interfaces_of_attachments(info, attached):
    # Those whose interface is gone are reported, too.
    gone = [row for row in info["kernel"]["attachments"] if not row["kind"]]
    assert [row for row in gone if "is gone" not in "".join(row["differences"])] == []
    there = [row for row in info["kernel"]["attachments"] if row["kind"]]
    assert [row["container_id"] for row in there] == ["unknown", "web", "web"]
    _unknown, web, ptp = there

    (inside,) = json.loads(sh("ip -json -netns pwi-web address show eth0"))
    result = attached[0]["result"]["interfaces"]
    assert web["ifname"] == "eth0"
    assert web["netns"] == "/run/netns/pwi-web"
    assert web["kind"] == "veth"
    assert web["up"]
    assert web["mac"] == inside["address"]
    assert web["mac"] == next(interface for interface in result if interface["name"] == "eth0")["mac"]
    assert web["mtu"] == inside["mtu"]
    assert sorted(web["addresses"]) == sorted(f"{row['local']}/{row['prefixlen']}" for row in inside["addr_info"])
    assert attached[0]["ips"][0] in web["addresses"]
    host_end = next(row for row in _host_links() if row["ifindex"] == inside["link_index"])
    assert web["host_interface"] == host_end["ifname"]
    assert web["host_interface"] in [interface["name"] for interface in result]
    assert [row["gateway"] for row in web["routes"] if row["dst"] == "0.0.0.0/0"] == ["10.76.0.1"]
    assert ptp["host_interface"] in [interface["name"] for interface in attached[4]["result"]["interfaces"]]


def test_the_kernel_has_the_links_and_routes_of_the_host(info):
    links = {row["name"]: row for row in info["kernel"]["links"]}
    assert [row["name"] for row in info["kernel"]["links"]] == sorted(row["ifname"] for row in _host_links())
    assert links["pwi0"]["kind"] == "bridge"
    assert "10.76.0.1/24" in links["pwi0"]["addresses"]
    web = next(row for row in info["kernel"]["attachments"] if (row["container_id"], row["ifname"]) == ("web", "eth0"))
    assert links[web["host_interface"]]["master"] == "pwi0"

    routes = info["kernel"]["routes"]
    assert [row["device"] for row in routes if row["dst"] == "10.76.0.0/24"] == ["pwi0"]
    devices = [row["dev"] for row in json.loads(sh("ip -json route show"))]
    assert sorted(row["device"] for row in routes if row["family"] == "ipv4") == sorted(devices)


def _host_links():
    return json.loads(sh("ip -json -details address show"))
