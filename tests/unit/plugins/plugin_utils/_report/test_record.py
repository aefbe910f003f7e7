# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build

REASON = "bridge: mtu 1450, want 1500"
STEP = {"kind": "write", "target": "/etc/cni/net.d/10-a.conflist", "class": "safe", "reason": REASON}
ROW = {"network": "a", "container_id": "c", "ifname": "eth0", "reason": "interface"}


def head(kind="write", target=STEP["target"]):
    return {"before_header": target, "after_header": f"{kind}: {REASON}"}


@pytest.mark.parametrize(
    ("classes", "status"),
    [
        ([], "clean"),
        (["foreign"], "clean"),
        (["safe"], "drift"),
        (["foreign", "disruptive"], "drift"),
        (["harmless"], "drift"),
        ([None], "drift"),
    ],
)
def test_the_status_is_told_by_the_classes(classes, status):
    actions = [dict(STEP, **{"class": name}) for name in classes]
    record = build("h", {"networks": {"actions": actions}}, {})
    assert record["status"] == status
    assert {step["class"] for step in record["steps"]} <= {"safe", "disruptive", "foreign"}


@pytest.mark.parametrize(
    ("results", "info", "errors", "says"),
    [
        ({"plugins": {"failed": True, "msg": "bad"}}, {}, [], "bad"),
        ({"plugins": {"failed": True}}, {}, [], "the task failed without a message"),
        ({}, {"unreachable": True, "msg": "no route"}, [], "unreachable: no route"),
        ({}, {"failed": True, "msg": ["x"]}, [], "the task failed without a message"),
        ({}, None, ["undefined", ""], "undefined"),
        ({"networks": {"failed": True, "msg": "same"}}, {}, ["same"], "same"),
        ({"networks": {"failed": True, "msg": "one"}}, {}, ["other"], "other\none"),
    ],
)
def test_whatever_went_wrong_makes_an_error(results, info, errors, says):
    record = build("h", {**results, "attachments": {"actions": [STEP]}}, info, errors)
    assert (record["status"], record["error"]) == ("error", says)
    assert len(record["steps"]) == 1


def test_what_was_skipped_says_nothing():
    assert build("h", {"networks": {"skipped": True, "failed": True, "actions": [STEP]}}, {})["status"] == "clean"


def test_the_diff_goes_to_its_step():
    actions = [STEP, dict(STEP, kind="set_attributes"), dict(STEP, target="/other")]
    diff = [{**head(), "before": "1", "after": "2"}, {**head("write", "/other"), "before": None, "after": {"k": 1}}]
    steps = build("h", {"networks": {"actions": actions, "diff": diff}}, {})["steps"]
    assert [(step.get("before"), step.get("after")) for step in steps] == [("1", "2"), (None, None), (None, {"k": 1})]
    assert "before" not in steps[1]


def test_drift_that_is_only_reported_is_a_step():
    warnings = [{"code": "x", "message": "y"}, {"code": "drifted", "message": "a/c/eth0 has drifted: CHECK failed (z)"}]
    rows = [dict(ROW, action="drifted", reason="check"), dict(ROW, container_id="d", action="none")]
    record = build("h", {"attachments": {"actions": [], "attachments": rows}}, {})
    step = {"module": "cni_attach", "kind": "repair", "target": "a/c/eth0", "class": "disruptive", "why": "check"}
    assert (record["status"], record["steps"]) == ("drift", [step])
    rows[0]["warnings"] = warnings
    record = build("h", {"attachments": {"actions": [], "attachments": rows}}, {})
    assert record["steps"] == [{**step, "reason": "CHECK failed (z)"}]


def test_a_planned_repair_says_why_and_is_not_told_twice():
    parts = [{"kind": "del"}, {"kind": "add"}]
    actions = [dict(STEP, kind="repair", target="a/c/eth0", reason="eth0 is gone", parts=parts)]
    record = build("h", {"attachments": {"actions": actions, "attachments": [dict(ROW, action="drifted")]}}, {})
    (step,) = record["steps"]
    assert (step["kind"], step["reason"], step["why"]) == ("repair", "eth0 is gone", "interface")


def test_warnings_are_taken_apart():
    record = build("h", {"netns": {"warnings": ["[missing_netns] no netns\nat all", "plain", 5]}}, {"warnings": "x"})
    assert [tuple(row.values()) for row in record["warnings"]] == [
        ("cni_netns", "missing_netns", "no netns\nat all"),
        ("cni_netns", "", "plain"),
        ("cni_netns", "", "5"),
    ]


def test_secrets_are_masked_again():
    diff = [{**head(), "before": {"token": "sesame"}, "after": ""}]
    step = dict(STEP, reason="--password sesame")
    results = {"networks": {"actions": [step], "diff": diff, "problems": [{"password": "sesame"}]}}
    record = build("h", results, {"conf": [{"config": {"etcd_key": "sesame"}}], "invocation": {"x": "sesame"}})
    assert "sesame" not in json.dumps(record)


@pytest.mark.parametrize(
    ("result", "confirmed"),
    [
        ({}, None),
        ({"confirmed": True}, True),
        ({"confirmed": "yes"}, None),
        ({"configured": [{"ready": None}, {"ready": True}]}, True),
        ({"configured": [{"ready": False}, {"ready": True}]}, False),
        ({"configured": [{"ready": None}]}, None),
    ],
)
def test_what_the_runtimes_say(result, confirmed):
    assert build("h", {"networks": result}, {})["confirmed"] is confirmed


@pytest.mark.parametrize("junk", [None, 5, "x", [], [1], {"a": 1}, True])
def test_data_of_any_shape_makes_a_record(junk):
    names = ("actions", "diff", "attachments", "warnings", "problems", "configured", "msg", "failed")
    results = {name: dict.fromkeys(names, junk) for name in ("plugins", "networks", "attachments")}
    results.update(runtime=junk, netns=junk)
    assert build("h", results, junk)["format"] == 1
    assert build("h", {"networks": {"actions": [{"kind": junk, "target": junk, "class": junk}]}}, {})["status"]
