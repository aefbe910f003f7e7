# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._conf.networks import LEVELS, CheckedNetworks

BRIDGE = {"type": "bridge", "bridge": "b0", "ipam": {"type": "host-local", "subnet": "10.9.0.0/24"}}


def check(drop_ins, **keys):
    conflist = {"cniVersion": "1.0.0", "plugins": [BRIDGE], **keys}
    return CheckedNetworks([{"name": "apps", "conflist": conflist, "drop_ins": drop_ins}], list(LEVELS), open)


def test_the_module_gets_file_and_text_in_the_order_of_the_runtimes():
    text = '{"type": "tuning", "mtu": 1400.0}'
    found = check([{"file": "20-b.conf", "content": text}, {"file": "10-a.conf", "plugin": {"type": "portmap"}}])
    assert [one for one in found.problems if one.level == "error"] == []
    [network] = found.rendered
    assert [one["file"] for one in network["drop_ins"]] == ["10-a.conf", "20-b.conf"]
    assert json.loads(network["drop_ins"][0]["content"]) == {"type": "portmap"}
    assert "1400.0" in network["drop_ins"][1]["content"]


def test_none_and_an_empty_list_are_not_the_same():
    assert "drop_ins" not in check(None).rendered[0]
    assert check([]).rendered[0]["drop_ins"] == []


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
    found = check(drop_ins)
    assert found.rendered == []
    errors = [one for one in found.problems if one.level == "error"]
    assert code in [one.code for one in errors], errors
    assert any(text in one.message for one in errors)
    assert all(one.file.startswith("networks[0].drop_ins") for one in errors)


def test_a_finding_names_the_place_in_the_plugin():
    found = check([{"file": "x.conf", "plugin": {"type": "tuning", "mtu": "1400"}}])
    [error] = [one for one in found.problems if one.level == "error"]
    assert (error.file, error.pointer) == ("networks[0].drop_ins[0]", "/mtu")


def test_a_chain_that_the_drop_in_continues_is_no_fault():
    found = check([{"file": "x.conf", "plugin": {"type": "tuning"}}])
    assert found.problems == []


def test_a_conflist_that_ignores_drop_ins_has_none():
    found = check([{"file": "x.conf", "plugin": {"type": "tuning"}}], loadOnlyInlinedPlugins=True)
    assert "loadOnlyInlinedPlugins" in found.problems[0].message
    assert check([], loadOnlyInlinedPlugins=True).problems == []
