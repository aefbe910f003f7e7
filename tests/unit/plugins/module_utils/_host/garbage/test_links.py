# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import netlink
from ansible_collections.podwire.cni.plugins.module_utils._host.addresses import packed
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.caches import CacheContents
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import (
    Attached,
    AttachmentStore,
    CachedAttachment,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.verbs import Verbs
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.live import Homes, LiveSet
from ansible_collections.podwire.cni.plugins.module_utils._host.containers.namespaces import Namespace, Namespaces
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.footprint import Footprint, SharedFootprints
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage import links as gc_links
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage.candidate import (
    ATTACHMENT,
    DELETED,
    Candidate,
    GcSettings,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage.inventory import Inventory
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage.links import Links
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.objects import KernelObject
from ansible_collections.podwire.cni.plugins.module_utils._host.netlink import Link
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with


def link(index, name, kind="veth", peer=0, master=0, up=False, abroad=False):
    return Link(index, name, kind, peer, master, up, abroad)


def namespace(links, addresses):
    found = Namespace({"boot_id": "b", "dev": 4, "inode": 1, "cookie": 1}, "/x", "x", True)
    found.links = {one.index: one for one in links}
    found.addresses = {packed(ip): (index, prefix) for ip, index, prefix in addresses}
    return found


def make(gc_host, unseen=(), configured=None, cached=None, addresses=(), stores=()):
    namespaces = Namespaces([namespace(gc_host, addresses)], unseen=unseen)
    live = LiveSet([], {}, namespaces, Homes([], namespaces))
    # Made of parts, as there is no such host to read.
    found = Inventory.__new__(Inventory)
    found.settings = GcSettings("/net.d", ["/bin"], "/cache", scope=["links"])
    found.verbs = Verbs(["/bin"], "/cache", 5)
    found.configured = {"cni0": "demo"} if configured is None else configured
    found.cached, found.live, found.stores = cached or {}, live, stores
    found.contents = CacheContents([])
    found.caches, found.candidates, found.kept = [found.contents], [], {"link": 0}
    return Links(found)


def veths(*arguments, **more):
    return list(make(*arguments, **more).veths())


def bridges(*arguments, **more):
    return list(make(*arguments, **more).bridges())


@pytest.fixture
def recorded(monkeypatch):
    """Return a function that records bridges that an ADD of the network demo made, and those that the host had."""

    def record(made, had=()):
        whole = {"kind": "bridge", "mtu": 1500, "data": {}}
        host = {("link", name): KernelObject(whole, b"raw", index) for name, index in made.items()}
        flags = {("link", name): KernelObject({"kind": "bridge", "flags": 1}, b"", had[name]) for name in had}
        gateways = {("addr", name, "10.9.0.1", 24): KernelObject({}, b"raw", index) for name, index in made.items()}
        shared = SharedFootprints({("demo",): Footprint({**host, **flags, **gateways})})
        monkeypatch.setattr(AttachmentStore, "read_shared", lambda _store: shared)

    return record


BRIDGE = link(10, "cni0", "bridge")


def test_a_veth_whose_peer_is_in_a_namespace_that_exists_is_not_collected():
    host = [BRIDGE, link(11, "veth1", peer=2, master=10, abroad=True)]
    assert veths(host) == []
    # Nothing leads to that namespace, but it exists.
    (found,) = veths(host, unseen=["veth1"])
    assert (found.ident, found.action, found.reason) == ("veth1", "left", "live")
    assert "that exists, but nothing leads to it" in found.evidence[1]


def test_interfaces_on_bridges_of_others_are_not_looked_at():
    host = [link(10, "br0", "bridge"), link(11, "veth1", peer=2, master=10, abroad=True), link(12, "veth2", peer=3)]
    assert veths(host) == []


@pytest.mark.parametrize(
    "other, reason",
    [
        (link(12, "veth2", peer=11), ""),
        (link(12, "veth2", peer=11, up=True), "in_use"),
        (link(12, "veth2", peer=11, master=13), "in_use"),
        (link(14, "veth2", peer=11), "in_use"),
    ],
)
def test_a_veth_with_both_ends_on_the_host_must_be_idle(other, reason):
    host = [BRIDGE, link(11, "veth1", peer=12, master=10), other]
    # One that no ADD has returned may be the host's own.
    (found,) = veths(host)
    assert found.reason == (reason or "unclear")
    entry = attached("dead", "cni0")
    entry.result = {"interfaces": [{"name": "cni0"}, {"name": "veth1"}, {"name": "eth0", "sandbox": "/x"}]}
    for addresses, judged in (([], reason), ([("10.1.0.1", 12, 24)], "in_use")):
        links = make(host, addresses=addresses)
        links._inventory.contents.entries.append(entry)
        (found,) = links.veths()
        assert (found.container_id, found.reason) == ("dead", judged)


def test_a_bridge_is_collected_only_with_evidence_that_an_add_made_it(tmp_path, recorded):
    store = tmp_path / "gone"
    store.mkdir()
    (store / "last_reserved_ip.0").write_text("10.7.0.9")
    stores = [(str(tmp_path), "gone")]
    names = ("br0", "old0", "seen0", "made0", "had0", "again0")
    host = [BRIDGE, *(link(number, name, "bridge") for number, name in enumerate(names, 20))]
    addresses = [("10.7.0.1", 21, 24), ("10.8.0.1", 20, 24)]
    recorded({"made0": 23, "again0": 9}, had={"had0": 24})
    found = bridges(host, addresses=addresses, cached={"seen0": "demo", "had0": "demo"}, stores=stores)
    assert [(one.ident, one.network, one.managed, one.reason) for one in found] == [
        ("had0", "demo", False, "unclear"),
        ("made0", "demo", True, ""),
        ("old0", "gone", False, "unclear"),
        ("seen0", "demo", False, "unclear"),
    ]


def test_a_bridge_to_which_somebody_has_added_something_is_left(monkeypatch, recorded):
    recorded({"made0": 23})
    route = ("route", 2, 254, "198.51.100.0/24", 0, 0, 1, "made0")
    added = {
        ("addr", "made0", "10.9.0.1", 24): KernelObject({}, b"", 23),
        ("addr", "made0", "fe80::1", 64): KernelObject({}, b"", 23, derived=True),
        ("addr", "eth0", "192.0.2.1", 24): KernelObject({}, b"", 2),
        ("route", 2, 254, "10.9.0.0/24", 0, 0, 1, "made0"): KernelObject({"proto": 2}, b"", 23),
        route: KernelObject({"proto": 4}, b"", 23),
    }
    monkeypatch.setattr(gc_links, "read_objects", lambda: added)
    host = [link(23, "made0", "bridge")]
    (found,) = bridges(host)
    assert (found.action, found.reason) == ("left", "in_use")
    assert "the route 198.51.100.0/24, which no ADD made" in found.evidence[-1]
    del added[route]
    (found,) = bridges(host)
    assert found.reason == ""


def test_a_bridge_with_a_port_is_somebodys_unless_the_port_goes():
    host = [link(22, "seen0", "bridge"), link(11, "veth1", peer=12, master=22), link(12, "veth2", peer=11)]
    links = make(host, cached={"seen0": "demo"})
    (veth,) = links.veths()
    links._inventory.candidates.append(veth)
    assert list(links.bridges()) == []
    veth.collect("owner_dead")
    assert [one.ident for one in links.bridges()] == ["seen0"]


def attached(name, bridge):
    entry = CachedAttachment(name, [], True)
    entry.key = Key("demo", name, "eth0")
    conf = {"cniVersion": "1.0.0", "name": "demo", "plugins": [{"type": "bridge", "bridge": bridge}]}
    config = network_conf_from_bytes(json.dumps(conf).encode())
    entry.attached = Attached(entry.key, config, "/x", [], {}, None)
    return entry


def test_a_bridge_of_an_attachment_that_stays_is_needed():
    links = make([link(21, "br1", "bridge"), link(22, "br2", "bridge")], cached={"br1": "demo", "br2": "demo"})
    links._inventory.contents.entries += [attached("one", "br1"), attached("two", "br2")]
    assert list(links.bridges()) == []
    for name, action in (("one", DELETED), ("two", "left")):
        candidate = Candidate(ATTACHMENT, "demo", name, lambda: None, target=f"demo/{name}/eth0")
        candidate.action = action
        links._inventory.candidates.append(candidate)
    assert [one.ident for one in links.bridges()] == ["br1"]


def test_a_bridge_is_removed_without_ports_and_a_veth_in_any_case(monkeypatch):
    removed = []
    now = {11: link(11, "veth1", peer=12, master=10), 13: link(13, "veth3", master=11)}
    monkeypatch.setattr(netlink, "links", lambda: now)
    monkeypatch.setattr(netlink, "delete_link", lambda index, name: removed.append((index, name)))
    host = [BRIDGE, link(11, "veth1", peer=12, master=10), link(12, "veth2", peer=11)]
    (veth,) = veths(host)
    veth.drop()
    assert removed == [(11, "veth1")]
    (bridge,) = bridges([BRIDGE], configured={}, cached={"cni0": "demo"})
    with fails_with("link_in_use", "veth1 has become a port of cni0 meanwhile"):
        bridge.drop()
    del now[11]
    bridge.drop()
    assert removed == [(11, "veth1"), (10, "cni0")]
