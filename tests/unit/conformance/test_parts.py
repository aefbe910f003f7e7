# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The parts of the conformance suite that need no namespaces; tests/real/conformance runs the whole."""

from __future__ import annotations

import pytest

from conformance import clauses, command, judge, report, sandbox, state, subjects
from libcni.errors import ConfigError


def verdict(clause, status, version="1.0.0", message=""):
    one = clauses.CLAUSES[clause]
    return {
        "clause": clause,
        "version": version,
        "status": status,
        "message": message,
        "failures": int(status == "failed"),
        "call": {"shell": "env CNI_COMMAND=DEL /x"} if status == "failed" else None,
        "level": one.level,
        "section": one.section,
        "text": one.text,
        "repeat": f"python3 -m conformance --only {clause}",
    }


def made(*verdicts, problem=""):
    return {
        "plugin": "/opt/cni/bin/x",
        "kind": "chained",
        "supported": ["1.0.0"],
        "versions": ["1.0.0"],
        "problem": problem,
        "verdicts": list(verdicts),
    }


def test_every_clause_has_a_level_a_section_and_one_check():
    assert {one.level for one in clauses.CLAUSES.values()} == {clauses.MUST, clauses.SHOULD}
    assert all(one.section and one.text for one in clauses.CLAUSES.values())
    checks = {check.__name__ for check, _each in command._CHECKS}
    named = {one.check for one in clauses.CLAUSES.values()}
    assert {f"check_{name}" for name in named - {clauses.EVERY_CALL}} == checks


@pytest.mark.parametrize(
    ("verdicts", "problem", "status", "strict"),
    [
        ([verdict("del.twice", "passed")], "", 0, 0),
        ([verdict("del.twice", "failed")], "", 1, 1),
        ([verdict("check.damage", "failed")], "", 0, 1),
        ([verdict("del.twice", "not run")], "ADD fails", 3, 3),
        ([verdict("del.twice", "failed")], "ADD fails", 1, 1),
    ],
)
def test_the_exit_status_is_that_of_the_worst_clause(verdicts, problem, status, strict):
    assert report.exit_status(made(*verdicts, problem=problem)) == status
    assert report.exit_status(made(*verdicts, problem=problem), strict=True) == strict


def test_the_text_has_one_line_for_a_clause_and_shows_no_control_characters():
    text = report.as_text(
        made(
            verdict("del.twice", "failed", "0.4.0", "no \x1b[31m interface"),
            verdict("del.twice", "failed", "1.0.0", "later"),
            verdict("add.success", "passed"),
        )
    )
    assert "FAILED   must   del.twice" in text
    assert "(0.4.0, 1.0.0)" in text
    assert "no ?[31m interface" in text
    assert "\x1b" not in text
    assert "later" not in text
    assert "repeat: python3 -m conformance --only del.twice" in text
    assert text.endswith("1 passed, 1 failed, 0 not run\n")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "PLUGIN is missing"),
        (["/nowhere/x"], "/nowhere/x: No such file or directory"),
        (["/etc"], "/etc: not an executable file"),
        (["/bin/sh", "--versions", "3.0.0"], "--versions: unknown: 3.0.0"),
        (["/bin/sh", "--only", "del.thrice"], "--only: unknown: del.thrice"),
        (["/bin/sh", "--timeout", "0"], "must be greater than 0"),
        (["/bin/sh"], "give its configuration with --config FILE"),
        (["/bin/sh", "--config", "/nowhere"], "/nowhere: No such file or directory"),
        (["--strange"], "unrecognized arguments: --strange"),
    ],
)
def test_wrong_arguments_end_with_2(words, text, capsys):
    assert command.main(words) == 2
    assert text in capsys.readouterr().err


def test_the_list_of_clauses_needs_no_plugin(capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["--list"])
    assert ended.value.code == 0
    assert len(capsys.readouterr().out.splitlines()) == len(clauses.CLAUSES)


def test_without_root_nothing_runs(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sandbox.os, "geteuid", lambda: 1000)
    conf = tmp_path / "conf"
    conf.write_text('{"type": "sh"}')
    assert command.main(["/bin/sh", "--config", str(conf)]) == 3
    assert "run it as root" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "conf"),
    [
        ('{"type": "x", "a": 1}', {"type": "x", "a": 1}),
        ('{"name": "n", "plugins": [{"type": "y"}, {"type": "x"}]}', {"type": "x"}),
        ('{"type": "y", "ipam": {"type": "x"}}', {"type": "y", "ipam": {"type": "x"}}),
    ],
)
def test_a_configuration_may_be_a_conflist(tmp_path, text, conf):
    path = tmp_path / "conf"
    path.write_text(text)
    assert subjects.read_conf(str(path), "x") == conf


@pytest.mark.parametrize("text", ["", "[]", "{", '{"type": "y"}', '{"plugins": [1, null, {"type": 1, "ipam": 2}]}'])
def test_a_bad_configuration_is_refused_with_its_file(tmp_path, text):
    path = tmp_path / "conf"
    path.write_text(text)
    with pytest.raises(ConfigError, match=str(path)):
        subjects.read_conf(str(path), "x")


def test_differences_are_told_in_words():
    before = {("link", "a"): {"mtu": 1}, ("sysctl", "x"): "0", ("sysctl", "gone"): "1", ("file", "/f"): "file"}
    now = {("link", "a"): {"mtu": 2}, ("sysctl", "x"): "1", ("address", "a", "10.0.0.1/8"): ""}
    found = state.changes(before, now)
    # A sysctl that is gone went with its interface.
    assert [change.key[0] for change in found] == ["address", "file", "link", "sysctl"]
    assert state.words_for(found) == (
        'address a 10.0.0.1/8 was added; file /f is gone; link a was {"mtu": 1}, is {"mtu": 2}; sysctl x was 0, is 1'
    )
    assert state.words_for(found, most=1) == "address a 10.0.0.1/8 was added; and 3 more"


@pytest.mark.parametrize(
    ("document", "version", "valid"),
    [
        ({"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.1/8"}]}, "1.0.0", True),
        # The version is judged by another clause.
        ({"cniVersion": "0.4.0"}, "1.0.0", True),
        ({"ip4": {"ip": "10.0.0.1/8"}}, "0.2.0", True),
        ({"ip4": {"ip": "10.0.0.1/8"}}, "1.0.0", False),
        ({"ips": []}, "0.2.0", False),
        ({"ips": [{"address": "10.0.0.1"}]}, "1.0.0", False),
        ({"ips": None, "interfaces": [None]}, "1.0.0", False),
        (None, "1.0.0", False),
    ],
)
def test_results_have_the_shape_of_their_version(document, version, valid):
    assert (judge.valid_result(document, version) == "") is valid


@pytest.mark.parametrize("text", ["", "[]\n", "[1]\n[2,\n3] ", "[1][2]"])
def test_iproute2_prints_several_documents(text):
    expected = {"": [[]], "[]\n": [[]], "[1]\n[2,\n3] ": [[1], [2, 3]], "[1][2]": [[1], [2]]}
    assert state._documents(text) == expected[text]


def test_what_iproute2_prints_may_be_cut():
    with pytest.raises(sandbox.SandboxError, match="cannot read what iproute2 prints"):
        state._documents('[{"a": ')
