# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a forced removal removes itself, in a real namespace; the failing DELs are in test_failures."""

from __future__ import annotations

import json
import subprocess
from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import force, leaks
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.records import Attached
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.netns import Netns
from ansible_collections.podwire.cni.plugins.module_utils.libcni.api import CNIConfig, RuntimeConf
from ansible_collections.podwire.cni.plugins.module_utils.libcni.cache import Entry, write_entry
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import CacheError, PluginNotFoundError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.invoke import Executor

KEY = Key("demo", "web", "eth0")
NETNS = "podwire-force"
PATH = f"/run/netns/{NETNS}"


def config(*types, network="demo"):
    plugins = [{"type": name} for name in types]
    return json.dumps({"cniVersion": "1.0.0", "name": network, "plugins": plugins}).encode()


def given(*types):
    result = {"cniVersion": "1.0.0", "ips": [{"address": "10.1.0.2/24"}]}
    return Attached(KEY, network_conf_from_bytes(config(*types)), PATH, [], {}, result)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def links():
    done = subprocess.run(["ip", "-n", NETNS, "-j", "link"], check=True, capture_output=True)
    return {link["ifname"] for link in json.loads(done.stdout)}


@pytest.fixture
def container():
    ip("netns", "add", NETNS)
    yield
    ip("netns", "delete", NETNS)


class Plugins(Executor):
    """Plugins without a DEL that works."""

    def find_in_path(self, plugin, paths):
        if plugin == "missing":
            raise PluginNotFoundError(f"there is no {plugin}")
        return f"/bin/{plugin}"

    def exec_plugin(self, path, stdin, env, timeout=None):
        if path.endswith("broken"):
            raise HostError("it is busy")
        return b""


class Left:
    """What is left of the attachment, and what was asked for."""

    def __init__(self, monkeypatch, cache_dir):
        self.cache_dir = cache_dir
        self.leases = []
        self.rules = []
        self.asked = []
        monkeypatch.setattr(leaks, "leases_left", lambda key, config: self.leases)
        monkeypatch.setattr(leaks, "rules_left", self.rules_left)

    def rules_left(self, detached, problems, cache_dir):
        assert cache_dir == self.cache_dir
        self.asked.append({key: list(ips) for key, (_config, ips) in detached.items()})
        problems.append("a problem")
        return {KEY: self.rules}


@pytest.fixture
def left(monkeypatch, tmp_path):
    return Left(monkeypatch, str(tmp_path))


@pytest.fixture
def remove(tmp_path, left):
    def run(attached, netns="", made=True, ifname="eth0"):
        cni = CNIConfig([], cache_dir=str(tmp_path), executor=Plugins())
        runtime = RuntimeConf("web", netns, ifname)
        return force.remove_by_force(cni, KEY._replace(ifname=ifname), attached, runtime, Netns(netns), made)

    return run


def add_entry(tmp_path, key=KEY, *types):
    write_entry(str(tmp_path), Entry(key.container_id, config(*types or ["main"]), key.ifname, key.network, PATH))


def test_the_cache_entry_is_removed(remove, tmp_path):
    add_entry(tmp_path)
    assert remove(given("main")) == []
    assert list((tmp_path / "results").iterdir()) == []


def test_errors_of_del_are_returned(remove):
    assert remove(given("main", "broken")) == ["plugin broken: it is busy"]
    assert remove(given("main", "missing")) == ["there is no missing"]


def test_an_error_of_libcni_is_returned(remove, monkeypatch):
    def fail(self, config, runtime):
        raise CacheError("the cache is damaged")

    monkeypatch.setattr(CNIConfig, "del_network_list", fail)
    assert remove(given("main")) == ["the cache is damaged"]


def veth():
    ip("-n", NETNS, "link", "add", "eth0", "type", "veth", "peer", "name", "peer0")


def test_the_interface_is_removed(remove, container):
    veth()
    ip("-n", NETNS, "link", "add", "eth1", "type", "veth", "peer", "name", "peer1")
    assert remove(given("main"), PATH) == []
    assert links() == {"lo", "eth1", "peer1"}


def test_an_interface_that_may_be_of_the_host_stays(remove, container):
    veth()
    said = [f"the interface eth0 is still in {PATH}"]
    assert remove(given("host-device"), PATH) == said
    ip("-n", NETNS, "link", "delete", "eth0")
    ip("-n", NETNS, "link", "add", "eth0", "type", "bridge")
    assert remove(given("main"), PATH) == said
    assert "eth0" in links()


def test_an_interface_that_the_add_did_not_make_stays(remove, container):
    veth()
    assert remove(given("main"), PATH, made=False) == []
    assert remove(None, PATH) == ["a problem"]
    assert "eth0" in links()


def test_loopback_stays(remove, container, monkeypatch):
    assert remove(given("main"), "") == []
    monkeypatch.setattr(force, "visit", None)
    assert remove(given("main"), PATH, ifname="lo") == []


def test_an_interface_that_cannot_be_removed(remove, monkeypatch):
    def fail(paths, work):
        raise HostError("cannot enter it")

    monkeypatch.setattr(force, "visit", fail)
    assert remove(given("main"), PATH) == ["cannot enter it"]
    monkeypatch.setattr(force, "visit", lambda paths, work: {})
    assert remove(given("main"), PATH) == []


def test_rules_are_removed_only_where_a_plugin_makes_some(remove, left):
    assert remove(given("main")) == []
    assert left.asked == []
    assert remove(given("portmap")) == ["a problem"]
    assert left.asked == [{KEY: ["10.1.0.2/24"]}]


def test_rules_of_an_unknown_attachment(remove, left):
    assert remove(None) == ["a problem"]
    assert left.asked == [{KEY: []}]


def test_rules_that_another_interface_shares_stay(remove, left, tmp_path):
    add_entry(tmp_path)
    add_entry(tmp_path, KEY._replace(ifname="eth1"))
    assert remove(given("portmap")) == [
        "its firewall rules were kept, because another interface of the container shares their chains"
    ]
    assert left.asked == []


def test_another_network_of_the_container(remove, left, tmp_path):
    add_entry(tmp_path, Key("other", "web", "eth1"))
    add_entry(tmp_path, Key("demo", "db", "eth1"))
    assert remove(given("portmap")) == ["a problem"]
    assert list(left.asked[0]) == [KEY]


def test_what_is_left_is_returned(remove, left):
    left.leases = [{"message": "a lease", "removed": False}, {"message": "gone", "removed": True}]
    left.rules = [{"message": "a rule", "removed": False}, {"message": "gone", "removed": True}]
    assert remove(given("portmap")) == ["a problem", "a rule", "a lease"]


def test_a_plugin_that_is_missing_is_skipped():
    tolerant = force.Tolerant(Plugins())
    assert tolerant.find_in_path("missing", []) == ""
    assert tolerant.exec_plugin("", b"", {}) == b""
    assert len(tolerant.said) == 1
    calls = []
    other = force.Tolerant(SimpleNamespace(exec_plugin=lambda *arguments: calls.append(arguments) or b"it worked"))
    assert other.exec_plugin("/bin/main", b"{}", {"A": "b"}, 5) == b"it worked"
    assert calls == [("/bin/main", b"{}", {"A": "b"}, 5)]
    assert other.said == []
