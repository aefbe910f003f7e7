# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""podwire-multinet with real plugins of two generations, called as a runtime calls it: by libcni.

What Multus did with the same networks is in the comments: 95a0932 (v4.3.0-42) with the plugins 1.9.1.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils import libcni
from ansible_collections.podwire.cni.plugins.module_utils.libcni import bundle
from ansible_collections.podwire.cni.tests.host.host import COLLECTION, sh
from ansible_collections.podwire.cni.tests.host.networks import PORTMAP, bridge, conflist, definition
from ansible_collections.podwire.cni.tests.tools import sample

NETWORKS = "k8s.v1.cni.cncf.io/networks"
CAPABILITY = "io.kubernetes.cri.pod-annotations"
ARGS = [("IgnoreUnknown", "1"), ("K8S_POD_NAMESPACE", "default"), ("K8S_POD_NAME", "web")]
BOTH = '[{"name": "storage"}, {"name": "second", "default-route": ["10.50.0.1"]}]'


class Host:
    """A host whose runtime has one network, that of the plugin."""

    def __init__(self, work, plugins, version):
        self.bin = work / "bin"
        shutil.copytree(plugins, self.bin)
        source = COLLECTION / "plugins" / "module_utils" / "_plugins" / "multinet.py"
        bundle.write(bundle.bundle(str(source)), str(self.bin / "podwire-multinet"))
        self.cni = libcni.CNIConfig([str(self.bin)], str(work / "cache"), timeout=120)
        self.version = version
        first = bridge("mbr0", "10.20.0.0/24", "fd20::/64", isDefaultGateway=True)
        cluster = conflist(first, PORTMAP, version=version, name="cluster")
        plugin = {
            "type": "podwire-multinet",
            "capabilities": {CAPABILITY: True, "portMappings": True},
            "delegates": [cluster],
        }
        self.network = self.loaded(plugin)
        nads = Path("/etc/cni/multinet/nads/default")
        nads.mkdir(parents=True)
        ipam = {"type": "host-local", "ranges": [[{"subnet": "10.30.0.0/24", "rangeStart": "10.30.0.10"}]]}
        macvlan = {"cniVersion": version, "type": "macvlan", "master": "par0", "ipam": ipam}
        second = conflist(bridge("mbr1", "10.50.0.0/24", "fd50::/64", isDefaultGateway=True), version=version)
        for name, network in {"storage": macvlan, "second": second}.items():
            (nads / f"{name}.json").write_text(json.dumps(definition(name, network)))

    def loaded(self, plugin):
        conf = conflist(plugin, version=self.version, name="pods")
        return libcni.network_conf_from_bytes(json.dumps(conf).encode())

    def attachment(self, annotation="", name="c1", netns="/run/netns/pod1", **capabilities):
        given = {CAPABILITY: {NETWORKS: annotation} if annotation else None, **capabilities}
        return libcni.RuntimeConf(name, netns, "eth0", ARGS, given)

    def add(self, *args, **more):
        return self.cni.add_network_list(self.network, self.attachment(*args, **more))

    def check(self):
        self.cni.check_network_list(self.network, self.attachment(BOTH))

    def delete(self, *args, **more):
        self.cni.del_network_list(self.network, self.attachment(*args, **more))


@pytest.fixture(params=["old", "new"])
def host(request, generations, work):
    sh("ip netns add pod1; ip link add par0 type veth peer name par1; ip link set par0 up; ip link set par1 up")
    yield Host(work, generations[request.param], "1.1.0" if request.param == "new" else "1.0.0")
    sh(
        """
        ip netns delete pod1
        for name in mbr0 mbr1 par0; do ip link delete $name || true; done
        nft flush ruleset
        rm -rf /var/lib/cni /etc/cni
        """
    )


def links():
    return [row["ifname"] for row in json.loads(sh("ip -n pod1 -json link")) if row["ifname"] != "lo"]


def default_routes(family):
    return re.findall(r"^default via (\S+) dev (\S+)", sh(f"ip -n pod1 -{family} route"), re.MULTILINE)


def files():
    """Leases, and what the plugin has written down."""
    found = sh("find /var/lib/cni -type f", check=False).splitlines()
    return sorted(path for path in found if not re.search(r"/(lock|last_reserved_ip\.\d)$", path))


def ends():
    """The host's ends of the pods' interfaces."""
    rows = json.loads(sh("ip -json link"))
    return [row["ifname"] for row in rows if row["ifname"].startswith("veth")]


def left():
    """Return what is left of the pods."""
    rules = [line for line in sh("iptables-save -t nat", check=False).splitlines() if "10.20.0." in line]
    return [*links(), *files(), *ends(), *rules]


def test_three_networks(host):
    """As with Multus: eth0, net1, net2, and the result is that of the first network."""
    sh("ip address add 10.30.0.1/24 dev par1")
    result = host.add("storage,second", portMappings=[{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}])
    assert (result.version, result.addresses) == (host.version, ["10.20.0.2/24", "fd20::2/64"])
    assert [nic.name for nic in result.interfaces if nic.sandbox] == ["eth0"]
    assert links() == ["eth0", "net1", "net2"]
    for address in ("10.20.0.1", "10.30.0.1", "10.50.0.1"):
        sh(f"ip netns exec pod1 ping -q -c 1 -W 5 {address}")
    # The runtime's port leads to the first network, and to no other.
    assert "10.20.0.2:80" in sh("iptables-save -t nat")
    assert "10.50.0.2:80" not in sh("iptables-save -t nat")
    host.delete("storage,second")
    assert left() == []
    host.delete("storage,second")
    host.delete("", netns="")


def test_the_default_route_moves_in_the_kernel_the_cache_and_the_answer(host):
    """Multus before v4.2.2 moves both families, though one was asked for; since then no route moves."""
    result = host.add(BOTH)
    assert default_routes(4) == [("10.50.0.1", "net2")]
    assert [route.dst for route in result.routes] == ["::/0"]
    cached = json.loads(Path("/var/lib/cni/multinet/results/second-c1-net2").read_text())["result"]
    assert {"dst": "0.0.0.0/0", "gw": "10.50.0.1"} in cached["routes"]
    sh("ip netns exec pod1 ping -q -c 1 -W 5 10.50.0.1")
    host.check()
    sh("ip -n pod1 route add default via 10.20.0.1 metric 9")
    with pytest.raises(libcni.PluginError, match=r"the IPv4 default routes of eth0 are via 10\.20\.0\.1"):
        host.check()
    sh("ip -n pod1 route delete default via 10.20.0.1; ip -n pod1 route delete default via 10.50.0.1")
    with pytest.raises(libcni.PluginError, match=r"default/second \(net2\)"):
        host.check()
    host.delete(BOTH)
    assert left() == []


def test_the_default_route_of_ipv6_alone(host):
    result = host.add('[{"name": "second", "default-route": ["fd50::1"]}]')
    assert default_routes(6) == [("fd50::1", "net1")]
    # Nobody asked for the one of the other family.
    assert ("10.20.0.1", "eth0") in default_routes(4)
    assert [route.dst for route in result.routes] == ["0.0.0.0/0"]
    host.delete()
    assert left() == []


def test_a_gateway_that_is_not_there(host):
    """Multus leaves everything behind."""
    with pytest.raises(libcni.PluginError, match=r"10\.99\.0\.1 dev net1': network is unreachable"):
        host.add('[{"name": "second", "default-route": ["10.99.0.1"]}]')
    assert left() == []


def test_check_finds_what_multus_does_not(host):
    host.add(BOTH)
    sh("ip -n pod1 link delete net1")
    with pytest.raises(libcni.PluginError, match=r"network default/storage \(net1\)"):
        host.check()
    host.delete(BOTH)
    assert left() == []


def test_a_second_add(host):
    """Multus deletes eth0 of the running pod."""
    host.add(BOTH)
    before = (links(), files(), sh("ip -n pod1 -brief address"))
    for name in ("c1", "c2"):
        with pytest.raises(libcni.PluginError, match=r"attached already|an interface eth0 exists"):
            host.add(BOTH, name=name)
        assert (links(), files(), sh("ip -n pod1 -brief address")) == before
    host.delete(BOTH)
    assert left() == []


def test_the_annotation_changes_before_del(host):
    host.add(BOTH)
    shutil.rmtree("/etc/cni/multinet")
    host.delete('[{"name": "gone"}, null]')
    assert left() == []


def test_the_namespace_goes_before_del(host):
    host.add(BOTH)
    sh("ip netns delete pod1; ip netns add pod1")
    host.delete(BOTH, netns="")
    assert left() == []


def test_the_last_network_fails(host):
    config = {"cniVersion": host.version, "type": "macvlan", "master": "par0", "mode": "odd"}
    Path("/etc/cni/multinet/nads/default/late.json").write_text(json.dumps(definition("late", config)))
    text = 'error adding container to network "late": .*unknown macvlan mode: "odd"'
    with pytest.raises(libcni.PluginError, match=text) as caught:
        host.add("storage,second,late")
    assert "DEL of what was added failed" not in str(caught.value)
    assert left() == []


def test_a_pool_is_empty(host):
    """The first network works, and the second does not."""
    nad = Path("/etc/cni/multinet/nads/default/storage.json")
    nad.write_text(nad.read_text().replace('"rangeStart"', '"rangeEnd": "10.30.0.10", "rangeStart"'))
    host.add("storage")
    sh("ip netns add pod2")
    with pytest.raises(libcni.PluginError, match=r'network "storage": .*no IP addresses available'):
        host.add("storage", name="c2", netns="/run/netns/pod2")
    assert not [path for path in files() if "c2" in path]
    assert len(ends()) == 1
    sh("ip netns delete pod2")
    host.delete()
    assert left() == []


def calling(host, command, verb="ADD"):
    """Start the plugin as *command*, as libcni starts it, and return its process."""
    env = {**os.environ, "CNI_COMMAND": verb, "CNI_CONTAINERID": "c1", "CNI_NETNS": "/run/netns/pod1"}
    env.update(CNI_IFNAME="eth0", CNI_PATH=str(host.bin), CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=default")
    conf = {**host.network.plugins[0].network, "name": "pods", "cniVersion": host.version}
    conf["runtimeConfig"] = {CAPABILITY: {NETWORKS: BOTH}}
    pipe = subprocess.PIPE
    process = subprocess.Popen([*command, host.bin / "podwire-multinet"], stdin=pipe, stdout=pipe, stderr=pipe, env=env)
    process.stdin.write(json.dumps(conf).encode())
    process.stdin.close()
    return process


@pytest.mark.parametrize("moment", range(8))
def test_killed_in_mid_add(host, moment):
    """Wherever the plugin is killed, the DEL that follows finds all: plugins that still run, leases and interfaces."""
    process = calling(host, [])
    seen = [Path("/var/lib/cni/multinet/pods/c1:eth0"), *_traces()]
    while moment < len(seen) and not os.path.exists(seen[moment]) and process.poll() is None:
        time.sleep(0.0005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    host.delete(BOTH)
    assert left() == []
    # Also without a namespace, and again.
    host.delete(BOTH, netns="")
    host.add(BOTH)
    host.delete(BOTH)
    assert left() == []


# Runs a program, and kills it before call N of those that change something.
KILLER = """
import os, runpy, sys
del sys.argv[0]
left = int(sys.argv.pop(0))
def hook(event, arguments):
    global left
    if event in CALLS and (event != "open" or arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
        left -= 1
        if not left:
            os.kill(os.getpid(), 9)
CALLS = {"open", "fcntl.flock", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "subprocess.Popen"}
CALLS |= {"os.fork", "os.posix_spawn"}
sys.addaudithook(hook)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_killed_at_any_call_of_an_add(host):
    """The DEL that follows also finds what the plugin itself has left on disk."""
    for call in itertools.count(1, sample.STEP):
        process = calling(host, [sys.executable, "-c", KILLER, str(call)])
        status = process.wait()
        host.delete(BOTH)
        assert left() == [], call
        if status != -signal.SIGKILL:
            break
    assert status == 0, process.stdout.read()
    assert call > 20


def test_killed_at_any_call_of_a_del(host):
    """The next DEL completes it."""
    for call in itertools.count(1, sample.STEP):
        host.add(BOTH)
        status = calling(host, [sys.executable, "-c", KILLER, str(call)], "DEL").wait()
        host.delete(BOTH)
        assert left() == [], call
        if status != -signal.SIGKILL:
            break
    assert status == 0
    assert call > 5


def _traces():
    """What appears during the ADD, in this order."""
    leases, results = "/var/lib/cni/networks", "/var/lib/cni/multinet/results"
    return [
        f"{leases}/cluster/10.20.0.2",
        "/sys/class/net/mbr0",
        f"{results}/cluster-c1-eth0",
        f"{leases}/storage/10.30.0.10",
        f"{results}/storage-c1-net1",
        f"{leases}/second/10.50.0.2",
        f"{results}/second-c1-net2",
    ]


def test_gc_and_status(host):
    if host.version != "1.1.0":
        # The older generation of plugins.
        pytest.skip("STATUS and GC are verbs of 1.1.0")
    host.cni.get_status_network_list(host.network)
    host.add(BOTH)
    sh("ip netns add pod2")
    host.add("storage", name="c2", netns="/run/netns/pod2")
    # The runtime has lost c1: no DEL of its own will come.
    shutil.rmtree(host.cni.cache_dir)
    host.cni.gc_network_list(host.network, [("c2", "eth0")])
    assert links() == []
    assert [path.rpartition("/")[2] for path in files() if "/pods/" in path] == ["c2:eth0"]
    host.delete("storage", name="c2", netns="/run/netns/pod2")
    sh("ip netns delete pod2")
    assert left() == []
