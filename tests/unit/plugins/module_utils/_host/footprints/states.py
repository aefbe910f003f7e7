# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of made-up hosts."""

from __future__ import annotations

from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.objects import KernelObject

NAT = ("chain", "iptables-nft", "ipv4", "nat")
FILTER = ("chain", "iptables-nft", "ipv4", "filter")


def link(index=1, peer=(0, False), kind="veth", **settings):
    value = {"mtu": 1500, "txqlen": 1000, "group": 0, "kind": kind, "flags": 1, "mac": "0a0000000001", "alias": ""}
    value.update(master="", lower="", data={}, port={}, genmode=0)
    value.update(settings)
    return KernelObject(value, b"", index, peer)


def route(gateway="", protocol=3, source=""):
    value = {"gw": gateway, "src": source, "scope": 0, "proto": protocol, "onlink": 0}
    return KernelObject(dict(value, metrics="", via="", hops=[]))


def address():
    return KernelObject({"flags": 0, "scope": 0, "peer": "", "metric": 0})


DEFAULT = ("route", 2, 254, "default/0", 0, 0, 1, "eth0")
