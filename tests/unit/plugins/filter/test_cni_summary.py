# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import random

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.podwire.cni.plugins.filter.cni_summary import cni_summary, outcome, summaries

SAFE, DISRUPTIVE, FOREIGN = ({"kind": "write", "class": name} for name in ("safe", "disruptive", "foreign"))
DONE, PLANNED, LEFT_OUT = ({"state": state} for state in ("done", "planned", "left_out"))
LEASE = {"kind": "lease", "action": "deleted"}
KEPT = {"kept": {"attachment": 1, "rule": 3}, "live": {"namespaces": 1}}
LOOKED = "looked at 1 attachment, 2 leases, 3 sets of rules in 1 network namespace"


@pytest.mark.parametrize(
    ("result", "planned", "says"),
    [
        ({}, False, ("unchanged", "")),
        ({"skipped": True}, False, ("unchanged", "")),
        ({"plan": [FOREIGN]}, False, ("unchanged", "")),
        (
            {"plan": [SAFE | DONE, SAFE | DONE, DISRUPTIVE | DONE]},
            False,
            ("changed", "3 steps (2 safe, 1 disruptive)"),
        ),
        ({"plan": [SAFE | PLANNED]}, False, ("would change", "1 step (1 safe)")),
        ({"actions": [SAFE]}, True, ("would change", "1 step (1 safe)")),
        ({"plan": [SAFE | LEFT_OUT], "left": [SAFE, SAFE]}, False, ("unchanged", "2 steps left")),
        ({"unreachable": True, "msg": "no\nroute"}, False, ("unreachable", "no route")),
        ({"failed": True, "msg": "bad"}, False, ("failed", "bad")),
        ({"failed": True}, False, ("failed", "the task failed without a message")),
        ({"failed": True, "msg": "x" * 300}, False, ("failed", "x" * 199 + "…")),
        ({"collected": [], **KEPT}, False, ("no leaks to collect", LOOKED.replace("2 leases, ", ""))),
        ({"collected": [LEASE, LEASE], **KEPT}, False, ("leaks collected", f"2 leaks; {LOOKED}")),
        (
            {"collected": [LEASE, LEASE | {"action": "left"}], **KEPT},
            True,
            ("leaks to collect", f"1 leak; {LOOKED}; 1 leak left"),
        ),
        ({"collected": [], "failed": True, "msg": "no source"}, False, ("failed", "no source")),
        ({"collected": []}, False, ("no leaks to collect", "looked at nothing in 0 network namespaces")),
        ({"networks": []}, False, ("no networks", "")),
        (
            {"networks": [{"status": "passed"}, {"status": "skipped"}]},
            False,
            ("passed", "2 networks (1 passed, 1 skipped)"),
        ),
        ({"networks": [{"status": "planned"}]}, True, ("would be tested", "1 network (1 planned)")),
        (
            {"failed": True, "networks": [{"network": "a", "status": "failed", "error": {"message": "no"}}]},
            False,
            ("failed", "1 network (1 failed): a: no"),
        ),
        ({"failed": True, "networks": [], "msg": "not root"}, False, ("failed", "not root")),
        ({"readiness": {"ready": True}}, False, ("ready", "")),
        (
            {
                "readiness": {
                    "ready": False,
                    "obstacles": [{"level": "info", "message": "x"}, {"level": "error", "message": "y"}],
                }
            },
            False,
            ("not ready", "y"),
        ),
        ({"readiness": {"ready": None, "obstacles": [{"message": "x"}]}}, False, ("not known", "x")),
    ],
)
def test_a_result_has_an_outcome(result, planned, says):
    assert outcome(result, planned) == says


def test_hosts_come_in_their_natural_order_and_all_of_them_have_a_line():
    results = {"web10": {}, "web9": {"plan": [SAFE | DONE]}, "Web1": {"unreachable": True, "msg": "x"}, "db": {}}
    assert summaries(results, ["web10", "web9"]) == [
        "db: failed: see the errors above",
        "Web1: unreachable: x",
        "web9: changed: 1 step (1 safe)",
        "web10: unchanged",
        "4 hosts: 1 failed, 1 unreachable, 1 changed, 1 unchanged",
    ]
    assert summaries({"a": {}})[-1] == "1 host: 1 unchanged"
    leaks = {"a": {"collected": [LEASE]}, "b": {"collected": [LEASE, LEASE]}, "c": {"collected": []}}
    assert summaries(leaks, planned=True)[-1] == "3 hosts: 2 with leaks to collect, 1 without leaks to collect"


def test_no_host_forges_a_line():
    lines = cni_summary({"a": {"failed": True, "msg": "x\n5 hosts: 5 unchanged\x1b[2J"}, "b\nc": {}})
    assert len(lines) == 3 and all(line.isprintable() for line in lines)


@pytest.mark.parametrize("arguments", [([],), ({}, "x"), (5,)])
def test_misuse_is_an_error_of_the_filter(arguments):
    with pytest.raises(AnsibleFilterError, match="cni_summary"):
        cni_summary(*arguments)


@pytest.mark.parametrize("seed", range(40))
def test_data_of_any_shape_has_an_outcome(seed):
    dice = random.Random(seed)
    simple = [None, True, -1, 10**30, "", "x", [], {}, ["y"], {"class": "safe"}, {"status": ["x"]}, {"kind": {}}]
    names = ["plan", "actions", "left", "collected", "kept", "live", "networks", "readiness", "failed", "unreachable"]

    def junk(depth):
        if depth > 2 or dice.random() < 0.4:
            return dice.choice(simple)
        if dice.random() < 0.5:
            return [junk(depth + 1) for _item in range(3)]
        return {name: junk(depth + 1) for name in dice.sample([*names, "state", "class", "status", "obstacles"], 4)}

    assert len(cni_summary({"a": {name: junk(0) for name in dice.sample(names, 5)}, "b": junk(0)})) == 3
