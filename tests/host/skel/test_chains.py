# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The example plugins in chains with real ones."""

from __future__ import annotations

import json
import shutil

import pytest

from ansible_collections.podwire.cni.plugins.module_utils import libcni
from ansible_collections.podwire.cni.plugins.module_utils.libcni import bundle
from ansible_collections.podwire.cni.tests.host.host import COLLECTION, sh
from ansible_collections.podwire.cni.tests.host.networks import DEFAULT_ROUTE, bridge, conflist, host_local

EXAMPLES = COLLECTION / "examples" / "plugins"
BRIDGE = bridge("pwskel0", ipam=host_local("10.87.0.0/24", routes=DEFAULT_ROUTE))
HOOK = """#!/bin/sh
echo "$CNI_COMMAND $CNI_CONTAINERID $(cat)" >> /run/pwskel-hooks
"""


@pytest.fixture(params=["old", "new"])
def world(request, generations, work):
    """Real plugins, the collection's, a namespace, and libcni."""
    folder = work / "bin"
    shutil.copytree(generations[request.param], folder)
    for example in EXAMPLES.glob("*.py"):
        bundle.write(bundle.bundle(str(example)), str(folder / example.stem))
    hook = work / "hook"
    hook.write_text(HOOK)
    hook.chmod(0o755)
    sh("ip netns add pwskel")
    yield World(work, folder, hook, "1.1.0" if request.param == "new" else "1.0.0")
    sh("ip netns delete pwskel; rm -rf /run/pwskel-hooks /var/lib/cni")
    sh("[ ! -e /sys/class/net/pwskel0 ] || ip link delete pwskel0")


class World:
    def __init__(self, work, folder, hook, version):
        self.cni = libcni.CNIConfig([str(folder)], str(work / "cache"), timeout=60)
        self.log = work / "log" / "debug.log"
        self.rt = libcni.RuntimeConf("c1", "/run/netns/pwskel", "eth0", [("IgnoreUnknown", "1"), ("TOKEN", "sesame1")])
        routes = {
            "delroutes": [{"dst": "0.0.0.0/0"}],
            "addroutes": [{"dst": "10.99.0.0/16", "gw": "10.87.0.1"}, {"dst": "10.98.0.0/16"}],
        }
        plugins = [
            BRIDGE,
            {"type": "podwire-debug", "file": str(self.log), "token": "sesame2"},
            {"type": "podwire-route", **routes},
            {"type": "podwire-hooks", "add": [{"command": [str(hook)]}], "delete": [{"command": [str(hook)]}]},
            {"type": "podwire-debug", "file": str(self.log)},
        ]
        conf = conflist(*plugins, version=version, name="pwskel")
        self.net = libcni.network_conf_from_bytes(json.dumps(conf).encode())
        self.version = version

    def lines(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]


def routes_inside():
    return sh("ip -n pwskel route | sed 's/ linkdown//; s/ *$//'").split("\n")


def test_add_check_del(world):
    result = world.cni.add_network_list(world.net, world.rt)
    assert (result.version, result.addresses) == (world.version, ["10.87.0.2/24"])
    assert [(route.dst, route.gw) for route in result.routes] == [("10.99.0.0/16", "10.87.0.1"), ("10.98.0.0/16", "")]
    assert sorted(line for line in routes_inside() if line) == [
        "10.87.0.0/24 dev eth0 proto kernel scope link src 10.87.0.2",
        "10.98.0.0/16 dev eth0 scope link",
        "10.99.0.0/16 via 10.87.0.1 dev eth0",
    ]
    world.cni.check_network_list(world.net, world.rt)
    sh("ip -n pwskel route delete 10.98.0.0/16")
    # bridge finds it first: the result that it gets has all routes.
    with pytest.raises(libcni.PluginError, match=r"10\.98\.0\.0.*not found in routing table"):
        world.cni.check_network_list(world.net, world.rt)
    sh("ip -n pwskel route add 10.98.0.0/16 dev eth0; ip -n pwskel route add default via 10.87.0.1")
    with pytest.raises(libcni.PluginError, match=r"the route to 0.0.0.0/0 on eth0 is there again"):
        world.cni.check_network_list(world.net, world.rt)

    calls = world.lines()
    assert [line["command"] for line in calls[:2]] == ["ADD", "ADD"]
    first, second = calls[:2]
    assert (first["network"], first["containerID"], first["netns"]) == ("pwskel", "c1", "/run/netns/pwskel")
    assert first["environment"]["CNI_IFNAME"] == "eth0"
    assert first["result"]["routes"] == [{"dst": "0.0.0.0/0"}]
    assert [route["dst"] for route in second["result"]["routes"]] == ["10.99.0.0/16", "10.98.0.0/16"]
    assert "sesame" not in world.log.read_text()
    assert world.log.stat().st_mode & 0o777 == 0o600

    world.cni.del_network_list(world.net, world.rt)
    world.cni.del_network_list(world.net, world.rt)
    assert not sh("ip -n pwskel -brief link show type veth; find /var/lib/cni/networks -name '10.*'")
    assert [line["command"] for line in world.lines()[-4:]] == ["DEL"] * 4
    hooks = [line.split(" ", 2) for line in open("/run/pwskel-hooks").read().splitlines()]  # noqa: SIM115
    assert [line[:2] for line in hooks] == [["ADD", "c1"], ["DEL", "c1"], ["DEL", "c1"]]
    assert json.loads(hooks[0][2])["ips"][0]["address"] == "10.87.0.2/24"
    assert json.loads(hooks[2][2]) == {}


def test_del_without_the_namespace(world):
    world.cni.add_network_list(world.net, world.rt)
    sh("ip netns delete pwskel")
    world.cni.del_network_list(world.net, world.rt)
    assert not sh("find /var/lib/cni/networks -name '10.*'")
    sh("ip netns add pwskel")


def test_status_and_gc(world):
    if world.version != "1.1.0":
        # The older generation of plugins.
        pytest.skip("STATUS and GC are verbs of 1.1.0")
    world.cni.get_status_network_list(world.net)
    world.cni.gc_network_list(world.net, [])
    assert {line["command"] for line in world.lines()} == {"STATUS", "GC"}
