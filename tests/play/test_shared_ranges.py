# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What an inventory gives to several hosts: ranges of host-local on a LAN."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from ansible_collections.podwire.cni.tests.host.host import sh

RANGE = {"subnet": "192.0.2.0/24", "rangeStart": "192.0.2.170", "rangeEnd": "192.0.2.190"}
STARTS = {"rangeStart": "{{ lan_start }}", "rangeEnd": "{{ lan_end }}"}


def conflist(*ranges: dict[str, Any], **plugin: Any) -> dict[str, Any]:
    ipam = {"type": "host-local", "ranges": [[{**RANGE, **entry}] for entry in ranges or [{}]]}
    return {"cniVersion": "1.0.0", "plugins": [{"type": "macvlan", "master": "eth0", "ipam": ipam, **plugin}]}


def static(address: str) -> dict[str, Any]:
    return conflist(ipam={"type": "static", "addresses": [{"address": address}]})


TEXT = json.dumps(conflist())
# The networks of a group, and whether each host of it assigns the same addresses.
CASES: dict[str, tuple[dict[str, Any], bool]] = {
    "literal": ({"conflist": conflist()}, True),
    "subnet": ({"conflist": conflist({"rangeStart": None, "rangeEnd": None})}, True),
    "any_spelling": ({"conflist": conflist(ipam={"TYPE": "host-local", "Subnet": "192.0.2.0/24"})}, True),
    "of_the_group": ({"conflist": conflist({"rangeStart": "{{ group_start }}"})}, True),
    "of_each_host": ({"conflist": conflist(STARTS)}, False),
    "one_of_each_host": ({"conflist": conflist({"rangeStart": "{{ lan_start }}"})}, False),
    "computed": (
        {"conflist": conflist({"rangeStart": "192.0.2.{{ 170 + groups.web.index(inventory_hostname) }}"})},
        False,
    ),
    "overridden": ({"conflist": conflist({"rangeStart": "{{ mostly }}"})}, False),
    "second_range": ({"conflist": conflist(STARTS, {"rangeStart": "192.0.2.2", "rangeEnd": "192.0.2.9"})}, True),
    "ipvlan": ({"conflist": conflist(type="ipvlan")}, True),
    "vlan": ({"conflist": conflist(type="vlan", vlanId=5)}, True),
    "routed": ({"conflist": conflist(type="ipvlan", mode="l3")}, False),
    "bridge": ({"conflist": conflist(type="bridge", isGateway=True)}, False),
    "bridge_alone": ({"conflist": conflist(type="bridge")}, False),
    "bridge_of_lan": ({"conflist": conflist({"gateway": "192.0.2.254"}, type="bridge")}, True),
    "ptp": ({"conflist": conflist(type="ptp")}, False),
    "dhcp": ({"conflist": conflist(ipam={"type": "dhcp"})}, False),
    "static": ({"conflist": static("192.0.2.7/24")}, True),
    "static_of_each_host": ({"conflist": static("{{ lan_start }}/24")}, False),
    "content": ({"content": TEXT}, True),
    "content_of_each_host": ({"content": TEXT.replace("192.0.2.170", "{{ lan_start }}")}, False),
    "file": ({"src": "lan.conflist"}, True),
    "file_of_each_host": ({"src": "{{ inventory_hostname }}.conflist"}, False),
    "absent": ({"state": "absent"}, False),
}
STARTS_OF = {"w1": "192.0.2.171", "w2": "192.0.2.181"}
ENDS_OF = {"w1": "192.0.2.180", "w2": "192.0.2.189"}


@pytest.fixture
def site(controller):
    hosts = {
        name: {"ansible_connection": "local", "lan_start": STARTS_OF[name], "lan_end": ENDS_OF[name]}
        for name in STARTS_OF
    }
    hosts["w2"]["mostly"] = "192.0.2.180"
    networks = {name: [{"name": "lan", **network}] for name, (network, _told) in CASES.items()}
    group = {
        "group_start": "192.0.2.175",
        "mostly": "192.0.2.170",
        "cases": networks,
        "cni_networks": networks["literal"],
    }
    made = controller({"all": {"children": {"web": {"hosts": hosts}}}})
    (made.folder / "group_vars").mkdir()
    (made.folder / "group_vars" / "web.yml").write_text(yaml.safe_dump(group, width=1000))
    for name in ("lan", *hosts):
        (made.folder / f"{name}.conflist").write_text(TEXT)
    return made


def told(result):
    return [problem for problem in result["problems"] if problem["code"] == "shared_range"]


def tasks(site, *names):
    places = {"conf_dir": f"{site.folder}/net.d", "cache_dir": f"{site.folder}/cache", "validate": ["syntax"]}
    return [
        {"podwire.cni.cni_conf": {"networks": f"{{{{ cases.{name} }}}}", **places}, "check_mode": True}
        for name in names
    ]


def test_a_range_that_several_hosts_of_a_lan_get_is_a_warning(site):
    run = site.play(*tasks(site, *CASES))
    found = [result.result for result in run.results if result.action == "podwire.cni.cni_conf"]
    assert len(found) == 2 * len(CASES)
    by_case = {name: found[2 * index : 2 * index + 2] for index, name in enumerate(CASES)}
    assert {name: [bool(told(result)) for result in results] for name, results in by_case.items()} == {
        name: [expected] * 2 for name, (_network, expected) in CASES.items()
    }
    (problem,) = told(by_case["literal"][0])
    path = site.folder / "group_vars" / "web.yml"
    assert problem["level"] == "warning" and problem["file"] == str(path)
    assert "subnet: 192.0.2.0/24" in path.read_text().splitlines()[problem["line"] - 1]
    assert problem["message"].startswith(
        "the network 'lan' is on a LAN, and several hosts assign 192.0.2.170-192.0.2.190"
    )
    # All hosts say the same, so it is printed once.
    assert run.stderr.count(problem["message"][:60]) + run.stdout.count(problem["message"][:60]) >= 1


def test_what_the_task_itself_says_is_for_all_hosts(site):
    options = {"conf_dir": f"{site.folder}/net.d", "cache_dir": f"{site.folder}/cache", "validate": ["syntax"]}
    task = {
        "podwire.cni.cni_conf": {"networks": [{"name": "lan", "conflist": conflist()}], **options},
        "check_mode": True,
    }
    play = site.folder / "task.yml"
    play.write_text(yaml.safe_dump([{"hosts": "web", "gather_facts": False, "tasks": [task]}]))
    assert [len(told(result)) for result in site.run(str(play)).of("podwire.cni.cni_conf")] == [1, 1]
    # A play of one host has nobody to share with.
    assert [told(result) for result in site.run(str(play), "--limit", "w1").of("podwire.cni.cni_conf")] == [[]]


def test_cni_host_says_so_and_strict_makes_it_an_error(site):
    places = {"conf_dir": f"{site.folder}/net.d", "cache_dir": f"{site.folder}/cache"}
    section = {"networks": "{{ cni_networks }}", "validate": ["syntax"]}
    task = {"podwire.cni.cni_host": {"networks": section, **places}, "check_mode": True}
    assert [len(told(result)) for result in site.play(task).of("podwire.cni.cni_host")] == [1, 1]
    strict = tasks(site, "literal", "of_each_host")
    for task in strict:
        task["podwire.cni.cni_conf"]["strict"] = True
        task["ignore_errors"] = True
    results = site.play(*strict).of("podwire.cni.cni_conf")
    assert [result.get("code") for result in results] == ["shared_range"] * 2 + [None] * 2


def test_two_hosts_that_have_given_out_one_address_need_attention(controller, generations):
    """Both hosts are this machine, each with networks, leases and a container of its own, on one interface."""
    ipam = {"type": "host-local", "ranges": [[RANGE]], "dataDir": "{{ here }}/leases"}
    variables = {
        "ansible_connection": "local",
        "here": "{{ inventory_dir }}/{{ inventory_hostname }}",
        "cni_conf_dir": "{{ here }}/net.d",
        "cni_cache_dir": "{{ here }}/cache",
        "cni_bin_dirs": [str(generations["new"])],
        "cni_networks": [{"name": "lan", "conflist": conflist(master="lan9", ipam=ipam)}],
        "cni_netns": ["lan-{{ inventory_hostname }}"],
        "cni_attachments": [{"network": "lan", "container_id": "c", "netns": "lan-{{ inventory_hostname }}"}],
        "cni_report_dir": "{{ inventory_dir }}/report",
    }
    site = controller({"all": {"children": {"web": {"hosts": {"w1": {}, "w2": {}}, "vars": variables}}}})
    sh("ip link add lan9 up type veth peer name lan8; ip link set lan8 up; ip address add 192.0.2.1/24 dev lan9")
    try:
        run = site.run("bootstrap", cni_hosts="web")
        assert run.of("podwire.cni.cni_host")
        run = site.run("drift")
        hosts = site.reported()
        assert {host["status"] for host in hosts.values()} == {"clean"}
        for host in hosts.values():
            (reason,) = [reason for reason in host["attention"] if reason["code"] == "duplicate_address"]
            assert reason["message"].startswith("lan: 192.0.2.170 is in use twice: w1 and w2 use the same addresses")
        assert "2 of 2 hosts need attention" in run.stdout
    finally:
        sh("ip link delete lan9; ip -all netns delete")
