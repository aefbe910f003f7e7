# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import random

import pytest
from jsonschema import Draft202012Validator

from ansible_collections.podwire.cni.plugins.plugin_utils._report import artifact as artifacts, fleet as module
from ansible_collections.podwire.cni.plugins.plugin_utils._report.fleet import CODES
from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import FORMAT, build, unusable

STEPS = {"networks": {"actions": [{"kind": "write", "target": "/x", "class": "safe"}], "warnings": ["[a] b"]}}
CLEAN, DRIFT, ERROR = (
    build("c", {}, {"conf": []}),
    build("b", STEPS, {}, time="2026-11-21T08:00:00Z"),
    unusable("a", "no"),
)

with open(os.path.join(os.path.dirname(module.__file__), "report.schema.json"), encoding="utf-8") as stream:
    SCHEMA = json.load(stream)
VALIDATOR = Draft202012Validator(SCHEMA)


@pytest.mark.parametrize(
    ("records", "status"),
    [([CLEAN], "clean"), ([CLEAN, DRIFT], "drift"), ([DRIFT, ERROR, CLEAN], "error"), ([], "error")],
)
def test_the_worst_host_tells_the_status(records, status):
    report = module.fleet(records)
    assert report["status"] == status
    VALIDATOR.validate(json.loads("".join(module.json_lines(report))))


def test_the_schema_is_one_and_is_for_this_format():
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["format"]["const"] == FORMAT
    assert {*CLEAN, "cut"} == set(SCHEMA["$defs"]["host"]["properties"])
    # What older releases did not write is not required.
    assert set(SCHEMA["$defs"]["host"]["required"]) == set(CLEAN) - {"groups", "unreachable", "no_connection"}
    assert set(SCHEMA["properties"]) == set(module.fleet([CLEAN]))
    codes = SCHEMA["properties"]["hosts"]["items"]["properties"]["attention"]["items"]["properties"]["code"]
    assert codes["enum"] == list(CODES)
    assert not VALIDATOR.is_valid(module.fleet([]) | {"format": FORMAT + 1})
    assert not VALIDATOR.is_valid(module.fleet([CLEAN]) | {"hosts": [{"host": "x"}]})


def test_the_order_of_the_records_does_not_matter():
    one, other = module.fleet([CLEAN, DRIFT, ERROR]), module.fleet([ERROR, CLEAN, DRIFT])
    assert "".join(module.json_lines(one)) == "".join(module.json_lines(other))
    assert [line[:16] for line in "".join(module.json_lines(one)).splitlines()[1:-1]] == ['{"attention":[],'] * 3


@pytest.mark.parametrize("junk", [None, 5, "x", [], {}, {"format": 1}, {**CLEAN, "host": 5}])
def test_what_is_no_record_is_a_host_with_an_error(junk):
    report = module.fleet([CLEAN, junk])
    assert (report["counts"]["error"], report["hosts"][1]["host"]) == (1, "record 2")
    VALIDATOR.validate(report)


NOT_READY = {
    "ready": False,
    "obstacles": [{"level": "error", "message": "no network"}, {"level": "info", "message": "x"}],
}
VULNERABLE = {
    "level": "warning",
    "code": "known_vulnerability",
    "message": "portmap has CVE-2025-67499 (GHSA-jv3w-x3r3-g6rm)",
    "vulnerability": "CVE-2025-67499 (GHSA-jv3w-x3r3-g6rm)",
}
LEAK = {"collectable": True}
LEAKING = build("d", {}, {"garbage": [LEAK]})
NOW = ("2026-11-25T00:00:00Z", 2.0)


@pytest.mark.parametrize(
    ("info", "time", "says"),
    [
        ({}, "", []),
        ({"readiness": {"ready": None}}, "2026-11-23T00:00:00Z", []),
        ({}, "2026-11-22T23:59:59Z", ["stale: last inspected on 2026-11-22T23:59:59Z"]),
        ({"readiness": NOT_READY}, "", ["not_ready: no network"]),
        ({"readiness": {"ready": False}}, "", ["not_ready: a runtime has not loaded its network"]),
        ({"problems": [VULNERABLE, VULNERABLE]}, "", ["vulnerable: CVE-2025-67499 (GHSA-jv3w-x3r3-g6rm)"]),
        ({"problems": [{**VULNERABLE, "level": "info"}]}, "", []),
        (
            {"problems": [{"level": "error", "message": "bad"}, {"level": "warning", "message": "x"}]},
            "",
            ["problem: bad"],
        ),
        ({"garbage": [LEAK, LEAK, {"collectable": False}]}, "", ["leaks: 2 leaks of dead containers"]),
        (
            {"pools": [{"network": "a", "size": 4, "used": 4}, {"size": 4, "used": 3}]},
            "",
            ["pool_full: a: all 4 addresses are taken"],
        ),
    ],
)
def test_a_clean_host_can_need_attention(info, time, says):
    report = module.fleet([build("h", {}, info, time=time)], *NOW)
    (host,) = report["hosts"]
    assert [f"{reason['code']}: {reason['message']}" for reason in host["attention"]] == says
    assert (report["status"], report["counts"]["attention"]) == ("clean", len(says[:1]))
    assert module.level(host) == ("attention" if says else "clean")
    VALIDATOR.validate(report)


def test_a_step_that_only_a_runtime_can_take_needs_attention_and_an_addition_of_others_does_not():
    steps = [{"kind": kind, "target": "a/c/eth0", "class": "foreign", "reason": "gone"} for kind in ("repair", "leave")]
    report = module.fleet(
        [build(step["kind"], {"host": {"plan": [step | {"section": "audit"}], "audit": {}}}, {}) for step in steps]
    )
    assert [module.level(host) for host in report["hosts"]] == ["clean", "attention"]


def test_reasons_come_in_the_order_of_their_weight():
    info = {"readiness": NOT_READY, "problems": [VULNERABLE], "garbage": [LEAK]}
    (host,) = module.fleet([build("h", {}, info, time="2026-01-01T00:00:00Z")], *NOW)["hosts"]
    assert [reason["code"] for reason in host["attention"]] == ["not_ready", "vulnerable", "leaks", "stale"]


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ([], "No host was inspected"),
        ([CLEAN], "The host is clean"),
        ([DRIFT], "The host needs attention: 1 with drift"),
        ([CLEAN, CLEAN], "All 2 hosts are clean"),
        ([CLEAN, DRIFT], "1 of 2 hosts needs attention: 1 with drift"),
        ([ERROR, DRIFT, CLEAN, LEAKING], "3 of 4 hosts need attention: 1 with an error, 1 with drift, 1 with leaks"),
    ],
)
def test_the_summary_says_how_many_hosts_need_attention_and_why(records, says):
    assert module.summary_of_fleet(module.fleet(records)) == says


def test_the_summary_names_three_hosts_of_each_kind():
    drifted = [{**DRIFT, "host": f"web{number}"} for number in range(5)]
    said = module.summary_of_fleet(module.fleet([CLEAN, ERROR, *drifted]), named=True)
    assert said.endswith(f"1 with an error ({ERROR['host']}), 5 with drift (web0, web1, web2 and 2 more)")


def test_an_artifact_has_the_totals_and_the_hosts_by_name():
    steps = [{"kind": "write", "target": "/x", "class": name} for name in ("safe", "safe", "disruptive", "foreign")]
    both = build("both", {"networks": {"actions": steps}}, {})
    found = artifacts.artifact(module.fleet([CLEAN, DRIFT, ERROR, both, LEAKING]))
    assert found["status"] == "error" and found["summary"].startswith("4 of 5 hosts need attention")
    assert found["counts"] == {"hosts": 5, "clean": 2, "drift": 2, "error": 1, "attention": 4}
    assert found["classes"] == {"safe": 3, "disruptive": 1, "foreign": 1}
    assert found["hosts"] == {
        "error": ["a"],
        "drift": ["b", "both"],
        "attention": ["d"],
        "disruptive": ["both"],
        "safe": ["b", "both"],
    }
    assert found["left_out"] == {}


@pytest.mark.parametrize("seed", range(20))
def test_an_artifact_stays_small_and_says_what_it_lacks(seed):
    dice = random.Random(seed)
    length = dice.choice([10, 60, 250])
    letter = dice.choice("x\u05d0\U0001f600")
    records = [
        dice.choice([CLEAN, DRIFT, ERROR]) | {"host": f"{number:04}" + letter * length} for number in range(1000)
    ]
    report = module.fleet(records)
    found = artifacts.artifact(report)
    assert len(json.dumps(found)) < 64_000
    whole = {"drift": report["counts"]["drift"], "error": report["counts"]["error"], "attention": 0, "disruptive": 0}
    whole["safe"] = whole["drift"]
    for name, names in found["hosts"].items():
        assert len(names) + found["left_out"].get(name, 0) == whole[name]
        assert names == sorted(names)
    if length == 10 and letter == "x":
        assert not found["left_out"]
