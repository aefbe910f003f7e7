# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""DELs with what they leave, and forced removals; what is left is in test_remains, real plugins are in tests/host."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import verbs as attach_verbs
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import ADDING, ATTACHED, Attached
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import change
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.kinds import IPMASQ, chain_name
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.owners import RuleOwner, RuleSet
from ansible_collections.podwire.cni.plugins.module_utils.libcni.cache import Entry, write_entry
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError, PluginNotFoundError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.invoke import Executor
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import Firewall
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import raising

KEY = Key("demo", "web", "eth0")
CHAIN = chain_name("", "demo", "web")


def conflist(*types, network="demo"):
    plugins = [{"type": name, "ipMasq": name == "bridge"} for name in types]
    return json.dumps({"cniVersion": "1.0.0", "name": network, "plugins": plugins}).encode()


def attached(*types):
    result = {"cniVersion": "1.0.0", "ips": [{"address": "10.1.0.2/24"}]}
    return Attached(KEY, network_conf_from_bytes(conflist(*types or ["bridge"])), "", [], {}, result)


class Plugins(Executor):
    """Plugins whose DELs fail as often as there are ``errors``; ``broken`` always does."""

    def __init__(self):
        super().__init__()
        self.errors = []
        self.ran = []

    def find_in_path(self, plugin, paths):
        if plugin == "missing":
            raise PluginNotFoundError(f"there is no {plugin}")
        return f"/bin/{plugin}"

    def exec_plugin(self, path, stdin, env, timeout=None):
        self.ran.append(path)
        if path.endswith("broken"):
            raise HostError("it is busy")
        if self.errors:
            raise PluginError(999, self.errors.pop(0))
        return b""


@pytest.fixture
def plugins():
    return Plugins()


@pytest.fixture
def firewall(monkeypatch):
    """The masquerading rules of the attachment."""
    return Firewall(monkeypatch, RuleSet("iptables-nft", "ipv4", IPMASQ, CHAIN, RuleOwner("demo", "web")))


@pytest.fixture
def verbs(tmp_path, plugins, firewall):
    return attach_verbs.Verbs([], str(tmp_path), 5, plugins)


def add_entry(verbs, key=KEY, *types):
    conf = conflist(*types or ["bridge"], network=key.network)
    write_entry(verbs._cni.cache_dir, Entry(key.container_id, conf, key.ifname, key.network))


@pytest.mark.parametrize("errors", [[], ["busy"]])
def test_a_del_leaves_nothing_behind(verbs, plugins, firewall, errors):
    plugins.errors += errors
    assert verbs.delete(attached(), "") == ""
    assert firewall.removed == [CHAIN]
    assert verbs.delete(attached("main"), "") == ""
    assert firewall.readings == 1


def test_a_del_that_is_killed_is_known_until_its_rules_are_removed(verbs, monkeypatch, firewall):
    verbs.store.write(attached().changed(state=ADDING))

    monkeypatch.setattr(change, "drop_rules", raising(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        verbs.delete(attached(), "")
    assert verbs.store.read(KEY).state == ADDING
    monkeypatch.setattr(change, "drop_rules", lambda sets: {})
    verbs.delete(attached(), "")
    assert verbs.store.read(KEY).state == ""


@pytest.mark.parametrize("later", [False, True])
def test_rules_that_another_interface_of_the_container_shares_stay(verbs, plugins, firewall, later):
    add_entry(verbs, KEY._replace(ifname="eth1"))
    for errors in ([], ["busy"]):
        plugins.errors += errors
        assert verbs.delete(attached(), "", later) == ""
        assert verbs.finish_deletions().rows == {}
    assert firewall.removed == []


def test_rules_that_cannot_be_removed_are_told(verbs, firewall):
    firewall.errors[CHAIN] = HostError("not removed", code="rules_not_removed")
    assert verbs.delete(attached(), "").endswith("; not removed")


# ---- by force


def remove(verbs, given, key=KEY):
    return verbs.remove(key, given, "")


def test_the_cache_entry_and_the_record_are_removed(verbs, tmp_path):
    add_entry(verbs)
    verbs.store.write(attached("main").changed(state=ADDING))
    assert remove(verbs, attached("main")) == ""
    assert list((tmp_path / "results").iterdir()) == list((tmp_path / "podwire").iterdir()) == []


def test_every_plugin_runs_and_errors_of_del_are_returned(verbs, plugins):
    removed = remove(verbs, attached("main", "broken", "missing", "meta"))
    assert removed == "there is no missing; plugin broken: it is busy"
    assert plugins.ran == ["/bin/meta", "/bin/broken", "/bin/main"]


@pytest.mark.parametrize(
    ("result", "recorded", "ifname", "removed"),
    [
        ({}, True, "eth0", True),
        ({"interfaces": [{"name": "eth0", "sandbox": "/run/netns/web"}]}, False, "eth0", True),
        ({"interfaces": [{"name": "eth0"}]}, False, "eth0", False),
        ({}, True, "lo", False),
    ],
)
def test_only_an_interface_that_the_add_made_is_removed(verbs, monkeypatch, result, recorded, ifname, removed):
    monkeypatch.setattr(attach_verbs, "remove_inside", lambda *arguments: [f"{arguments[0]} is there"])
    given = attached("main")
    given = given.changed(key=KEY._replace(ifname=ifname), result=result, state=ATTACHED if recorded else "")
    assert verbs.remove(given.key, given, "") == (f"{ifname} is there" if removed else "")


def test_an_error_of_libcni_is_returned(verbs, monkeypatch):
    monkeypatch.setattr(attach_verbs.CNIConfig, "del_network_list", raising(PluginError(7, "the result is damaged")))
    assert "the result is damaged" in remove(verbs, attached("main"))


def test_rules_that_another_interface_shares_stay(verbs, firewall):
    add_entry(verbs)
    add_entry(verbs, KEY._replace(ifname="eth1"))
    why = "another interface of the container shares their chains"
    assert remove(verbs, attached("portmap")) == f"its firewall rules were kept, because {why}"
    assert firewall.readings == 0


def test_another_network_or_container_shares_none(verbs, firewall):
    add_entry(verbs, Key("other", "web", "eth1"))
    add_entry(verbs, Key("demo", "db", "eth1"))
    assert remove(verbs, attached("portmap")) == ""
    assert firewall.removed == [CHAIN]
