# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._report import folder, history
from ansible_collections.podwire.cni.plugins.plugin_utils._report.fleet import fleet
from ansible_collections.podwire.cni.plugins.plugin_utils._report.page import findings_by_host
from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build

MTU, SUBNET = "bridge: mtu 1450, want 1500", "subnet 10.1.0.0/16, want 10.2.0.0/16"
WRITE = "/etc/cni/net.d/10-a.conflist: "


def at(minute):
    return f"2026-11-25T{minute // 60:02}:{minute % 60:02}:00Z"


def record(host, minute, *reasons, **changed):
    target = "/etc/cni/net.d/10-a.conflist"
    steps = [{"kind": "write", "target": target, "class": "safe", "reason": reason} for reason in reasons]
    return build(host, {"networks": {"actions": steps}}, {}, time=at(minute)) | changed


class Fleet:
    """A folder of a report; each call inspects hosts and makes the report."""

    def __init__(self, path):
        self.path = str(path)

    def report(self, minute, *records, **options):
        for one in records:
            folder.write_record(self.path, one)
        return folder.write_report(self.path, at(minute), max_age=0, **options)

    def runs(self):
        return [name[11:16] for name in history.names(self.path)]

    def page(self):
        return Path(self.path, "report.html").read_text()

    def since(self, host="a"):
        return dict(history.last(self.path).since[host])


@pytest.fixture
def nodes(tmp_path):
    return Fleet(tmp_path)


def test_a_finding_is_as_old_as_its_first_run(nodes):
    nodes.report(1, record("a", 1))
    nodes.report(2, record("a", 2, MTU))
    nodes.report(3, record("a", 3, MTU, SUBNET))
    assert nodes.since() == {WRITE + MTU: at(2), WRITE + SUBNET: at(3)}
    nodes.report(4, record("a", 4, SUBNET))
    nodes.report(5, record("a", 5, MTU, SUBNET))
    assert nodes.since() == {WRITE + MTU: at(5), WRITE + SUBNET: at(3)}
    assert nodes.runs() == ["00-01", "00-02", "00-03", "00-04", "00-05"]
    assert f'since <time datetime="{at(3)}">2026-11-25 00:03</time>' in nodes.page()


def test_slices_and_batches_are_one_run(nodes):
    nodes.report(1, record("a", 1))
    nodes.report(2, record("b", 2, MTU))
    nodes.report(3)
    assert nodes.runs() == ["00-01"]
    # A host that was inspected in it begins a new one; so does a long pause.
    nodes.report(5, record("b", 5))
    assert nodes.runs() == ["00-01", "00-05"]
    nodes.report(90, record("a", 90))
    assert nodes.runs() == ["00-01", "00-05", "01-30"]


def test_a_report_is_compared_with_the_run_before_or_the_one_that_is_named(nodes):
    assert nodes.report(1, record("a", 1, MTU), record("b", 1), record("c", 1)).before is None
    nodes.report(2, record("a", 2, MTU), record("b", 2, MTU), record("c", 2))
    os.unlink(f"{nodes.path}/hosts/c.json")
    written = nodes.report(3, record("a", 3), record("b", 3, MTU, SUBNET), record("d", 3))
    assert [change._asdict() for change in written.changes] == [
        {"host": "a", "before": "drift", "after": "clean", "new": [], "gone": [WRITE + MTU]},
        {"host": "b", "before": "drift", "after": "drift", "new": [WRITE + SUBNET], "gone": []},
        {"host": "c", "before": "clean", "after": "", "new": [], "gone": []},
        {"host": "d", "before": "", "after": "clean", "new": [], "gone": []},
    ]
    said = history.summary_of_differences(written.before, written.changes)
    assert said == "since 2026-11-25 00:02: new findings on 1 host, findings gone on 1 host"
    for name, begin in (("previous", at(2)), (at(1), at(1)), ("2026-11-25T00:02", at(2)), ("2026-11-25", at(2))):
        assert nodes.report(4, against=name).before.begin == begin
    path = f"{nodes.path}/runs/{history.names(nodes.path)[0]}"
    assert nodes.report(4, against=path).before.begin == at(1)


@pytest.mark.parametrize(
    ("against", "says"),
    [
        ("previous", "no run before 2026-11-25T00:01:00Z in "),
        ("2025", "begins at 2025; there are 2026-11-25T00:01:00Z"),
        ("/nowhere/run.json", "/nowhere/run.json is not a regular file"),
    ],
)
def test_a_run_that_is_not_there_is_named(nodes, against, says):
    with pytest.raises(history.NoRun) as caught:
        nodes.report(1, record("a", 1))
        nodes.report(1, against=against)
    assert says in str(caught.value)


def test_nothing_changed_is_said(nodes):
    nodes.report(1, record("a", 1))
    written = nodes.report(2, record("a", 2))
    assert history.summary_of_differences(written.before, written.changes) == "since 2026-11-25 00:01: nothing changed"


def test_old_runs_go(nodes):
    for minute in range(9):
        nodes.report(minute, record("a", minute), keep=3)
    assert nodes.runs() == ["00-06", "00-07", "00-08"]
    nodes.report(9, record("a", 9), keep=0)
    assert nodes.runs() == ["00-09"]


BAD = [
    "",
    "x",
    "[]",
    "{}",
    "[" * 100000,
    '{"format": 1, "hosts": []}',
    '{"format": 1, "begin": "../../x", "hosts": {}}',
]


@pytest.mark.parametrize("text", BAD)
def test_a_damaged_run_is_left_out(nodes, text):
    nodes.report(1, record("a", 1, MTU))
    with open(f"{nodes.path}/runs/2026-11-25T00-02-00Z.json", "w") as stream:
        stream.write(text)
    nodes.report(3, record("a", 3, MTU))
    assert nodes.since() == {WRITE + MTU: at(1)}
    with pytest.raises(history.NoRun):
        history.read(f"{nodes.path}/runs/2026-11-25T00-02-00Z.json")


@pytest.mark.parametrize("time", ["", "../../../tmp/x", "9999-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "now"])
def test_the_time_in_a_record_decides_neither_a_name_nor_the_age_of_a_run(nodes, time):
    nodes.report(1, record("a", 1, MTU))
    nodes.report(2, record("a", 2, MTU, time=time), record("b", 2, MTU, time=time))
    assert nodes.runs() == ["00-01", "00-02"]
    assert nodes.since("a")[WRITE + MTU] == at(1)
    assert nodes.since("b")[WRITE + MTU] == (time if time.startswith("0001") else at(2))


@pytest.mark.parametrize("seed", range(30))
def test_a_run_of_anything_can_be_read_again_and_differs_not_from_itself(seed, tmp_path):
    dice = random.Random(seed)
    names = dice.sample(["a", "\ud800", "a/b", "\n", "", "x" * 300, "}", '"'], 4)
    records = [record(name, 1, *dice.sample([MTU, SUBNET, "\u2028", "\x00"], 2)) for name in names]
    report = fleet(records, at(2))
    run = history.run_of(report, findings_by_host(report), None)
    path = tmp_path / "run.json"
    path.write_text(history.to_json(run))
    again = history.read(str(path))
    assert history.differences(run, again) == history.differences(again, run) == []
    assert json.loads(path.read_text())["begin"] == at(2)
