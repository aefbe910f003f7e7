# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.podwire.cni.plugins.module_utils._host.plan import SAFE
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import (
    actions,
    kinds,
    web,
)


def test_a_repair_is_left_and_another_container_is_attached(attach_host):
    attach_host.run(web())
    attach_host.namespaces["/run/netns/web"][1].discard("eth0")
    attach_host.namespace("db", 2)
    other = {"network": "demo", "container_id": "db", "netns": "db"}
    plan = attach_host.check(web(), other, on_drift="repair")
    plan.restrict([SAFE])
    assert kinds(plan) == [("add", "demo/db/eth0")]
    assert [(step.kind, step.target) for step in plan.left] == [("repair", "demo/web/eth0")]
    assert actions(plan) == ["left", "added"]
    assert plan.outcomes[0].row()["ips"] == ["10.1.0.2/24"]


def test_what_is_missing_waits_for_the_rest_of_its_container(attach_host):
    attach_host.run(web())
    attach_host.namespaces["/run/netns/web"][1].discard("eth0")
    plan = attach_host.check(web(), web(ifname="eth1"), on_drift="repair")
    plan.restrict([SAFE])
    assert (kinds(plan), actions(plan)) == ([], ["left", "left"])
    assert plan.outcomes[1].row()["ips"] == []
