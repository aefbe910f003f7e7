# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Verbs of single plugins: what is not in test_api_*.py (Go: libcni/api_test.go, "Invoking a single plugin")."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import conf
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError, PluginNotFoundError

PORTS = {"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]}
CACHED = {"cniVersion": "1.1.0", "ips": [{"address": "10.1.2.3/24"}]}
CONFIG = {
    "type": "noop",
    "name": "apitest",
    "some-key": "some-value",
    "cniVersion": "1.1.0",
    "capabilities": {"portMappings": True},
}


@pytest.fixture
def debug(world):
    return world.debug(ReportResult="")


@pytest.fixture
def rt(world, debug):
    return world.rt(if_name="some-eth0", args=[("DEBUG", str(debug.path))], capability_args=PORTS)


@pytest.fixture
def net():
    return conf.network_plugin_conf_from_bytes(json.dumps(CONFIG).encode())


def put(world, result):
    return world.put_cache(json.dumps(result), network="apitest", if_name="some-eth0")


@pytest.mark.parametrize("verb", ["check", "del"])
def test_executes_the_plugin(world, debug, rt, net, verb):
    put(world, CACHED)
    getattr(world.cni, f"{verb}_network")(net, rt)
    assert debug.command == verb.upper()
    args = debug.args
    assert json.loads(args.pop("StdinData")) == {**CONFIG, "runtimeConfig": PORTS, "prevResult": CACHED}
    assert args == {
        "CONTAINERID": "some-container-id",
        "NETNS": "/some/netns/path",
        "IFNAME": "some-eth0",
        "ARGS": f"DEBUG={debug.path}",
        "PATH": str(world.bin),
    }


@pytest.mark.parametrize("verb", ["check", "del"])
def test_plugin_that_is_not_there(world, rt, net, verb):
    net.type = "does-not-exist"
    with pytest.raises(PluginNotFoundError, match=r'failed to find plugin "does-not-exist"'):
        getattr(world.cni, f"{verb}_network")(net, rt)


def test_del_returns_the_plugins_error(world, debug, rt, net):
    debug.set(ReportError="plugin error: banana")
    with pytest.raises(PluginError, match=r"^plugin error: banana$"):
        world.cni.del_network(net, rt)


@pytest.mark.parametrize("version", ["0.4.0", "0.3.1"])
def test_del_converts_the_cached_result(world, debug, rt, net, version):
    path = put(world, {"cniVersion": version, "ips": [{"version": "4", "address": "10.1.2.3/24"}], "dns": {}})
    world.cni.del_network(net, rt)
    assert debug.command == "DEL"
    assert debug.stdin["prevResult"] == CACHED
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "container_id", "if_name"),
    [("", "some-container-id", "eth0"), ("foobar", "", "eth0"), ("foobar", "some-container-id", "")],
)
def test_cached_config_needs_all_names(world, net, name, container_id, if_name):
    """Go: "Cache operations", "when the RuntimeConf is incomplete"."""
    text = (
        f'cache file path requires network name ("{name}"), container ID ("{container_id}"), '
        f'and interface name ("{if_name}")'
    )
    net.name = name
    rt = world.rt(container_id=container_id, if_name=if_name)
    for find in (
        lambda: world.cni.get_network_cached_config(net, rt),
        lambda: world.cni.get_network_list_cached_config(conf.NetworkConfigList(name, "1.1.0", [], b""), rt),
    ):
        with pytest.raises(Exception, match=r"cache file path") as caught:
            find()
        assert str(caught.value) == text


def test_legacy_plugin(world):
    """Go: libcni/backwards_compatibility_test.go. Such a plugin answers in the shape of 0.1.0 and names no version."""
    world.script("old", 'cat >/dev/null; [ "$CNI_COMMAND" != ADD ] || echo \'{"ip4":{"ip":"10.1.2.3/24"}}\'')
    old = conf.network_plugin_conf_from_bytes(b'{ "name": "old-thing", "type": "old" }')
    result = world.cni.add_network(old, world.rt())
    assert result.to_dict() == {"cniVersion": "0.1.0", "ip4": {"ip": "10.1.2.3/24"}, "dns": {}}
    world.cni.del_network(old, world.rt())
    assert world.cni.get_cached_attachments() == []
