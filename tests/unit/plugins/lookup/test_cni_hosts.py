# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible.errors import AnsibleLookupError
from ansible.inventory import manager
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible.utils.context_objects import CLIArgs

from ansible_collections.podwire.cni.plugins.lookup import cni_hosts as module

GROUPS = {"all": ["web1", "web2", "db1"], "ungrouped": [], "web": ["web1", "web2"], "empty": []}


@pytest.fixture(autouse=True)
def _mismatch(monkeypatch):
    # ansible-test sets it to error.
    monkeypatch.setattr(manager.C, "HOST_PATTERN_MISMATCH", "warning")


def looked_up(variables, **options):
    loader = DataLoader()
    plugin = module.LookupModule(loader=loader, templar=Templar(loader=loader, variables=variables))
    return plugin.run([], variables, **options)


def hosts(groups=None, **variables):
    given = {name: trust_as_template(value) if isinstance(value, str) else value for name, value in variables.items()}
    default = given.pop("default", None)
    given["groups"] = GROUPS if groups is None else groups
    (pattern,) = looked_up(given, why="trying changes hosts", **({"default": default} if default else {}))
    return pattern


@pytest.mark.parametrize(
    ("variables", "pattern"),
    [
        ({"cni_hosts": "web"}, "web"),
        ({"cni_hosts": "web", "default": "all"}, "web"),
        ({"cni_hosts": ["web1", "db1"]}, "web1,db1"),
        ({"cni_hosts": "{{ group }}", "group": "web"}, "web"),
        ({"cni_hosts": "web:!web1"}, "web:!web1"),
        ({"cni_hosts": "nope,db1"}, "nope,db1"),
        ({"cni_hosts": "localhost"}, "localhost"),
        ({"cni_hosts": "web", "ansible_limit": "web2,db1"}, "web"),
        ({"default": "all"}, "all"),
        ({"cni_hosts": "", "default": "all"}, "all"),
    ],
)
def test_hosts_that_are_named_are_used(variables, pattern):
    assert hosts(**variables) == pattern


@pytest.mark.parametrize("named", [{}, {"cni_hosts": ""}, {"cni_hosts": None}, {"cni_hosts": []}])
def test_limit_is_accepted_in_place_of_cni_hosts(named):
    assert hosts(**named, ansible_limit="web1") == "all"


@pytest.mark.parametrize("named", [{}, {"cni_hosts": ""}, {"cni_hosts": None}, {"cni_hosts": []}])
def test_missing_cni_hosts_is_one_sentence(named):
    with pytest.raises(AnsibleLookupError) as caught:
        hosts(**named)
    assert str(caught.value) == "trying changes hosts; name them: -e cni_hosts=PATTERN or --limit PATTERN"


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"cni_hosts": "noeds"}, "cni_hosts=noeds"),
        ({"cni_hosts": "empty"}, "cni_hosts=empty"),
        ({"cni_hosts": "web:!web"}, "cni_hosts=web:!web"),
        ({"cni_hosts": "noeds", "default": "all"}, "cni_hosts=noeds"),
        ({"cni_hosts": "web", "ansible_limit": "db1"}, "cni_hosts=web with --limit db1"),
        ({"ansible_limit": "empty"}, "--limit empty"),
    ],
)
def test_zero_matching_hosts_is_a_failure(variables, said):
    with pytest.raises(AnsibleLookupError, match="check the pattern against the inventory") as caught:
        hosts(**variables)
    assert f"no host matched {said};" in str(caught.value)


@pytest.mark.parametrize("named", ["noeds", "nope,db1"])
def test_a_pattern_that_ansible_refuses_is_one_sentence(monkeypatch, named):
    monkeypatch.setattr(manager.C, "HOST_PATTERN_MISMATCH", "error")
    with pytest.raises(AnsibleLookupError) as caught:
        hosts(cni_hosts=named)
    assert str(caught.value).startswith(f"cni_hosts={named}: Could not match supplied host pattern")
    assert "check the pattern against the inventory" in str(caught.value)


def test_an_inventory_without_hosts_is_a_failure():
    with pytest.raises(AnsibleLookupError, match=r"the inventory has no hosts; .*-i INVENTORY"):
        hosts(groups={"all": [], "ungrouped": []}, default="all")


@pytest.mark.parametrize("option", ["syntax", "listhosts", "listtasks", "listtags"])
def test_a_playbook_can_be_shown_without_hosts(monkeypatch, option):
    monkeypatch.setattr(module.context, "CLIARGS", CLIArgs({option: True}))
    assert hosts() == "all"
    assert hosts(cni_hosts="nope", groups={}) == "nope"


def rollout(**variables):
    return looked_up({"groups": GROUPS, "cni_hosts": "web", **variables}, canaries=True)


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({}, ["web"]),
        ({"cni_canary": ""}, ["web"]),
        ({"cni_canary": "web2"}, ["web2"]),
        ({"cni_canary": "web2\ndb1"}, ["web2"]),
        ({"cni_canary": "web2", "cni_canary_passed": "false"}, ["web2"]),
        ({"cni_canary": "web2", "cni_canary_passed": "true"}, ["web1"]),
        ({"cni_canary": "web2", "cni_canary_passed": True, "ansible_limit": "web1,db1"}, ["web1"]),
        # A slice of canaries only has nothing to do.
        ({"cni_canary": "web2", "cni_canary_passed": True, "ansible_limit": "web2"}, ["all:!all"]),
    ],
)
def test_canaries_go_first_and_are_left_out_once_they_have_passed(variables, found):
    assert rollout(**variables) == found


@pytest.mark.parametrize(
    ("variables", "warns"),
    [
        ({}, False),
        ({"ansible_limit": "web"}, True),
        # Each of the hosts that pull runs alone.
        ({"ansible_limit": "web1"}, False),
        ({"cni_canary_passed": True}, True),
        ({"cni_canary": "web1", "ansible_limit": "web"}, False),
    ],
)
def test_a_part_of_the_hosts_without_canaries_is_pointed_out(monkeypatch, variables, warns):
    said = []
    monkeypatch.setattr(module.Display, "warning", lambda _self, text, **_options: said.append(text))
    rollout(**variables)
    assert ["cni_canary is not set" in text for text in said] == [True] * warns


def test_a_job_of_canaries_that_has_none_of_them_fails():
    with pytest.raises(AnsibleLookupError, match="no host matched cni_hosts=web with cni_canary=db1; run the job"):
        rollout(cni_canary="db1")


@pytest.mark.parametrize("mismatch", ["warning", "error"])
def test_a_pattern_of_canaries_without_hosts_is_named(monkeypatch, mismatch):
    monkeypatch.setattr(manager.C, "HOST_PATTERN_MISMATCH", mismatch)
    with pytest.raises(AnsibleLookupError, match=r"cni_canary=wbe2.*; check the pattern against the inventory"):
        rollout(cni_canary="wbe2")
    said = []
    monkeypatch.setattr(module.Display, "warning", lambda _self, text, **_options: said.append(text))
    # It may be a slice whose inventory has no canaries.
    assert rollout(cni_canary="wbe2", cni_canary_passed=True) == ["web1", "web2"]
    assert "cni_canary=wbe2" in said[-1] and "No host is left out" in said[-1]


RESULTS = {
    "web1": {"failed": True},
    # A task with a loop.
    "web2": {"changed": False, "results": [{"fail": "it has drifted"}]},
    "db1": {"fail": ""},
}


@pytest.mark.parametrize(
    ("results", "options", "found"),
    [
        (RESULTS, {"after": "result"}, ["web2"]),
        (RESULTS, {"failing": "result"}, ["web2"]),
        (RESULTS, {"expand": True}, ["web1", "web2", "db1"]),
        ({}, {"after": "result"}, ["web1"]),
        ({}, {"failing": "result"}, ["all:!all"]),
    ],
)
def test_later_plays_have_only_the_hosts_that_they_need(results, options, found):
    variables = {"groups": GROUPS, "hostvars": {host: {"result": result} for host, result in results.items()}}
    assert looked_up(variables, default="all", **options) == found
