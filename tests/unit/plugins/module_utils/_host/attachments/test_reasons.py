# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The reasons of the steps of cni_attach, and what their diffs show."""

from __future__ import annotations

import json

from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import (
    MAIN,
    META,
    kinds,
    web,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.explained import reasons

WEB = "/run/netns/web"
LATER = "known after the ADD"


def shown(plan):
    """Return both sides of the only diff."""
    (entry,) = plan.diff()
    return entry["before"], entry["after"]


def test_an_attachment_is_shown_without_its_configuration(attach_host):
    plan = attach_host.run(web(args={"K": "v"}))
    assert reasons(plan) == ["not attached"]
    assert shown(plan) == ("", {"network": "demo", "netns": WEB, "args": {"K": "v"}, "ips": LATER})
    plan = attach_host.run(web(state="absent"))
    assert reasons(plan) == ["state is absent"]
    assert shown(plan) == ({"network": "demo", "netns": WEB, "args": {"K": "v"}, "ips": ["10.1.0.2/24"]}, "")


def test_a_repair_is_one_step(attach_host):
    attach_host.run(web())
    attach_host.namespaces[WEB][1].discard("eth0")
    plan = attach_host.run(web())
    (step,) = plan.actions()
    assert (step["class"], step["reason"]) == ("disruptive", "eth0 is gone")
    assert step["parts"] == [{"kind": "del"}, {"kind": "add"}]
    assert [verb for verb, *_rest in attach_host.calls] == ["DEL"] * 2 + ["ADD"] * 2 + ["CHECK"] * 2
    assert shown(plan) == ({"is": "eth0 is gone", "ips": ["10.1.0.2/24"]}, {"is": "attached", "ips": LATER})


def test_only_the_part_of_the_network_that_has_changed_is_shown(attach_host):
    attach_host.network(plugins=[dict(MAIN, mtu=1450), META])
    attach_host.run(web())
    attach_host.network(plugins=[dict(MAIN, mtu=1500), {"type": "ipam"}, META])
    plan = attach_host.run(web())
    assert reasons(plan) == ["the network has changed: plugin ipam is missing; main: mtu 1450, want 1500"]
    before, after = shown(plan)
    assert before["config"]["plugins"][0] == {"type": "main", "mtu": 1450}
    assert after["config"]["plugins"][0] == {"type": "main", "mtu": 1500}
    assert set(before) == set(after) == {"config", "ips"}
    assert set(before["config"]) == {"plugins"}


def test_a_changed_secret_of_a_network(attach_host):
    attach_host.network(plugins=[dict(MAIN, token="hunter2222"), META])
    attach_host.run(web())
    attach_host.network(plugins=[dict(MAIN, token="hunter3333"), META])
    plan = attach_host.check(web())
    assert reasons(plan) == ["the network has changed: a secret differs"]
    assert "hunter" not in json.dumps(plan.diff() + plan.actions())


def test_arguments_are_named_without_their_values(attach_host):
    args = {"K": "hunter2222", "SAME": "x"}
    attach_host.run(web(args=args, capability_args={"portMappings": [], "same": 1}))
    plan = attach_host.check(web(args={"K": "hunter3333", "SAME": "x", "NEW": "y"}))
    assert reasons(plan) == ["args differ: K, NEW"]
    plan = attach_host.check(web(args=args, capability_args={"same": 2}))
    assert reasons(plan) == ["capability_args differ: portMappings, same"]
    # To Python, 1 and True are equal.
    plan = attach_host.check(web(args=args, capability_args={"portMappings": [], "same": True}))
    assert reasons(plan) == ["capability_args differ: same"]


def test_addresses_that_a_repair_asked_for_are_not_an_argument_of_the_user(attach_host):
    attach_host.network(plugins=[dict(MAIN, capabilities={"ips": True, "x": True})])
    attach_host.run(web())
    attach_host.namespaces[WEB][1].discard("eth0")
    attach_host.run(web())
    assert reasons(attach_host.check(web(capability_args={"x": 1}))) == ["capability_args differ: x"]


def test_what_became_of_the_namespace(attach_host):
    attach_host.run(web())
    attach_host.namespace("web", inode=2)
    assert reasons(attach_host.check(web())) == ["its namespace was recreated"]
    del attach_host.namespaces[WEB]
    assert reasons(attach_host.check(web())) == ["its namespace is gone"]
    attach_host.namespace("other", inode=3)
    assert reasons(attach_host.check(web(netns="other"))) == [f"it is attached in {WEB}, want /run/netns/other"]


def test_what_check_and_the_kernel_say(attach_host):
    attach_host.run(web())
    attach_host.broken["CHECK", "meta"] = "no such rule"
    assert reasons(attach_host.check(web(), on_drift="repair")) == ["CHECK failed (plugin meta: no such rule)"]
    attach_host.broken["CHECK", "meta"] = "x" * 1000
    (reason,) = reasons(attach_host.check(web(), on_drift="repair"))
    assert (len(reason), reason[-4:]) == (200, "x...")
    attach_host.broken.clear()
    attach_host.addresses.clear()
    plan = attach_host.check(web(), on_drift="repair")
    assert reasons(plan) == ["the address 10.1.0.2/24 on eth0 is gone"]
    assert shown(plan) == ({"is": "drifted", "ips": ["10.1.0.2/24"]}, {"is": "attached", "ips": LATER})


def test_all_detachments_of_a_container_come_before_its_repairs_and_additions(attach_host):
    names = ["eth0", "eth1", "eth2", "eth3"]
    attach_host.run(*[web(ifname=name) for name in names])
    attach_host.namespaces[WEB][1].difference_update(["eth1"])
    entries = [web(ifname=name, state="absent" if name in ("eth0", "eth2") else "present") for name in [*names, "eth4"]]
    attach_host.namespace("web", links=("lo", "eth0", "eth2", "eth3"))
    assert kinds(attach_host.run(*entries)) == [
        ("del", "demo/web/eth2"),
        ("del", "demo/web/eth0"),
        ("repair", "demo/web/eth1"),
        ("add", "demo/web/eth4"),
    ]
