# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a network is compared with: other files, and the addresses and routes of the host."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import network

LEVELS = ["syntax", "schema", "directory"]


def test_leftovers_are_reported_and_stop_nothing(host, conf_dir):
    leftovers = {
        ".ansible_tmpabcdefgh10-x.conflist": '{"cniVer',
        "05-broken.conflist": "",
        "40-x.bak.conflist": '{"cniVersion": "1.0.0", "name": "old", "plugins": [{"type": "loopback"}]}',
        "50-stray.json": '{"hello": "world"}',
        "60-one.conf": '{"cniVersion": "1.0.0", "name": "one", "type": "loopback"}',
        "87-first.conflist": '{"cniVersion": "1.0.0", "name": "first", "plugins": [{"type": "loopback"}]}',
        "calico-kubeconfig": "token: not-to-be-read",
        "cni.kubeconfig.conf": "token: not-to-be-read",
    }
    for name, text in leftovers.items():
        (conf_dir / name).write_text(text)
        (conf_dir / name).chmod(0o600)
    beside = host.run("cni_conf", check_mode=True, networks=[network("dir")])
    assert [(entry["code"], Path(entry["file"]).name) for entry in beside["problems"]] == [
        ("temp_file", ".ansible_tmpabcdefgh10-x.conflist"),
        ("broken_file", "05-broken.conflist"),
        ("backup_file", "40-x.bak.conflist"),
        ("stray_json", "50-stray.json"),
        ("single_plugin", "60-one.conf"),
        ("broken_file", "cni.kubeconfig.conf"),
    ]
    assert [step["kind"] for step in beside["actions"]] == ["create"]
    assert "not-to-be-read" not in json.dumps(beside)


def test_a_network_before_the_first_one_is_reported_unless_the_level_is_left_out(host, conf_dir):
    text = '{"cniVersion": "1.0.0", "name": "first", "plugins": [{"type": "loopback"}]}'
    (conf_dir / "87-first.conflist").write_text(text)
    (flip,) = host.run("cni_conf", check_mode=True, networks=[network("dir")])["problems"]
    assert flip["code"] == "order_flip"
    assert "'first'" in flip["message"]
    assert "'dir'" in flip["message"]
    levels = ["syntax", "schema", "plugins"]
    assert host.run("cni_conf", check_mode=True, networks=[network("dir")], validate=levels)["problems"] == []


@pytest.fixture
def host0():
    """A bridge, an address on it and routes that are not of any network."""
    sh(
        """
        ip link add host0 type bridge
        ip address add 10.66.0.1/24 dev host0
        ip link set host0 up
        ip route add 10.64.0.0/14 via 10.66.0.2
        ip route add default via 10.66.0.2
        """
    )


PLUGINS = {
    "routed": {"type": "bridge", "bridge": "beside0", "isGateway": True},
    "named": {"type": "bridge", "bridge": "host0", "isGateway": True},
    "joined": {"type": "bridge", "bridge": "host0"},
}
OVERLAP, SHARED_ROUTE = "warning host_overlap", "info host_overlap"


@pytest.mark.parametrize(
    ("kind", "subnet", "found", "message"),
    [
        ("routed", "10.66.0.0/25", [OVERLAP, SHARED_ROUTE], "address 10.66.0.1/24 of the interface host0,"),
        ("joined", "10.66.0.0/24", [], None),
        (
            "named",
            "10.68.0.0/24",
            ["warning bridge_address"],
            "host0.*10.66.0.1/24.*10.68.0.1/24.*ip link delete dev host0",
        ),
    ],
)
def test_addresses_and_routes_of_the_host_are_seen(host, conf_dir, host0, kind, subnet, found, message):
    plugin = {**PLUGINS[kind], "ipam": {"type": "host-local", "subnet": subnet}}
    problems = host.run("cni_conf", check_mode=True, validate=LEVELS, networks=[network("beside", plugin)])["problems"]
    assert [f"{entry['level']} {entry['code']}" for entry in problems] == found
    if message:
        assert re.search(message, problems[0]["message"])
    if kind == "named" and problems:
        assert problems[0]["pointer"] == "/plugins/0/bridge"
