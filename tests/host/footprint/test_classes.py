# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""No running container notices the safe steps of a plan that is made up, and one notices those that are left.

PODWIRE_EFFECTS is how many plans there are, PODWIRE_FIRST_EFFECT the seed of the first.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.upkeep import repair_all
from ansible_collections.podwire.cni.tests.host.footprint import damage
from ansible_collections.podwire.cni.tests.host.footprint.chains import BOTH, BRIDGE_NAME, CONTAINER_PORT, HOST_PORT
from ansible_collections.podwire.cni.tests.host.footprint.site import (
    OUTER_PORT,
    OUTSIDE,
    abort,
    open_connection,
    path_of,
)
from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import bridge, conflist, host_local
from ansible_collections.podwire.cni.tests.tools import sample

FIRST, COUNT = sample.number("FIRST_EFFECT", 1, 1), sample.number("EFFECTS", 60, 6)
# How long to wait for an echo: not long where many may be lost, and long where none may be.
_SHORT, _LONG = 1.0, 20.0
SECOND, BEYOND = "pwf-second", "198.51.100.2"
# A second way out of the network, to what the host cannot reach.
ROUTER = f"""
ip netns add pwf-router
ip link add pwf-r0 master {BRIDGE_NAME} up type veth peer name eth0 netns pwf-router
ip -n pwf-router address add 10.88.0.200/16 dev eth0
ip -n pwf-router link set eth0 up
ip -n pwf-router link add side1 up type veth peer name side0 netns pwf-a
ip -n pwf-router address add 10.77.0.1/24 dev side1
ip -n pwf-a address add 10.77.0.2/24 dev side0
ip -n pwf-a link set side0 up
ip -n pwf-router link add out0 up type veth peer name pwf-beyond netns {OUTSIDE}
ip -n pwf-router address add 198.51.100.1/24 dev out0
ip netns exec pwf-router sysctl -q -w net.ipv4.ip_forward=1
ip netns exec pwf-router iptables -t nat -A POSTROUTING -o out0 -j MASQUERADE
ip -n {OUTSIDE} address add {BEYOND}/24 dev pwf-beyond
ip -n {OUTSIDE} link set pwf-beyond up
"""


class Effects:
    """A site with running containers, and what happens to it and to the request. ``log`` tells what was done."""

    def __init__(self, site, rng):
        self.site, self.rng, self.log = site, rng, []
        self.a, self.b, self.c = (site.add_container(name) for name in "abc")
        self.c.wanted["network"] = SECOND
        ipam = host_local("10.89.0.0/16", dataDir=str(site.leases))
        self.second = conflist(bridge("pwf9", isDefaultGateway=True, ipMasq=True, ipam=ipam), name=SECOND)
        site.write_network(self.second)
        site.attach()
        sh(ROUTER)
        site.connect()
        site.connect_peers(self.a, self.b)
        site.connections["second"] = open_connection(self.a.path, (self.c.addresses[0], CONTAINER_PORT))
        self.wanted = [container.wanted for container in (self.a, self.b, self.c)]

    def lose(self):
        """Lose an object of the first container's, or of its network's."""
        way = self.rng.choice([way for way in damage.breaks(self.a) if way.in_place and not way.others])
        self.log.append(way.what)
        way.do()

    def reroute(self):
        """Send the first container through another router, by a route in the place of its own or beside it."""
        route, metric = f"ip -n {self.a.namespace} route", self.rng.choice((0, 100))
        way = self.rng.choice(("10.88.0.200 dev eth0", "10.77.0.1 dev side0"))
        self._beyond(f"{route} delete default; {route} add default via {way} metric {metric}")

    def detour(self, device="eth0"):
        """Reach more through another router, which the network does not know."""
        self._beyond(f"ip -n {self.a.namespace} route add {BEYOND} via 10.88.0.200 dev {device}")

    def rename(self):
        sh(f"ip -n {self.a.namespace} link set eth0 down; ip -n {self.a.namespace} link set eth0 name eth9 up")
        self.detour("eth9")

    def move(self):
        """Connect the first container and the other router to another bridge."""
        end = next(link["name"] for link in self.a.row["result"]["interfaces"] if link["name"].startswith("veth"))
        sh(f"for port in {end} pwf-r0; do ip link set $port master pwf-other; done; ip link set pwf-other up")
        self.detour()

    def _beyond(self, script):
        self.log.append(script)
        sh(script)
        self.site.connections["beyond"] = open_connection(self.a.path, (BEYOND, OUTER_PORT))

    def one_more(self, container=None):
        """Ask for a second network of a container, which runs."""
        wanted = (container or self.b).wanted
        self.wanted.append({**wanted, "network": SECOND, "ifname": "eth1", "capability_args": {}})

    def newcomer(self):
        """Ask for two networks of a new container."""
        new = self.site.add_container("new")
        self.wanted.append(new.wanted)
        self.one_more(new)

    def detach(self):
        container = self.rng.choice([self.b, self.c])
        self._exchange(container, container.absent)

    def _exchange(self, container, wanted):
        self.wanted = [wanted if other is container.wanted else other for other in self.wanted]

    def other_arguments(self):
        self._exchange(self.b, {**self.b.wanted, "args": {"IgnoreUnknown": "1", "K": "v"}})

    def other_network(self):
        self.second["plugins"][0]["mtu"] = 1400
        self.site.write_network(self.second)

    def happens(self):
        ways = [self.lose, self.lose, self.reroute, self.detour, self.rename, self.move]
        asked = [self.one_more, self.newcomer, self.detach, self.other_arguments, self.other_network]
        for way in [self.rng.choice(ways), *self.rng.sample(asked, self.rng.randint(0, 2))]:
            self.log.append(f"# {way.__name__}")
            way()

    def facts(self, patience):
        """Return what each container has, as a set of facts, and which connections work; others are given up."""
        connections = self.site.connections
        for connection in connections.values():
            connection.settimeout(patience)
        for text in self.site.dead():
            abort(connections.pop(text.partition(":")[0]))
        found = {("connection", name) for name in connections}
        # A bridge may get its name back, and its ports notice nothing.
        devices = json.loads(sh("ip -json link"))
        names = {link["ifname"]: link["ifindex"] for link in devices}
        masters = {link["ifindex"]: names.get(link.get("master")) for link in devices}
        for name in (container.namespace for container in self.site.containers):
            links = [link for link in json.loads(sh(f"ip -n {name} -json address")) if link["ifname"] != "lo"]
            indexes = {link["ifname"]: link["ifindex"] for link in links}
            for link in links:
                index, port = link["ifindex"], masters.get(link.get("link_index"))
                found |= {(name, "interface", index)} | ({(name, "port", index, port)} if port else set())
                found |= {(name, "address", index, address["local"]) for address in link["addr_info"]}
            routes = [route for six in ("-4", "-6") for route in json.loads(sh(f"ip -n {name} {six} -json route"))]
            found |= {
                (name, "route", route["dst"], route.get("gateway"), indexes[route["dev"]])
                for route in routes
                if not route["dst"].startswith(("fe80:", "ff00:")) and "linkdown" not in route["flags"]
            }
        return found

    @staticmethod
    def between(before, after):
        """Return what containers had before and no longer have, and interfaces that a running one got."""
        running = {fact[0] for fact in before if fact[1] == "interface"}
        more = {fact for fact in after - before if fact[1] == "interface" and fact[0] in running}
        return (before - after) | more

    def run(self, **options):
        """Run either module, and return the steps that it has left."""
        wanted = {"attachments": self.wanted, "on_drift": "repair"}
        module, arguments = self.rng.choice([("cni_attach", wanted), ("cni_host", {"attachments": wanted})])
        result = self.site.host.run(module, **arguments, **options)
        steps = result.get("plan") or result.get("actions", [])
        self.log += [f"{module} {step['class']} {step['target']}: {step['reason']}" for step in steps]
        return result["left"]


@pytest.fixture
def new_world(new_site):
    """Return a function that makes a world from a seed."""
    before = {path: path.read_text() for path in Path("/proc/sys/net/bridge").glob("bridge-nf-call-ip*")}
    for path in before:
        # Otherwise, bridges translate addresses as well, also on a way that the host does not route.
        path.write_text("0")
    yield lambda seed: Effects(new_site("bridge-dual-masq", random.Random(seed).choice(BOTH)), random.Random(seed))
    sh("ip netns delete pwf-router", check=False)
    for path, text in before.items():
        path.write_text(text)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_the_class_of_a_step_tells_its_effect(new_world, seed):
    world = new_world(seed)
    world.happens()
    before = world.facts(_SHORT)
    left = world.run(classes=["safe"])
    middle = world.facts(_LONG)
    assert world.between(before, middle) == set(), "\n".join(world.log)
    world.run()
    effects = world.between(middle, world.facts(_SHORT))
    assert bool(effects) == bool(left), "\n".join([*world.log, str(effects)])


def test_a_second_network_costs_a_running_container_connections(new_world):
    world = new_world(0)
    world.one_more(world.a)
    assert [step["class"] for step in world.run(classes=["safe"])] == ["disruptive"]
    world.run()
    assert ("connection", "second") not in world.facts(_SHORT)


def test_the_service_puts_nothing_back_that_takes_a_way(new_world):
    world = new_world(0)
    world.reroute()
    sh(f"ip -n {world.b.namespace} route delete default")
    world.facts(_SHORT)
    sentences = repair_all(str(world.site.cache))
    assert [{line.split("/")[1] for line in lines} for lines in sentences] == [{"pwf-b-0001"}, {"pwf-a-0001"}]
    assert ("connection", "beyond") in world.facts(_SHORT)


def test_what_one_container_uses_does_not_keep_others_waiting(new_world):
    world = new_world(0)
    world.reroute()
    sh(f"ip -n {world.b.namespace} route delete default")
    left = world.run(classes=["safe"])
    assert [step["target"].split("/")[1] for step in left] == [world.a.container_id]
    assert "default via 10.88.0.1 " in sh(f"ip -n {world.b.namespace} route")


@pytest.mark.parametrize("chain", ["portmap", "portmap-nft"])
def test_a_published_port_is_not_taken_from_another_container(new_site, chain):
    site = new_site(chain)
    own = site.add_container("a").wanted
    other = {"hostPort": HOST_PORT + 1, "containerPort": CONTAINER_PORT, "protocol": "tcp"}
    site.add_container("b", capability_args={"portMappings": [other]})
    site.attach()
    ways = [way.do for way in damage.breaks(site.containers[0]) if way.kind.startswith("host rule")]
    for way in ways:
        way()
    rival = site.add_container("rival")
    site.run(attachments=[rival.wanted], cache_dir=str(site.work / "runtime"))

    def owners():
        connection = open_connection(path_of(OUTSIDE), ("192.0.2.1", HOST_PORT))
        port = connection.getsockname()[1]
        names = [container.namespace for container in site.containers]
        found = [name for name in names if f":{port} " in sh(f"ip netns exec {name} ss -tn")]
        abort(connection)
        return found

    assert owners() == [rival.namespace]
    (step,) = site.run(attachments=[own], on_drift="repair", classes=["safe"])["left"]
    assert step["reason"].endswith("its host port leads to another container")
    assert owners() == [rival.namespace]
    site.run(attachments=[own], on_drift="repair")
    assert owners() == [site.containers[0].namespace]


def test_an_address_is_not_taken_by_a_setting_that_is_put_back(new_site):
    site = new_site("tuning")
    conflist = site.chain.conflist(site.leases)
    conflist["plugins"][1]["sysctl"] = {"net.ipv6.conf.IFNAME.disable_ipv6": "1"}
    site.write_network(conflist)
    name = site.add_container("a").namespace
    site.attach()
    sh(f"ip netns exec {name} sysctl -q net.ipv6.conf.eth0.disable_ipv6=0")
    sh(f"ip -n {name} address add fd00:77::2/64 dev eth0")
    shown = f"ip -n {name} -6 address show scope global"
    assert [step["class"] for step in site.run(on_drift="repair", classes=["safe"])["left"]] == ["disruptive"]
    assert "fd00:77::2" in sh(shown)
    site.run(on_drift="repair")
    assert sh(shown) == ""
