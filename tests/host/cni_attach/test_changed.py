# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh


def web(host_port, netns="pwa-web"):
    mapping = {"hostPort": host_port, "containerPort": 80, "protocol": "tcp"}
    return {"network": "pwademo", "container_id": "web", "netns": netns, "capability_args": {"portMappings": [mapping]}}


@pytest.fixture(autouse=True)
def _attached(attach):
    attach(web(18061))


def test_another_port(change):
    ran = change([web(18062)], ["repair"], ["repaired"]).run
    assert ran["attachments"][0]["reason"] == "capability_args"
    assert "18061" not in sh("iptables-save; ip6tables-save")
    assert "18062" in sh("iptables-save; ip6tables-save")


def test_another_namespace(change):
    ran = change([web(18061, "pwa-db")], ["repair"], ["repaired"]).run
    assert ran["attachments"][0]["reason"] == "netns"
    assert sh("ip -n pwa-web link show type veth") == ""
    assert sh("ip -n pwa-db link show eth0 type veth")


def test_the_same_network_in_another_layout_and_the_same_namespace_by_a_link(
    host, attach, networks, write_network, work
):
    write_network("pwademo", networks["pwademo"], indent=8)
    unclean = host.fail("cni_attach", attachments=[web(18061, "/run/netns/../netns/pwa-web")])
    assert unclean["code"] == "path_not_clean"
    (work / "link-to-namespace").symlink_to("/run/netns/pwa-web")
    assert not attach(web(18061, str(work / "link-to-namespace")))["changed"]


def test_another_configuration(change, networks, write_network):
    assert "18061" in sh("iptables-save; ip6tables-save")
    write_network("pwademo", networks["pwademo"][:1])
    ran = change([web(18061)], ["repair"], ["repaired"]).run
    assert ran["attachments"][0]["reason"] == "config"
    # What only the old configuration had is gone.
    assert "18061" not in sh("iptables-save; ip6tables-save")


def test_an_attachment_is_detached_without_its_configuration(change, work):
    (work / "net.d" / "10-pwademo.conflist").unlink()
    change([{"network": "pwademo", "container_id": "web", "state": "absent"}], ["del"], ["deleted"])
