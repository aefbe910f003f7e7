# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks whose configuration changes while containers are attached, or on which no container can ever be."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.host.cni_conf.networks import network
from ansible_collections.podwire.cni.tests.host.host import sh


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
    refuse(
        "attachments_exist", [str(path), "ctr1/eth0", "set aside"], [network("other", version="0.4.0")], exclusive=True
    )

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


IPAM = {"type": "host-local", "subnet": "10.64.0.0/24"}
TWO_SUBNETS = {"type": "host-local", "ranges": [[{"subnet": "10.64.0.0/24"}], [{"subnet": "10.65.0.0/24"}]]}
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
        [{"type": "bridge", "bridge": "cert1", "isGateway": True, "ipam": TWO_SUBNETS}],
        "already has an IP address different from 10.65.0.1/24",
    ),
    (
        "gateway_outside",
        GIVEN,
        "/plugins/0/ipam/routes/0/gw",
        [{"type": "bridge", "bridge": "cert2", "ipam": {**IPAM, "routes": [{"dst": "0.0.0.0/0", "gw": "10.9.0.1"}]}}],
        "network is unreachable",
    ),
    (
        "route_twice",
        GIVEN,
        "/plugins/0/ipam/routes/0",
        [
            {
                "type": "bridge",
                "bridge": "cert3",
                "isDefaultGateway": True,
                "ipam": {**IPAM, "routes": [{"dst": "0.0.0.0/0"}]},
            }
        ],
        "file exists",
    ),
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
