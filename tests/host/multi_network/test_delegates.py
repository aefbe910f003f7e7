# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of libcni.multi with real plugins, against what the binary of Multus did with the same networks.

Multus: 95a0932 (v4.3.0-42) with the plugins 1.9.1; the networks, links, leases and statuses here are those of its runs.
"""

from __future__ import annotations

import json
import os
import re

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import api, conf
from ansible_collections.podwire.cni.plugins.module_utils.libcni.multi.configuration import load_multus_conf
from ansible_collections.podwire.cni.plugins.module_utils.libcni.multi.definitions import NetworkDefinition
from ansible_collections.podwire.cni.plugins.module_utils.libcni.multi.pod import Pod, pod_interface_names, pod_networks
from ansible_collections.podwire.cni.plugins.module_utils.libcni.multi.runner import (
    AddNetworksError,
    add_networks,
    delete_networks,
)
from ansible_collections.podwire.cni.plugins.module_utils.libcni.multi.status import (
    network_status_text,
    network_statuses,
)
from ansible_collections.podwire.cni.tests.host.host import sh

NETNS = "/run/netns/pod1"


def bridge(name, subnet):
    ipam = {"type": "host-local", "ranges": [[{"subnet": subnet}]]}
    plugin = {"type": "bridge", "bridge": name, "isGateway": True, "isDefaultGateway": True, "ipam": ipam}
    return {"cniVersion": "1.0.0", "plugins": [plugin]}


CLUSTER = {**bridge("mbr0", "10.20.0.0/24"), "name": "cluster"}
DEFINITIONS = {
    ("default", name): NetworkDefinition("default", name, json.dumps({**network, "name": f"{name}-conf"}))
    for name, network in {
        "second": bridge("mbr1", "10.50.0.0/24"),
        "broken": {"cniVersion": "1.0.0", "plugins": [{"type": "nosuch"}]},
    }.items()
}
# What Multus wrote for the pod with the networks cluster and default/second, MAC addresses masked.
STATUS = """\
[{
    "name": "cluster",
    "interface": "eth0",
    "ips": [
        "10.20.0.2"
    ],
    "mac": "<mac>",
    "default": true,
    "dns": {},
    "gateway": [
        "10.20.0.1"
    ]
},{
    "name": "default/second",
    "interface": "net1",
    "ips": [
        "10.50.0.2"
    ],
    "mac": "<mac>",
    "dns": {},
    "gateway": [
        "10.50.0.1"
    ]
}]"""


class OnePod:
    """A pod in a namespace, whose networks are added by libcni."""

    def __init__(self, path, annotation):
        self.cni = api.CNIConfig([path], "/var/lib/cni/pods", timeout=60)
        found = load_multus_conf(json.dumps({"name": "m", "type": "multus", "delegates": [CLUSTER]}).encode())
        pod = Pod("default", "web", {"k8s.v1.cni.cncf.io/networks": annotation})
        self.networks = pod_networks(found, pod, DEFINITIONS)
        self.names = dict(zip(map(id, self.networks.delegates), pod_interface_names(self.networks, "eth0")))

    def _attachment(self, delegate):
        return conf.network_conf_from_bytes(delegate.data), api.RuntimeConf("cid1", NETNS, self.names[id(delegate)])

    def add(self):
        return add_networks(self.networks.delegates, self._add, self._delete)

    def delete(self):
        delete_networks(self.networks.delegates, self._delete)

    def _add(self, delegate):
        return self.cni.add_network_list(*self._attachment(delegate))

    def _delete(self, delegate):
        self.cni.del_network_list(*self._attachment(delegate))


@pytest.fixture(autouse=True)
def _namespace():
    sh("ip netns add pod1")
    yield
    sh("ip netns delete pod1; for name in mbr0 mbr1; do ip link delete $name; done; rm -rf /var/lib/cni", check=False)


def links():
    rows = json.loads(sh("ip -n pod1 -json link"))
    return [row["ifname"] for row in rows if row["ifname"] != "lo"]


def leases():
    return re.findall(
        r"[^/\n]+/10\.[\d.]+$", sh("find /var/lib/cni/networks -type f | sort", check=False), re.MULTILINE
    )


def caches():
    return sorted(os.listdir("/var/lib/cni/pods/results"))


@pytest.mark.parametrize("generation", ["old", "new"])
def test_networks_of_a_pod(generations, generation):
    pod = OnePod(str(generations[generation]), "second")
    results = pod.add()
    assert links() == ["eth0", "net1"]
    assert leases() == ["cluster/10.20.0.2", "second-conf/10.50.0.2"]
    assert caches() == ["cluster-cid1-eth0", "second-conf-cid1-net1"]
    statuses = []
    for delegate, result in zip(pod.networks.delegates, results):
        statuses += network_statuses(result, delegate.name, delegate.first)
    text = re.sub(r'"mac": "[^"]*"', '"mac": "<mac>"', network_status_text(statuses))
    # Plugins before 1.5 do not tell the MTU, and those of the recorded run told none for these links.
    assert re.sub(r'    "mtu": \d+,\n', "", text) == STATUS
    pod.delete()
    assert (links(), leases(), caches()) == ([], [], [])


def test_a_network_that_fails_takes_the_others_back(generations):
    """As with Multus: its ADD of the third network failed, and no link and no lease was left."""
    pod = OnePod(str(generations["new"]), "second,broken")
    with pytest.raises(AddNetworksError, match='error adding container to network "broken-conf"') as caught:
        pod.add()
    assert caught.value.index == 2
    # DEL of a plugin that does not exist fails, too; Multus does not tell.
    assert [index for index, _error in caught.value.left] == [2]
    assert (links(), leases(), caches()) == ([], [], [])
