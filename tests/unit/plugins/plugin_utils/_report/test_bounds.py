# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""One host, which may be compromised, decides what its record says, but not what it costs."""

from __future__ import annotations

import copy
import json
import time

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._report import bounds, folder
from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build
from ansible_collections.podwire.cni.tests.tools import sample
from ansible_collections.podwire.cni.tests.unit.plugins.action.test_cni_report import RETURNED

RESULTS = {name: value for name, value in RETURNED.items() if name != "info"}
RECORD = {**build("web1", RESULTS, RETURNED["info"], (), "2026-11-01T00:00:00Z", ["web"]), "confirmed": True}
RECORD["problems"] = RETURNED["info"]["problems"]
HUGE = 20_000_000


def deep(levels):
    value = []
    for _level in range(levels):
        value = [value]
    return value


# What may stand in the place of any value.
HOSTILE = {
    "long": "x" * HUGE,
    "long lines": "x\n" * (HUGE // 2),
    "wide": [{"class": "safe", "target": f"/{index}", "message": "m"} for index in range(100_000)],
    "wide texts": ["t" * 1000] * 20_000,
    "keys": {f"key{index}": index for index in range(100_000)},
    "long key": {"k" * HUGE: 1},
    "deep": deep(300),
    "integer": 10**4000,
    "negative": -(1 << 70),
    "infinite": float("inf"),
    "not a number": float("nan"),
    "surrogate": "\ud800" * HUGE,
    "escapes": "\x1b[2J\x1b]0;title\x07" * 1_000_000,
    "direction": "\u202e" * HUGE,
}


def places(value, path=()):
    """Yield where the values of a record are; one entry of a list stands for all."""
    if path:
        yield path
    for key, entry in (
        value.items() if isinstance(value, dict) else list(enumerate(value))[:1] if isinstance(value, list) else []
    ):
        yield from places(entry, (*path, key))


def exchanged(path, value):
    record = copy.deepcopy(RECORD)
    inner = record
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return record


@pytest.mark.parametrize("kind", HOSTILE)
def test_whatever_stands_in_the_place_of_a_value_is_bounded_and_counted(kind):
    for path in list(places(RECORD))[:: sample.STEP]:
        record = bounds.bounded(exchanged(path, HOSTILE[kind]))
        # The value is one of its field, whatever it is.
        assert set(record["cut"]) == {path[0]} and record["cut"][path[0]] > 0, path
        text = json.dumps(record, allow_nan=False, ensure_ascii=False)
        assert len(text) < 12_000_000 and text.isprintable(), path
        assert bounds.bounded(record) == record, path


FIELDS = [(name,) for name in RECORD if name not in ("format", "host")] + [("info", name) for name in RETURNED["info"]]


@pytest.mark.parametrize("field", FIELDS[:: sample.STEP**2], ids=".".join)
def test_a_page_is_small_whatever_a_field_contains(tmp_path, field):
    """Also if the host writes its file itself; the report says that it was cut."""
    path = folder.write_record(str(tmp_path), RECORD)
    folder.write_report(str(tmp_path))
    whole = (tmp_path / "report.html").stat().st_size
    row = (RECORD if len(field) == 1 else RECORD["info"])[field[-1]]
    row = row[0] if isinstance(row, list) and isinstance(row[0], dict) else {"class": "safe"}
    rows = [{**row, **{key: f"{index} {'y' * 5000}" for key in row if key != "class"}} for index in range(1000)]
    lists = [{**row, **{key: [f"{index} {'y' * 500}"] * 100 for key in row if key != "class"}} for index in range(100)]
    for value in (HOSTILE["long lines"], HOSTILE["wide"], rows, lists):
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(exchanged(field, value), stream)
        written = folder.write_report(str(tmp_path))
        assert (tmp_path / "report.html").stat().st_size < whole + 1_500_000
        assert (tmp_path / "report.json").stat().st_size < 24_000_000
        (host,) = written.report["hosts"]
        codes = [reason["code"] for reason in host["attention"]]
        # A field of another type makes it unusable, and so does a size that no record has.
        assert "cut" in codes or "is unusable" in (host["error"] or "") or value is lists, host["error"]


def test_plain_takes_what_json_does_not():
    assert bounds.plain({1: (float("nan"), float("inf"), {"a"}, None)}) == {"1": [None, None, "{'a'}", None]}


def test_a_flood_of_steps_is_still_drift(tmp_path):
    steps = [{**RECORD["steps"][0], "target": f"/etc/cni/net.d/{index}"} for index in range(100_000)]
    folder.write_record(str(tmp_path), {**RECORD, "status": "drift", "error": None, "steps": steps})
    (host,) = folder.write_report(str(tmp_path)).report["hosts"]
    assert (host["status"], len(host["steps"]), host["cut"]) == ("drift", 2000, {"steps": 98_000})
    message = "its record was too large or not valid; values that were left out or shortened: 98,000 of steps"
    assert {"code": "cut", "message": message} in host["attention"]
    assert f">I{message[1:]}.<" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("inspected", ["9999-12-31T23:59:59Z", "2026-13-01T00:00:00Z", "yesterday", "\x1b[2J"])
def test_a_time_that_no_clock_has_is_none(tmp_path, inspected):
    """A record of the future would never be stale."""
    path = folder.write_record(str(tmp_path), RECORD)
    with open(path, "w", encoding="utf-8") as stream:
        json.dump({**RECORD, "time": inspected}, stream)
    assert folder.read_record(str(tmp_path), "web1")["time"] == ""


def test_a_clock_may_be_ahead():
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    assert bounds.bounded({**RECORD, "time": soon}) == {**RECORD, "time": soon}


def test_a_record_of_a_large_host_is_whole():
    row = RECORD["info"]["attachments"][0]
    info = {**RECORD["info"], "attachments": [{**row, "container_id": f"{index:064}"} for index in range(3000)]}
    assert bounds.bounded({**RECORD, "info": info}) == {**RECORD, "info": info}


def test_what_a_record_says_of_its_own_cuts_is_bounded():
    cut = {**{f"f{index}": 1 for index in range(1000)}, "x" * 100: 1, "steps": -1, "info": "many", "error": 7}
    record = bounds.bounded({**RECORD, "cut": cut})
    assert len(json.dumps(record["cut"])) < 500
    assert bounds.bounded({**RECORD, "cut": {"error": 7}})["cut"] == {"error": 7}
    assert bounds.bounded({**RECORD, "error": "x\n" * 150})["cut"] == {"error": 51}
    for value in (None, [], "x" * HUGE, 3):
        assert "cut" not in bounds.bounded({**RECORD, "cut": value})
