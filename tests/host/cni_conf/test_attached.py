# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Networks whose configuration changes while containers are attached, or on which no container can ever be."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import DEFAULT_ROUTE, PORTMAP, bridge, network


@pytest.fixture
def netns():
    sh("ip netns add cni_conf_test")
    return "cni_conf_test"


@pytest.mark.parametrize("generation", ["old", "new"])
def test_a_network_with_attachments_changes_by_force_only(host, change, refuse, work, conf_dir, netns):
    def att(subnet, **options):
        ipam = {"type": "host-local", "subnet": subnet, "dataDir": f"{work}/leases"}
        return network("att", {"type": "bridge", "bridge": "att0", "ipam": ipam}, version="0.4.0", **options)

    def attach(name, container, ifname, state="present"):
        attachment = {"network": name, "netns": netns, "container_id": container, "ifname": ifname, "state": state}
        host.run("cni_attach", attachments=[attachment])

    there, moved = att("10.58.0.0/24"), att("10.59.0.0/24")
    path = conf_dir / "10-att.conflist"
    host.run("cni_conf", networks=[there])
    attach("att", "ctr1", "eth0")
    refuse("attachments_exist", [str(path), "ctr1/eth0", "force: true"], [{"name": "att", "state": "absent"}])
    refuse("attachments_exist", [str(path), "ctr1/eth0", "subnet"], [moved])
    words = [str(path), "ctr1/eth0", "set aside"]
    refuse("attachments_exist", words, [network("other", version="0.4.0")], exclusive=True)

    # Its name was changed by hand, and it was used under that name.
    path.write_text(path.read_text().replace('"name": "att"', '"name": "renamed"'))
    attach("renamed", "ctr2", "eth1")
    refuse("attachments_exist", [str(path), "ctr2/eth1", "from 'renamed' to 'att'"], [there])
    attach("renamed", "ctr2", "eth1", "absent")
    change([there], ["write"], ["updated"])

    # A change that means nothing to the containers is made.
    renamed = host.run("cni_conf", networks=[att("10.58.0.0/24", priority=11)])
    assert renamed["networks"][0]["action"] == "renamed"
    (step,) = host.run("cni_conf", networks=[moved], force=True)["actions"]
    assert step["kind"] == "write"
    assert step["class"] == "disruptive"
    assert step["target"] == f"{conf_dir}/11-att.conflist"

    attach("att", "ctr1", "eth0", "absent")
    removed = host.run("cni_conf", networks=[{"name": "att", "state": "absent"}])
    assert removed["networks"][0]["action"] == "removed"


RANGE = {"type": "host-local", "subnet": "10.58.0.0/24"}
BRIDGE = {"type": "bridge", "bridge": "att0", "ipam": RANGE}
# The chain of the attached container, the one that is wanted, and what the refusal names.
MOVES = {
    "dataDir": ([BRIDGE], [{**BRIDGE, "ipam": {**RANGE, "dataDir": "/opt/leases"}}], "dataDir of host-local"),
    "ranges": (
        [BRIDGE],
        [{**BRIDGE, "ipam": {**RANGE, "Subnet": "10.59.0.0/24", "subnet": None}}],
        "subnet of host-local",
    ),
    "rules": ([BRIDGE, PORTMAP], [BRIDGE], "the plugin portmap"),
}


@pytest.mark.parametrize("generation", ["old", "new"])
@pytest.mark.parametrize("what", MOVES)
def test_what_moves_the_addresses_interfaces_or_rules_of_a_container_is_refused(host, refuse, conf_dir, netns, what):
    sh("ip link add up0 type bridge; ip link add up1 type bridge; ip link set up0 up; ip link set up1 up")
    before, after, words = MOVES[what]
    there, wanted = (network("att", *plugins, version="0.4.0") for plugins in (before, after))
    harmless = network("att", *(dict(plugin, mtu=1400) for plugin in before), version="0.4.0")
    path = conf_dir / "10-att.conflist"
    host.run("cni_conf", networks=[there])
    host.run("cni_attach", attachments=[{"network": "att", "netns": netns, "container_id": "ctr1"}])
    address = ["ctr1/eth0 (10.58.0.2/24)"]
    refuse("attachments_exist", [str(path), f"{words} would change", *address], [wanted])
    (step,) = host.run("cni_conf", networks=[harmless])["actions"]
    assert step["class"] == "safe"

    # The file is gone, its attachment is not.
    kept = path.read_text()
    path.unlink()
    refuse("attachments_exist", [str(path), *address], [wanted])
    path.write_text(kept)

    left = host.run("cni_host", networks={"networks": [wanted], "force": True}, classes=["safe"])["left"]
    assert [(one["class"], one["target"]) for one in left] == [("disruptive", str(path))]
    checked = host.run("cni_conf", networks=[wanted], force=True, check_mode=True)["actions"]
    ran = host.run("cni_conf", networks=[wanted], force=True)["actions"]
    assert checked == ran
    assert [(step["kind"], step["class"]) for step in ran] == [("write", "disruptive")]
    assert ran[0]["reason"].endswith("; moves ctr1/eth0 (10.58.0.2/24)")
    assert not host.run("cni_conf", networks=[wanted])["changed"]


def test_a_drop_in_moves_rules_and_interfaces_too(host, refuse, conf_dir, netns):
    def att(**drop_ins):
        files = [{"file": f"10-{name}.conf", "plugin": plugin} for name, plugin in drop_ins.items()]
        return network("att", BRIDGE, drop_ins=files)

    first = att(portmap={**PORTMAP, "backend": "iptables"})
    host.run("cni_conf", networks=[first])
    host.run("cni_attach", attachments=[{"network": "att", "netns": netns, "container_id": "ctr1"}])
    words = ["ctr1/eth0 (10.58.0.2/24)"]
    moved = att(portmap={**PORTMAP, "backend": "nftables"})
    refuse("attachments_exist", ["backend of portmap would change", *words], [moved])
    refuse("attachments_exist", ["the plugin portmap would change", *words], [att()])
    added = host.run("cni_conf", networks=[att(portmap=first["drop_ins"][0]["plugin"], tuning={"type": "tuning"})])
    assert {step["class"] for step in added["actions"]} == {"safe"}
    removed = host.run("cni_conf", networks=[first])["actions"]
    assert {step["class"] for step in removed} == {"safe"}
    steps = host.run("cni_conf", networks=[moved], force=True)["actions"]
    assert [(step["kind"], step["class"]) for step in steps] == [("write", "disruptive"), ("write", "safe")]
    assert steps[0]["reason"].endswith("; moves ctr1/eth0 (10.58.0.2/24)")
    assert not host.run("cni_conf", networks=[moved])["changed"]


IPAM = {"type": "host-local", "subnet": "10.64.0.0/24"}
TWICE = {"type": "bridge", "bridge": "cert3", "isDefaultGateway": True, "ipam": {**IPAM, "routes": DEFAULT_ROUTE}}
LIMITS = {"type": "bandwidth", "ingressRate": 8000000, "ingressBurst": 8000000}
GIVEN, WRITTEN = "networks[0].conflist", "10-certain.conflist"
CERTAIN = [
    (
        "chain_order",
        WRITTEN,
        "/plugins/0",
        [{"type": "tuning"}, {"type": "bridge", "bridge": "cert0"}],
        "Required prevResult missing",
    ),
    (
        "chain_order",
        WRITTEN,
        "/plugins/1",
        [{"type": "bridge", "bridge": "cert0"}, {"type": "ptp", "ipam": IPAM}],
        "already exists",
    ),
    (
        "bridge_two_subnets",
        WRITTEN,
        "/plugins/0/ipam/ranges/1/0",
        [bridge("cert1", "10.64.0.0/24", "10.65.0.0/24")],
        "already has an IP address different from 10.65.0.1/24",
    ),
    (
        "gateway_outside",
        GIVEN,
        "/plugins/0/ipam/routes/0/gw",
        [{"type": "bridge", "bridge": "cert2", "ipam": {**IPAM, "routes": [{"dst": "0.0.0.0/0", "gw": "10.9.0.1"}]}}],
        "network is unreachable",
    ),
    ("route_twice", GIVEN, "/plugins/0/ipam/routes/0", [TWICE], "file exists"),
    (
        "schema",
        GIVEN,
        "/plugins/0/ipam/addresses/0",
        [{"type": "ptp", "ipam": {"type": "static", "addresses": [{"address": "10.64.0.9/24"}]}}],
        "failed to add IP addr",
    ),
    ("plugin_twice", GIVEN, "/plugins/2", [{"type": "ptp", "ipam": IPAM}, LIMITS, LIMITS], "file exists"),
]


@pytest.mark.parametrize(("code", "place", "pointer", "plugins", "fails"), CERTAIN, ids=[row[4] for row in CERTAIN])
def test_what_never_works_is_refused_and_plugins_fail_without_the_refusal(
    host, refuse, conf_dir, netns, code, place, pointer, plugins, fails
):
    certain = network("certain", *plugins)
    place = f"{conf_dir}/{place}" if place == WRITTEN else place
    refuse(code, [place, pointer, "every ADD fails"], [certain])

    host.run("cni_conf", networks=[certain], validate=["syntax"])
    attachment = {"network": "certain", "container_id": "certain", "netns": netns}
    failed = host.fail("cni_attach", attachments=[attachment])
    assert fails in failed["attachments"][0]["error"]["message"]
