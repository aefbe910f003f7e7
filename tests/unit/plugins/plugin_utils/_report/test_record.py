# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build, in_words, summary_of

REASON = "bridge: mtu 1450, want 1500"
STEP = {"kind": "write", "target": "/etc/cni/net.d/10-a.conflist", "class": "safe", "reason": REASON}
ROW = {"network": "a", "container_id": "c", "ifname": "eth0", "reason": "interface"}


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
    diff = [{"step": 0, "before": "1", "after": "2"}, {"step": 2, "before": None, "after": {"k": 1}}]
    steps = build("h", {"networks": {"actions": actions, "diff": diff}}, {})["steps"]
    assert [(step.get("before"), step.get("after")) for step in steps] == [("1", "2"), (None, None), (None, {"k": 1})]
    assert "before" not in steps[1]


def test_drift_that_is_only_reported_is_a_step():
    rows = [dict(ROW, action="drifted", reason="check"), dict(ROW, container_id="d", action="none")]
    record = build("h", {"attachments": {"actions": [], "attachments": rows}}, {})
    step = {"module": "cni_attach", "kind": "repair", "target": "a/c/eth0", "class": "disruptive", "why": "check"}
    assert (record["status"], record["steps"]) == ("drift", [step])
    rows[0]["drift"] = "CHECK failed (z)"
    record = build("h", {"attachments": {"actions": [], "attachments": rows}}, {})
    assert record["steps"] == [{**step, "reason": "CHECK failed (z)"}]


def test_a_planned_repair_says_why_and_is_not_told_twice():
    parts = [{"kind": "del"}, {"kind": "add"}]
    actions = [dict(STEP, kind="repair", target="a/c/eth0", reason="eth0 is gone", parts=parts)]
    record = build("h", {"attachments": {"actions": actions, "attachments": [dict(ROW, action="drifted")]}}, {})
    (step,) = record["steps"]
    assert (step["kind"], step["reason"], step["why"]) == ("repair", "eth0 is gone", "interface")


def test_what_only_check_mode_tolerates_is_an_error():
    finding = {"level": "error", "code": "bad_group", "message": "there is no group x", "target": ""}
    record = build("h", {"host": {"plan": [], "findings": [finding]}}, {})
    assert (record["status"], record["error"]) == ("error", "there is no group x")


def test_findings_are_its_warnings():
    finding = {"level": "warning", "code": "missing_netns", "message": "no netns\nat all", "target": "/run/netns/a"}
    record = build("h", {"netns": {"findings": [finding, 5], "warnings": ["[missing_netns] no netns"]}}, {})
    assert [tuple(row.values()) for row in record["warnings"]] == [
        ("cni_netns", "missing_netns", "no netns\nat all", "/run/netns/a"),
    ]


def test_secrets_are_masked_again():
    diff = [{"step": 0, "before": {"token": "sesame"}, "after": ""}]
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


@pytest.mark.parametrize(
    ("confirmed", "readiness", "found"),
    [
        (True, {"ready": None}, None),
        (True, {"ready": False}, False),
        (False, {"ready": True}, False),
        (None, {"ready": True}, True),
        (None, {"ready": "yes"}, None),
        (True, None, True),
        (True, ["ready"], True),
    ],
)
def test_the_readiness_decides_and_what_is_not_known_is_not_ready(confirmed, readiness, found):
    record = build("h", {"networks": {"confirmed": confirmed}}, {"readiness": readiness})
    assert record["confirmed"] is found


HOST = {
    "plan": [
        {"section": "plugins", "kind": "install", "target": "/opt/cni/bin/bridge", "class": "safe", "state": "planned"},
        {"section": "networks", **STEP, "state": "planned"},
        {"section": "attachments", "kind": "add", "target": "a/c/eth0", "class": "disruptive", "state": "planned"},
        {"section": "runtime", "kind": "write", "target": "/etc/x.toml", "class": "disruptive", "state": "planned"},
        {"section": "networks", "kind": "remove", "target": "/etc/cni/net.d/9.conflist", "class": "disruptive"},
    ],
    "diff": [
        {"step": 1, "before": "1", "after": "2"},
        {"step": 3, "before": "", "after": "t"},
        {"step": 4, "before": "x", "after": ""},
    ],
    "plugins": {"plugins": [], "changed": True, "error": None},
    "networks": {"networks": [], "confirmed": None, "problems": [{"level": "error"}], "changed": True, "error": None},
    "runtime": {"configured": [{"ready": True}], "confirmed": None, "changed": True, "error": None},
    "attachments": {"attachments": [dict(ROW, action="attached", error=None)], "changed": True, "error": None},
    "problems": [{"level": "error"}],
    "findings": [{"level": "warning", "code": "missing_plugin", "message": "no plugin", "target": ""}],
    "info": {"conf": [{"network": "a"}]},
}


def test_the_result_of_one_call_is_taken_apart():
    record = build("h", {"host": HOST}, {"conf": []})
    assert [(step["module"], step["kind"]) for step in record["steps"]] == [
        ("cni_plugins", "install"),
        ("cni_conf", "write"),
        ("cni_attach", "add"),
        ("cni_conf", "write"),
        ("cni_conf", "remove"),
    ]
    assert [step.get("after") for step in record["steps"]] == [None, "2", None, "t", ""]
    assert record["steps"][2]["why"] == "interface"
    assert (record["status"], record["confirmed"], record["problems"]) == ("drift", True, [{"level": "error"}])
    assert record["warnings"] == [
        {"module": "cni_host", "code": "missing_plugin", "message": "no plugin", "target": ""}
    ]
    assert record["info"]["conf"] == [{"network": "a"}]


def test_drift_of_the_networks_of_pods_is_drift():
    step = {"section": "pod_networks", **STEP, "target": "/etc/cni/multus/net.d/10-a.conflist", "state": "planned"}
    record = build("h", {"host": {"plan": [step], "pod_networks": {"networks": [], "changed": True}}}, None)
    assert (record["status"], [step["module"] for step in record["steps"]]) == ("drift", ["cni_conf"])
    failed = {"pod_networks": {"error": {"code": "x", "message": "bad"}}, "plan": []}
    assert build("h", {"host": failed}, None)["error"] == "bad"


def test_each_section_and_each_attachment_has_its_error():
    def error(text):
        return {"error": {"code": "x", "message": text}}

    rows = [{**ROW, **error("first")}, {**ROW, **error("second")}, {**ROW, "error": None}]
    sections = {"plugins": error("bad\nworse"), "attachments": {"attachments": rows, **error("first")}}
    record = build("h", {"host": {**HOST, **sections, "failed": True, "msg": "plugins: bad; attachments: first"}}, None)
    assert record["error"] == "bad\nworse\nfirst\nsecond"
    assert len(record["steps"]) == 5


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ({"unreachable": True, "msg": "no route"}, "unreachable: no route"),
        ({"failed": True, "msg": "undefined"}, "undefined"),
        ({"msg": "not root"}, "not root"),
        ({}, "the task failed without a message"),
        ({"skipped": True}, None),
    ],
)
def test_a_call_without_a_plan_is_an_error(result, says):
    assert build("h", {"host": result}, {})["error"] == says


@pytest.mark.parametrize(
    ("classes", "error", "says"),
    [
        ([], "", "clean"),
        (["foreign"], "", "clean: write 10-a.conflist (foreign)"),
        (
            ["safe", "disruptive", "safe", "safe"],
            "",
            "drift: write 10-a.conflist (disruptive), write 10-a.conflist, write 10-a.conflist, and 1 more (1 safe)",
        ),
        (["safe"], "one\ntwo\nthree", "error: write 10-a.conflist: one (and 2 more)"),
        ([], "x" * 300, f"error: {'x' * 199}…"),
        ([], "a\x1b[31m", "error: a\\u001b[31m"),
    ],
)
def test_a_host_in_a_line(classes, error, says):
    actions = [dict(STEP, **{"class": name}) for name in classes]
    assert summary_of(build("h", {"networks": {"actions": actions}}, {}, [error])) == says


def test_plugins_of_another_release_are_one_step_in_a_line():
    def replace(name, reason, step_class="disruptive"):
        target = f"/opt/cni/bin/{name}"
        return {"section": "plugins", "kind": "replace", "target": target, "class": step_class, "reason": reason}

    agreed = "upgraded to 1.9.1 by upgrade; the inventory says 1.1.1"
    steps = [replace(name, agreed) for name in ("bridge", "dhcp", "vlan")]
    assert in_words(steps) == f"replace 3 plugins: {agreed} (disruptive)"
    edited, safe = replace("tap", "sha256 differs from 1.1.1", "safe"), replace("sbr", "0.9.1 to 1.1.1", "safe")
    assert in_words([edited, *steps, safe]) == f"replace 3 plugins: {agreed} (disruptive), replace tap, replace sbr"


def test_plugins_that_are_installed_or_restored_are_one_step_in_a_line():
    def step(kind, section, target):
        return {"section": section, "kind": kind, "target": target, "class": "safe", "reason": "not installed"}

    plugins = [step("install", "plugins", f"/opt/cni/bin/{name}") for name in ("bridge", "dhcp", "vlan")]
    networks = [step("restore", "networks", f"/etc/cni/net.d/{name}.conflist") for name in "ab"]
    assert in_words([*plugins, *networks]) == "install 3 plugins, restore a.conflist, restore b.conflist"
    assert in_words([dict(plugin, kind="restore") for plugin in plugins]) == "restore 3 plugins"
    assert in_words(plugins[:1]) == "install bridge"


def test_a_clean_host_that_needs_attention_says_why():
    assert (
        summary_of(build("h", {}, {}), ["no network", "leaks"]) == "clean, but needs attention: no network (and 1 more)"
    )


@pytest.mark.parametrize("junk", [None, 5, "x", [], [1], {"a": 1}, True])
def test_data_of_any_shape_makes_a_record(junk):
    names = ("actions", "diff", "attachments", "findings", "problems", "configured", "msg", "failed")
    results = {name: dict.fromkeys(names, junk) for name in ("plugins", "networks", "attachments")}
    results.update(runtime=junk, netns=junk)
    assert build("h", results, junk)["format"] == 1
    assert build("h", {"host": dict.fromkeys((*names, *HOST), junk)}, {})["format"] == 1
    assert build("h", {"host": junk}, {})["format"] == 1
    assert build("h", {"networks": {"actions": [{"kind": junk, "target": junk, "class": junk}]}}, {})["status"]
