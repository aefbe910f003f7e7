# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is found and removed after a DEL; the kernel and real plugins are in tests/host."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import leases
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import leaks
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import change, owners
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.owners import FoundRules, RuleOwner, RuleSet
from ansible_collections.podwire.cni.plugins.module_utils._host.netlink import Link
from ansible_collections.podwire.cni.plugins.module_utils._host.netns import Netns
from ansible_collections.podwire.cni.plugins.module_utils.libcni import cache
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes

KEY = Key("demo", "web", "eth0")


def config(*plugins, name="demo"):
    return network_conf_from_bytes(json.dumps({"cniVersion": "1.0.0", "name": name, "plugins": plugins}).encode())


# ---- interfaces


class Kernel:
    """The interfaces of the host and of the container."""

    def __init__(self, monkeypatch):
        self.host = {1: self.link(1, "lo"), 2: self.link(2, "uplink")}
        self.inside = {1: self.link(1, "lo")}
        self.deleted = []
        monkeypatch.setattr(leaks.netlink, "links", lambda: dict(self.host))
        monkeypatch.setattr(leaks.netlink, "delete_link", self.delete)
        monkeypatch.setattr(leaks, "visit", lambda spaces, work: {one.path: dict(self.inside) for one in spaces})

    def link(self, index, name, kind="veth", link=0, master=0, abroad=False):
        return Link(index, name, kind, link, master, True, abroad)

    def add(self, index, name, **more):
        self.host[index] = self.link(index, name, **more)

    def add_inside(self, index, name, **more):
        self.inside[index] = self.link(index, name, **more)

    def delete(self, index, name):
        self.deleted.append((index, name))
        if name == "stuck":
            raise HostError("it cannot be removed")
        del self.host[index]


@pytest.fixture
def kernel(monkeypatch):
    return Kernel(monkeypatch)


def result(*names):
    return {"interfaces": [{"name": name} for name in names]}


def left(found):
    return [(row["kind"], row["id"], row["removed"]) for row in found.left()]


def test_nothing_is_left(kernel):
    found = leaks.Interfaces(Netns("/run/netns/web"))
    found.note(result("veth1"))
    assert found.left() == kernel.deleted == []


def test_interfaces_of_the_result_and_other_ends_are_removed(kernel):
    found = leaks.Interfaces(Netns("/run/netns/web"))
    kernel.add(5, "named")
    kernel.add(6, "otherend")
    kernel.add(7, "cni0", kind="bridge")
    kernel.add(8, "bystander")
    # Both ends are in the container.
    kernel.add(9, "neighbour")
    kernel.add_inside(3, "eth0", link=6, abroad=True)
    kernel.add_inside(4, "eth1", link=9)
    found.note(result("named", "cni0", "uplink"))
    del kernel.inside[3], kernel.inside[4]
    assert left(found) == [("link", "named", True), ("link", "otherend", True)]
    assert kernel.deleted == [(5, "named"), (6, "otherend")]


def test_what_was_there_before_stays(kernel):
    kernel.add(5, "named")
    kernel.add_inside(3, "eth0", link=2, abroad=True)
    found = leaks.Interfaces(Netns("/run/netns/web"))
    found.note(result("named"))
    assert found.left() == kernel.deleted == []


def test_an_interface_with_the_number_of_one_that_is_gone_stays(kernel):
    found = leaks.Interfaces(Netns("/run/netns/web"))
    kernel.add(5, "named")
    found.note(result("named"))
    kernel.add(5, "another")
    assert found.left() == kernel.deleted == []


def test_an_interface_inside_is_reported_and_ends_with_its_namespace(kernel):
    found = leaks.Interfaces(Netns("/run/netns/web"))
    kernel.add_inside(4, "eth1")
    kernel.add_inside(3, "eth0")
    rows = found.left()
    assert [(row["id"], row["message"], row["removed"]) for row in rows] == [
        ("eth0", "the interface eth0 is still in the container", True),
        ("eth1", "the interface eth1 is still in the container", True),
    ]
    assert kernel.deleted == []


def test_an_interface_that_cannot_be_removed(kernel):
    found = leaks.Interfaces(Netns("/run/netns/web"))
    kernel.add(5, "stuck")
    found.note(result("stuck"))
    assert found.left() == [
        {
            "kind": "link",
            "id": "stuck",
            "message": "the interface stuck is still on the host; it cannot be removed",
            "removed": False,
        }
    ]


@pytest.mark.parametrize("interfaces", [None, 7, "x", [None, 7, "x"], [{}]])
def test_results_that_make_no_sense(kernel, interfaces):
    found = leaks.Interfaces(Netns("/run/netns/web"))
    kernel.add(5, "new")
    found.note({"interfaces": interfaces})
    assert found.left() == []


def test_a_namespace_that_is_gone(kernel, monkeypatch):
    monkeypatch.setattr(leaks, "visit", lambda paths, work: {})
    assert leaks.Interfaces(Netns("/run/netns/web")).left() == []


def test_new_bridges_without_ports_are_removed(kernel):
    kernel.add(3, "old", kind="bridge")
    found = leaks.Interfaces(Netns("/run/netns/web"))
    kernel.add(4, "cni0", kind="bridge")
    kernel.add(5, "br1", kind="bridge")
    kernel.add(6, "used", kind="bridge")
    kernel.add(7, "port", master=6)
    kernel.add(8, "foreign", kind="bridge")
    kernel.add(9, "nobridge")
    bridges = [{"type": "bridge", "bridge": name} for name in ("old", "br1", "used", "nobridge")]
    found.remove_new_bridges(config({"type": "bridge"}, *bridges, {"type": "tuning", "bridge": "foreign"}))
    assert kernel.deleted == [(4, "cni0"), (5, "br1")]


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


def leasing(store, name="demo"):
    return config({"type": "bridge", "ipam": {"type": "host-local", "dataDir": str(store.parent)}}, name=name)


def test_leases_of_the_attachment_are_released(store):
    rows = leaks.leases_left(KEY, leasing(store))
    assert [(row["kind"], row["id"], row["removed"]) for row in rows] == [
        ("lease", "10.1.0.2", True),
        ("lease", "10.1.0.4", True),
    ]
    assert rows[0]["message"] == f"{store}/10.1.0.2 still reserves the address"
    assert sorted(path.name for path in store.iterdir()) == ["10.1.0.3", "10.1.0.5", "lock"]
    assert leaks.leases_left(KEY, leasing(store)) == []


def test_leases_of_another_network_stay(store):
    assert leaks.leases_left(Key("other", "web", "eth0"), leasing(store, "other")) == []
    assert len(list(store.iterdir())) == 4


def test_a_lease_that_cannot_be_released(store, monkeypatch):
    def refuse(lease, timeout):
        assert timeout == 10
        raise HostError("the store is locked")

    monkeypatch.setattr(leases, "remove_lease", refuse)
    rows = leaks.leases_left(KEY, leasing(store))
    assert [(row["message"], row["removed"]) for row in rows] == [
        (f"{store}/{ip} still reserves the address; the store is locked", False) for ip in ("10.1.0.2", "10.1.0.4")
    ]


def test_without_a_configuration_the_default_directory_is_searched(store, monkeypatch):
    searched = []
    monkeypatch.setattr(
        leases, "lease_stores", lambda networks: searched.append(networks) or [(str(store.parent), "demo")]
    )
    assert [row["id"] for row in leaks.leases_left(KEY, None)] == ["10.1.0.2", "10.1.0.4"]
    assert searched == [[]]


# ---- rules


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        ({"type": "firewall"}, True),
        ({"type": "portmap"}, True),
        ({"type": "bridge", "ipMasq": True}, True),
        ({"type": "bridge", "macspoofchk": True}, True),
        ({"type": "bridge", "ipMasq": False}, False),
        ({"type": "bridge", "ipMasq": "yes"}, False),
        ({"type": "bridge"}, False),
    ],
)
def test_networks_with_rules(plugin, expected):
    assert leaks.makes_rules(config({"type": "tuning"}, plugin)) is expected


def ruleset(name, plugin="ipmasq", owner=None, addresses=()):
    return RuleSet("iptables-nft", "ipv4", plugin, name, owner or RuleOwner(), addresses)


class Firewall:
    """The sets of rules of a host; `stuck` are the names of those that cannot be removed."""

    def __init__(self, monkeypatch):
        self.sets = []
        self.problems = []
        self.removed = []
        monkeypatch.setattr(owners, "read_rules", self.read)
        monkeypatch.setattr(change, "drop_rules", self.remove)

    def read(self):
        found = FoundRules()
        found.sets += self.sets
        found.problems += [{"message": text} for text in self.problems]
        return found

    def remove(self, sets):
        self.removed += [one.name for one in sets]
        return [(one, HostError("no") if one.name == "stuck" else None) for one in sets]


@pytest.fixture
def firewall(monkeypatch):
    return Firewall(monkeypatch)


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
    firewall.problems = ["cannot read it"]
    problems = ["first"]
    found = leaks.rules_left({KEY: (None, ["10.1.0.2/24"]), db: (None, [])}, problems)
    assert firewall.removed == ["web1", "web2", "web3", "stuck", "by address"]
    assert [(row["kind"], row["id"], row["removed"]) for row in found[KEY]] == [
        ("rule", "iptables-nft ipv4 ipmasq web1", True),
        ("rule", "iptables-nft ipv4 portmap web2", True),
        ("rule", "iptables-nft ipv4 ipmasq web3", True),
        ("rule", "iptables-nft ipv4 firewall by address", True),
    ]
    assert found[KEY][0]["message"] == firewall.sets[0].text
    assert [row["removed"] for row in found[db]] == [False]
    assert problems == ["first", "cannot read it"]


def entry(container_id, ifname, network, result=None):
    return cache.Entry(container_id, b"", ifname, network, result=result)


def test_rules_that_may_be_of_another_attachment_of_the_container_stay(firewall, tmp_path):
    firewall.sets = [
        ruleset("own", owner=RuleOwner("demo", "web")),
        ruleset("either", "portmap", owner=RuleOwner(None, "web")),
    ]
    cache.write_entry(str(tmp_path), entry("web", "eth1", "other"))
    leaks.rules_left({KEY: (None, [])}, [], str(tmp_path))
    assert firewall.removed == ["own"]
    cache.remove_entry(str(tmp_path), "other", "web", "eth1")
    cache.write_entry(str(tmp_path), entry("db", "eth1", "demo"))
    leaks.rules_left({KEY: (None, [])}, [], str(tmp_path))
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
    leaks.rules_left({KEY: (leasing(store), [f"{address}/24" for address in addresses])}, [], str(tmp_path))
    assert firewall.removed == ["10.1.0.2", "10.1.0.9", "10.1.0.13", "fd00::2"]


def test_owners_are_completed(firewall):
    firewall.sets = [ruleset("CNI-550bca792007a5271a5dd6e3")]
    assert list(leaks.rules_left({Key("net-a", "web1", "eth0"): (None, [])}, [])) == [Key("net-a", "web1", "eth0")]
