# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest
from jsonschema import Draft202012Validator

from ansible_collections.podwire.cni.plugins.plugin_utils import drift_status
from ansible_collections.podwire.cni.plugins.plugin_utils._report import fleet as module
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
    VALIDATOR.validate(json.loads(module.to_json(report)))


def test_the_schema_is_one_and_is_for_this_format():
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["format"]["const"] == FORMAT
    assert set(SCHEMA["$defs"]["host"]["required"]) == set(CLEAN) == set(SCHEMA["$defs"]["host"]["properties"])
    assert not VALIDATOR.is_valid(module.fleet([]) | {"format": FORMAT + 1})
    assert not VALIDATOR.is_valid(module.fleet([CLEAN]) | {"hosts": [{"host": "x"}]})


def test_the_order_of_the_records_does_not_matter():
    one, other = module.fleet([CLEAN, DRIFT, ERROR]), module.fleet([ERROR, CLEAN, DRIFT])
    assert module.to_json(one) == module.to_json(other)
    assert [line[:20] for line in module.to_json(one).splitlines()[1:-1]] == ['{"confirmed":null,"e'] * 3


@pytest.mark.parametrize("junk", [None, 5, "x", [], {}, {"format": 1}, {**CLEAN, "host": 5}])
def test_what_is_no_record_is_a_host_with_an_error(junk):
    report = module.fleet([CLEAN, junk])
    assert (report["counts"]["error"], report["hosts"][1]["host"]) == (1, "record 2")
    VALIDATOR.validate(report)


@pytest.mark.parametrize(
    ("records", "status", "says"),
    [
        ([CLEAN], 0, "clean: 1 host: 0 with an error, 0 with drift, 1 clean"),
        ([CLEAN, DRIFT], 2, "drift: 2 hosts: 0 with an error, 1 with drift, 1 clean"),
        ([ERROR, DRIFT], 1, "error: 2 hosts: 1 with an error, 1 with drift, 0 clean"),
        ([], 1, "error: 0 hosts"),
    ],
)
def test_the_exit_status_is_that_of_the_fleet(tmp_path, capsys, records, status, says):
    (tmp_path / "report.json").write_text(module.to_json(module.fleet(records)))
    for path in (tmp_path, tmp_path / "report.json"):
        assert drift_status.main([str(path)]) == status
        assert capsys.readouterr().out.startswith(says)


@pytest.mark.parametrize(
    "text", [None, "", "x", "[]", "{}", '{"format": 2}', '{"format": 1, "status": "fine"}', "\udcff"]
)
def test_what_cannot_be_read_is_an_error_in_a_sentence(tmp_path, capsys, text):
    path = tmp_path / "report.json"
    if text is not None:
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert drift_status.main([str(path)]) == 1
    assert str(path) in capsys.readouterr().err


def test_the_exit_status_without_a_report(capsys):
    assert drift_status.main([]) == 1
    assert capsys.readouterr().err.startswith("usage")
