# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import shutil

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh

WEB = {"network": "pwatwo", "container_id": "web", "netns": "pwa-web"}
DB = {"network": "pwasbr", "container_id": "db", "netns": "pwa-db"}


def test_attachments_that_lost_their_namespace_or_interface_are_attached_again(
    change, attach, namespaces, leases, forget_footprints
):
    first = change([WEB, DB], ["add"] * 2, ["added"] * 2).run["attachments"]
    namespaces("pwa-web", "pwa-db")
    again = change([WEB, DB], ["repair"] * 2, ["repaired"] * 2).run["attachments"]
    assert [row["reason"] for row in again] == ["netns"] * 2
    # The network with the capability ips is asked for the old address.
    assert again[0]["ips"] == first[0]["ips"]
    for network in ("pwatwo", "pwasbr"):
        assert len(list((leases / network).glob("10.*"))) == 1

    for known in (True, False):
        sh("ip -n pwa-web link delete eth0")
        if not known:
            forget_footprints()
        ran = change([WEB, DB], ["repair"], ["repaired", "none"]).run
        again = ran["attachments"]
        assert [row["reason"] for row in again] == ["interface", ""]
        assert [step["class"] for step in ran["actions"]] == ["safe" if known else "disruptive"]
        assert again[0]["ips"] == first[0]["ips"]

    namespaces()
    attach({**WEB, "state": "absent"}, {**DB, "state": "absent"})


def test_an_attachment_is_adopted_after_its_cache_entry_was_lost(attach, change, cache, leases):
    def look():
        (lease,) = (leases / "pwatwo").glob("10.*")
        return sh("ip -n pwa-web -oneline link show eth0"), lease.name, lease.read_text()

    (first,) = attach(WEB)["attachments"]
    before = look()
    for remove in ((cache / "results" / "pwatwo-web-eth0").unlink, lambda: shutil.rmtree(cache)):
        remove()
        (adopted,) = change([WEB], ["adopt"], ["adopted"]).run["attachments"]
        assert adopted["reason"] == "lost"
        assert adopted["ips"] == first["ips"]
        assert adopted["warnings"] == []
        assert look() == before
    attach({**WEB, "state": "absent"})


def test_an_interface_that_is_not_of_cni_is_kept(host):
    sh("ip -n pwa-web link add eth0 type bridge")
    forced = host.fail("cni_attach", attachments=[WEB], force=True)
    assert forced["code"] == "add_failed"
    assert "DEL did not run" in forced["msg"]
    refused = host.fail("cni_attach", attachments=[WEB])
    assert refused["code"] == "ifname_in_use"
    assert "force" not in refused["msg"]
    assert sh("ip -n pwa-web link show eth0 type bridge")


@pytest.mark.parametrize("footprints", [True, False])
def test_a_lost_address_is_drift(host, attach, change, footprints, forget_footprints):
    (first,) = attach(WEB)["attachments"]
    if not footprints:
        forget_footprints()
    sh("ip -n pwa-web address flush dev eth0")

    reported = attach(WEB)
    assert not reported["changed"]
    assert reported["attachments"][0]["action"] == "drifted"
    assert reported["attachments"][0]["result"] == first["result"]
    assert len([warning for warning in reported["warnings"] if "drifted" in warning]) == 1
    failing = host.fail("cni_attach", attachments=[WEB], on_drift="fail")
    assert failing["code"] == "drifted"
    assert failing["attachments"][0]["action"] == "failed"
    assert ("put it back in place" in failing["msg"]) == footprints

    ran = change([WEB], ["repair"], ["repaired"], on_drift="repair").run
    assert [step["class"] for step in ran["actions"]] == ["safe" if footprints else "disruptive"]
    parts = ["put_back"] if footprints else ["del", "add"]
    (step,) = ran["actions"]
    assert ([part["kind"] for part in step["parts"]], step.get("lost")) == (parts, ["addr"] if footprints else None)
    assert ran["attachments"][0]["reason"] == "kernel"
    assert ran["attachments"][0]["ips"] == first["ips"]
    assert first["ips"][0] in sh("ip -n pwa-web -brief address show eth0")
    attach({**WEB, "state": "absent"})


def test_a_network_too_old_for_check_is_left_alone_while_its_interface_exists(attach, change, bridge, write_network):
    write_network("pwaold", [bridge("pwaold0", "10.73.0.0/24")], version="0.3.1")
    old = {"network": "pwaold", "container_id": "web", "netns": "pwa-web"}
    change([old], ["add"], ["added"])
    sh("ip -n pwa-web link delete eth0")
    change([old], ["repair"], ["repaired"])
    attach({**old, "state": "absent"})
