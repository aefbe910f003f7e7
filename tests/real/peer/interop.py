# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What one libcni attached, the other checks, lists and detaches, with real plugins: interop.py DRIVER PLUGINS...

Go's libcni and this collection's, both ways, as root in a namespace of tests/private.sh. The network is bridge with
host-local, and portmap. Afterwards nothing is left: no rule, no veth, no lease, no cache file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import typing as t

MODULE_UTILS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "plugins", "module_utils")
NETWORK = "podwire-peer"
NETNS = "podwire-peer"
BRIDGE = "pwpeer0"
LEASES = f"/var/lib/cni/networks/{NETWORK}"
HOST_PORT = 18080
# What host-local keeps when all addresses are free again.
OF_HOST_LOCAL = {"lock", "last_reserved_ip.0", "last_reserved_ip.1"}


class Side(t.NamedTuple):
    """A libcni by its command line."""

    name: str
    command: list[str]


def run(*argv: str, env: t.Mapping[str, str] | None = None) -> str:
    """Run a command that has to succeed, and return what it printed."""
    done = subprocess.run(argv, env=env, text=True, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(argv)} failed ({done.returncode}): {done.stdout}{done.stderr}")
    return done.stdout


def expect(condition: bool, what: str) -> None:
    """End with an error unless `condition` is true."""
    if not condition:
        raise SystemExit(f"interoperation: {what}")


class World:
    """A configuration, a cache and a network namespace; `plugins` is the directory of the plugins."""

    def __init__(self, directory: str, plugins: str, version: str) -> None:
        self.cache = directory + "/cache"
        conf_dir = directory + "/net.d"
        os.mkdir(conf_dir)
        ranges = [[{"subnet": "10.123.0.0/24"}], [{"subnet": "fd00:123::/64"}]]
        ipam = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
        bridge = {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "ipMasq": True, "ipam": ipam}
        portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
        with open(conf_dir + "/10-peer.conflist", "w", encoding="utf-8") as file:
            json.dump({"cniVersion": version, "name": NETWORK, "plugins": [bridge, portmap]}, file)
        self.env = {
            **os.environ,
            "PYTHONPATH": MODULE_UTILS,
            "NETCONFPATH": conf_dir,
            "CNI_PATH": plugins,
            "CNI_CACHE_DIR": self.cache,
            "CNI_CONTAINERID": "podwire-peer-1",
            "CNI_ARGS": "IgnoreUnknown=1",
            "CAP_ARGS": json.dumps({"portMappings": [{"hostPort": HOST_PORT, "containerPort": 80, "protocol": "tcp"}]}),
        }

    def call(self, side: Side, *argv: str) -> str:
        """Run a command of one side."""
        return run(*side.command, *argv, env=self.env)

    def verb(self, side: Side, verb: str) -> str:
        """Run a verb on the attachment."""
        return self.call(side, verb, NETWORK, f"/run/netns/{NETNS}")


def rules() -> str:
    """Return the packet filter's rules, of whichever kind."""
    return run("iptables-save") + run("ip6tables-save") + run("nft", "list", "ruleset")


def links() -> set[str]:
    """Return the names of the interfaces that are bridged."""
    return {link["ifname"] for link in json.loads(run("ip", "-json", "link", "show", "master", BRIDGE) or "[]") if link}


def check(world: World, adder: Side, other: Side) -> None:
    """Let both sides CHECK."""
    # portmap looks for the rules of either family in both tables, and fails. Without mappings it passes.
    argv = ("check", NETWORK, f"/run/netns/{NETNS}")
    said = [
        subprocess.run([*side.command, *argv], env=world.env, capture_output=True, check=False)
        for side in (adder, other)
    ]
    expect(said[0].returncode == said[1].returncode, f"CHECK ends differently: {said}")
    expect(said[0].stderr == said[1].stderr, f"CHECK says different things: {said}")
    for side in (adder, other):
        run(*side.command, *argv, env={**world.env, "CAP_ARGS": ""})


def hand_over(world: World, adder: Side, other: Side) -> None:
    """Let one side attach, and the other do the rest."""
    result = json.loads(world.verb(adder, "add"))
    addresses = {ip["address"].partition("/")[0] for ip in result["ips"]}
    expect(str(HOST_PORT) in rules(), f"{adder.name} mapped no port")
    expect(len(addresses) == 2 and addresses <= set(os.listdir(LEASES)), f"{adder.name} reserved no addresses")
    expect(len(links()) == 1, f"{adder.name} made no veth")
    check(world, adder, other)
    listed = [world.call(side, "list-attachments") for side in (adder, other)]
    expect(listed[0] == listed[1], f"the sides list different attachments: {listed}")
    [attachment] = json.loads(listed[0])
    expect(attachment["capability_args"]["portMappings"][0]["hostPort"] == HOST_PORT, f"listed: {attachment}")
    # The second time, there is nothing to do.
    for _turn in range(2):
        world.verb(other, "del")
        left = rules()
        expect(not any(text in left for text in (str(HOST_PORT), *addresses)), f"{other.name} left rules: {left}")
        expect(not links(), f"{other.name} left {links()}")
        expect(set(os.listdir(LEASES)) <= OF_HOST_LOCAL, f"{other.name} left leases: {os.listdir(LEASES)}")
        expect(not os.listdir(world.cache + "/results"), f"{other.name} left a cache file")


def garbage(world: World, adder: Side, other: Side) -> None:
    """Let one side attach, and the other collect it as garbage, with the arguments that are in the cache."""
    world.verb(adder, "add")
    bare = {name: value for name, value in world.env.items() if name not in ("CAP_ARGS", "CNI_ARGS", "CNI_CONTAINERID")}
    run(*other.command, "gc", NETWORK, "--none", env=bare)
    expect(str(HOST_PORT) not in rules(), f"GC by {other.name} left rules: {rules()}")
    expect(not links(), f"GC by {other.name} left {links()}")
    expect(set(os.listdir(LEASES)) <= OF_HOST_LOCAL, f"GC by {other.name} left leases: {os.listdir(LEASES)}")
    expect(not os.listdir(world.cache + "/results"), f"GC by {other.name} left a cache file")


def main() -> int:
    """Try all plugins, both ways."""
    driver, *directories = sys.argv[1:]
    go, python = Side("Go", [driver]), Side("Python", [sys.executable, "-m", "libcni"])
    for plugins in directories:
        newest = json.loads(run(plugins + "/bridge", env={"CNI_COMMAND": "VERSION"}))["supportedVersions"][-1]
        for version in dict.fromkeys(("1.0.0", newest)):
            for adder, other in ((go, python), (python, go)):
                with tempfile.TemporaryDirectory() as directory:
                    run("ip", "netns", "add", NETNS)
                    world = World(directory, plugins, version)
                    hand_over(world, adder, other)
                    garbage(world, adder, other)
                    run("ip", "netns", "delete", NETNS)
                    run("ip", "link", "delete", BRIDGE)
                print(
                    f"interoperation: attached by {adder.name}, checked, listed and detached by {other.name}: {version}"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
