# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What an ADD takes from the host: with IPv6 forwarding, the kernel drops default routes that routers announced."""

from __future__ import annotations

import contextlib
import shutil
import socket
import struct
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.upkeep import repair_all
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.footprint import Footprint
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.object_kinds import Difference
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.repair import why_not
from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.state import Drift
from ansible_collections.podwire.cni.plugins.module_utils._host.netns import Netns, visit
from ansible_collections.podwire.cni.tests.host.host import sh, wait_until

WEB = {"network": "pwademo", "container_id": "web", "netns": "pwa-web"}
FOUR = {"network": "pwatwo", "container_id": "db", "netns": "pwa-db"}
ROUTER = Netns("/run/netns/pwa-router")
# The router has its address at once, without looking for others that have it.
UPLINK = """
ip netns add pwa-router
ip link add pwaup0 type veth peer name pwaup1 netns pwa-router
sysctl -qw net.ipv6.conf.all.forwarding=0 net.ipv6.conf.pwaup0.accept_ra=1
ip netns exec pwa-router sysctl -qw net.ipv6.conf.pwaup1.accept_dad=0
ip link set pwaup0 up
ip -n pwa-router link set pwaup1 up
"""


def default_routes():
    return sh("ip -6 route show default")


def advertise():
    """Send a router advertisement with a lifetime; False while the router has no address."""
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as router:
        router.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        with contextlib.suppress(OSError):
            return router.sendto(struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0), ("ff02::1%pwaup1", 0))


def announced():
    return visit([ROUTER], advertise)[ROUTER.path] and default_routes()


@pytest.fixture
def uplink(host):
    """A host whose IPv6 default route a router has announced."""
    sh(UPLINK)
    wait_until(announced)
    yield
    sh("ip link delete pwaup0; sysctl -qw net.ipv6.conf.all.forwarding=0")


@pytest.fixture
def detach(host):
    yield
    host.run("cni_attach", attachments=[{**one, "state": "absent"} for one in (WEB, FOUR)])


def codes(result):
    return [warning["code"] for row in result["attachments"] for warning in row["warnings"]]


def test_an_add_that_will_take_the_default_route_says_so_before(host, uplink, detach):
    before = default_routes()
    assert "proto ra" in before
    for options in ({"check_mode": True}, {"classes": ["safe"]}):
        result = host.run("cni_attach", attachments=[WEB, FOUR], **options)
        (step,) = (step for step in [*result["actions"], *result["left"]] if step["target"] == "pwademo/web/eth0")
        assert step["class"] == "disruptive"
        assert "pwaup0" in step["reason"]
        assert codes(result)[:1] == ["host_route_lost"]
        (warning,) = (text for text in result["warnings"] if "pwaup0" in text)
        assert "net.ipv6.conf.pwaup0.accept_ra=2" in warning
    # The network without IPv6 was attached, and the other one was left.
    assert [(row["action"], row["ips"] == []) for row in result["attachments"]] == [("left", True), ("added", False)]
    assert "proto ra" in default_routes()


def test_with_the_remedy_nothing_is_lost(host, uplink, detach):
    sh("sysctl -qw net.ipv6.conf.pwaup0.accept_ra=2")
    result = host.run("cni_attach", attachments=[WEB])
    assert [step["class"] for step in result["actions"]] == ["safe"]
    assert "warnings" not in result
    assert "proto ra" in default_routes()


@pytest.mark.parametrize("lasting", [True, False])
def test_what_an_add_has_taken_from_the_host_is_reported_at_once(
    host, uplink, detach, fakes, write_network, networks, lasting
):
    """Whatever a plugin takes, in the run that took it; the prediction knows only what the kernel does."""
    (fakes / "swap.sh").write_text("ip -6 route delete 2001:db8:9::/48; ip address delete 192.0.2.9/24 dev pwaup0")
    (fakes / "swap").symlink_to("/bin/bash")
    sh(f"ip -6 route add 2001:db8:9::/48 via fe80::1 dev pwaup0 {'' if lasting else 'expires 600'}")
    sh(f"ip address add 192.0.2.9/24 dev pwaup0 {'' if lasting else 'valid_lft 600 preferred_lft 600'}")
    write_network("pwatwo", [*networks["pwatwo"], {"type": "swap"}])
    result = host.run("cni_attach", attachments=[FOUR])
    (warning,) = result["warnings"]
    assert "the address 192.0.2.9/24 on pwaup0" in warning
    assert "the route to 2001:db8:9::/48 through fe80::1 on pwaup0" in warning
    again = host.run("cni_attach", attachments=[FOUR])
    assert "warnings" not in again


REMEDY = "net.ipv6.conf.pwaup0.accept_ra=2"
HOST_AGAIN = """
sysctl -qw net.ipv6.conf.all.forwarding=0 net.ipv6.conf.pwaup0.accept_ra=1
ip -6 route flush default
"""


def audited(host, cache):
    """Audit the attachments as if a runtime had made them."""
    runtime = Path("/var/lib/cni")
    shutil.copytree(cache / "results", runtime / "results")
    try:
        result = host.with_defaults(cache_dir="/run/home/none").run("cni_host", audit=True)
    finally:
        shutil.rmtree(runtime)
        shutil.rmtree("/run/podwire-cni/rehearsals")
    return result["changed"], [step["reason"] for step in result["plan"] if step["class"] == "foreign"]


def attached(host, cache):
    result = host.run("cni_attach", attachments=[WEB], on_drift="repair")
    return result["changed"], [text for text in result.get("warnings", []) if not result["changed"]]


def served(host, cache):
    done, left = repair_all(str(cache))
    return bool(done), left


@pytest.mark.parametrize("repair", [attached, audited, served])
def test_a_repair_that_would_take_the_default_route_leaves_it_and_says_the_remedy(host, uplink, detach, cache, repair):
    sh(f"sysctl -qw {REMEDY}")
    host.run("cni_attach", attachments=[WEB])
    sh(HOST_AGAIN)
    wait_until(announced)
    for _run in range(2):
        changed, sentences = repair(host, cache)
        assert not changed
        assert [REMEDY in sentence for sentence in sentences] == [True]
        assert "proto ra" in default_routes()
    message = host.fail("cni_attach", attachments=[WEB], on_drift="fail")["msg"]
    assert REMEDY in message
    assert "on_drift" not in message
    sh(f"sysctl -qw {REMEDY}")
    assert repair(host, cache) == (True, [])
    assert sh("sysctl -n net.ipv6.conf.all.forwarding").strip() == "1"
    assert "proto ra" in default_routes()


@pytest.mark.parametrize("generation", ["new"], indirect=True)
def test_the_switch_of_one_interface_takes_the_default_route_as_well(host, uplink):
    lost = Difference("", ("conf6", "pwaup1", "forwarding"), 1, 0)
    drift = Drift((), Footprint())
    drift.differences = [lost]
    assert REMEDY in why_not(drift)
    for harmless in (lost._replace(key=("conf4", "pwaup1", "forwarding")), lost._replace(was=0, now=1)):
        drift.differences = [harmless]
        assert why_not(drift) == ""
    sh("ip link add pwaup1 type bridge; sysctl -qw net.ipv6.conf.pwaup1.forwarding=1; ip link delete pwaup1")
    assert default_routes() == ""


def test_an_add_that_takes_the_default_route_is_reported(host, uplink, detach):
    result = host.run("cni_attach", attachments=[WEB])
    assert default_routes() == ""
    before, after = result["warnings"]
    assert "accept_ra=2" in before
    assert "the route to ::/0 through fe80:" in after


@pytest.mark.parametrize(
    ("ipam", "more", "arguments"),
    [
        ("host-local", {}, {"capability_args": {"ipRanges": [[{"subnet": "fd67::/64"}]]}}),
        ("static", {}, {"capability_args": {"ips": ["fd67::2/64"]}}),
        ("static", {}, {"args": {"IP": "10.67.0.2/24,fd67::2/64", "IgnoreUnknown": "1"}}),
        ("static", {"args": {"cni": {"ips": ["fd67::2/64"]}}}, {}),
    ],
)
def test_ipv6_that_comes_by_arguments_is_seen_before(
    host, uplink, detach, write_network, leases, ipam, more, arguments
):
    declared = {"ips": True, "ipRanges": True}
    plugin = {"type": "bridge", "bridge": "pwatwo0", "isGateway": True, "capabilities": declared, **more}
    store = {} if ipam == "static" else {"dataDir": str(leases)}
    write_network("pwatwo", [{**plugin, "ipam": {"type": ipam, **store}}])
    wanted = [{**FOUR, **arguments}]
    (step,) = host.run("cni_attach", attachments=wanted, check_mode=True)["actions"]
    assert step["class"] == "disruptive"
    assert host.run("cni_attach", attachments=wanted, classes=["safe"])["attachments"][0]["action"] == "left"
    assert "proto ra" in default_routes()
    host.run("cni_attach", attachments=wanted)
    # The prediction was true.
    assert default_routes() == ""
    for options in ({}, {"check_mode": True}):
        assert not host.run("cni_attach", attachments=wanted, **options)["changed"]


@pytest.mark.parametrize("generation", ["new"], indirect=True)
def test_who_else_runs_or_configures_such_a_network_is_told(host, uplink, work, networks):
    before = default_routes()
    trials = {row["network"]: row for row in host.run("cni_smoke")["networks"]}
    assert (trials["pwademo"]["status"], trials["pwademo"]["reason"]) == ("skipped", "host_route_lost")
    assert trials["pwatwo"]["status"] == "passed"
    assert default_routes().split("expires")[0] == before.split("expires")[0]
    (work / "net.d" / "10-pwademo.conflist").unlink()
    conflist = {"cniVersion": "1.0.0", "name": "pwademo", "plugins": networks["pwademo"]}
    result = host.run("cni_conf", networks=[{"conflist": conflist}], check_mode=True)
    assert "host_route_lost" in [problem["code"] for problem in result["problems"]]
