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
    assert (entry.code, entry.file, entry.line, entry.column) == ("version_not_string", "/files/a.json", 1, 16)


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


# ---- drop-ins

BRIDGE = {"type": "bridge", "bridge": "b0", "ipam": {"type": "host-local", "subnet": "10.9.0.0/24"}}


def check_drop_ins(drop_ins, **keys):
    conflist = {"cniVersion": "1.0.0", "plugins": [BRIDGE], **keys}
    return check({"name": "apps", "conflist": conflist, "drop_ins": drop_ins})


def test_the_module_gets_file_and_text_in_the_order_of_the_runtimes():
    text = '{"type": "tuning", "mtu": 1400.0}'
    found = check_drop_ins(
        [{"file": "20-b.conf", "content": text}, {"file": "10-a.conf", "plugin": {"type": "portmap"}}]
    )
    assert [one for one in found.problems if one.level == "error"] == []
    [network] = found.rendered
    assert [one["file"] for one in network["drop_ins"]] == ["10-a.conf", "20-b.conf"]
    assert json.loads(network["drop_ins"][0]["content"]) == {"type": "portmap"}
    assert "1400.0" in network["drop_ins"][1]["content"]


def test_none_and_an_empty_list_are_not_the_same():
    assert "drop_ins" not in check_drop_ins(None).rendered[0]
    assert check_drop_ins([]).rendered[0]["drop_ins"] == []


@pytest.mark.parametrize(
    ("drop_ins", "code", "text"),
    [
        ({}, "bad_argument", "write a list"),
        (["x"], "bad_argument", "a drop-in is a mapping"),
        ([{"file": "x.conf"}], "bad_argument", "exactly one of plugin"),
        ([{"file": "x.conf", "plugin": {"type": "sbr"}, "content": "{}"}], "bad_argument", "exactly one of plugin"),
        ([{"file": "x.conf", "plugin": {"plugins": []}}], "bad_argument", "of one plugin"),
        ([{"file": "x.conf", "plugin": [1]}], "bad_argument", "of one plugin"),
        ([{"file": "x.json", "plugin": {"type": "sbr"}}], "bad_file_name", "end in .conf"),
        ([{"file": ".x.conf", "plugin": {"type": "sbr"}}], "bad_file_name", "end in .conf"),
        ([{"file": "../x.conf", "plugin": {"type": "sbr"}}], "bad_file_name", "not a plain file name"),
        ([{"plugin": {"type": "sbr"}}], "bad_file_name", "not a plain file name"),
        ([{"file": "x.conf", "plugin": {"type": "sbr"}}] * 2, "name_twice", "listed twice"),
        ([{"file": "x.conf", "plugn": {"type": "sbr"}}], "bad_argument", "did you mean plugin?"),
        ([{"file": "x.conf", "content": "{"}], "json_truncated", ""),
        ([{"file": "x.conf", "plugin": {"mtu": 1}}], "no_type", ""),
        ([{"file": "x.conf", "plugin": {"type": "tuning", "mtu": "1400"}}], "schema", ""),
    ],
)
def test_what_is_refused(drop_ins, code, text):
    found = check_drop_ins(drop_ins)
    assert found.rendered == []
    errors = [one for one in found.problems if one.level == "error"]
    assert code in [one.code for one in errors], errors
    assert any(text in one.message for one in errors)
    assert all(one.file.startswith("networks[0].drop_ins") for one in errors)


def test_a_finding_names_the_place_in_the_plugin():
    found = check_drop_ins([{"file": "x.conf", "plugin": {"type": "tuning", "mtu": "1400"}}])
    [error] = [one for one in found.problems if one.level == "error"]
    assert (error.file, error.pointer) == ("networks[0].drop_ins[0]", "/mtu")


def test_a_chain_that_the_drop_in_continues_is_no_fault():
    found = check_drop_ins([{"file": "x.conf", "plugin": {"type": "tuning"}}])
    assert found.problems == []


def test_a_conflist_that_ignores_drop_ins_has_none():
    found = check_drop_ins([{"file": "x.conf", "plugin": {"type": "tuning"}}], loadOnlyInlinedPlugins=True)
    assert "loadOnlyInlinedPlugins" in found.problems[0].message
    assert check_drop_ins([], loadOnlyInlinedPlugins=True).problems == []
