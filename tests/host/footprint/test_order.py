# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The order of rules: a jump behind a DROP lets nothing through, although it is there."""

from __future__ import annotations

import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.store import AttachmentStore
from ansible_collections.podwire.cni.tests.host.footprint.chains import BOTH
from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.records import records, shared_file

DROP = "-s 203.0.113.0/24 -j DROP"


def forward():
    return [line.partition("-A FORWARD ")[2] for line in sh("iptables -S FORWARD").splitlines() if "-A FORWARD" in line]


def jump():
    (rule,) = (rule for rule in forward() if rule.endswith("-j CNI-FORWARD"))
    return rule


@pytest.fixture
def site(new_site):
    def make(generation="new"):
        site = new_site("firewall", generation)
        sh(f"iptables -A FORWARD {DROP}")
        site.add_container("ctr")
        site.attach()
        return site

    return make


def move_behind():
    rule = jump()
    sh(f"iptables -D FORWARD {rule}; iptables -A FORWARD {rule}")
    assert forward().index(rule) > forward().index(DROP)


@pytest.mark.parametrize("generation", BOTH)
def test_a_jump_behind_a_drop_is_drift_and_goes_back(site, generation):
    one = site(generation)
    before = forward()
    move_behind()
    for options in ({"check_mode": True}, {"check_mode": True, "on_drift": "fail"}):
        result = one.call(**options)
        assert "the rule of the chain FORWARD of the table filter (iptables-nft, ipv4) is out of order" in str(result)
    checked = one.run(check_mode=True, on_drift="repair")
    assert [(step["kind"], step["class"]) for step in checked["actions"]] == [("repair", "safe")]
    assert forward() != before
    assert one.run(on_drift="repair")["actions"] == checked["actions"]
    assert forward() == before
    assert not one.run(on_drift="fail")["changed"]
    assert not one.run(check_mode=True, on_drift="fail")["changed"]


def test_what_others_do_with_their_own_rules_is_no_drift(site):
    one = site()
    sh("iptables -I FORWARD -s 198.51.100.1 -j ACCEPT; iptables -A FORWARD -s 198.51.100.2 -j ACCEPT")
    assert not one.run(on_drift="fail")["changed"]
    others = [rule for rule in forward() if rule != jump()]
    rule = jump()
    sh("iptables -F FORWARD")
    sh("".join(f"iptables -A FORWARD {rule}\n" for rule in [rule, *reversed(others)]))
    assert not one.run(on_drift="fail")["changed"]


def test_an_attachment_that_is_made_meanwhile_does_not_accept_it(site):
    one = site()
    before = forward()
    move_behind()
    one.add_container("more")
    one.run()
    assert forward() != before
    one.run(on_drift="repair")
    assert forward() == before
    assert not one.run(on_drift="fail")["changed"]


@pytest.mark.parametrize("damaged", ["all", "shared", "order"])
def test_damaged_notes_do_not_put_a_lost_jump_behind_a_drop(site, damaged):
    one = site()
    before = forward()
    store = AttachmentStore(str(one.cache))
    shared = store.read_shared()
    for path in [*(records(one.cache) if damaged == "all" else ()), shared_file(one.cache)]:
        path.write_bytes(os.urandom(500))
    if damaged == "order":
        # As after an ADD that was recorded while the table was gone.
        shared.order.clear()
        store.write_shared(shared)
    sh(f"iptables -D FORWARD {jump()}")
    result = one.run(on_drift="repair")
    assert {step["class"] for step in result["actions"]} == {"safe"}
    assert forward() == before
    assert not one.run(on_drift="fail")["changed"]
