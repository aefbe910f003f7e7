# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Readiness reports what will break a network that works."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh

NETWORKD = """
mkdir -p /run/systemd/netif /etc/systemd/network; touch /run/systemd/netif/state
printf '[Match]\\nName=*\\n[Network]\\nDHCP=yes\\n' >/etc/systemd/network/90-all.network
"""
CASES = [
    ("taken_over", NETWORKD, "rm -r /run/systemd/netif /etc/systemd/network/90-all.network", "90-all.network"),
    (
        "forwarding_reset",
        "mkdir -p /etc/sysctl.d; echo net.ipv4.ip_forward=0 >/etc/sysctl.d/zz-pw.conf",
        "rm /etc/sysctl.d/zz-pw.conf",
        "zz-pw.conf, line 1",
    ),
    (
        "two_firewalls",
        "iptables-legacy -A INPUT -s 192.0.2.9 -j ACCEPT; iptables-nft -A INPUT -s 192.0.2.9 -j ACCEPT",
        "iptables-legacy -F INPUT; iptables-nft -D INPUT -s 192.0.2.9 -j ACCEPT",
        "192.0.2.9",
    ),
]


@pytest.mark.parametrize(("code", "make", "undo", "shown"), CASES, ids=[case[0] for case in CASES])
def test_what_ends_a_network_later_is_a_warning(node, code, make, undo, shown):
    sh(make)
    try:
        obstacles = [row for row in node.readiness()["obstacles"] if row["code"] == code]
        assert obstacles
        assert {row["level"] for row in obstacles} == {"warning"}
        assert any(shown in row["evidence"] for row in obstacles)
        assert node.explain().row["ready"] is True
    finally:
        sh(undo)
    assert code not in [row["code"] for row in node.readiness()["obstacles"]]
