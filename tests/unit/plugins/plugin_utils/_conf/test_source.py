# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import datetime
import json

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._conf.validate import (
    DataSource,
    TextSource,
    Unreadable,
    parse,
    render,
)

BAD = [
    ("", "json_empty", None, None, "write a network configuration"),
    (" \n ", "json_empty", None, None, "is empty"),
    ("\ufeff{}", "json_bom", 1, 1, "without"),
    ("\0\0\0\0", "json_zeros", 1, 1, "crash"),
    ("$ANSIBLE_VAULT;1.1;AES256\n6162", "json_vault", 1, 1, "decrypt"),
    ("\n<!DOCTYPE html><html>", "json_markup", 2, 1, "failed download"),
    ("---\ncniVersion: 1.0.0", "json_yaml", 1, 1, "conflist"),
    ("- type: bridge\n", "json_yaml", 1, 1, "conflist"),
    ("cniVersion: 1.0.0\nname: a", "json_yaml", 1, 1, "conflist"),
    ('{"a": 1}\n<<<<<<< HEAD\n{}', "json_conflict", 2, 1, "merge conflict"),
    ('{"a": 1,}', "json_trailing_comma", 1, 8, "remove it"),
    ('{\n"a": [1 ,\n]}', "json_trailing_comma", 2, 9, "remove it"),
    ('{"a": 1,, "b": 2}', "json_extra_comma", 1, 9, "remove it"),
    ("[,1]", "json_extra_comma", 1, 2, "remove it"),
    ('{\n  // why\n  "a": 1}', "json_comment", 2, 3, '"_comment"'),
    ('{"a": 1} # why', "json_comment", 1, 10, "remove it"),
    ('{"a": /* why */ 1}', "json_comment", 1, 7, "remove it"),
    ("# why\n{}", "json_comment", 1, 1, "remove it"),
    ('{"a": {{ b }}}', "json_template", 1, None, "lookup"),
    ("{% if a %}{}{% endif %}", "json_template", 1, None, "lookup"),
    ("{{ a | to_json }}", "json_template", 1, None, "lookup"),
    ('{"mtu": __CNI_MTU__}', "json_template", 1, 9, "unrendered"),
    ('{"mtu": ${MTU}}', "json_template", 1, 9, "unrendered"),
    ('{"mtu": <%= mtu %>}', "json_template", 1, 9, "unrendered"),
    ("{'a': 1}", "json_quotes", 1, 2, 'write "'),
    ("{\u201ca\u201d: 1}", "json_quotes", 1, 2, 'write "'),
    ("{\"a\": 'b'}", "json_quotes", 1, 7, 'write "'),
    ("{a: 1}", "json_unquoted_key", 1, 2, "double quotes"),
    ('{"a": bridge}', "json_unquoted_value", 1, 7, 'write "bridge"'),
    ('{"a": 10.1.0.0/24}', "json_unquoted_value", 1, 7, 'write "10.1.0.0/24"'),
    ('{"a": fd00::/64}', "json_unquoted_value", 1, 7, 'write "fd00::/64"'),
    ('{"a": True}', "json_word", 1, 7, "true, false or null"),
    ('{"a": None}', "json_word", 1, 7, "true, false or null"),
    ('{"a": NaN}', "json_number", 1, 7, "write a number"),
    ('{"a": -Infinity}', "json_number", 1, 7, "write a number"),
    ('{"a": 1e999}', "json_number", 1, 7, "does not allow the number"),
    ('{"a": 007}', "json_number", 1, 7, "zeros in front"),
    ('{"a": +1}', "json_number", 1, 7, "without a sign"),
    ('{"a": 0x10}', "json_number", 1, 7, "0x10"),
    ('{"a": 1500px}', "json_number", 1, 7, "1500px"),
    ('{"a": 1 "b": 2}', "json_missing_comma", 1, 9, "write one"),
    ('{"a": 1\n "b": 2}', "json_missing_comma", 2, 2, "write one"),
    ('{"a": [1 2]}', "json_missing_comma", 1, 10, "write one"),
    ('{"a": 1; "b": 2}', "json_missing_comma", 1, 8, "';'"),
    ('{"a" 1}', "json_missing_colon", 1, 6, "write one"),
    ('{"a" = 1}', "json_missing_colon", 1, 6, "'='"),
    ('{"a": , "b": 1}', "json_missing_value", 1, 5, "empty variable"),
    ('{"a": }', "json_missing_value", 1, 5, "write a value"),
    ('{"a": "\t"}', "json_control", 1, 8, "a tab"),
    ('{"a": "b\n}', "json_control", 1, 9, "a line break"),
    ('{"a": "\\d"}', "json_escape", 1, 8, "backslash"),
    ('{"a": "b', "json_truncated", 1, 7, "closing quote"),
    ('{"a": 1', "json_truncated", 1, 8, "} is missing"),
    ('{"a": [\n {"b": [2', "json_truncated", 2, 10, "the '[' of line 2 is closed; it is cut off, or ]}]} is missing"),
    ('{"a": [1}', "json_wrong_bracket", 1, 9, "does not close the '[' of line 1"),
    ('{"a": 1}}', "json_extra_bracket", 1, 9, "remove it"),
    ('{"a": 1}\n{"b": 1}', "json_extra_text", 2, 1, "one file has one network"),
]


@pytest.mark.parametrize(
    "text",
    [
        '{"password": hush-hush}',
        '{"password": 0hush-hush}',
        '{"password": 10.0.0.1}',
        '{"a": {"tokens": ["x", hush-hush]}}',
        '{"env": [{"name": "DB_PASSWORD", "value": hush-hush}]}',
    ],
)
def test_a_secret_without_quotes_is_not_shown(text):
    with pytest.raises(Unreadable) as error:
        TextSource(text).document()
    assert error.value.finding.code in ("json_unquoted_value", "json_number")
    assert "********" in str(error.value) and "hush" not in str(error.value)
    assert "10.0" not in str(error.value)


@pytest.mark.parametrize(("text", "code", "line", "column", "words"), BAD, ids=range(len(BAD)))
def test_the_cause_of_invalid_json_is_named(text, code, line, column, words):
    with pytest.raises(Unreadable) as error:
        TextSource(text).document()
    assert error.value.finding.code == code
    assert line is None or error.value.finding.line == line
    assert column is None or error.value.finding.column == column
    assert words in error.value.finding.message


@pytest.mark.parametrize("cut", range(1, 90))
def test_a_text_cut_off_anywhere_is_refused_with_a_place(cut):
    text = '{"cniVersion": "1.0.0", "plugins": [{"type": "bridge", "mtu": 1500, "ipam": {"a": [true]}}]}'
    with pytest.raises(Unreadable) as error:
        TextSource(text[:cut]).document()
    assert error.value.finding.code.startswith("json_")
    assert error.value.finding.line == 1
    assert error.value.finding.column <= cut + 1


def test_a_mapping_becomes_plain_and_keeps_its_order():
    class Tagged(str):
        pass

    document = DataSource({Tagged("b"): (Tagged("x"), 1.5), "a": None}).document()
    assert list(document) == ["b", "a"]
    assert document == {"b": ["x", 1.5], "a": None}
    assert not isinstance(document["b"][0], Tagged)


@pytest.mark.parametrize(
    ("data", "code", "pointer"),
    [
        ({"a": {1: 2}}, "key_not_string", "/a/1"),
        ({"a": [datetime.date(2026, 1, 1)]}, "not_json_type", "/a/0"),
        ({"a": float("inf")}, "not_json_type", "/a"),
        ({"a": float("nan")}, "not_json_type", "/a"),
    ],
)
def test_what_json_does_not_have_is_refused_with_its_place(data, code, pointer):
    with pytest.raises(Unreadable) as error:
        DataSource(data).document()
    assert (error.value.finding.code, error.value.finding.pointer) == (code, pointer)


@pytest.mark.parametrize(
    "number", ["1500.0", "1500", "1e3", "1E+3", "-0", "9007199254740993", "18446744073709551615", "0.10"]
)
def test_a_number_stays_as_it_was_typed(number):
    assert render(parse('{"mtu": %s}' % number)) == '{\n  "mtu": %s\n}\n' % number


def test_keys_stay_in_their_order_and_empty_values_stay_short():
    text = '{"b": [], "a": {}, "c": [1, {"z": null, "y": [true, false]}]}'
    assert render(parse(text)) == (
        '{\n  "b": [],\n  "a": {},\n  "c": [\n    1,\n    {\n      "z": null,\n      "y": [\n        true,\n'
        "        false\n      ]\n    }\n  ]\n}\n"
    )


def test_text_stays_readable_and_is_escaped_where_json_wants_it():
    assert render({"ä": 'a"b\\\n'}) == '{\n  "ä": "a\\"b\\\\\\n"\n}\n'


def test_values_of_yaml_are_rendered_as_json():
    data = {"mtu": 1500.0, "big": 2**64, "on": True, "nothing": None}
    assert json.loads(render(data)) == data
    assert '"mtu": 1500.0' in render(data)


def test_what_json_does_not_have_is_not_written():
    with pytest.raises(ValueError, match="JSON"):
        render({"a": float("nan")})
