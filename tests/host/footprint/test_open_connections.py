# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is put back in place costs no open connection, whatever kind of object it is: that is what ``safe`` says.

Everybody goes on sending while an object is broken, so that the neighbours have adapted to that when it is put back.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.object_kinds import KINDS, SWITCH
from ansible_collections.podwire.cni.tests.host.footprint import damage
from ansible_collections.podwire.cni.tests.host.footprint.chains import CHAINS
from ansible_collections.podwire.cni.tests.host.host import sh, wait_until

# The chain whose footprint has objects of the kind.
CHAIN_OF = {
    "fdb": "macvlan",
    "conf4": "portmap-dual",
    "conf6": "portmap-dual",
    "qdisc": "bandwidth",
    "filter": "bandwidth",
    "chain": "portmap-dual",
    "table": "bridge-masq-nft",
}
# Kinds that reference plugins make rarely: this plugin makes one of each.
MAKER = """#!/usr/bin/python3
import json, os, subprocess, sys
config = json.load(sys.stdin)
if os.environ["CNI_COMMAND"] == "VERSION":
    print(json.dumps({"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}))
elif os.environ["CNI_COMMAND"] == "ADD":
    result = config["prevResult"]
    end = next(one for one in result["interfaces"] if one["name"].startswith("veth"))
    bridge = next(one for one in result["interfaces"] if one["name"] == "pwf0")
    address = result["ips"][0]["address"].partition("/")[0]
    inside = ["nsenter", "--net=" + os.environ["CNI_NETNS"]]
    for command in (
        [*inside, *"ip neighbour replace 10.88.0.1 dev eth0 nud permanent lladdr".split(), bridge["mac"]],
        [*inside, *"tc qdisc replace dev eth0 root handle 1: htb default 1".split()],
        [*inside, *"tc class replace dev eth0 parent 1: classid 1:1 htb rate 100mbit".split()],
        ["sh", "-c", "bridge vlan add vid 77 dev %s || true" % end["name"]],
        ["nft", "add table ip cni_pwf; add chain ip cni_pwf on { type filter hook forward priority 0; }"],
        ["nft", "add set ip cni_pwf some { type ipv4_addr; }; add map ip cni_pwf ways { type ipv4_addr : verdict; }"],
        ["nft", "add element ip cni_pwf some { %s }; add element ip cni_pwf ways { %s : accept }" % (address, address)],
        ["nft", "add rule ip cni_pwf on ip saddr vmap @ways; add rule ip cni_pwf on ip daddr @some accept"],
    ):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print(json.dumps(result))
"""
MADE = {
    "neigh": ["ip -n pwf-ctr neighbour delete 10.88.0.1 dev eth0"],
    "class": ["tc -n pwf-ctr class delete dev eth0 classid 1:1", "tc -n pwf-ctr qdisc delete dev eth0 root"],
    "vlan": ["bridge vlan delete vid 77 dev $(basename /sys/class/net/pwf0/brif/veth*)"],
    "set": ["nft flush set ip cni_pwf some"],
    "map": ["nft flush map ip cni_pwf ways"],
}


def connected(site):
    """Attach two containers, and connect the second one to the first as well."""
    first, second = site.add_container("ctr"), site.add_container("more")
    site.attach()
    site.connect()
    site.connect_peers(second, first)


def repair(site, what):
    site.adapt()
    steps = site.run(on_drift="repair")["actions"]
    assert all(step["parts"] == [{"kind": "put_back"}] for step in steps), (what, steps)
    assert site.dead() == [], what


def macs_known_of(container):
    """Return which MACs the neighbours of a container know."""
    entries = [entry for space in ("", "-n pwf-more") for entry in json.loads(sh(f"ip {space} -json neighbour"))]
    return {entry.get("lladdr") for entry in entries if entry["dst"] in container.addresses}


@pytest.mark.full
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in (*MADE, SWITCH, "way")])
def test_what_is_put_back_costs_no_connection(new_site, kind):
    chain = CHAIN_OF.get(kind, "bridge-dual-masq")
    site = new_site(chain, CHAINS[chain].generations[-1])
    connected(site)
    every = [one for one in damage.breaks(site.containers[0]) if one.in_place]
    breaks = {one.kind: one for one in every if one.what.split()[0] == kind}
    assert breaks
    for one in breaks.values():
        one.do()
        repair(site, one.what)


def test_another_mac_costs_no_connection(new_site):
    """The neighbours are told the old one again: of IPv6, they would use the other one for half a minute."""
    site = new_site("bridge-dual-masq")
    connected(site)
    sh("ip -n pwf-ctr link set eth0 address 0a:0b:0c:0d:0e:0f")
    site.adapt()
    wait_until(lambda: macs_known_of(site.containers[0]) == {"0a:0b:0c:0d:0e:0f"})
    wanted = [container.wanted for container in site.containers]
    run = site.host.change("cni_attach", site.picture, attachments=wanted, on_drift="repair").run
    assert [step["class"] for step in run["actions"]] == ["safe"]
    mac = run["attachments"][0]["result"]["interfaces"][-1]["mac"]
    assert macs_known_of(site.containers[0]) == {mac}
    assert site.dead() == []


@pytest.mark.full
@pytest.mark.parametrize("kind", MADE)
def test_what_another_plugin_made_costs_no_connection(new_site, work, kind):
    folder = work / "maker"
    folder.mkdir(exist_ok=True)
    (folder / "pwf-maker").write_text(MAKER)
    (folder / "pwf-maker").chmod(0o755)
    site = new_site("bridge")
    site.host = site.host.with_defaults(bin_dirs=[str(site.plugins), str(folder)])
    conflist = site.chain.conflist(site.leases)
    conflist["plugins"].append({"type": "pwf-maker"})
    site.write_network(conflist)
    connected(site)
    footprints = [site.containers[0].footprint(), *site.shared("pwf-bridge")]
    kinds = {key[0] for footprint in footprints for key in (*footprint.host, *footprint.inside)}
    if kind == "vlan" and kind not in kinds:
        pytest.skip("no VLANs of ports here")
    assert kind in kinds
    for command in MADE[kind]:
        sh(command)
        repair(site, command)
