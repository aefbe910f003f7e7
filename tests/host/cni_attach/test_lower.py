# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The device below an attachment is made again, as a restart of the host's network does: what is on it goes with it."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.tests.host.host import needs, sh, wait_until

WEB = {"network": "pwamac", "container_id": "web", "netns": "pwa-web"}
VETH = "ip link add pwalow0 type veth peer name pwalow1; ip link set pwalow1 up; ip link set pwalow0 up"
BRIDGE = "ip link add pwalow0 type bridge; ip link set pwalow0 up"


def eth0():
    return json.loads(sh("ip -n pwa-web -json address show dev eth0"))[0]


def lower_index():
    return json.loads(sh("ip -json link show pwalow0"))[0]["ifindex"]


def addresses(link):
    return [(entry["local"], entry["prefixlen"]) for entry in link["addr_info"] if entry["scope"] == "global"]


@pytest.fixture(params=["macvlan", "ipvlan", "vlan"])
def kind(request):
    """The type of plugin that makes an interface on the device."""
    needs({"vlan": "vlan id 5"}.get(request.param, request.param))
    return request.param


@pytest.fixture
def lower(kind, write_network, leases, host):
    """Attach to a network on the device, and return the interface."""
    sh(VETH)
    ipam = {"type": "host-local", "dataDir": str(leases), "subnet": "10.72.0.0/24", "routes": [{"dst": "0.0.0.0/0"}]}
    vlan = {"vlanId": 5} if kind == "vlan" else {}
    write_network("pwamac", [{"type": kind, "master": "pwalow0", "ipam": ipam, **vlan}])
    host.run("cni_attach", attachments=[WEB])
    yield eth0()
    host.run("cni_attach", attachments=[{**WEB, "state": "absent"}])
    sh("ip link delete pwalow0", check=False)


def lose(again):
    """Delete the device, which takes the interface with it, and make it again."""
    sh("ip link delete pwalow0")
    wait_until(lambda: not sh("ip -n pwa-web link show eth0", check=False))
    sh(again)


def test_an_interface_comes_back_on_the_new_device_of_that_name(kind, lower, change):
    before = lower_index()
    # Another interface takes the index that the device had.
    lose(f"ip link add pwaother index {before} type bridge; {VETH}")
    assert lower_index() != before
    ran = change([WEB], None, ["repaired"], on_drift="repair").run
    assert {step["class"] for step in ran["actions"]} == {"safe"}
    again = eth0()
    assert again["link_index"] == lower_index()
    # An ipvlan has the MAC of its device.
    mac = json.loads(sh("ip -json link show pwalow0"))[0]["address"] if kind == "ipvlan" else lower["address"]
    assert (again["ifindex"], again["address"], addresses(again)) == (lower["ifindex"], mac, addresses(lower))
    assert "default via 10.72.0.1" in sh("ip -n pwa-web route")
    # And once more: the note knows the name, not the index.
    lose(VETH)
    change([WEB], None, ["repaired"], on_drift="repair")


def test_a_device_of_another_kind_is_another_one(lower, change, files):
    lose(BRIDGE)
    results = change([WEB], None, ["repaired"], on_drift="repair")
    for result in (results.check, results.run):
        (step,) = (step for step in result["actions"] if step["target"] == "pwamac/web/eth0")
        assert (step["class"], [part["kind"] for part in step["parts"]]) == ("disruptive", ["del", "add"])
    assert eth0()["link_index"] == lower_index()
    assert len([file for file in files() if file.name.startswith("10.72.")]) == 1


@pytest.mark.parametrize(
    ("there", "words"), [("true", "pwalow0 is gone"), (f"{VETH}; ip link set pwalow0 down", "pwalow0 is down")]
)
def test_without_its_device_nothing_is_detached(lower, host, files, there, words):
    lose(there)
    before = [(path, path.read_bytes()) for path in files() if "web" in path.name or path.name.startswith("10.72.")]
    assert len(before) == 3
    for check_mode in (True, False):
        result = host.fail("cni_attach", attachments=[WEB], on_drift="repair", check_mode=check_mode)
        (error,) = (row["error"] for row in result["attachments"])
        assert error["code"] == "master_missing"
        assert words in error["message"]
    assert [(path, path.read_bytes()) for path, _content in before] == before
    sh("ip link delete pwalow0", check=False)
    sh(VETH)
    host.run("cni_attach", attachments=[WEB], on_drift="repair")
    assert addresses(eth0()) == addresses(lower)
