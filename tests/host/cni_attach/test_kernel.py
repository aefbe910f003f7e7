# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What others do to an attachment in the kernel is drift, also if the plugins' CHECK does not see it."""

from __future__ import annotations

import re

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh


def mapped(network):
    ports = {"portMappings": [{"hostPort": 18080, "containerPort": 80, "protocol": "tcp"}]}
    return {"network": network, "container_id": "web", "netns": "pwa-web", "capability_args": ports}


def do(script):
    """Run a script in which ``$port`` is the container's port of the bridge."""
    sh(rf"""
        port=$(ip -o link show | sed -nE 's/^[0-9]+: (veth[0-9a-f]+)@.* master pwa.*/\1/p')
        {script}""")


def differences(host):
    (found,) = host.run("cni_info", gather=["kernel"])["kernel"]["attachments"]
    return found["differences"]


@pytest.fixture
def see(host, attach):
    """Return a function that expects drift in the words of the module and of cni_info."""

    def look(attachment, difference):
        reported = attach(attachment)
        assert not reported["changed"]
        assert reported["attachments"][0]["action"] == "drifted"
        assert reported["attachments"][0]["reason"] == "kernel"
        (warning,) = (warning for warning in reported["warnings"] if "/eth0 has drifted" in warning)
        assert re.search(difference, warning)
        assert re.search(difference, "; ".join(differences(host)))

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


def test_drift_without_a_footprint_is_seen_and_repaired(host, attach, change, see, detach, forget_footprints):
    """One kind after the other, because each ADD with both families and port mappings takes long."""
    attachment = mapped("pwademo")
    attach(attachment)
    forget_footprints()
    do("ip link set $port nomaster")
    see(attachment, "is no longer a port of pwademo0")
    # A repair is the same whatever has drifted; what differs is what is found.
    results = change([attachment], ["repair"], ["repaired"], on_drift="repair")
    assert [step["class"] for step in results.run["actions"]] == ["disruptive"]
    assert differences(host) == []
    for script, difference in DRIFT:
        forget_footprints()
        do(script)
        see(attachment, difference)
        assert attach(attachment, on_drift="repair")["attachments"][0]["action"] == "repaired", script
        assert differences(host) == []
    detach(attachment)


def test_lost_rules_of_port_mappings_are_drift(attach, see, detach, forget_footprints):
    attachment = mapped("pwamap")
    attach(attachment)
    forget_footprints()
    do("iptables --table nat --flush CNI-HOSTPORT-DNAT")
    see(attachment, "the rules of its port mappings are gone")
    detach(attachment)
