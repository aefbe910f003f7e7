# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import itertools
import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import capabilities
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import (
    META,
    actions,
    codes,
    web,
)


@pytest.fixture(autouse=True)
def paths(attach_host, monkeypatch):
    """Namespaces are where the host in memory has them."""
    attach_host.namespace("db", 2)
    monkeypatch.setattr(capabilities.os.path, "exists", lambda path: path in attach_host.namespaces)


LIMIT = {"ingressRate": 1, "ingressBurst": 1}


def port(number=9001, protocol="tcp", to=80, **more):
    return dict({"hostPort": number, "containerPort": to, "protocol": protocol}, **more)


def mapped(*ports, name="web", **more):
    return web(container_id=name, netns=name, capability_args={"portMappings": list(ports)}, **more)


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_capability_argument_that_no_plugin_declares_is_a_warning(attach_host, check_mode):
    wanted = web(capability_args={"portMappings": [port()], "bandwidth": LIMIT, "mac": "02:00:00:00:00:01"})
    plan = attach_host.plan([wanted], check_mode=check_mode)
    assert codes(plan) == ["capability_unread", "capability_unread"]
    assert [warning["code"] for warning in plan.outcomes[0].warnings] == codes(plan)
    assert "bandwidth" in next(iter(plan.warnings))[1]
    assert "declared: portMappings" in next(iter(plan.warnings))[1]
    assert actions(plan) == ["added"]


@pytest.mark.parametrize(
    ("declared", "warned"), [({"bandwidth": True}, 0), ({"bandwidth": False}, 1), ({"bandWidth": True}, 1)]
)
def test_a_capability_is_declared_by_its_exact_name_and_true(attach_host, declared, warned):
    attach_host.network(plugins=[META, {"type": "main", "capabilities": declared}])
    plan = attach_host.run(web(capability_args={"bandwidth": LIMIT}))
    assert codes(plan) == ["capability_unread"] * warned


def test_what_says_nothing_and_what_is_detached_is_not_spoken_of(attach_host):
    assert codes(attach_host.run(web(capability_args={"bandwidth": {}, "ips": [], "mac": "", "dns": None}))) == []
    assert codes(attach_host.run(web(capability_args={"bandwidth": LIMIT}, state="absent"))) == []


WILD, SOME, OTHER = {}, {"hostIP": "192.0.2.1"}, {"hostIP": "192.0.2.2"}
ANY4, ANY6, SOME6 = {"hostIP": "0.0.0.0"}, {"hostIP": "::"}, {"hostIP": "2001:db8::1"}
APART = [{SOME["hostIP"], OTHER["hostIP"]}, {SOME["hostIP"], "::"}, {SOME["hostIP"], SOME6["hostIP"]}]
APART += [{OTHER["hostIP"], "::"}, {OTHER["hostIP"], SOME6["hostIP"]}, {"0.0.0.0", "::"}, {"0.0.0.0", SOME6["hostIP"]}]


@pytest.mark.parametrize(
    ("one", "other"), list(itertools.product([WILD, {"hostIP": ""}, SOME, OTHER, ANY4, ANY6, SOME6], repeat=2))
)
def test_one_host_port_twice_within_a_request_is_a_warning(attach_host, one, other):
    apart = {one.get("hostIP"), other.get("hostIP")} in APART
    plan = attach_host.check(mapped(port(**one)), mapped(port(**other), name="db"))
    assert codes(plan) == ([] if apart else ["host_port_twice"])
    if not apart:
        assert (
            "demo/db/eth0: the host port 9001/tcp is mapped for demo/web/eth0 as well" in next(iter(plan.warnings))[1]
        )


def test_one_host_port_twice_in_an_attachment_is_a_warning(attach_host):
    assert codes(attach_host.run(mapped(port(), port(to=81)))) == ["host_port_twice"]
    assert codes(attach_host.run(mapped(port(9001.0), port(to=81)))) == ["host_port_twice"]
    for other in (port(9002, to=81), port(protocol="udp", to=81)):
        assert codes(attach_host.run(mapped(port(), other))) == []
    assert codes(attach_host.run(mapped(port(protocol="TCP"), port(to=81)))) == ["host_port_twice"]


def test_two_networks_of_a_container_may_map_a_port_to_the_same_place(attach_host):
    attach_host.network("second")
    again = mapped(port(), network="second", ifname="eth1")
    assert codes(attach_host.check(mapped(port()), again)) == []
    second = mapped(port(to=81), network="second", ifname="eth1")
    assert codes(attach_host.check(mapped(port()), second)) == ["host_port_twice"]


def test_one_host_port_twice_between_attachments_of_a_host_is_a_warning(attach_host):
    attach_host.run(mapped(port()))
    for check_mode in (True, False):
        assert codes(attach_host.plan([mapped(port(), name="db")], check_mode=check_mode)) == ["host_port_twice"]
    # What is there and stays was spoken of when it was attached.
    assert codes(attach_host.check(mapped(port(), name="db"))) == []


def test_a_port_that_a_runtime_has_mapped_is_taken(attach_host, monkeypatch, tmp_path):
    attach_host.run(mapped(port()))
    monkeypatch.setattr(capabilities, "DEFAULT_DIR", attach_host.cache_dir)
    attach_host.cache_dir = str(tmp_path / "another")
    assert codes(attach_host.check(mapped(port(), name="db"))) == ["host_port_twice"]


def test_a_port_is_free_again_where_its_attachment_goes(attach_host):
    attach_host.run(mapped(port()))
    moved = [mapped(port(), state="absent"), mapped(port(), name="db")]
    assert codes(attach_host.check(*moved)) == []
    assert codes(attach_host.run(mapped(port(9002)), mapped(port(), name="db"))) == []
    assert codes(attach_host.run(mapped(port(9003), name="db"), mapped(port(9002)))) == []


def test_a_port_of_what_a_reboot_has_left_in_the_cache_is_free(attach_host):
    attach_host.run(mapped(port()))
    del attach_host.namespaces["/run/netns/web"]
    assert codes(attach_host.check(mapped(port(), name="db"))) == []


def test_a_port_that_reaches_no_plugin_is_not_taken(attach_host):
    attach_host.network("plain", plugins=[{"type": "main"}])
    plan = attach_host.run(mapped(port(), network="plain"), mapped(port(), name="db"))
    assert codes(plan) == ["capability_unread"]


@pytest.mark.parametrize("value", [True, "x", [1], [{}], [{"hostPort": None}], [{"hostPort": "9001"}], {"hostPort": 1}])
def test_what_the_cache_has_in_another_shape_is_not_compared(attach_host, value):
    attach_host.run(mapped(port()))
    path = os.path.join(attach_host.cache_dir, "results", *attach_host.cached())
    with open(path) as stream:
        entry = json.load(stream)
    assert entry["capabilityArgs"] == {"portMappings": [port()]}
    entry["capabilityArgs"]["portMappings"] = value
    with open(path, "w") as stream:
        json.dump(entry, stream)
    assert codes(attach_host.check(mapped(port(), name="db"))) == []
