# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh

PORTS = {"portMappings": [{"hostPort": 18068, "containerPort": 80, "protocol": "tcp"}]}


@pytest.mark.parametrize("network", ["pwamap", "pwasbr"])
def test_a_check_that_can_never_pass_is_a_warning(attach, change, generation, network):
    web = {"network": network, "container_id": "web", "netns": "pwa-web"}
    if network == "pwamap":
        # No plugin of the other network reads them.
        web["capability_args"] = PORTS
    results = change([web], ["add"], ["added"], check="always")

    # portmap of 1.1.1 looks for rules of the family that the container has no address of; sbr moves the routes that
    # bridge looks for.
    codes = ["check_unusable"] if network == "pwasbr" or generation == "old" else []
    (first,), (again,) = results.run["attachments"], results.again["attachments"]
    assert [warning["code"] for warning in first["warnings"]] == codes
    assert again["warnings"] == first["warnings"]
    for result in (results.run, results.again):
        assert len([text for text in result.get("warnings", []) if "check_unusable" in text]) == len(codes)

    if network == "pwamap":
        # What CHECK says of something else is drift all the same.
        sh("ip -n pwa-web address flush dev eth0")
        drifted = attach(web, check="always")
        assert not drifted["changed"]
        assert drifted["attachments"][0]["action"] == "drifted"
    change([{"network": network, "container_id": "web", "state": "absent"}], ["del"], ["deleted"])


def test_a_failed_add_is_cleaned_up_and_tells_no_secret(host, attach, bridge, write_network, files, leases):
    secret = {"type": "tuning", "token": "very-secret-token", "sysctl": {"net.core.very-secret-token": "1"}}
    write_network("pwafail", [bridge("pwafail0", "10.70.0.0/24"), secret])
    failing = host.fail(
        "cni_attach",
        attachments=[
            {"network": "pwafail", "container_id": "web", "netns": "pwa-web"},
            {"network": "pwatwo", "container_id": "db", "netns": "pwa-db"},
        ],
    )
    assert failing["changed"]
    assert failing["code"] == "add_failed"
    assert [row["action"] for row in failing["attachments"]] == ["failed", "added"]
    assert failing["attachments"][0]["error"]["plugin"] == "tuning"
    assert "tuning" in failing["attachments"][0]["error"]["message"]
    assert [step["state"] for step in failing["actions"]] == ["failed", "done"]
    assert "very-secret-token" not in json.dumps(failing)
    # What the first plugin did is undone.
    assert sh("ip -n pwa-web link show type veth") == ""
    assert sh("ip -n pwa-db link show eth0")
    assert (leases / "pwafail").is_dir()
    assert [path for path in files() if "10.70" in path.name or "pwafail" in path.name] == []
    attach({"network": "pwatwo", "container_id": "db", "state": "absent"})


def test_a_failed_del_keeps_the_attachment(host, attach, bridge, write_network, fakes):
    write_network("pwastubborn", [bridge("pwastub0", "10.71.0.0/24"), {"type": "stubborn"}])
    attach({"network": "pwastubborn", "container_id": "web", "netns": "pwa-web"})
    gone = {"network": "pwastubborn", "container_id": "web", "state": "absent"}
    (fakes / "be-stubborn").touch()
    failing = host.fail("cni_attach", attachments=[gone])
    assert failing["code"] == "del_failed"
    assert "not now" in failing["attachments"][0]["error"]["stderr"]
    assert not failing["changed"]
    (fakes / "be-stubborn").unlink()
    assert attach(gone)["attachments"][0]["action"] == "deleted"
