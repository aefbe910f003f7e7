# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.types import named_plugins, types_of
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.difference import (
    fits,
    moved,
    readable_secret,
    same_json,
    shown_conflist,
)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"a": 1, "b": 2}', b'{"b":2,"a":1}', True),
        (b'{"a": 1500.0}', b'{"a": 1500}', True),
        (b'{"a": 1e3}', b'{"a": 1000}', True),
        (b'{"a": 1}', b'{"a": true}', False),
        (b'{"a": [1, 2]}', b'{"a": [2, 1]}', False),
        (b'{"a": "1"}', b'{"a": 1}', False),
        (b'{"a": 9007199254740993}', b'{"a": 9007199254740992}', False),
        (b"{", b"{}", False),
        (None, b"{}", False),
    ],
)
def test_what_means_the_same_to_libcni_is_the_same(one, other, same):
    assert same_json(one, other) is same


def conflist(*plugins, name="n"):
    return json.dumps({"name": name, "plugins": plugins}).encode()


LOCAL = {"type": "host-local", "subnet": "10.0.0.0/24"}
BRIDGE = {"type": "bridge", "bridge": "b0", "ipam": LOCAL}
# The plugin as it is, the members that change (None: removed), and what moves.
CHANGES = [
    (BRIDGE, {"mtu": 1400, "hairpinMode": True, "isGateway": True, "capabilities": {"mac": True}}, []),
    (BRIDGE, {"bridge": "b1"}, ["bridge of bridge"]),
    ({"type": "bridge"}, {"bridge": "cni0", "vlan": 0, "ipMasq": False, "preserveDefaultVlan": True}, []),
    (BRIDGE, {"vlan": 7}, ["vlan of bridge"]),
    (BRIDGE, {"preserveDefaultVlan": False}, ["preserveDefaultVlan of bridge"]),
    (BRIDGE, {"IPMASQ": True}, ["ipMasq of bridge"]),
    (BRIDGE, {"args": {"cni": {"ips": ["10.0.0.9"]}}}, ["args of bridge"]),
    (BRIDGE, {"type": "ptp", "bridge": None}, ["the plugin bridge", "the plugin ptp"]),
    (BRIDGE, {"ipam": {**LOCAL, "routes": [{"dst": "0.0.0.0/0"}], "resolvConf": "/etc/x"}}, []),
    (BRIDGE, {"ipam": {**LOCAL, "dataDir": "/srv/leases"}}, ["dataDir of host-local"]),
    (BRIDGE, {"ipam": {**LOCAL, "dataDir": "/var/lib/cni/networks/"}}, []),
    (BRIDGE, {"ipam": {**LOCAL, "datadir": "/srv/leases"}}, ["dataDir of host-local"]),
    (BRIDGE, {"ipam": None, "IPAM": {"Type": "host-local", "SUBNET": "10.0.0.0/24"}}, []),
    (BRIDGE, {"ipam": {**LOCAL, "rangeStart": "10.0.0.5"}}, ["rangeStart of host-local"]),
    (BRIDGE, {"ipam": {**LOCAL, "ranges": [[{"subnet": "10.1.0.0/24"}]]}}, ["ranges of host-local"]),
    (BRIDGE, {"ipam": {"type": "dhcp"}}, ["the type of ipam"]),
    ({"type": "ptp", "ipam": {"type": "static"}}, {"mtu": 9000}, []),
    ({"type": "macvlan", "master": "e0"}, {"master": "e1"}, ["master of macvlan"]),
    ({"type": "macvlan", "master": "e0"}, {"mode": "bridge", "mtu": 1400}, []),
    ({"type": "ipvlan", "master": "e0"}, {"mode": "l3"}, ["mode of ipvlan"]),
    ({"type": "vlan", "master": "e0", "vlanId": 5}, {"vlanId": 6}, ["vlanId of vlan"]),
    ({"type": "host-device", "device": "e0"}, {"device": "e1"}, ["device of host-device"]),
    ({"type": "tap"}, {"bridge": "b0"}, ["bridge of tap"]),
    ({"type": "portmap"}, {"backend": "nftables", "markMasqBit": 13, "snat": True}, ["backend of portmap"]),
    ({"type": "firewall"}, {"ingressPolicy": "same-bridge"}, ["ingressPolicy of firewall"]),
    ({"type": "flannel"}, {"delegate": {"mtu": 1400, "bridge": "cni0"}}, []),
    ({"type": "flannel"}, {"delegate": {"bridge": "b1"}}, ["bridge of bridge"]),
    ({"type": "flannel"}, {"ipam": {"type": "host-local", "routes": [{"dst": "::/0"}]}}, []),
    ({"type": "flannel"}, {"ipam": {"type": "dhcp"}}, ["the type of ipam"]),
    ({"type": "acme", "a": 1}, {"a": 1.0, "name": "x", "cniVersion": "1.0.0"}, []),
    ({"type": "acme", "a": 1}, {"a": 2}, ["a of acme"]),
    ({"type": "acme", "ipam": LOCAL}, {"ipam": {**LOCAL, "routes": []}}, ["ipam of acme"]),
    ({"type": "ptp", "ipam": {"type": "acme"}}, {"ipam": {"type": "acme", "pool": "x"}}, ["pool of acme"]),
    (
        {"type": "ptp", "ipam": {"type": "static", "addresses": [{"address": "10.0.0.2/24"}]}},
        {"ipam": {"type": "static", "addresses": [{"address": "10.0.0.3/24"}]}},
        ["addresses of static"],
    ),
]


@pytest.mark.parametrize(("plugin", "change", "words"), CHANGES)
def test_what_moves_attachments_is_named(plugin, change, words):
    after = {key: value for key, value in {**plugin, **change}.items() if value is not None}
    one, other = conflist(plugin), conflist(after)
    assert moved(one, other) == words
    assert fits(one, other) is not bool(words)
    assert bool(moved(other, one)) is bool(words)
    assert moved(None, other) == moved(b"{", other) == []


def test_the_name_and_the_plugins_of_a_chain_move_attachments():
    portmap, tuning = {"type": "portmap"}, {"type": "tuning"}
    assert moved(conflist(BRIDGE), conflist(BRIDGE, name="m")) == ["the name"]
    assert moved(conflist(BRIDGE), conflist(BRIDGE, tuning, portmap)) == []
    assert moved(conflist(BRIDGE, tuning, portmap), conflist(BRIDGE, portmap, tuning)) == []
    assert moved(conflist(BRIDGE, tuning, portmap), conflist(BRIDGE)) == ["the plugin portmap"]
    assert moved(conflist(BRIDGE), conflist(BRIDGE, {"type": "acme"})) == ["the plugin acme"]
    assert fits(conflist(BRIDGE, portmap), conflist(BRIDGE), [portmap])


def test_a_text_is_shown_laid_out_and_masked():
    assert (
        shown_conflist(b'{"name":"a","etcd_password":"hunter22"}')
        == '{\n  "name": "a",\n  "etcd_password": "********"\n}\n'
    )
    assert "hunter22" not in shown_conflist(b'{"etcd_password": "hunter22", oops')


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        ({"type": "bridge"}, [("/type", "bridge")]),
        ({"Type": "bridge", "IPAM": {"TYPE": "x"}}, [("/type", "bridge"), ("/ipam/type", "x")]),
        ({"type": "bridge", "ipam": {}}, [("/type", "bridge")]),
        ({"type": 5, "ipam": []}, []),
        (
            {"type": "x", "delegate": {"type": "y", "ipam": {"type": "z"}}},
            [("/type", "x"), ("/delegate/type", "y"), ("/delegate/ipam/type", "z")],
        ),
        ({"type": "flannel"}, [("/type", "flannel"), ("/ipam/type", "host-local"), ("/delegate/type", "bridge")]),
        (
            {"type": "flannel", "ipam": {"type": "dhcp"}, "delegate": {"type": "ptp"}},
            [("/type", "flannel"), ("/ipam/type", "dhcp"), ("/delegate/type", "ptp")],
        ),
    ],
)
def test_everything_that_a_plugin_executes_is_named(plugin, expected):
    assert named_plugins(plugin) == expected


def test_types_are_listed_once():
    assert types_of([{"type": "b", "ipam": {"type": "a"}}, {"type": "b"}]) == ["a", "b"]


@pytest.mark.parametrize("mode, warned", [(0o644, True), (0o604, True), (0o640, False), (0o600, False)])
def test_a_secret_that_every_user_can_read_is_a_warning(mode, warned):
    secret = b'{"plugins": [{"type": "x", "env": [{"name": "DB_PASSWORD", "value": "hush"}]}]}'
    found = readable_secret(secret, mode, "/etc/cni/net.d/10-x.conflist")
    assert [entry.code for entry in found] == ["readable_secret"] * warned
    assert not warned or 'mode: "0600"' in found[0].message
    assert readable_secret(b'{"plugins": [{"type": "x", "token_ttl": "30s"}]}', mode, "/x") == []
