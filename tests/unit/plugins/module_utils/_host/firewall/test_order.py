# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Places of rules, and rules that are in no set: what reading whole dumps does not tell apart."""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import order
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.chains import CHAIN, FoundChains
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.owners import FoundRules

KEY = (CHAIN, "iptables-nft", "ipv4", "filter", "FORWARD")


def test_rules_that_others_have_moved_tell_a_place_if_nothing_else_does():
    assert order.places(["ours", "first", "second"], ["ours"], ["second", "first"]) == [(1, "ours")]


def test_only_rules_that_are_there_and_in_no_set_are_unknown():
    chains = FoundChains()
    chains.chains[KEY] = SimpleNamespace(rules=["-j there"])
    recorded = [(*KEY, "-j there"), (*KEY, "-j gone"), (*KEY[:-1], "INPUT", "-j there")]
    assert FoundRules(chains).unknown(recorded) == [(*KEY, "-j there")]
