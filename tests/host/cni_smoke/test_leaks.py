# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.podwire.cni.tests.host.host import sh


def test_what_a_plugin_without_del_leaves_is_reported_and_removed(host, write, host_local, left):
    ipam = host_local(subnet="10.54.0.0/24")
    plugin = {"type": "leaky", "bridge": "pwsleak0", "isGateway": True, "ipMasq": True, "ipam": ipam}
    write(30, "pwsleaky", [plugin])
    sh("ip link add pwsleak0 address 02:00:00:00:00:46 type bridge")
    leaked = host.fail("cni_smoke", networks=["pwsleaky"])
    assert leaked["code"] == "smoke_failed"
    assert not leaked["changed"]
    assert left("pwsleaky") == ""
    assert sh("ip -brief link show master pwsleak0") == ""
    (row,) = leaked["networks"]
    assert row["status"] == "failed"
    assert row["add"] == row["del"] == "passed"
    assert row["error"]["code"] == "leaked"
    assert {leak["kind"] for leak in row["leaks"]} == {"lease", "link", "rule"}
    assert [leak["removed"] for leak in row["leaks"]] == [True] * len(row["leaks"])
    # Of both containers.
    assert len([leak for leak in row["leaks"] if leak["kind"] == "link"]) == 4
    first, second = (leak["id"] for leak in row["leaks"] if leak["kind"] == "lease")
    assert row["ips"] == [f"{first}/24"]
    assert second != first
