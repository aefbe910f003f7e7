# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import change, owners
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.chains import Chain, FoundChains
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.owners import RuleOwner, RuleSet


def ruleset(name, backend="iptables-nft", family="ipv4", unclear=""):
    return RuleSet(backend, family, "ipmasq", name, RuleOwner("net", name), unclear=unclear)


JUMP = '-s 10.77.0.2/32 -m comment --comment "name: \\"net-a\\" id: \\"web1\\"" -j CNI-550bca792007a5271a5dd6e3'


@pytest.fixture
def found():
    """What was read: the same set in each backend of iptables and family."""
    read = FoundChains()
    for backend in ("iptables-nft", "iptables-legacy"):
        for family in ("ipv6", "ipv4"):
            read.chains["chain", backend, family, "nat", "POSTROUTING"] = Chain("ACCEPT", [JUMP])
            read.chains["chain", backend, family, "nat", "CNI-550bca792007a5271a5dd6e3"] = Chain("-", [])
    return read


def problems_of(read):
    return [(entry.code, entry.level) for entry in owners.group_rules(read).problems]


def test_everything_is_read_and_sorted(found):
    grouped = owners.group_rules(found)
    assert [(one.backend, one.family) for one in grouped.sets] == [
        ("iptables-legacy", "ipv4"),
        ("iptables-legacy", "ipv6"),
        ("iptables-nft", "ipv4"),
        ("iptables-nft", "ipv6"),
    ]
    assert {one.owner.container_id for one in grouped.sets} == {"web1"}
    assert not grouped.problems


def test_what_cannot_be_read_is_told(found):
    found.unread["iptables-nft", "ipv4"] = HostError("iptables-nft-save failed: exit status 4", code="command_failed")
    assert problems_of(found) == [("rules_unreadable", "warning")]
    message = owners.group_rules(found).problems[0].message
    assert message == "cannot read iptables-nft ipv4: iptables-nft-save failed: exit status 4"


# Without iptables, or with a table that it cannot show, nft shows its chains.
SHOWN_BY_NFT = ("chain", "nftables", "ip", "nat", "CNI-HOSTPORT-DNAT")


def test_a_missing_tool_is_a_problem_only_where_the_kernel_has_something(found):
    missing = HostError("ip6tables-save is not installed", code="rules_tool_missing")
    found.unread["iptables-nft", "ipv4"] = found.unread[("nftables",)] = missing
    assert problems_of(found) == []
    found.chains[SHOWN_BY_NFT] = Chain({}, [])
    assert problems_of(found) == [("rules_tool_missing", "warning")]
    # Of legacy, that is unread only if the kernel has tables of it.
    found.unread = {("iptables-legacy", "ipv6"): missing}
    del found.chains[SHOWN_BY_NFT]
    assert problems_of(found) == [("rules_tool_missing", "warning")]


def test_a_table_that_iptables_cannot_show_is_a_problem_only_with_chains_of_cni(found):
    found.unread["iptables-nft", "ipv4", "nat"] = HostError("it hides all", code="rules_incompatible")
    assert problems_of(found) == []
    found.chains[SHOWN_BY_NFT] = Chain({}, [])
    assert problems_of(found) == [("rules_unreadable", "warning")]


class Removals:
    """Stands for the writer; `bad` are the names of sets that cannot be removed."""

    def __init__(self, monkeypatch, *bad):
        self.bad = bad
        self.groups = []
        monkeypatch.setattr(change, "change", self.remove)

    def remove(self, drop):
        self.groups.append([one.name for one in drop])
        for one in drop:
            if one.name in self.bad:
                raise HostError(one.name, code="rules_changed")


def test_sets_of_one_place_go_together(monkeypatch):
    removals = Removals(monkeypatch)
    sets = [
        ruleset("a"),
        ruleset("b", family="ipv6"),
        ruleset("c"),
        ruleset("d", "iptables-legacy"),
        ruleset("e", "nftables", "inet"),
        ruleset("f", "nftables", "ipv4"),
    ]
    assert change.drop_rules(sets) == {}
    assert removals.groups == [["a", "c"], ["b"], ["d"], ["e", "f"]]


def test_one_that_cannot_go_keeps_no_other(monkeypatch):
    removals = Removals(monkeypatch, "b")
    errors = change.drop_rules([ruleset("a"), ruleset("b"), ruleset("c")])
    assert {key: error.msg for key, error in errors.items()} == {ruleset("b").key: "b"}
    assert removals.groups == [["a", "b", "c"], ["a"], ["b"], ["c"]]


def test_what_is_unclear_is_never_removed(monkeypatch):
    removals = Removals(monkeypatch)
    errors = change.drop_rules([ruleset("a", unclear="why"), ruleset("b")])
    assert {key: error.code for key, error in errors.items()} == {ruleset("a").key: "rules_unclear"}
    assert removals.groups == [["b"]]
