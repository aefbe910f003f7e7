# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import datetime

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._conf.source import DataSource, TextSource, Unreadable


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("", "json_empty", None, None),
        (" \n ", "json_empty", None, None),
        ("\ufeff{}", "json_bom", 1, 1),
        ('{"a": 1,}', "json_trailing_comma", 1, 8),
        ('{\n"a": [1 ,\n]}', "json_trailing_comma", 2, 9),
        ('{\n  // why\n  "a": 1}', "json_comment", 2, 3),
        ('{"a": 1} # why', "json_comment", 1, 10),
        ('{"a": /* why */ 1}', "json_comment", 1, 7),
        ('{"a": {{ b }}}', "json_template", 1, None),
        ("{% if a %}{}{% endif %}", "json_template", 1, None),
        ("{{ a | to_json }}", "json_template", 1, None),
        ("{'a': 1}", "json_quotes", 1, 2),
        ("{a: 1}", "json_unquoted_key", 1, 2),
        ("cniVersion: 1.0.0", "json_unquoted_key", 1, 1),
        ('{"a": True}', "json_word", 1, 7),
        ('{"a": None}', "json_word", 1, 7),
        ('{"a": 1 "b": 2}', "json_missing_comma", 1, 9),
        ('{"a": 1', "json_invalid", 1, 8),
        ('{"a": NaN}', "json_invalid", 1, 7),
        ('{"a": 1e999}', "json_invalid", 1, 7),
        ('{"a": "\t"}', "json_invalid", 1, 8),
    ],
)
def test_the_cause_of_invalid_json_is_named(text, code, line, column):
    with pytest.raises(Unreadable) as error:
        TextSource(text).document()
    assert error.value.code == code
    assert line is None or error.value.line == line
    assert column is None or error.value.column == column


def test_duplicate_keys_are_noticed():
    source = TextSource('{"a": {"b": 1, "b": 2}}')
    assert source.document() == {"a": {"b": "2"}}
    assert source.has_duplicate_keys
    clean = TextSource('{"a": {"b": 1}, "c": {"b": 1}}')
    clean.document()
    assert not clean.has_duplicate_keys


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
        ({"a": {1: 2}}, "key_not_string", ("a", 1)),
        ({"a": [datetime.date(2026, 1, 1)]}, "not_json_type", ("a", 0)),
        ({"a": float("inf")}, "not_json_type", ("a",)),
        ({"a": float("nan")}, "not_json_type", ("a",)),
    ],
)
def test_what_json_does_not_have_is_refused_with_its_place(data, code, pointer):
    with pytest.raises(Unreadable) as error:
        DataSource(data).document()
    assert (error.value.code, error.value.pointer) == (code, pointer)
