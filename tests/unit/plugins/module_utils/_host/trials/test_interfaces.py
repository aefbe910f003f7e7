# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which interfaces the ADD of a test has made, and which of them are left in its namespace."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Key
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import Attached
from ansible_collections.podwire.cni.plugins.module_utils._host.netlink import Link
from ansible_collections.podwire.cni.plugins.module_utils._host.trials import trial
from ansible_collections.podwire.cni.plugins.module_utils.libcni.conf import network_conf_from_bytes


def config(*plugins):
    return network_conf_from_bytes(json.dumps({"cniVersion": "1.0.0", "name": "demo", "plugins": plugins}).encode())


class Kernel:
    """The interfaces of the host and of the container."""

    def __init__(self, monkeypatch):
        self.host = {1: self.link(1, "lo"), 2: self.link(2, "uplink")}
        self.inside = {1: self.link(1, "lo")}
        self.deleted = []
        monkeypatch.setattr(trial.netlink, "links", lambda: dict(self.host))
        monkeypatch.setattr(trial.netlink, "delete_link", self.delete)
        monkeypatch.setattr(trial, "visit", lambda spaces, work: {one.path: dict(self.inside) for one in spaces})

    def link(self, index, name, kind="veth", link=0, master=0, abroad=False):
        return Link(index, name, kind, link, master, True, abroad)

    def add(self, index, name, **more):
        self.host[index] = self.link(index, name, **more)

    def add_inside(self, index, name, **more):
        self.inside[index] = self.link(index, name, **more)

    def delete(self, index, name):
        self.deleted.append((index, name))
        del self.host[index]


@pytest.fixture
def kernel(monkeypatch):
    return Kernel(monkeypatch)


def attached(*interfaces):
    made = {"interfaces": [{"name": name} for name in interfaces]}
    return Attached(Key("demo", "web", "eth0"), config({"type": "bridge"}), "/run/netns/web", [], {}, made)


def made(found):
    return {key[1]: recorded.ifindex for key, recorded in found.made.items()}


def test_interfaces_of_the_result_and_other_ends_are_of_the_add(kernel):
    found = trial.Container(attached())
    kernel.add(5, "named")
    kernel.add(6, "otherend")
    kernel.add(7, "cni0", kind="bridge")
    kernel.add(8, "bystander")
    # Both ends are in the container.
    kernel.add(9, "neighbour")
    kernel.add_inside(3, "eth0", link=6, abroad=True)
    kernel.add_inside(4, "eth1", link=9)
    found.note(attached("named", "cni0", "uplink"))
    assert made(found) == {"named": 5, "otherend": 6, "cni0": 7}


def test_what_was_there_before_stays(kernel):
    kernel.add(5, "named")
    kernel.add_inside(3, "eth0", link=2, abroad=True)
    found = trial.Container(attached())
    found.note(attached("named"))
    assert made(found) == {}


def test_an_interface_inside_is_reported_and_ends_with_its_namespace(kernel):
    found = trial.Container(attached())
    kernel.add_inside(4, "eth1")
    kernel.add_inside(3, "eth0")
    rows = found.left_inside()
    assert [(row["id"], row["message"], row["removed"]) for row in rows] == [
        ("eth0", "the interface eth0 is still in the container", True),
        ("eth1", "the interface eth1 is still in the container", True),
    ]
    assert kernel.deleted == []


@pytest.mark.parametrize("interfaces", [None, 7, "x", [None, 7, "x"], [{}]])
def test_results_that_make_no_sense(kernel, interfaces):
    found = trial.Container(attached())
    kernel.add(5, "new")
    found.note(attached().changed(result={"interfaces": interfaces}))
    assert made(found) == {}


def test_a_namespace_that_is_gone(kernel, monkeypatch):
    monkeypatch.setattr(trial, "visit", lambda paths, work: {})
    assert trial.Container(attached()).left_inside() == []


def test_new_bridges_without_ports_are_removed(kernel):
    kernel.add(3, "old", kind="bridge")
    before = dict(kernel.host)
    kernel.add(4, "cni0", kind="bridge")
    kernel.add(5, "br1", kind="bridge")
    kernel.add(6, "used", kind="bridge")
    kernel.add(7, "port", master=6)
    kernel.add(8, "foreign", kind="bridge")
    kernel.add(9, "nobridge")
    bridges = [{"type": "bridge", "bridge": name} for name in ("old", "br1", "used", "nobridge")]
    network = config({"type": "bridge"}, *bridges, {"type": "tuning", "bridge": "foreign"})
    trial.remove_new_bridges(network, before)
    assert kernel.deleted == [(4, "cni0"), (5, "br1")]
