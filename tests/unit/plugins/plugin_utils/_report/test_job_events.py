# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records from events in all their forms, and from what is none. tests/real/engines has the events of a real job."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import jsonschema
import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._report import job_events
from ansible_collections.podwire.cni.plugins.plugin_utils._report.bounds import plain
from ansible_collections.podwire.cni.plugins.plugin_utils._report.job_events import BadEvents, records_of

REPORT = Path(job_events.__file__).with_name("report.schema.json")
SCHEMA = json.loads(REPORT.read_text())
RECORD = {**SCHEMA["$defs"]["host"], "$defs": SCHEMA["$defs"]}

STEP = {"module": "cni_conf", "kind": "write", "target": "/etc/cni/net.d/10-a.conflist", "class": "safe"}
DRIFT = {"status": "drift", "error": None, "steps": [STEP], "time": "2026-11-25T07:14:18Z", "confirmed": True}
CLEAN = {"status": "clean", "error": None, "steps": []}


def event(result, host="web1", kind="runner_on_ok", counter=1, created="2026-11-25T07:14:20.045799+00:00", **data):
    action = {"task_action": "podwire.cni.cni_report", "resolved_action": "podwire.cni.cni_report"}
    return {
        "event": kind,
        "counter": counter,
        "created": created,
        "event_data": {**action, "host": host, "res": result, **data},
    }


def loop(*results):
    return {"results": [{**result, "item": "host"} for result in results], "msg": "All items completed"}


def written(folder, *events):
    for index, one in enumerate(events):
        text = one if isinstance(one, str) else json.dumps(one)
        (folder / f"{index + 1}-uuid.json").write_text(text)
    return str(folder)


def found(path, groups=None):
    rebuilt = records_of(path, groups or {})
    for record in rebuilt.records.values():
        jsonschema.validate(plain(record), RECORD)
    return rebuilt


def statuses(path):
    return {host: record["status"] for host, record in found(path).records.items()}


def test_a_record_has_what_the_event_says(tmp_path):
    result = {**DRIFT, "warnings": ["[check_unusable] web: no CHECK"], "problems": [{"level": "error", "message": "m"}]}
    (record,) = found(written(tmp_path, event(loop(result))), {"web1": ["web"]}).records.values()
    assert record == {
        "format": 1,
        "host": "web1",
        "time": "2026-11-25T07:14:18Z",
        "groups": ["web"],
        "status": "drift",
        "error": None,
        "steps": [STEP],
        "warnings": [{"module": "cni_host", "code": "check_unusable", "message": "web: no CHECK"}],
        "problems": [{"level": "error", "message": "m"}],
        "confirmed": True,
        "info": None,
    }


EVENTS = [event(loop(DRIFT)), event(CLEAN, "web2"), event({"pong": 1}, "web3", task_action="ping", resolved_action="")]


@pytest.mark.parametrize(
    "files",
    [
        {"1-u.json": EVENTS[0], "2-u.json": EVENTS[1], "3-u.json": EVENTS[2], "4-u.json.tmp": "x", "a/5-u.json": "x"},
        {"job_events/1-u.json": EVENTS[0], "job_events/2-u.json": EVENTS[1], "status.json": "x"},
        {"1.json": {"count": 3, "next": None, "results": EVENTS}},
        {"1.json": {"next": "/?page=2", "results": EVENTS[:1]}, "2.json": {"next": None, "results": EVENTS[1:]}},
        {"1.json": EVENTS},
        {"1.json": "\n".join(map(json.dumps, EVENTS))},
    ],
    ids=["runner", "artifacts", "page", "pages", "list", "lines"],
)
def test_events_have_several_forms(tmp_path, files):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
    assert statuses(str(tmp_path)) == {"web1": "drift", "web2": "clean"}
    if len(files) == 1:
        assert statuses(str(tmp_path / "1.json")) == {"web1": "drift", "web2": "clean"}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_last_inspection_counts(tmp_path, order):
    events = [event(loop(DRIFT), counter=9), event(CLEAN, counter=10)]
    assert statuses(written(tmp_path, *(events[index] for index in order))) == {"web1": "clean"}


def test_a_later_job_counts_whatever_the_numbers_of_its_events(tmp_path):
    events = [event(CLEAN, counter=3, created="2026-11-26T07:00:00.1+00:00"), event(DRIFT, counter=90)]
    assert statuses(written(tmp_path, *events)) == {"web1": "clean"}


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (event({"msg": "No route to host", "unreachable": True}, kind="runner_on_unreachable"), "No route to host"),
        (event({"msg": "cannot write to /x", "failed": True}, kind="runner_on_failed"), "cannot write to /x"),
        # ansible-runner empties large results; no_log hides them.
        (event({}), "lack"),
        (event({"censored": "the output has been hidden"}), "lack"),
    ],
)
def test_what_failed_is_an_error_of_a_host_that_is_not_known_otherwise(tmp_path, one, words):
    (record,) = found(written(tmp_path, one)).records.values()
    assert record["status"] == "error" and words in record["error"] and record["time"] == "2026-11-25T07:14:20Z"
    assert statuses(written(tmp_path, one, event(CLEAN, counter=0))) == {"web1": "clean"}


def test_the_report_of_all_hosts_is_no_inspection(tmp_path):
    with pytest.raises(BadEvents, match=r"no result of podwire\.cni\.cni_report"):
        found(written(tmp_path, event({"report": {"status": "drift"}, "changed": False})))


def test_other_failures_are_no_records(tmp_path):
    with pytest.raises(BadEvents, match="no result"):
        found(
            written(
                tmp_path,
                event({"failed": True}, kind="runner_on_failed", task_action="cni_report2", resolved_action="x"),
            )
        )


@pytest.mark.parametrize(
    ("created", "time"),
    [
        ("2026-11-25T07:14:20.045799Z", "2026-11-25T07:14:20Z"),
        ("2026-11-25T08:14:20+01:00", "2026-11-25T07:14:20Z"),
        ("2026-11-25T07:14:20", "2026-11-25T07:14:20Z"),
        ("0001-01-01T00:00:00+23:00", ""),
        ("now", ""),
        (7, ""),
        (None, ""),
    ],
)
def test_times_are_those_of_records(tmp_path, created, time):
    (record,) = found(written(tmp_path, event(CLEAN, created=created))).records.values()
    assert record["time"] == time


BAD = {
    "text": "cni_report",
    "truncated": json.dumps(EVENTS[0])[:-20],
    "deep": '{"cni_report":' * 100_000,
    "number": f'{{"cni_report": {"9" * 5000}}}',
    "lines": f"{json.dumps(EVENTS[0])}\ncni_report\n",
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_a_file_without_events_is_counted_and_the_others_are_read(tmp_path, content):
    (tmp_path / "0.json").write_text(content)
    rebuilt = found(written(tmp_path, event(CLEAN, "web2")))
    assert "web2" in rebuilt.records and rebuilt.unusable == 1
    assert rebuilt.reason.startswith(f"{tmp_path}/0.json: it is not JSON")


def test_bytes_that_are_no_text_are_counted(tmp_path):
    (tmp_path / "0.json").write_bytes(b'"cni_report\xff"')
    assert found(written(tmp_path, event(CLEAN))).unusable == 1


def test_files_and_their_number_are_bounded(tmp_path, monkeypatch):
    path = written(tmp_path, event(CLEAN), event(DRIFT, "web2", x="y" * 2000))
    monkeypatch.setattr(job_events, "MOST_BYTES", 1000)
    rebuilt = found(path)
    assert list(rebuilt.records) == ["web1"] and rebuilt.unusable == 1 and "larger than" in rebuilt.reason
    monkeypatch.setattr(job_events, "MOST_FILES", 1)
    with pytest.raises(BadEvents, match="2 files, and at most 1"):
        found(path)


def test_links_are_not_followed(tmp_path):
    (tmp_path / "events").mkdir()
    (tmp_path / "elsewhere.json").write_text(json.dumps(event(DRIFT, "web2")))
    os.symlink(tmp_path / "elsewhere.json", tmp_path / "events" / "0.json")
    assert statuses(written(tmp_path / "events", event(CLEAN))) == {"web1": "clean"}


@pytest.mark.parametrize("name", ["missing", "empty", "fifo"])
def test_what_has_no_events_is_named(tmp_path, name):
    if name == "empty":
        (tmp_path / name).mkdir()
    elif name == "fifo":
        os.mkfifo(tmp_path / name)
    with pytest.raises(BadEvents, match=name):
        found(str(tmp_path / name))


HOSTILE = [1, "x", None, [], {}, True, 1e999, -1, ["x"], {"a": {"b": []}}, "\x1b[2J", "a" * 5000, "</script>"]


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
def test_events_of_any_shape_make_records_or_none(tmp_path, value):
    """Whatever a host, or somebody who writes events, says: a record of the schema, or an error of one kind."""
    shapes = [value, {"event": value}, {"event": "runner_on_ok", "event_data": value}, {"results": value}]
    for key in ("event", "counter", "created", "event_data"):
        shapes.append({**event(CLEAN), key: value})
    for key in ("host", "res", "task_action", "resolved_action"):
        shapes.append(event(**{"result": CLEAN, key: value}))
    shapes += [event(loop(value if isinstance(value, dict) else {})), event({"results": value})]
    for key in ("status", "error", "steps", "time", "problems", "confirmed", "warnings"):
        shapes.append(event({**DRIFT, key: value}))
    shapes += [event({**DRIFT, "steps": [value]}), event({**DRIFT, "problems": [value], "warnings": [value]})]
    for key in ("module", "kind", "target", "class", "reason", "why", "before", "after"):
        shapes.append(event({**DRIFT, "steps": [{**STEP, key: value}]}))
    for index, shape in enumerate(shapes):
        path = tmp_path / f"{index}.json"
        path.write_text('{"cni_report": 0}' if shape is value else json.dumps(shape))
        try:
            rebuilt = found(str(path))
        except BadEvents:
            continue
        # Only as text, whose backslash is escaped once more.
        assert not re.search(r"(?<!\\)\\u001b", json.dumps(plain(list(rebuilt.records.values()))))


def test_an_unknown_class_is_not_harmless_and_secrets_are_masked(tmp_path):
    step = {**STEP, "class": "none", "reason": "password=hunter2hunter2", "after": {"token": "hunter2hunter2"}}
    (record,) = found(written(tmp_path, event({**CLEAN, "steps": [step]}))).records.values()
    assert record["status"] == "drift" and record["steps"][0]["class"] == "disruptive"
    assert "hunter2" not in json.dumps(record)


def test_a_status_that_steps_and_errors_contradict_does_not_count(tmp_path):
    events = [event({**CLEAN, "error": "no\nno\nyes"}), event({**CLEAN, "steps": [STEP]}, "web2")]
    records = found(written(tmp_path, *events)).records
    assert (records["web1"]["status"], records["web1"]["error"]) == ("error", "no\nyes")
    assert records["web2"]["status"] == "drift"
