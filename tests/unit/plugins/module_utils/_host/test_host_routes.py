# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which configurations and arguments make an ADD switch IPv6 forwarding on; real plugins are in tests/host."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import host_routes
from ansible_collections.podwire.cni.plugins.module_utils.libcni import gojson

SIX, FOUR = "fd00::2/64", "10.1.0.2/24"
RANGE = [[{"subnet": "fd00::/64"}]]


@pytest.fixture(autouse=True)
def uplink(monkeypatch):
    """The host has a default route that a router announced on up0."""
    route = SimpleNamespace(raw=b"6", length=0, protocol=9, link=2)
    monkeypatch.setattr(host_routes.netlink, "links", lambda: {2: SimpleNamespace(name="up0")})
    monkeypatch.setattr(host_routes.netlink, "routes", lambda: [route])
    monkeypatch.setattr(host_routes, "kernel_text", lambda path: "0" if path.endswith("forwarding") else "1")


def plugin(ipam, kind="bridge", **more):
    if isinstance(ipam, str):
        ipam = {"type": ipam}
    capabilities = {"ips": True, "ipRanges": True}
    return {"type": kind, "isGateway": True, "ipam": ipam, "capabilities": capabilities, **more}


def uplinks(one, capability_args=None, args=()):
    return host_routes.uplinks_of_routers([one], capability_args or {}, args)


@pytest.mark.parametrize("kind", ["bridge", "ptp"])
@pytest.mark.parametrize(
    ("ipam", "more", "capability_args", "args"),
    [
        ({"type": "host-local", "ranges": RANGE}, {}, {}, []),
        ({"type": "static", "Addresses": [{"address": SIX}]}, {}, {}, []),
        ("host-local", {}, {"ipRanges": RANGE}, []),
        ("static", {}, {"ips": [FOUR, SIX]}, []),
        ("static", {"args": {"cni": {"ips": [SIX]}}}, {}, []),
        ("static", {"Args": {"CNI": {"IPs": [SIX]}}}, {}, []),
        ("static", {"runtimeConfig": {"ips": [SIX]}}, {}, []),
        ("static", {}, {}, [("K8S_POD_NAME", "web"), ("IP", f"{FOUR},{SIX}")]),
        # What others assign is not known.
        ("calico-ipam", {}, {}, []),
    ],
)
def test_ipv6_wherever_it_comes_from(kind, ipam, more, capability_args, args):
    assert uplinks(plugin(ipam, kind, **more), capability_args, args) == ["up0"]
    assert uplinks(plugin(ipam, "macvlan", **more), capability_args, args) == []
    assert uplinks(plugin(ipam, isGateway=False, **more), capability_args, args) == []


@pytest.mark.parametrize(
    ("ipam", "more", "capability_args", "args"),
    [
        ({}, {}, {}, []),
        ("dhcp", {}, {"ips": [SIX]}, [("IP", SIX)]),
        ("host-local", {}, {"ips": [FOUR], "mac": "02:00:00:00:00:01", "dns": {"servers": ["fd00::53"]}}, []),
        ("host-local", {"capabilities": {"ips": False}}, {"ips": [SIX], "ipRanges": RANGE}, []),
        ("static", {}, {"ips": [FOUR]}, [("MAC", "02:00:00:00:00:01"), ("ip", SIX), ("GATEWAY", "fd00::1")]),
        ({"type": "static", "Routes": [{"dst": "::/0"}], "dns": {"nameservers": ["fd00::53"]}}, {}, {}, []),
        ("static", {"args": {"cni": {"ips": [FOUR]}, "labels": [SIX]}}, {}, []),
        ("static", {"args": [SIX], "runtimeConfig": {"dns": [SIX]}, "capabilities": "ips"}, {"ips": [SIX]}, []),
    ],
)
def test_what_is_no_ipv6_address_of_the_container(ipam, more, capability_args, args):
    assert uplinks(plugin(ipam, **more), capability_args, args) == []


def test_ipam_that_is_nested_as_deep_as_it_can_be_read():
    deep = '{"type":"ptp","ipam":{"type":"host-local","a":' + '{"a":' * 420 + '"fd00::/64"' + "}" * 422
    assert uplinks(gojson.loads(deep.encode())) == ["up0"]
