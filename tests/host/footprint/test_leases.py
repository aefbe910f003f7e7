# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Leases of host-local that are lost, or name another owner, while the container still uses the address."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.host.footprint.chains import BOTH, BRIDGE_NAME
from ansible_collections.podwire.cni.tests.host.footprint.site import give, links
from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import host_local


class Leased:
    """A site, and the leases of its first container."""

    def __init__(self, site):
        self.site = site
        self.container = site.containers[0]
        self.leases = self.leases_of(self.container)
        self.lease = self.leases[0]
        self.texts = [lease.read_bytes() for lease in self.leases]

    def leases_of(self, container):
        return [self.site.leases / container.wanted["network"] / address for address in container.addresses]

    def repair(self):
        """Repair all; return the classes of the steps, and the addresses of the container after it."""
        reported = self.site.run(check_mode=True)
        assert not reported["changed"]
        assert "lease of" in " ".join(reported["warnings"])
        wanted = [container.wanted for container in self.site.containers]
        results = self.site.host.change("cni_attach", self.site.picture, attachments=wanted, on_drift="repair")
        for result in (results.again, results.check_again):
            assert [text for text in result.get("warnings", []) if "drifted" in text] == []
        return {step["class"] for step in results.run["actions"]}, results.run["attachments"][0]["ips"]

    def expect_put_back(self):
        assert self.repair() == ({"safe"}, self.container.row["ips"])
        assert [lease.read_bytes() for lease in self.leases] == self.texts
        assert self.site.dead() == []

    def expect_another_address(self):
        """Two containers must not keep one address."""
        other, bridge = self.lease.read_bytes(), links()[BRIDGE_NAME]
        classes, addresses = self.repair()
        assert (classes, self.lease.read_bytes(), links()[BRIDGE_NAME]) == ({"disruptive"}, other, bridge)
        assert addresses[0] != self.container.row["ips"][0]


@pytest.mark.parametrize("generation", BOTH)
@pytest.mark.parametrize("how", ["lost", "of a dead container"])
def test_a_lease(attached, generation, how):
    leased = Leased(attached("bridge", generation=generation))
    leased.lease.unlink()
    if how != "lost":
        give(leased.lease, "gone")
    leased.expect_put_back()


@pytest.mark.parametrize("ifname", ["net1", "net2", ""])
def test_a_lease_of_another_interface_of_the_container(attached, ifname):
    """The container has one of them, with an address of its own."""
    site = attached("bridge")
    conflist = site.chain.conflist(site.leases)
    ipam = host_local("10.89.0.0/16", dataDir=str(site.leases))
    site.write_network({**conflist, "name": "pwf-second", "plugins": [{"type": "ptp", "ipam": ipam}]})
    site.run(attachments=[{**site.containers[0].wanted, "network": "pwf-second", "ifname": "net1"}])
    leased = Leased(site)
    give(leased.lease, leased.container.container_id, ifname)
    leased.expect_put_back()


def test_an_empty_lease(attached):
    """As after a power loss."""
    leased = Leased(attached("bridge"))
    give(leased.lease, "", "")
    leased.expect_put_back()


@pytest.mark.parametrize("how", ["detached", "killed"])
def test_a_lease_of_a_container_that_has_ended(attached, how):
    site = attached("bridge")
    leased = Leased(site)
    sh("ip netns add pwf-more")
    wanted = {**leased.container.wanted, "container_id": "more", "netns": "pwf-more"}
    site.run(attachments=[wanted])
    give(leased.lease, "more")
    if how == "detached":
        site.run(attachments=[{**wanted, "state": "absent"}])
        assert not leased.lease.exists()
    sh("ip netns delete pwf-more")
    leased.expect_put_back()


@pytest.mark.parametrize("spelling", ["datadir", "DATADIR"])
def test_a_store_whose_key_is_spelled_as_only_go_reads_it(new_site, spelling):
    site = new_site("bridge")
    conflist = site.chain.conflist(site.leases)
    ipam = conflist["plugins"][0]["ipam"]
    ipam[spelling] = ipam.pop("dataDir")
    site.write_network(conflist)
    site.add_container("ctr")
    site.attach()
    leased = Leased(site)
    give(leased.lease, "gone")
    leased.expect_put_back()


@pytest.mark.parametrize("family", [0, 1])
def test_two_families_of_which_one_has_moved(attached, family):
    leased = Leased(attached("bridge-dual-masq"))
    give(leased.leases[family], "gone")
    leased.expect_put_back()


# ---- conflicts


def test_a_lease_of_a_live_container(attached):
    leased = Leased(attached("bridge", "ctr", "more"))
    give(leased.lease, leased.site.containers[1].container_id)
    leased.expect_another_address()


@pytest.mark.parametrize("owner", [("starting", "eth0"), ("pwf-ctr-0001", "net1")])
def test_a_lease_that_was_given_a_moment_ago(attached, owner):
    """Its container, or its ADD, may be about to start."""
    leased = Leased(attached("bridge"))
    give(leased.lease, *owner, age=0)
    leased.expect_another_address()


def test_an_address_that_another_namespace_has(attached):
    leased = Leased(attached("bridge"))
    give(leased.lease, "gone")
    sh(f"ip netns add pwf-thief; ip -n pwf-thief address add {leased.container.addresses[0]}/32 dev lo")
    try:
        leased.expect_another_address()
    finally:
        sh("ip netns delete pwf-thief")
