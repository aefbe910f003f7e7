# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._conf.networks import LEVELS, CheckedNetworks

GOOD = {"name": "apps", "conflist": {"cniVersion": "1.0.0", "plugins": [{"type": "loopback"}]}}


def check(*networks, levels=None, files=None):
    def read(src):
        if src not in (files or {}):
            raise ValueError("there is no file %r" % src)
        return "/files/" + src, files[src]

    return CheckedNetworks(list(networks), list(LEVELS) if levels is None else levels, read)


def codes(checked):
    return [(entry.code, entry.file) for entry in checked.problems]


def test_what_the_module_gets_is_name_and_text():
    checked = check(dict(GOOD, priority="7", file=None), {"name": "old", "state": "absent", "src": "ignored"})
    assert checked.problems == []
    assert checked.present == 1
    first, second = checked.rendered
    assert (first["name"], first["priority"], first["state"]) == ("apps", 7, "present")
    assert json.loads(first["content"])["name"] == "apps"
    assert second == {"name": "old", "state": "absent"}


def test_what_comes_back_needs_a_name_or_a_file_of_any_kind():
    wanted = [{"name": "a"}, {"file": "05-broken.conf"}, {"file": ".x.json"}, {"name": "b", "file": "b.conflist"}]
    checked = check(*[dict(one, state="restored", src="ignored") for one in wanted])
    assert (checked.problems, checked.present) == ([], 0)
    assert checked.rendered == [dict(one, state="restored") for one in wanted]
    assert codes(check({"state": "restored"})) == [("bad_argument", "networks[0]")]
    assert "'file'" in check({"state": "restored"}).problems[0].message
    assert codes(check({"state": "restored", "file": "../x"})) == [("bad_file_name", "networks[0]")]
    assert codes(check({"state": "gone", "name": "a"})) == [("bad_argument", "networks[0]")]


def test_a_file_is_named_by_its_path():
    checked = check({"name": "a", "src": "a.json"}, files={"a.json": b'{"cniVersion": 1,\n "type": "loopback"}'})
    (entry,) = checked.problems
    assert (entry.code, entry.file, entry.line, entry.column) == (
        "version_not_string",
        "/files/a.json",
        1,
        16,
    )


def test_the_name_comes_from_the_configuration_where_the_task_has_none():
    checked = check({"content": '{"cniVersion": "1.0.0", "name": "x", "type": "loopback"}'})
    assert (checked.problems, checked.rendered[0]["name"]) == ([], "x")


@pytest.mark.parametrize(
    ("network", "code", "file"),
    [
        ("apps", "bad_argument", "networks[0]"),
        ({"name": "a"}, "bad_argument", "networks[0]"),
        (dict(GOOD, src="x"), "bad_argument", "networks[0]"),
        (dict(GOOD, state="here"), "bad_argument", "networks[0]"),
        (dict(GOOD, prioritet=3), "bad_argument", "networks[0]"),
        (dict(GOOD, priority=100), "bad_priority", "networks[0]"),
        (dict(GOOD, priority="x"), "bad_priority", "networks[0]"),
        (dict(GOOD, priority=True), "bad_priority", "networks[0]"),
        (dict(GOOD, file="10-a.conf"), "bad_file_name", "networks[0]"),
        (dict(GOOD, file="a/b.conflist"), "bad_file_name", "networks[0]"),
        (dict(GOOD, file="../b.conflist"), "bad_file_name", "networks[0]"),
        (dict(GOOD, file=".b.conflist"), "bad_file_name", "networks[0]"),
        ({"state": "absent"}, "bad_argument", "networks[0]"),
        ({"state": "absent", "name": "../x"}, "bad_name", "networks[0]"),
        ({"name": "a", "conflist": "{}"}, "bad_argument", "networks[0].conflist"),
        ({"name": "a", "content": {"a": 1}}, "bad_argument", "networks[0].content"),
        ({"name": "a", "src": "missing"}, "src_unreadable", "networks[0].src"),
        ({"name": "a", "src": "latin"}, "not_utf8", "/files/latin"),
    ],
)
def test_bad_entries_are_refused_with_their_place(network, code, file):
    checked = check(network, files={"latin": b'{"a":\n"\xe4"}'})
    assert codes(checked) == [(code, file)]
    assert all(entry.level == "error" for entry in checked.problems)


@pytest.mark.parametrize(
    ("data", "words"),
    [("{}".encode("utf-16"), "UTF-16"), (b"\x1f\x8b\x08\0", "gzip"), (b'{\n"a": "\xe4"}', "line 2 is not UTF-8")],
)
def test_what_a_file_is_instead_of_utf8_is_named(data, words):
    (entry,) = check({"name": "a", "src": "x"}, files={"x": data}).problems
    assert entry.code == "not_utf8"
    assert words in entry.message


def test_all_errors_of_all_networks_are_collected():
    checked = check({"name": "a", "content": "{"}, GOOD, {"name": "b"}, {"name": "c d", "state": "absent"})
    assert codes(checked) == [
        ("json_truncated", "networks[0].content"),
        ("bad_argument", "networks[2]"),
        ("bad_name", "networks[3]"),
    ]


def test_one_name_twice_is_refused():
    assert codes(check(GOOD, {"name": "apps", "state": "absent"})) == [("name_twice", "networks")]


@pytest.mark.parametrize("networks", [None, "apps", {}, []])
def test_the_list_itself_is_tested(networks):
    assert codes(CheckedNetworks(networks, list(LEVELS), None)) == [("bad_argument", "networks")]


def test_no_network_is_fine_for_a_task_with_something_else_to_do():
    checked = CheckedNetworks([], list(LEVELS), None, may_be_empty=True)
    assert (checked.problems, checked.rendered) == ([], [])
    assert codes(CheckedNetworks({}, list(LEVELS), None, may_be_empty=True)) == [("bad_argument", "networks")]


@pytest.mark.parametrize("levels", ["syntax", ["syntaks"]])
def test_the_levels_are_tested(levels):
    assert ("bad_argument", "validate") in codes(check(GOOD, levels=levels))


def test_levels_that_are_left_out_are_not_applied():
    wrong = {"name": "a", "conflist": {"cniVersion": "1.0.0", "plugins": [{"type": "bridge", "mtu": "x"}]}}
    assert codes(check(wrong)) == [("schema", "networks[0].conflist")]
    assert check(wrong, levels=["syntax"]).problems == []
