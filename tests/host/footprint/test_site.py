# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Footprints on a site with more than one container, with rules of others, and with damaged notes."""

from __future__ import annotations

import json
import os
import subprocess
import threading

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.footprints import state
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.state import read_spaces
from ansible_collections.podwire.cni.plugins.module_utils._host.netns import Netns
from ansible_collections.podwire.cni.tests.host.footprint import pictures
from ansible_collections.podwire.cni.tests.host.footprint.chains import BOTH, BRIDGE_NAME, CHAINS
from ansible_collections.podwire.cni.tests.host.footprint.site import links
from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.tools import sample

# How often a busy site is read; the documentation tells of 1,000.
LOOKS = sample.number("LOOKS", 100, 20)
CALLS = 10


def repair(site, targets, reasons=()):
    """Expect that what was broken is reported, and put back in place by the steps *targets*; return the results."""
    wanted = [container.wanted for container in site.containers]
    reported = site.run(check_mode=True)
    assert not reported["changed"]
    drift = " ".join(text for text in reported["warnings"] if "drifted" in text)
    assert [word for word in reasons if word not in drift] == [], drift
    results = site.host.change("cni_attach", site.picture, attachments=wanted, on_drift="repair")
    steps = results.run["actions"]
    assert {step["class"] for step in steps} == {"safe"}
    assert [step["target"] for step in steps] == targets
    for result in (results.again, results.check_again):
        assert [text for text in result.get("warnings", []) if "drifted" in text] == []
    assert site.dead() == []
    return results


def targets_of(*containers):
    return ["/".join(container.key) for container in containers]


# ---- no false alarm


class Visitor:
    """Another container that comes and goes on the same bridge, by plugins that somebody else runs."""

    def __init__(self, site):
        self._site = site
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.visits = 0
        self.errors = []

    def __enter__(self):
        sh("ip netns add pwf-visitor")
        self._thread.start()
        return self

    def __exit__(self, *_exception):
        self._stop.set()
        self._thread.join()
        sh("ip netns delete pwf-visitor")

    def _run(self):
        ipam = {"type": "host-local", "dataDir": str(self._site.work / "visits")}
        bridge = {"type": "bridge", "bridge": BRIDGE_NAME, "isGateway": True}
        plugins = [
            {**bridge, "ipMasq": True, "ipam": {**ipam, "subnet": "10.88.0.0/16", "rangeStart": "10.88.9.1"}},
            {"type": "ptp", "ipMasq": True, "ipam": {**ipam, "subnet": "10.99.0.0/24"}},
        ]
        try:
            while not self._stop.is_set():
                for number, plugin in enumerate(plugins):
                    conf = {"cniVersion": "1.0.0", "name": "visits", **plugin}
                    self._call("ADD", conf, number)
                    sh("ip netns exec pwf-visitor ping -c 1 -W 1 10.88.0.2", check=False)
                    self._call("DEL", conf, number)
                    self.visits += 1
        except (AssertionError, subprocess.SubprocessError) as error:
            self.errors.append(error)

    def _call(self, verb, conf, number):
        environment = {
            **os.environ,
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": f"visitor-{number}",
            "CNI_NETNS": "/run/netns/pwf-visitor",
            "CNI_IFNAME": f"eth{number}",
            "CNI_PATH": str(self._site.plugins),
        }
        program = self._site.plugins / conf["type"]
        done = subprocess.run(
            [program], input=json.dumps(conf), env=environment, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("generation", BOTH)
def test_an_untouched_site_is_not_reported(attached, generation):
    site = attached("full", generation=generation)
    (container,) = site.containers
    footprints = [container.footprint(), *site.shared(container.key[0])]
    wanted = state.wanted_keys([(container.path, footprint) for footprint in footprints])
    with Visitor(site) as visitor:
        for _look in range(LOOKS):
            look = read_spaces(wanted, [Netns(container.path)])
            for place, footprint in zip((container.path, "", ""), footprints):
                drift = state.Drift(container.key, footprint, place)
                state.compare(look, drift)
                assert drift.differences == []
        for _call in range(CALLS):
            result = site.run(check_mode=True, on_drift="fail")
            assert {row["action"] for row in result["attachments"]} == {"none"}
            assert [text for text in result.get("warnings", []) if "drifted" in text] == []
    assert visitor.errors == []
    assert visitor.visits > 2
    assert site.dead() == []


# ---- rules of others


def rules(chain, table="nat"):
    """Return the rules of a chain, those of others as their comment."""
    lines = sh(f"iptables-save -t {table}").splitlines()
    found = [line for line in lines if line.startswith(f"-A {chain} ")]
    return [line.partition("--comment ")[2].split()[0] if "other-" in line else line for line in found]


def put_other(name, chain, table="nat"):
    match = f"-s 203.0.113.9 -m comment --comment other-{name}"
    sh(f"iptables -t {table} -A {chain} {match} -j RETURN -c 5 55")


def test_rules_of_others_between_ours_keep_their_places(attached):
    """Others have put rules between ours before the last ADD, so their order is known."""
    site = attached("full", "ctr")
    put_other("middle", "POSTROUTING")
    put_other("middle", "CNI-FORWARD", table="filter")
    other = site.add_container("more", capability_args={})
    result = site.run(attachments=[other.wanted])
    other.row = result["attachments"][0]
    before = rules("POSTROUTING"), rules("CNI-FORWARD", "filter"), rules("FORWARD", "filter")
    assert "other-middle" in before[0][1:-1] and "other-middle" in before[1][1:-1]
    expected = ["shared firewall rules and forwarding", *targets_of(*site.containers)]

    # They are flushed, and the others put back theirs first.
    sh("iptables -t nat -F POSTROUTING; iptables -F CNI-FORWARD")
    site.put_other_rules()
    put_other("middle", "POSTROUTING")
    put_other("middle", "CNI-FORWARD", table="filter")
    reported = site.run(check_mode=True, on_drift="repair")
    assert [step["target"] for step in reported["actions"]] == [
        target for target in expected if target in {step["target"] for step in reported["actions"]}
    ]
    repair(site, [step["target"] for step in reported["actions"]])
    assert (rules("POSTROUTING"), rules("CNI-FORWARD", "filter"), rules("FORWARD", "filter")) == before

    # Only ours are lost: the others are not touched, as their counters show.
    for line in before[0]:
        if not line.startswith("other") and "pwf-other" not in line:
            sh(f"iptables -t nat -D{line[2:]}")
    counters = sh("iptables-save -c | grep other-")
    repair(site, [step["target"] for step in site.run(check_mode=True, on_drift="repair")["actions"]])
    assert rules("POSTROUTING") == before[0]
    assert sh("iptables-save -c | grep other-") == counters


@pytest.mark.parametrize("chain", ["portmap-nft", "bridge-masq-nft"])
def test_rules_of_others_in_tables_of_nftables_are_kept(attached, chain):
    site = attached(chain)
    family, table = ("ip", "cni_hostport") if chain == "portmap-nft" else ("inet", "cni_plugins_masquerade")
    name = "masquerading" if chain == "portmap-nft" else "masq_checks"
    sh(f"nft insert rule {family} {table} {name} ip saddr 203.0.113.9 counter packets 5 bytes 55 comment others")
    listed = json.loads(sh(f"nft -j -a list chain {family} {table} {name}"))["nftables"]
    ours = [entry["rule"]["handle"] for entry in listed if "rule" in entry][1:]
    assert ours
    for handle in ours:
        sh(f"nft delete rule {family} {table} {name} handle {handle}")
    actions = site.run(check_mode=True, on_drift="repair")["actions"]
    repair(site, [step["target"] for step in actions])
    assert "packets 5 bytes 55" in sh(f"nft list chain {family} {table} {name}")


def test_a_table_that_cannot_be_put_back_holds_back_no_other(new_site):
    site = new_site("bridge-masq-nft")
    conflist = site.chain.conflist(site.leases)
    conflist["plugins"].append({"type": "portmap", "backend": "nftables", "capabilities": {"portMappings": True}})
    site.write_network(conflist)
    site.add_container("ctr", capability_args=dict(CHAINS["portmap"].capability_args))
    site.attach()
    other = "add chain ip cni_hostport prerouting { type nat hook prerouting priority 50; }"
    sh(f"nft flush ruleset; nft 'add table ip cni_hostport; {other}'")
    assert site.call(on_drift="repair")["code"] == "repair_failed"
    assert "masquerade" in sh("nft list table inet cni_plugins_masquerade")


# ---- what attachments share


@pytest.mark.parametrize("generation", BOTH)
def test_a_deleted_bridge_comes_back_under_two_attachments(attached, generation):
    site = attached("bridge-dual-masq", "ctr", "more", generation=generation)
    before, indexes = site.picture(), links()
    sh(f"ip link delete {BRIDGE_NAME}")
    repair(site, ["pwf-bridge-dual-masq", *targets_of(*site.containers)], ["pwf0", "is gone"])
    assert links() == indexes
    assert pictures.differences(before, site.picture()) == []


def test_what_is_shared_is_not_repaired_without_leave(attached):
    """Without the class safe, a lost gateway stays lost, and is reported."""
    site = attached("bridge")
    sh(f"ip address delete 10.88.0.1/16 dev {BRIDGE_NAME}")
    before = site.picture()
    left = site.run(on_drift="repair", classes=["disruptive"])
    assert not left["changed"]
    assert [step["target"] for step in left["left"]] == ["pwf-bridge"]
    failing = site.call(on_drift="fail")
    assert failing["failed"] and failing["code"] == "drifted"
    assert site.picture() == before


def test_what_is_shared_and_cannot_be_put_back_fails_the_module(attached):
    site = attached("bridge")
    path = "/proc/sys/net/ipv4/ip_forward"
    sh(f"echo 0 >{path}; mount --bind {path} {path}; mount -o remount,bind,ro {path}")
    options = {"attachments": [site.containers[0].wanted], "on_drift": "repair"}
    try:
        results = [site.call(**options), site.host.attempt("cni_host", attachments=options)]
    finally:
        sh(f"umount {path}")
    for result in results:
        assert (result["code"], result["changed"]) == ("repair_failed", False)
        assert "net.ipv4.ip_forward is 0, want 1" in result["msg"]


def test_a_sysctl_is_recorded_where_it_is_unusual(new_site):
    """Most namespaces start with the same sysctls, so the defaults of one tell what to read in the others."""
    site = new_site("bridge", "new")
    conflist = site.chain.conflist(site.leases)
    conflist["plugins"].append({"type": "tuning", "sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "0"}})
    site.write_network(conflist)
    first, second = site.add_container("ctr"), site.add_container("more")
    sh("ip netns exec pwf-more sysctl -q -w net.ipv4.conf.default.arp_filter=1 net.ipv6.conf.default.hop_limit=9")
    site.attach()
    key = ("conf4", "eth0", "arp_filter")
    # What tuning is told to set is needed, whatever it was before.
    assert first.footprint().inside[key].value == 0
    assert second.footprint().inside[key].value == 0
    assert ("conf6", "eth0", "hop_limit") not in second.footprint().inside
    sh("ip netns exec pwf-more sysctl -q -w net.ipv4.conf.eth0.arp_filter=1")
    repair(site, targets_of(second), ["net.ipv4.conf.eth0.arp_filter is 1, want 0"])


@pytest.mark.parametrize(
    ("name", "path", "usual"),
    [
        ("net.ipv4.conf.eth0.arp_filter", "net.ipv4.conf.eth0.arp_filter", "0"),
        ("net.ipv4.conf.IFNAME.arp_filter", "net.ipv4.conf.eth0.arp_filter", "0"),
        ("net.core.somaxconn", "net.core.somaxconn", "4096"),
    ],
)
@pytest.mark.parametrize("is_usual", [True, False])
def test_a_sysctl_that_tuning_is_told_to_set(new_site, name, path, usual, is_usual):
    site = new_site("bridge", "new")
    wanted, other = (usual, "1") if is_usual else ("1", usual)
    conflist = site.chain.conflist(site.leases)
    conflist["plugins"].append({"type": "tuning", "sysctl": {name: wanted}})
    site.write_network(conflist)
    container = site.add_container("ctr")
    site.attach()
    sh(f"ip netns exec pwf-ctr sysctl -q -w {path}={other}")
    repair(site, targets_of(container), [f"{path} is {other}, want {wanted}"])
    assert sh(f"ip netns exec pwf-ctr sysctl -n {path}").strip() == wanted


def test_a_sysctl_of_neighbours_that_tuning_is_told_to_set(new_site):
    """No footprint has it, but CHECK knows."""
    site = new_site("bridge", "new")
    conflist = site.chain.conflist(site.leases)
    conflist["plugins"].append({"type": "tuning", "sysctl": {"net.ipv4.neigh.IFNAME.gc_stale_time": "77"}})
    site.write_network(conflist)
    site.add_container("ctr")
    site.attach()
    assert not site.run(check_mode=True).get("warnings")
    sh("ip netns exec pwf-ctr sysctl -q -w net.ipv4.neigh.eth0.gc_stale_time=60")
    assert "gc_stale_time" in " ".join(site.run(check_mode=True)["warnings"])


def test_an_interface_whose_index_the_host_has_too(attached):
    """It is made in the namespace of its parent, where another interface has its index."""
    site = attached("macvlan")
    index = links("pwf-ctr")["eth0"]
    if index not in links().values():
        sh(f"ip link add pwf-same index {index} type bridge")
    before = site.picture()
    sh("ip -n pwf-ctr link delete eth0")
    assert {step["class"] for step in site.run(on_drift="repair")["actions"]} == {"safe"}
    assert links("pwf-ctr")["eth0"] == index
    assert site.dead() == []
    assert pictures.differences(before, site.picture()) == []
