# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import re
import stat

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._report import folder
from ansible_collections.podwire.cni.plugins.plugin_utils._report.fleet import fleet
from ansible_collections.podwire.cni.plugins.plugin_utils._report.metrics import metrics_of
from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build, unusable

STEP = {"kind": "write", "target": "/etc/cni/net.d/10-a.conflist", "class": "safe", "reason": "mtu 1450, want 1500"}
RECORDS = [
    build("clean", {}, {"readiness": {"ready": True}}, time="2026-11-25T00:00:00Z"),
    build("drift", {"networks": {"actions": [STEP, STEP | {"class": "disruptive"}]}}, {}),
    build("leaks", {}, {"garbage": [{"collectable": True}]}),
    unusable("error", "unreachable: no route"),
]
REPORT = fleet(RECORDS, "2026-11-25T00:01:00Z")
HOSTILE = ['a"b\\c\nd', "\x00\x1b\ud800\ufffe\uffff", "</testcase>&amp;]]>", "{host=}", "\U0001f600\u05d0"]
# The text format of Prometheus: a comment, or a name, labels and a value.
LABEL = r'\w+="(?:[^"\\\n]|\\[\\"n])*"'
LINE = re.compile(rf"# (HELP|TYPE) podwire_cni_\w+ .+|podwire_cni_\w+(\{{{LABEL}(,{LABEL})*\}})? \d+")


def test_metrics_tell_the_totals_and_the_hosts():
    lines = metrics_of(REPORT).splitlines()
    for line in (
        "podwire_cni_report_timestamp_seconds 1795564860",
        'podwire_cni_hosts{status="clean"} 2',
        'podwire_cni_hosts{status="error"} 1',
        "podwire_cni_hosts_attention 3",
        'podwire_cni_steps{class="safe"} 1',
        'podwire_cni_host_status{host="drift",status="drift"} 1',
        'podwire_cni_host_steps{host="drift",class="disruptive"} 1',
        'podwire_cni_host_attention{host="leaks",reason="leaks"} 1',
        'podwire_cni_host_inspected_timestamp_seconds{host="clean"} 1795564800',
    ):
        assert line in lines
    assert [line for line in lines if line.startswith("podwire_cni_host_ready")] == [
        'podwire_cni_host_ready{host="clean"} 1'
    ]
    assert len({line for line in lines if not line.startswith("#")}) == len([x for x in lines if not x.startswith("#")])


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_host_returns_stays_text(text):
    record = build(text, {"networks": {"actions": [STEP | {"target": text, "reason": text, "kind": text}]}}, {}, [text])
    report = fleet([record])
    assert [line for line in metrics_of(report).splitlines() if not LINE.fullmatch(line)] == []


def test_others_may_read_what_is_for_them(tmp_path):
    for record in RECORDS:
        folder.write_record(str(tmp_path / "report"), record)
    path = str(tmp_path / "prometheus")
    folder.write_report(str(tmp_path / "report"), prometheus=path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o644
    assert stat.S_IMODE(os.stat(tmp_path / "report" / "report.json").st_mode) == 0o600
