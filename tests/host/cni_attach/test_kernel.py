# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What others do to an attachment in the kernel is drift, also if the plugins' CHECK does not see it."""

from __future__ import annotations

import re

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh


def web(network, **capability_args):
    return {"network": network, "container_id": "web", "netns": "pwa-web", "capability_args": capability_args}


def mapped(network):
    return web(network, portMappings=[{"hostPort": 18080, "containerPort": 80, "protocol": "tcp"}])


def do(script):
    """Run a script in which ``$port`` is the container's port of the bridge."""
    sh(rf"""
        port=$(ip -o link show | sed -nE 's/^[0-9]+: (veth[0-9a-f]+)@.* master pwa.*/\1/p')
        {script}""")


@pytest.fixture
def see(host, attach):
    """Return a function that expects drift in the words of the module and of cni_info."""

    def look(attachment, difference, reason):
        reported = attach(attachment)
        assert not reported["changed"]
        assert reported["attachments"][0]["action"] == "drifted"
        assert reported["attachments"][0]["reason"] == reason
        (warning,) = (warning for warning in reported["warnings"] if "/eth0 has drifted" in warning)
        # Otherwise the warning is that of CHECK, in the plugin's words.
        assert reason == "check" or re.search(difference, warning)
        (found,) = host.run("cni_info", gather=["kernel"])["kernel"]["attachments"]
        assert re.search(difference, "; ".join(found["differences"]))

    return look


@pytest.fixture
def as_added(host):
    """Return a function that expects an attachment without drift."""

    def look():
        (found,) = host.run("cni_info", gather=["kernel"])["kernel"]["attachments"]
        assert found["differences"] == []

    return look


@pytest.fixture
def detach(attach):
    """Return a function that detaches and expects that no rule is left."""

    def run(attachment):
        attach({**attachment, "state": "absent"})
        assert not re.search("-j CNI-[0-9a-f]", sh("iptables-save; ip6tables-save"))

    return run


# What is done, and the words of the difference.
DRIFT = [
    ("ip -n pwa-web route delete default", "the route to 0.0.0.0/0 .*is gone"),
    ("ip link set $port down", "the host's interface veth[0-9a-f]+ is down"),
    ("iptables --table nat --flush POSTROUTING", "its masquerading rules are gone"),
    ("ip6tables --table nat --flush POSTROUTING", "its masquerading rules are gone"),
    # A DEL of bridge does not find the lost addresses then, and would leave the rules that it has made for them.
    ("ip -n pwa-web link set eth0 down", "the interface eth0 is down"),
    ("ip -n pwa-web address flush dev eth0", "on eth0 is gone"),
]


def test_drift_is_put_back(attach, change, as_added, detach):
    attachment = mapped("pwademo")
    (first,) = attach(attachment)["attachments"]
    for script in ("ip link set $port nomaster", *dict(DRIFT)):
        do(script)
        results = change([attachment], None, ["repaired"], on_drift="repair")
        assert {(step["kind"], step["class"]) for step in results.run["actions"]} == {("repair", "safe")}, script
        assert results.run["attachments"][0]["result"] == first["result"]
        as_added()
    detach(attachment)


def test_drift_without_a_footprint_is_seen_and_repaired(attach, change, see, as_added, detach, forget_footprints):
    """One kind after the other, because each ADD with both families and port mappings takes long."""
    attachment = mapped("pwademo")
    attach(attachment)
    forget_footprints()
    do("ip link set $port nomaster")
    see(attachment, "is no longer a port of pwademo0", "kernel")
    # A repair is the same whatever has drifted; what differs is what is found.
    results = change([attachment], ["repair"], ["repaired"], on_drift="repair")
    assert [step["class"] for step in results.run["actions"]] == ["disruptive"]
    as_added()
    for script, difference in DRIFT:
        forget_footprints()
        do(script)
        see(attachment, difference, "kernel")
        assert attach(attachment, on_drift="repair")["attachments"][0]["action"] == "repaired", script
        as_added()
    detach(attachment)


@pytest.mark.parametrize("footprints", [True, False])
def test_lost_rules_of_port_mappings_are_drift(attach, see, as_added, detach, footprints, forget_footprints):
    attachment = mapped("pwamap")
    attach(attachment)
    if not footprints:
        forget_footprints()
    do("iptables --table nat --flush CNI-HOSTPORT-DNAT")
    see(attachment, "the rules of its port mappings are gone", "kernel")
    assert attach(attachment, on_drift="repair")["attachments"][0]["action"] == "repaired"
    as_added()
    detach(attachment)


def test_what_sbr_moves_is_not_drift(attach):
    attachment = web("pwasbr")
    attach(attachment)
    assert not attach(attachment, on_drift="fail")["changed"]
    attach({**attachment, "state": "absent"})
