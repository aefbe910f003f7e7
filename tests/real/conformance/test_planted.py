# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A correct plugin passes, and each fault that is planted in it is found under the right clause."""

from __future__ import annotations

import re

import pytest

IPAM = {"type": "podwire-conformance-ipam"}
FAULTS = {
    "second DEL fails": "del.twice",
    "stray print": "output.only",
    "wrong version": "add.version",
    "leaked veth": "del.host",
    "IgnoreUnknown is ignored": "args.ignore_unknown",
    "lost key": "delegate.configuration",
    "no error code": "error.object",
    "hang": "run.deadline",
    "leaked lease": "del.host",
    "CHECK never fails": "check.damage",
}


def test_a_correct_plugin_keeps_every_clause(conformance, make_plugin):
    judged = conformance(*make_plugin("veth_plugin", ipam=IPAM), "--parallel", "8", "--strict")
    assert judged.clauses("failed") == set(), judged.stdout
    assert judged.status == 0, judged.stderr
    assert judged.report["kind"] == "interface"
    assert judged.report["versions"] == ["0.4.0", "1.0.0", "1.1.0"]
    # Those of chained and of IPAM plugins do not appear.
    assert judged.clauses("not run") == {"add.unknown_keys"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_under_its_clause(conformance, make_plugin, fault):
    clause = FAULTS[fault]
    words = [*make_plugin("veth_plugin", fault, ipam=IPAM), "--versions", "1.1.0", "--timeout", "20", "--parallel", "4"]
    judged = conformance(*words, "--only", clause)
    (level,) = {entry["level"] for entry in judged.report["verdicts"]}
    assert judged.clauses("failed") == {clause}, judged.stdout
    assert judged.status == (1 if level == "must" else 0)
    # Each failure comes with the command that repeats it.
    repeat = re.findall(r"^ +repeat: (.*)$", judged.stdout, re.MULTILINE)
    assert [line.endswith(f"--versions 1.1.0 --only {clause}") for line in repeat] == [True]
