# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is found and removed after a DEL; the kernel and real plugins are in tests/host."""

from __future__ import annotations

import json
import subprocess

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import leases
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import remains
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.remains import Departed
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.owners import RuleOwner, RuleSet
from ansible_collections.podwire.cni.plugins.module_utils._host.kernel.objects import KernelObject
from ansible_collections.podwire.cni.plugins.module_utils._host.netlink import Link
from ansible_collections.podwire.cni.plugins.module_utils._host.netns import Netns
from ansible_collections.podwire.cni.plugins.module_utils._host.problems import Finding
from ansible_collections.podwire.cni.plugins.module_utils.libcni import cache
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import Firewall
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import raising

KEY = Key("demo", "web", "eth0")
NOW = 2**40


def config(*plugins, name="demo"):
    return network_conf_from_bytes(json.dumps({"cniVersion": "1.0.0", "name": name, "plugins": plugins}).encode())


def departed(key=KEY, conf=None, ips=(), objects=None, **more):
    return Departed(key, NOW, objects or {}, conf, ips, **more)


def dropped(*attachments, cache_dir="/nowhere"):
    """Return the rows and problems of what has gone, by key."""
    return remains.drop_remains(attachments, str(cache_dir))


# ---- interfaces


@pytest.fixture
def links(monkeypatch):
    """The interfaces of the host: one that an ADD made, another one with its number, and a bridge."""
    present = {
        5: Link(5, "veth5", "veth", 0, 0, True, True),
        6: Link(6, "other", "veth", 0, 0, True, True),
        7: Link(7, "stuck", "ifb", 0, 0, True, False),
        8: Link(8, "cni0", "bridge", 0, 0, True, False),
        9: Link(9, "lower", "dummy", 0, 0, True, False),
    }

    def delete(index, name):
        if name == "stuck":
            raise HostError("it cannot be removed")
        assert present.pop(index).name == name

    monkeypatch.setattr(remains.netlink, "links", lambda: dict(present))
    monkeypatch.setattr(remains.netlink, "delete_link", delete)
    return present


def test_interfaces_that_the_add_made_are_removed(links):
    made = {
        ("link", "veth5"): KernelObject({"kind": "veth", "mtu": 1500}, ifindex=5),
        ("link", "veth6"): KernelObject({"kind": "veth", "mtu": 1500}, ifindex=6),
        ("link", "stuck"): KernelObject({"kind": "ifb", "mtu": 1500}, ifindex=7),
        ("link", "cni0"): KernelObject({"kind": "bridge", "mtu": 1500}, ifindex=8),
        # Only what changed is recorded of an interface that was there before, and nothing of one that the ADD took.
        ("link", "lower"): KernelObject({"flags": 1}, ifindex=9),
        ("link", "moved"): KernelObject(None),
        ("route", 2, 254, "10.1.0.2/32", 0, 0, 0, "veth5"): KernelObject({}),
    }
    rows = dropped(departed(objects=made)).rows[KEY]
    assert rows == [
        {"kind": "link", "id": "veth5", "message": "the interface veth5 is still on the host", "removed": True},
        {
            "kind": "link",
            "id": "stuck",
            "message": "the interface stuck is still on the host; it cannot be removed",
            "removed": False,
        },
    ]
    assert sorted(links) == [6, 7, 8, 9]
    assert dropped(departed(objects=made)).kept(KEY) == "the interface stuck is still on the host; it cannot be removed"


NETNS = "podwire-force"
PATH = f"/run/netns/{NETNS}"


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


@pytest.fixture
def container():
    ip("netns", "add", NETNS)
    yield
    ip("netns", "delete", NETNS)


def inside():
    done = subprocess.run(["ip", "-n", NETNS, "-j", "link"], check=True, capture_output=True)
    return {link["ifname"] for link in json.loads(done.stdout)}


def test_the_interface_of_a_container_is_removed(container):
    for number in "01":
        ip("-n", NETNS, "link", "add", f"eth{number}", "type", "veth", "peer", "name", f"peer{number}")
    assert remains.remove_inside("eth0", Netns(PATH), False) == []
    assert inside() == {"lo", "eth1", "peer1"}


def test_an_interface_that_may_be_of_the_host_stays(container):
    said = [f"the interface eth0 is still in {PATH}"]
    ip("-n", NETNS, "link", "add", "eth0", "type", "veth", "peer", "name", "peer0")
    assert remains.remove_inside("eth0", Netns(PATH), True) == said
    ip("-n", NETNS, "link", "delete", "eth0")
    ip("-n", NETNS, "link", "add", "eth0", "type", "bridge")
    assert remains.remove_inside("eth0", Netns(PATH), False) == said
    assert "eth0" in inside()


def test_a_namespace_that_cannot_be_entered(monkeypatch):
    monkeypatch.setattr(remains, "visit", raising(HostError("cannot enter it")))
    assert remains.remove_inside("eth0", Netns(PATH), False) == ["cannot enter it"]
    monkeypatch.setattr(remains, "visit", lambda spaces, work: {})
    assert remains.remove_inside("eth0", Netns(PATH), False) == []


# ---- leases


@pytest.fixture
def store(tmp_path):
    folder = tmp_path / "demo"
    folder.mkdir()
    for ip, text in {
        "10.1.0.2": "web\r\neth0",
        "10.1.0.3": "web\r\neth1",
        "10.1.0.4": "web",
        "10.1.0.5": "db\r\neth0",
    }.items():
        (folder / ip).write_text(text)
    return folder


def leasing(store, *more, name="demo"):
    return config({"type": "bridge", "ipam": {"type": "host-local", "dataDir": str(store.parent)}}, *more, name=name)


def leases_of(key=KEY, conf=None, **more):
    return dropped(departed(key, conf, **more)).rows.get(key, [])


def test_leases_of_the_attachment_are_released(store):
    rows = leases_of(conf=leasing(store))
    assert [(row["kind"], row["id"], row["removed"]) for row in rows] == [
        ("lease", "10.1.0.2", True),
        ("lease", "10.1.0.4", True),
    ]
    assert rows[0]["message"] == f"{store}/10.1.0.2 still reserves the address"
    assert sorted(path.name for path in store.iterdir()) == ["10.1.0.3", "10.1.0.5", "lock"]
    assert leases_of(conf=leasing(store)) == []


def test_a_lease_that_another_interface_may_have_stays(store):
    assert [row["id"] for row in leases_of(conf=leasing(store), shares=True)] == ["10.1.0.2"]


def test_a_lease_of_after_the_del_stays(store):
    before = departed(KEY, leasing(store))._replace(since=1)
    assert dropped(before).rows == {}


def test_leases_of_another_network_stay(store):
    assert leases_of(Key("other", "web", "eth0"), leasing(store, name="other")) == []
    assert len(list(store.iterdir())) == 4


def test_a_lease_that_cannot_be_released(store, monkeypatch):
    def refuse(lease, timeout):
        assert timeout == 10
        raise HostError("the store is locked")

    monkeypatch.setattr(leases, "remove_lease", refuse)
    rows = leases_of(conf=leasing(store))
    assert [(row["message"], row["removed"]) for row in rows] == [
        (f"{store}/{ip} still reserves the address; the store is locked", False) for ip in ("10.1.0.2", "10.1.0.4")
    ]


def test_without_a_configuration_the_default_directory_is_searched(store, monkeypatch):
    searched = []
    monkeypatch.setattr(
        leases, "lease_stores", lambda networks: searched.append(networks) or [(str(store.parent), "demo")]
    )
    assert [row["id"] for row in leases_of()] == ["10.1.0.2", "10.1.0.4"]
    assert searched[0] == []


# ---- rules


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        ({"type": "firewall"}, True),
        ({"type": "portmap"}, True),
        ({"type": "bridge", "ipMasq": "yes"}, False),
        ({"type": "bridge"}, False),
    ],
)
def test_networks_with_rules(plugin, expected):
    assert departed(conf=config({"type": "tuning"}, plugin)).may_have_rules is expected


def ruleset(name, plugin="ipmasq", owner=None, addresses=()):
    return RuleSet("iptables-nft", "ipv4", plugin, name, owner or RuleOwner(), addresses)


@pytest.fixture
def firewall(monkeypatch):
    return Firewall(monkeypatch)


def with_rules(key=KEY, conf=None, ips=()):
    return departed(key, conf, ips)


def test_rules_of_the_attachments_are_removed(firewall):
    db = Key("demo", "db", "eth0")
    firewall.sets = [
        ruleset("web1", owner=RuleOwner("demo", "web")),
        ruleset("web2", "portmap", owner=RuleOwner(None, "web")),
        ruleset("web3", owner=RuleOwner("demo", "web", "eth0")),
        ruleset("stuck", owner=RuleOwner("demo", "db")),
        ruleset("live", owner=RuleOwner("demo", "live")),
        ruleset("other network", owner=RuleOwner("other", "web")),
        ruleset("other interface", owner=RuleOwner("demo", "web", "eth1")),
        ruleset("by address", "firewall", addresses=["10.1.0.9", "10.1.0.2"]),
        ruleset("foreign address", "firewall", addresses=["10.1.0.9"]),
        ruleset("address of another kind", "portmap", addresses=["10.1.0.2"]),
        ruleset("owned address", "firewall", owner=RuleOwner("demo", "live"), addresses=["10.1.0.2"]),
    ]
    firewall.errors["stuck"] = HostError("no")
    firewall.problems = [Finding("warning", "rules_unreadable", "cannot read it")]
    found, problems = dropped(with_rules(ips=["10.1.0.2/24"]), with_rules(db))
    assert firewall.removed == ["web1", "web2", "web3", "stuck", "by address"]
    assert [(row["kind"], row["id"], row["removed"]) for row in found[KEY]] == [
        ("rule", "iptables-nft ipv4 ipmasq web1", True),
        ("rule", "iptables-nft ipv4 portmap web2", True),
        ("rule", "iptables-nft ipv4 ipmasq web3", True),
        ("rule", "iptables-nft ipv4 firewall by address", True),
    ]
    assert found[KEY][0]["message"] == firewall.sets[0].text
    assert [row["removed"] for row in found[db]] == [False]
    assert problems == ["cannot read it"]


def entry(container_id, ifname, network, result=None):
    return cache.Entry(container_id, b"", ifname, network, result=result)


def test_rules_that_may_be_of_another_attachment_of_the_container_stay(firewall, tmp_path):
    firewall.sets = [
        ruleset("own", owner=RuleOwner("demo", "web")),
        ruleset("either", "portmap", owner=RuleOwner(None, "web")),
    ]
    cache.write_entry(str(tmp_path), entry("web", "eth1", "other"))
    dropped(with_rules(), cache_dir=tmp_path)
    assert firewall.removed == ["own"]
    cache.remove_entry(str(tmp_path), "other", "web", "eth1")
    cache.write_entry(str(tmp_path), entry("db", "eth1", "demo"))
    dropped(with_rules(), cache_dir=tmp_path)
    assert firewall.removed == ["own", "own", "either"]


def test_rules_of_an_address_that_another_attachment_has_received_stay(firewall, store, tmp_path):
    for made in (
        entry("web", "eth0", "demo", {"ips": [{"address": "10.1.0.9/24"}]}),
        entry("db", "eth0", "demo", {"ips": [{"address": "10.1.0.11/24"}]}),
        entry("db", "eth0", "other", {"ip6": {"ip": "FD00:0::B/64"}}),
        entry("web", "eth1", "demo", {"ips": [{"address": "10.1.0.12/16"}]}),
        entry("dead", "eth0", "demo"),
    ):
        cache.write_entry(str(tmp_path), made)
    addresses = ["10.1.0.2", "10.1.0.5", "10.1.0.9", "10.1.0.11", "10.1.0.12", "10.1.0.13", "fd00::2", "fd00::b"]
    firewall.sets = [ruleset(address, "firewall", addresses=[address]) for address in addresses]
    conf = leasing(store, {"type": "firewall"})
    dropped(with_rules(conf=conf, ips=[f"{address}/24" for address in addresses]), cache_dir=tmp_path)
    assert firewall.removed == ["10.1.0.2", "10.1.0.9", "10.1.0.13", "fd00::2"]


def test_owners_are_completed(firewall):
    firewall.sets = [ruleset("CNI-550bca792007a5271a5dd6e3")]
    assert list(dropped(with_rules(Key("net-a", "web1", "eth0"))).rows) == [Key("net-a", "web1", "eth0")]


def test_a_cache_that_cannot_be_read_keeps_the_rules_and_is_told(firewall, tmp_path):
    firewall.sets = [ruleset("own", owner=RuleOwner("demo", "web"))]
    (tmp_path / "results").touch()
    assert "results: not a directory" in dropped(with_rules(), cache_dir=tmp_path).kept(KEY)
    assert firewall.removed == []


def test_the_firewall_is_read_once_and_only_where_there_may_be_rules(firewall):
    dropped(departed(conf=config({"type": "bridge"})), departed(Key("demo", "db", "eth0"), shares=True))
    assert firewall.readings == 0
    dropped(with_rules(), departed(conf=config({"type": "bridge"})), with_rules(Key("demo", "db", "eth0")))
    assert firewall.readings == 1
