# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._report.compare import worse
from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build

WRITE = {"kind": "write", "target": "/etc/cni/net.d/10-a.conflist", "class": "safe"}
ADD = {"kind": "add", "target": "a/c/eth0", "class": "safe"}
PROBLEM = {"level": "error", "code": "missing_plugin", "file": "/f", "pointer": "/plugins/0", "message": "gone"}


def record(*actions, **changed):
    result = {"actions": list(actions), **changed}
    return build("h", {"networks": result}, {})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (record(), record()),
        (record(WRITE, ADD), record(ADD)),
        (record(), record(dict(WRITE, **{"class": "foreign"}))),
        (record(failed=True, msg="one"), record()),
        (record(failed=True, msg="one"), record(failed=True, msg="one")),
        (record(confirmed=False), record(confirmed=True)),
        (record(confirmed=True), record()),
        (record(problems=[PROBLEM]), record(problems=[PROBLEM])),
        (record(), record(problems=[dict(PROBLEM, level="warning")])),
        # What the look before could not see.
        (record(findings=[{"code": "missing_plugin", "message": "bridge is not there"}]), record(ADD)),
        (record(failed=True, msg="one"), record(ADD)),
    ],
)
def test_no_worse(before, after):
    assert worse(before, after) == []


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (record(WRITE), record(ADD), "a run would now add a/c/eth0"),
        (record(findings=[{"code": "other", "message": "x"}]), record(ADD), "a run would now add a/c/eth0"),
        (record(), record(failed=True, msg="two"), "two"),
        (record(failed=True, msg="one"), record(failed=True, msg="two"), "two"),
        (record(confirmed=True), record(confirmed=False), "the runtimes no longer have their network loaded"),
        (record(), record(problems=[PROBLEM, PROBLEM]), "/f: /plugins/0: gone"),
    ],
)
def test_worse(before, after, says):
    (sentence,) = worse(before, after)
    assert sentence.startswith(says)


def test_problems_of_the_whole_directory_count_too():
    before, after = (build("h", {}, {"problems": found}) for found in ([], [PROBLEM]))
    assert worse(before, after) == ["/f: /plugins/0: gone"]


def test_whatever_a_host_returns_is_no_traceback():
    odd = build("h", {}, {"problems": [{"level": "error", "message": ["x"]}, 7], "conf": None})
    assert worse(record(), odd) == [""]


def test_what_was_worse_before_counts_while_it_holds():
    first = worse(record(), record(ADD))
    assert first == ["a run would now add a/c/eth0"]
    assert worse(record(ADD), record(ADD), first) == first
    assert worse(record(ADD), record(WRITE), first) == worse(record(), record(WRITE))
    assert worse(record(ADD), record(), first) == []
    broken = record(failed=True, msg="it fails")
    assert worse(broken, broken, ["it fails", "something else"]) == ["it fails"]
