# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import random

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.podwire.cni.plugins.filter.cni_summary import cni_summary, outcome

SAFE, DISRUPTIVE, FOREIGN = (
    {"kind": "write", "class": name, "target": f"/etc/cni/net.d/{name}", "section": "networks"}
    for name in ("safe", "disruptive", "foreign")
)
DONE, PLANNED, LEFT_OUT = ({"state": state} for state in ("done", "planned", "left_out"))
LEASE = {"kind": "lease", "id": "10.0.0.2", "network": "pods", "reason": "dead", "action": "deleted"}
LEAK = "lease 10.0.0.2 of pods (dead)"
KEPT = {"kept": {"attachment": 1, "rule": 3}, "live": {"namespaces": 1}}
INSPECTED = "inspected 1 attachment, 2 leases, 3 sets of rules in 1 network namespace"


@pytest.mark.parametrize(
    ("result", "planned", "says"),
    [
        ({}, False, ("unchanged", "")),
        ({"skipped": True}, False, ("unchanged", "")),
        ({"plan": [FOREIGN]}, False, ("unchanged", "")),
        (
            {"plan": [SAFE | DONE, SAFE | DONE, DISRUPTIVE | DONE]},
            False,
            ("changed", "write disruptive (disruptive), write safe, write safe"),
        ),
        ({"plan": [SAFE | PLANNED]}, False, ("would change", "write safe")),
        (
            {"plan": [SAFE | PLANNED] * 5},
            False,
            ("would change", "write safe, write safe, write safe, and 2 more (2 safe)"),
        ),
        ({"actions": [SAFE]}, True, ("would change", "write safe")),
        (
            {"plan": [SAFE | LEFT_OUT], "left": [DISRUPTIVE]},
            False,
            ("unchanged", "left: write disruptive (disruptive)"),
        ),
        (
            {"plan": [], "before": {"pods": "passed"}, "after": {"pods": "failed"}},
            False,
            ("unchanged", "tested before: pods passed; tested after: pods failed"),
        ),
        ({"unreachable": True, "msg": "no\nroute"}, False, ("unreachable", "no route")),
        ({"failed": True, "msg": "bad"}, False, ("failed", "bad")),
        ({"failed": True}, False, ("failed", "the task failed without a message")),
        ({"failed": True, "msg": "x" * 300}, False, ("failed", "x" * 199 + "…")),
        ({"collected": [], **KEPT}, False, ("no leaks to collect", INSPECTED.replace("2 leases, ", ""))),
        ({"collected": [LEASE, LEASE], **KEPT}, False, ("leaks collected", f"{LEAK}, {LEAK}; {INSPECTED}")),
        (
            {"collected": [LEASE, LEASE | {"action": "left"}], **KEPT},
            True,
            ("leaks to collect", f"{LEAK}; {INSPECTED}; left: {LEAK}"),
        ),
        ({"collected": [], "failed": True, "msg": "no source"}, False, ("failed", "no source")),
        ({"collected": []}, False, ("no leaks to collect", "inspected nothing in 0 network namespaces")),
        ({"networks": []}, False, ("no networks", "")),
        (
            {"networks": [{"network": "a", "status": "passed"}, {"network": "b", "status": "skipped"}]},
            False,
            ("passed", "a passed, b skipped"),
        ),
        ({"networks": [{"network": "a", "status": "planned"}]}, True, ("would be tested", "a planned")),
        (
            {"failed": True, "networks": [{"network": "a", "status": "failed", "error": {"message": "no"}}]},
            False,
            ("failed", "a failed: a: no"),
        ),
        ({"failed": True, "networks": [], "msg": "not root"}, False, ("failed", "not root")),
        ({"readiness": {"ready": True}}, False, ("ready", "")),
        (
            {
                "readiness": {
                    "ready": True,
                    "runtimes": [{"runtime": "crio", "network": "pods"}, {"runtime": "podman", "network": None}],
                }
            },
            False,
            ("ready", "crio with pods"),
        ),
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
    assert cni_summary(results) == [
        "db: unchanged",
        "Web1: unreachable: x",
        "web9: changed: write safe",
        "web10: unchanged",
        "4 hosts: 2 unchanged, 1 unreachable, 1 changed",
    ]
    assert cni_summary({"a": {}})[-1] == "1 host: 1 unchanged"
    leaks = {"a": {"collected": [LEASE]}, "b": {"collected": [LEASE, LEASE]}, "c": {"collected": []}}
    assert cni_summary(leaks, planned=True)[-1] == "3 hosts: 2 with leaks to collect, 1 without leaks to collect"


OBSTACLE = {"level": "warning", "code": "c", "message": "m", "evidence": "e", "remedy": "r"}
ERROR = OBSTACLE | {"level": "error", "message": "n"}


def test_what_several_hosts_have_in_common_is_one_line_the_worst_first():
    # A task with a loop, as the result has it.
    looped = {"changed": False, "results": [{"item": "host", "readiness": {"obstacles": [OBSTACLE, ERROR]}}]}
    lines = cni_summary({f"web{number}": looped for number in range(1, 6)}, lines=False, total=False)
    who = "web1, web2, web3 and 2 more"
    assert lines == [f"{who}: error: n [c]. Seen: e. Remedy: r", f"{who}: warning: m [c]. Seen: e. Remedy: r"]
    many = {f"web{number}": {"cautions": [f"[x] {number}"]} for number in range(200)}
    lines = cni_summary(many, lines=False)
    assert len(lines) == 12 and lines[0] == "web0: [x] 0" and lines[-2].startswith("and 190 more")


CLASSES = '{"cni_remediate_classes": ["safe", "disruptive"]}'


def test_what_a_repair_has_left_has_a_command():
    results = {"a": {"before": [], "left": [DISRUPTIVE]}, "b": {"before": [], "left": []}}
    assert cni_summary(results, lines=False, total=False, inventory=["hosts.yml"]) == [
        "a: left: write disruptive (disruptive)",
        f"to repair what is left: ansible-playbook podwire.cni.remediate --limit a -e '{CLASSES}' -i hosts.yml",
    ]


def test_no_host_forges_a_line():
    lines = cni_summary({"a": {"failed": True, "msg": "x\n5 hosts: 5 unchanged\x1b[2J"}, "b\nc": {}})
    assert len(lines) == 3 and all(line.isprintable() for line in lines)


@pytest.mark.parametrize("arguments", [([],), ({}, False, True, True, "x"), (5,)])
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
