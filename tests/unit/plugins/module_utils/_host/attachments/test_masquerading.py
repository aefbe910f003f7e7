# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import masquerading
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import verbs as attach_verbs
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.kernel_drift import (
    Interface,
    KernelView,
    parse_address,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.records import Attached
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import change, owners
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.kinds import IPMASQ, chain_name
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.owners import RuleOwner, RuleSet
from ansible_collections.podwire.cni.plugins.module_utils._host.netns import Netns
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError

NETNS = "/run/netns/web"
IPS = ["10.1.0.2/24", "fd00::2/64"]
CHAIN = chain_name("", "demo", "web")


def attached(**changed):
    plugin = dict({"type": "bridge", "ipMasq": True}, **changed)
    conf = {"cniVersion": "1.0.0", "name": "demo", "plugins": [plugin]}
    result = {"cniVersion": "1.0.0", "ips": [{"address": ip} for ip in IPS]}
    config = network_conf_from_bytes(json.dumps(conf).encode())
    return Attached(Key("demo", "web", "eth0"), config, NETNS, [], {}, result)


def interface(*ips):
    return KernelView([Interface(2, "eth0", "veth", "", 1500, True, "", 0, [parse_address(ip) for ip in ips])], [])


@pytest.fixture
def firewall(monkeypatch):
    """Return what is in the firewall: pairs of plugin and name, and ``removed`` of them."""
    made = SimpleNamespace(
        sets=[], removed=[], error=None, problems=[], attribute=lambda *_: None, unknown=lambda _places: []
    )

    def remove_all(sets):
        made.removed += sets
        return [(one, made.error) for one in sets]

    monkeypatch.setattr(owners, "read_rules", lambda: made)
    monkeypatch.setattr(change, "drop_rules", remove_all)
    return made


@pytest.mark.parametrize(
    ("view", "network", "stays"),
    [
        (interface(*IPS), {}, False),
        (interface(IPS[0]), {}, True),
        (interface(), {}, True),
        (KernelView([], []), {}, True),
        (None, {}, True),
        (KernelView([], []), {"ipMasq": False}, False),
        (KernelView([], []), {"type": "macvlan"}, False),
    ],
)
def test_what_a_plugin_does_not_find_would_stay(monkeypatch, view, network, stays):
    monkeypatch.setattr(masquerading, "visit", lambda namespaces, read: {namespaces[0].path: view} if view else {})
    assert masquerading.would_stay(attached(**network), Netns(NETNS)) is stays


def test_without_a_namespace_all_of_it_would_stay():
    assert masquerading.would_stay(attached(), Netns(""))


@pytest.mark.parametrize(("view", "stays"), [(KernelView([], []), True), (interface(*IPS), False)])
def test_an_add_that_was_killed_may_have_made_rules_for_addresses_that_nobody_knows(monkeypatch, view, stays):
    monkeypatch.setattr(masquerading, "visit", lambda paths, read: {NETNS: view})
    killed = attached()
    killed.result = None
    assert masquerading.would_stay(killed, Netns(NETNS)) is stays
    killed = attached(ipMasq=False)
    killed.result = None
    assert not masquerading.would_stay(killed, Netns(NETNS))


class Libcni:
    """DEL fails as often as there are ``errors``; ``others`` are further interfaces of the container in the network."""

    def __init__(self, *errors, others=(), cache_dir="/nowhere"):
        self.errors = list(errors)
        self.others = others
        self.cache_dir = cache_dir

    def get_cached_attachments(self, container_id):
        assert container_id == "web"
        names = [("demo", "eth0"), ("other", "eth2"), *(("demo", name) for name in self.others)]
        return [SimpleNamespace(network=network, if_name=name) for network, name in names]

    def del_network_list(self, _config, _runtime):
        if self.errors:
            raise self.errors.pop(0)


@pytest.fixture
def verbs(tmp_path, monkeypatch, firewall):
    firewall.sets = [RuleSet("iptables-nft", "ipv4", IPMASQ, CHAIN, RuleOwner("demo", "web"))]
    monkeypatch.setattr(attach_verbs, "living_netns", lambda *_: Netns(NETNS))
    monkeypatch.setattr(attach_verbs.Verbs, "_cni_in", lambda self, container: self._cni)
    return attach_verbs.Verbs(["/nowhere"], str(tmp_path), 5)


@pytest.mark.parametrize(("ips", "errors", "removed"), [(IPS, [], 0), (IPS[:1], [], 1), (IPS, ["busy"], 1)])
def test_a_del_leaves_nothing_behind(verbs, monkeypatch, firewall, ips, errors, removed):
    monkeypatch.setattr(masquerading, "visit", lambda paths, read: {NETNS: interface(*ips)})
    verbs._cni = Libcni(*(PluginError(999, text) for text in errors))
    assert verbs.delete(attached(), None, NETNS) is None
    assert len(firewall.removed) == removed


def test_a_del_that_is_killed_is_known_until_its_rules_are_removed(verbs, monkeypatch, firewall):
    monkeypatch.setattr(masquerading, "visit", lambda paths, read: {})
    verbs._cni = Libcni()
    verbs.records.adding(attached(), None)

    def killed(_sets):
        raise KeyboardInterrupt

    monkeypatch.setattr(change, "drop_rules", killed)
    with pytest.raises(KeyboardInterrupt):
        verbs.delete(attached(), None, NETNS)
    assert verbs.records.read(attached().key) is not None
    monkeypatch.setattr(change, "drop_rules", lambda sets: [(one, None) for one in sets])
    verbs.delete(attached(), None, NETNS)
    assert verbs.records.read(attached().key) is None


@pytest.mark.parametrize("ips", [IPS, IPS[:1]])
def test_rules_that_another_interface_of_the_container_shares_stay(verbs, monkeypatch, firewall, ips):
    monkeypatch.setattr(masquerading, "visit", lambda paths, read: {NETNS: interface(*ips)})
    verbs._cni = Libcni(others=["eth1"])
    assert verbs.delete(attached(), None, NETNS) is None
    verbs._cni = Libcni(PluginError(999, "busy"), others=["eth1"])
    assert verbs.delete(attached(), None, NETNS) is None
    assert firewall.removed == []


def test_a_del_that_fails_all_the_same_is_an_error(verbs, monkeypatch, firewall):
    monkeypatch.setattr(masquerading, "visit", lambda paths, read: {NETNS: interface(*IPS)})
    verbs._cni = Libcni(PluginError(999, "busy"), PluginError(999, "still busy"))
    with pytest.raises(HostError, match="still busy"):
        verbs.delete(attached(), None, NETNS)


def test_rules_that_cannot_be_removed_are_told(verbs, monkeypatch, firewall):
    firewall.error = HostError("not removed", code="rules_not_removed")
    monkeypatch.setattr(masquerading, "visit", lambda paths, read: {})
    verbs._cni = Libcni()
    kept = verbs.delete(attached(), None, NETNS)
    assert (kept.code, kept.msg.endswith("; not removed")) == ("rules_not_removed", True)


def test_dels_that_are_finished_together_read_the_firewall_once(verbs, monkeypatch, firewall):
    readings = []
    monkeypatch.setattr(owners, "read_rules", lambda: readings.append(1) or firewall)
    monkeypatch.setattr(masquerading, "visit", lambda paths, read: {})
    verbs._cni = Libcni()
    for _time in range(6):
        assert verbs.delete(attached(), None, NETNS, later=True) is None
    assert firewall.removed == []
    assert verbs.finish_deletions() == {}
    assert (len(readings), len(firewall.removed)) == (1, 1)
    assert verbs.finish_deletions() == {}
    assert len(readings) == 1


def test_a_cache_that_cannot_be_read_keeps_the_rules_and_is_told(verbs, monkeypatch, firewall, tmp_path):
    monkeypatch.setattr(masquerading, "visit", lambda paths, read: {})
    verbs._cni = Libcni(cache_dir=str(tmp_path))
    (tmp_path / "results").touch()
    kept = verbs.delete(attached(), None, NETNS)
    assert (kept.code, "results: not a directory" in kept.msg) == ("rules_not_removed", True)
    assert verbs.delete(attached(), None, NETNS, later=True) is None
    assert {key: error.code for key, error in verbs.finish_deletions().items()} == {attached().key: kept.code}
    assert firewall.removed == []
