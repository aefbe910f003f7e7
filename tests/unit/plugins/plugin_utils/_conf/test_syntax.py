# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._conf.validate import Checked, DataSource, TextSource


def check(data, name=None, levels=("syntax",)):
    return Checked(DataSource(data), "here", name, levels)


def found(checked):
    return [(entry.level, entry.code, entry.pointer) for entry in checked.problems]


GOOD = {"cniVersion": "1.0.0", "name": "apps", "plugins": [{"type": "bridge"}]}


def test_a_good_list_is_rendered_as_it_is():
    checked = check(GOOD)
    assert checked.problems == []
    assert (checked.name, json.loads(checked.text)) == ("apps", GOOD)


def test_a_missing_name_is_filled_in_after_the_version():
    checked = check({"cniVersion": "1.0.0", "plugins": [{"type": "bridge"}]}, "apps")
    assert checked.problems == []
    assert list(json.loads(checked.text)) == ["cniVersion", "name", "plugins"]
    checked = check({"plugins": [{"type": "bridge"}], "cniVersion": "1.0.0"}, "apps")
    assert list(json.loads(checked.text)) == ["name", "plugins", "cniVersion"]


def test_a_single_plugin_becomes_a_list_of_one():
    checked = check({"type": "bridge", "name": "apps", "mtu": 1, "cniVersion": "1.0.0"})
    assert checked.problems == []
    assert json.loads(checked.text) == {
        "cniVersion": "1.0.0",
        "name": "apps",
        "plugins": [{"type": "bridge", "mtu": 1}],
    }


def test_pointers_of_a_single_plugin_are_those_of_the_input():
    text = '{"cniVersion": "1.0.0", "name": "apps",\n "type": "a/b"}'
    checked = Checked(TextSource(text), "here", None, ("syntax",))
    (entry,) = checked.problems
    assert (entry.pointer, entry.line, entry.column) == ("/type", 2, 10)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"cniVersion": 1.0}, ("error", "version_not_string", "/cniVersion")),
        ({"cniVersion": None}, ("error", "version_not_string", "/cniVersion")),
        ({"cniVersion": "1.0"}, ("error", "unsupported_version", "/cniVersion")),
        ({"cniVersion": "1.2.0"}, ("error", "unsupported_version", "/cniVersion")),
        ({"cniVersion": ""}, ("error", "unsupported_version", "/cniVersion")),
        ({"cniVersions": "1.0.0"}, ("error", "version_not_string", "/cniVersions")),
        ({"cniVersions": ["1.0.0", 1.1]}, ("error", "version_not_string", "/cniVersions/1")),
        ({"cniVersions": ["1.0.x"]}, ("error", "unsupported_version", "/cniVersions/0")),
        ({"cniVersions": ["1.0.1"]}, ("error", "unsupported_version", "/cniVersions/0")),
        ({"name": "../x"}, ("error", "bad_name", "/name")),
        ({"name": "a b"}, ("error", "bad_name", "/name")),
        ({"name": ""}, ("error", "bad_name", "/name")),
        ({"name": "x\n"}, ("error", "bad_name", "/name")),
        ({"name": 7}, ("error", "bad_name", "/name")),
        ({"disableCheck": "yes"}, ("error", "not_boolean", "/disableCheck")),
        ({"disableCheck": "True"}, ("warning", "not_boolean", "/disableCheck")),
        ({"disableGC": None}, ("error", "not_boolean", "/disableGC")),
        ({"loadOnlyInlinedPlugins": 1}, ("error", "not_boolean", "/loadOnlyInlinedPlugins")),
        ({"plugins": []}, ("error", "no_plugins", "/plugins")),
        ({"plugins": {}}, ("error", "no_plugins", "/plugins")),
        ({"plugins": None}, ("error", "no_plugins", "/plugins")),
        ({"plugins": ["bridge"]}, ("error", "no_type", "/plugins/0")),
        ({"plugins": [{}]}, ("error", "no_type", "/plugins/0")),
        ({"plugins": [{"type": ""}]}, ("error", "no_type", "/plugins/0")),
        ({"plugins": [{"type": 5}]}, ("error", "bad_type", "/plugins/0/type")),
        ({"plugins": [{"type": "../bridge"}]}, ("error", "bad_type", "/plugins/0/type")),
        ({"plugins": [{"Type": "/opt/cni/bin/bridge"}]}, ("error", "bad_type", "/plugins/0/Type")),
        ({"plugins": [{"type": "a", "ipam": {"type": "x/y"}}]}, ("error", "bad_type", "/plugins/0/ipam/type")),
        ({"plugins": [{"type": "a", "delegate": {"type": "/b"}}]}, ("error", "bad_type", "/plugins/0/delegate/type")),
        ({"plugins": [{"type": "a", "ipam": []}]}, ("error", "refused_by_libcni", "")),
        ({"plugins": [{"type": "a", "capabilities": {"mac": 1}}]}, ("error", "refused_by_libcni", "")),
        ({"plugins": [{"type": "a", "x": ["{{ y }}"]}]}, ("warning", "template", "/plugins/0/x/0")),
    ],
)
def test_what_libcni_refuses_is_found(change, expected):
    assert found(check({**GOOD, **change})) == [expected]


def test_keys_that_libcni_reads_by_their_exact_name():
    wrong = {"cniversion": "1.0.0", "name": "a", "Plugins": [{"type": "bridge"}]}
    codes = found(check(wrong))
    assert ("error", "key_case", "/cniversion") in codes
    assert ("error", "key_case", "/Plugins") in codes


def test_no_version_is_a_warning():
    assert found(check({"name": "a", "plugins": [{"type": "b"}]})) == [("warning", "no_version", "")]


def test_versions_newer_than_libcni_are_fine_beside_a_known_one():
    assert check({**GOOD, "cniVersions": ["1.0.0", "9.0.0"]}).problems == []


@pytest.mark.parametrize(
    ("given", "advice"), [(1.0, '"1.0.0"'), (1.1, '"1.1.0"'), ("0.4", '"0.4.0"'), ("0.3.2", '"0.3.'), (4, '"1.0.0"')]
)
def test_a_version_to_write_is_named(given, advice):
    (entry,) = check({**GOOD, "cniVersion": given}).problems
    assert advice in entry.message


def test_names_have_to_agree_and_one_has_to_be_there():
    assert found(check(GOOD, "other")) == [("error", "name_differs", "/name")]
    assert found(check({"cniVersion": "1.0.0", "plugins": [{"type": "bridge"}]})) == [("error", "no_name", "")]


@pytest.mark.parametrize("text", ["[]", "null", '"x"', "3"])
def test_something_else_than_an_object_is_refused(text):
    assert found(Checked(TextSource(text), "here", "a", ("syntax",))) == [("error", "not_object", "")]


def test_json_in_a_string_is_told_from_other_strings():
    (entry,) = Checked(TextSource('"{\\"name\\": \\"a\\"}"'), "here", "a", ("syntax",)).problems
    assert (entry.code, "to_json" in entry.message) == ("not_object", True)


@pytest.mark.parametrize(
    "text", ["{{ mtu }}", "{% if x %}1{% endif %}", "__CNI_MTU__", "x ${MTU}", "<% x %>", "@MTU_1_@@A_B@"]
)
def test_a_value_that_nobody_has_rendered_is_a_warning(text):
    plugin = {"type": "bridge", "x": [text]}
    assert found(check({**GOOD, "plugins": [plugin]})) == [("warning", "template", "/plugins/0/x/0")]


@pytest.mark.parametrize("text", ["{{", "}} {{", "__init__", "a__B", "$ENV", "100%", "me@EXAMPLE", "{%"])
def test_values_that_only_look_a_bit_like_templates_pass(text):
    assert found(check({**GOOD, "plugins": [{"type": "bridge", "x": text}]})) == []


def test_without_the_level_only_the_name_is_tested():
    assert check({**GOOD, "cniVersion": "7"}, levels=()).problems == []
    assert found(check({**GOOD, "name": "../x"}, levels=())) == [("error", "bad_name", "/name")]
