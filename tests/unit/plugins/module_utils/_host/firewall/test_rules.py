# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import iptables, nftables, rules
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.ownership import RuleOwner, RuleSet


def ruleset(name, backend="iptables-nft", family="ipv4", unclear=""):
    return RuleSet(backend, family, "ipmasq", name, RuleOwner("net", name), unclear=unclear)


@pytest.fixture
def backends(monkeypatch):
    """What each backend answers; all are there and empty."""
    answers = {}

    def read(*where):
        answer = answers.get(where, [])
        if isinstance(answer, HostError):
            raise answer
        return answer

    monkeypatch.setattr(iptables, "read_iptables", read)
    monkeypatch.setattr(nftables, "read_nftables", read)
    monkeypatch.setattr(nftables, "has_chains_of_iptables", lambda: False)
    return answers


def problems_of(found):
    return [(entry["code"], entry["level"]) for entry in found.problems]


def test_everything_is_read_and_sorted(backends):
    backends["iptables-nft", "ipv6"] = [ruleset("c", family="ipv6")]
    backends["iptables-nft", "ipv4"] = [ruleset("b"), ruleset("a")]
    backends["iptables-legacy", "ipv4"] = [ruleset("e", "iptables-legacy")]
    backends[()] = [ruleset("d", "nftables", "inet")]
    found = rules.read_rules()
    assert [one.name for one in found.sets] == ["e", "a", "b", "c", "d"]
    assert not found.problems


def test_a_backend_that_cannot_be_read_hides_no_other(backends):
    backends["iptables-nft", "ipv4"] = HostError("iptables-nft-save failed: exit status 4", code="command_failed")
    backends["iptables-nft", "ipv6"] = [ruleset("c", family="ipv6")]
    found = rules.read_rules()
    assert [one.name for one in found.sets] == ["c"]
    assert problems_of(found) == [("rules_unreadable", "warning")]
    assert found.problems[0]["message"] == "cannot read iptables-nft ipv4: iptables-nft-save failed: exit status 4"


def test_a_missing_tool_is_a_problem_only_where_the_kernel_has_something(backends, monkeypatch):
    backends["iptables-nft", "ipv4"] = None
    backends[()] = None
    assert not rules.read_rules().problems
    monkeypatch.setattr(nftables, "has_chains_of_iptables", lambda: True)
    assert problems_of(rules.read_rules()) == [("rules_tool_missing", "warning")]
    # None of legacy means that the kernel has tables of it.
    backends.clear()
    backends["iptables-legacy", "ipv6"] = None
    found = rules.read_rules()
    assert problems_of(found) == [("rules_tool_missing", "warning")]
    assert "ip6tables-save" in found.problems[0]["message"]


def test_a_table_that_iptables_cannot_show_is_a_problem_only_with_chains_of_cni(backends, monkeypatch):
    backends["iptables-nft", "ipv4"] = HostError("it hides all", code="rules_incompatible")
    assert not rules.read_rules().problems
    monkeypatch.setattr(nftables, "has_chains_of_iptables", lambda: True)
    assert problems_of(rules.read_rules()) == [("rules_unreadable", "warning")]


class Removals:
    """Stands for both backends; `bad` are the names of sets that cannot be removed."""

    def __init__(self, monkeypatch, *bad):
        self.bad = bad
        self.groups = []
        monkeypatch.setattr(iptables, "remove_iptables", self.remove)
        monkeypatch.setattr(nftables, "remove_nftables", self.remove)

    def remove(self, group):
        self.groups.append([one.name for one in group])
        for one in group:
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
    outcomes = rules.remove_all_rules(sets)
    assert removals.groups == [["a", "c"], ["b"], ["d"], ["e", "f"]]
    assert sorted(one.name for one, error in outcomes if error is None) == list("abcdef")
    assert rules.remove_all_rules([]) == []


def test_one_that_cannot_go_keeps_no_other(monkeypatch):
    removals = Removals(monkeypatch, "b")
    outcomes = rules.remove_all_rules([ruleset("a"), ruleset("b"), ruleset("c")])
    assert [(one.name, error and error.msg) for one, error in outcomes] == [("a", None), ("b", "b"), ("c", None)]
    assert removals.groups == [["a", "b", "c"], ["a"], ["b"], ["c"]]


def test_what_is_unclear_is_never_removed(monkeypatch):
    removals = Removals(monkeypatch)
    with pytest.raises(HostError, match="someone else's rule leads there") as caught:
        rules.remove_rules(ruleset("a", unclear="someone else's rule leads there"))
    assert caught.value.code == "rules_unclear"
    assert removals.groups == []
    outcomes = rules.remove_all_rules([ruleset("a", unclear="why"), ruleset("b")])
    assert [(one.name, error and error.code) for one, error in outcomes] == [("a", "rules_unclear"), ("b", None)]


def test_owners_are_completed_from_known_containers(backends):
    backends["iptables-nft", "ipv4"] = [RuleSet("iptables-nft", "ipv4", "ipmasq", "CNI-550bca792007a5271a5dd6e3")]
    found = rules.read_rules()
    found.attribute(["net-a"], ["web1"])
    assert (found.sets[0].network, found.sets[0].container_id) == ("net-a", "web1")
