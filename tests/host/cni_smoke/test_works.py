# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

WORKING = ["pwsboth", "pwsmac", "pwsold", "pwsptp", "pwssbr"]


def check_working(tried):
    rows = {row["network"]: row for row in tried}
    assert [row["network"] for row in tried] == WORKING
    assert {row["status"] for row in tried} == {row["del"] for row in tried} == {"passed"}
    assert [row["leaks"] for row in tried] == [[]] * 5
    assert rows["pwsboth"]["check"] == rows["pwsboth"]["ping"] == "passed"
    assert len(rows["pwsboth"]["ips"]) == 2
    assert {row["container"] for row in tried} == {rows["pwsboth"]["published"]} == {"passed"}
    assert {row["published"] for row in tried if row["network"] != "pwsboth"} == {None}
    assert rows["pwsptp"]["ping"] == "passed"
    assert rows["pwsmac"]["ping"] is None
    no_gateway = {"code": "no_gateway", "message": "no gateway to ping: 10.48.0.1 is not an address of this host"}
    assert rows["pwsmac"]["notes"] == [no_gateway]
    assert rows["pwsold"]["check"] is None
    assert rows["pwsold"]["ping"] == "passed"
    assert rows["pwssbr"]["check"] == "unusable"
    assert rows["pwssbr"]["notes"][0]["code"] == "check_unusable"


def configure_unusual(write):
    """Configure networks that a test of all networks skips."""
    write(20, "pwsdevice", [{"type": "host-device", "device": "pwslower"}])
    ipam = {"type": "static", "addresses": [{"address": "10.51.0.2/24"}]}
    write(20, "pwsfixed", [{"type": "macvlan", "master": "pwslower", "ipam": ipam}])
    write(20, "pwsdhcp", [{"type": "macvlan", "master": "pwslower", "ipam": {"type": "dhcp"}}])
    write(20, "pwsvendor", [{"type": "vendor"}])


def test_all_networks_that_can_be_tried_work_and_a_container_stays_as_it_is(host, container, smoke, write):
    check_working(smoke()["networks"])

    configure_unusual(write)
    tried = smoke()["networks"]
    check_working(tried[:5])
    assert [(row["network"], row["status"], row["reason"], row["add"]) for row in tried[5:]] == [
        ("pwsdevice", "skipped", "takes_device", None),
        ("pwsdhcp", "skipped", "no_dhcp_daemon", None),
        ("pwsfixed", "skipped", "fixed_address", None),
        ("pwsvendor", "skipped", "third_party", None),
    ]

    repaired = host.run("cni_attach", attachments=[container])
    assert not repaired["changed"]
    assert repaired["attachments"][0]["action"] == "none"


def test_a_network_that_would_be_skipped_is_tried_by_name(smoke, write):
    configure_unusual(write)
    fixed, vendor = smoke(networks=["pwsfixed", "pwsvendor"])["networks"]
    assert (fixed["network"], fixed["status"]) == ("pwsfixed", "passed")
    assert (vendor["network"], vendor["status"]) == ("pwsvendor", "passed")
    assert fixed["ips"] == ["10.51.0.2/24"]


def test_the_networks_are_tested_as_those_of_a_pod(host, networks, smoke, write, work):
    configure_unusual(write)
    pod = {"name": "probe", "namespace": "shop", "uid": "4711", "infra_container_id": "pause"}
    assert [row["status"] for row in smoke(networks=["pwsptp", "pwsvendor"], pod=pod)["networks"]] == ["passed"] * 2
    assert (work / "vendor.args").read_text() == (
        "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=probe;K8S_POD_INFRA_CONTAINER_ID=pause;K8S_POD_UID=4711"
    )
    refused = host.fail("cni_smoke", networks=["pwsvendor"], pod={"name": "a=b"}, check_mode=True)
    assert refused["code"] == "bad_pod"
