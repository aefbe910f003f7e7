# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._conf import positions
from ansible_collections.podwire.cni.plugins.plugin_utils._conf.positions import (
    UNKNOWN,
    DataPositions,
    TextPositions,
    text_of,
)

TEXT = """{
\t"name": "a",
\t"plugins": [
\t\t{"type": "bridge", "ipam": {"subnet": "x"}},
    {"type": "portmap"}
  ]
}"""


@pytest.mark.parametrize(
    ("pointer", "key", "expected"),
    [
        ((), False, (1, 1)),
        (("name",), False, (2, 10)),
        (("name",), True, (2, 2)),
        (("plugins", 0, "ipam", "subnet"), False, (4, 41)),
        (("plugins", 0, "ipam", "subnet"), True, (4, 31)),
        (("plugins", 1), False, (5, 5)),
        (("plugins", 1, "type"), False, (5, 14)),
        # What is not there is reported where it would have to be.
        (("plugins", 1, "ipam", "type"), False, (5, 5)),
        (("plugins", 7), False, (3, 13)),
    ],
)
def test_positions_in_a_text(pointer, key, expected):
    assert TextPositions(TEXT).find(pointer, key) == expected


@pytest.mark.parametrize("char", ["\u2028", "\x85", "\x7f", "ü", "\\u00e4", "\\/"])
def test_rare_characters_do_not_move_a_position(char):
    assert TextPositions('{"a": "%s", "b": 1}' % char).find(("b",)) == (1, 16 + len(char))


def test_a_long_key_has_a_position():
    assert TextPositions('{"%s": 1}' % ("k" * 2000)).find(("k" * 2000,)) == (1, 2006)


@pytest.mark.parametrize(("line_break", "line"), [("\n", 3), ("\r\n", 3), ("\r", 3)])
def test_every_line_break_counts_once(line_break, line):
    text = line_break.join(["{", '"a": [1,', '{"b": "}"}]}'])
    assert TextPositions(text).find(("a", 1, "b")) == (line, 7)


def test_deep_nesting_has_positions():
    text = "[" * 5000 + "]" * 5000
    assert TextPositions(text).find([0] * 4999) == (1, 5000)


def test_positions_are_those_of_every_value_of_a_text():
    """Enumerate all values: what stands at the position of a pointer begins the value that json reads there."""

    def walk(value, pointer):
        yield pointer, value
        for key, inner in (
            value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
        ):
            yield from walk(inner, [*pointer, key])

    document = {"a": [{"b": "x,]}:", 'q"\\': [[], {}, None, True, -1.5e3]}, "[{"], "": {"ü": "\u2028"}}
    for indent in (None, 1, "\t"):
        text = json.dumps(document, indent=indent)
        for pointer, value in walk(document, []):
            line, column = TextPositions(text).find(pointer)
            rest = "\n".join(text.split("\n")[line - 1 :])[column - 1 :]
            assert json.JSONDecoder().raw_decode(rest)[0] == value, pointer


def test_the_last_of_equal_keys_is_the_one_that_counts():
    assert TextPositions('{"a": 1, "a": 2}').find(("a",)) == (1, 15)


def test_duplicate_keys_are_found_at_every_depth():
    text = '{"a": 1,\n "a": [{"b": 1, "c": 2, "b": 3}]}'
    positions = TextPositions(text)
    found = [(pointer, positions.find(pointer, key=True)) for pointer in positions.duplicate_keys()]
    assert found == [(("a",), (2, 2)), (("a", 0, "b"), (2, 25))]


def test_pointers_are_written_as_rfc_6901_wants_them():
    assert text_of(("plugins", 0, "a/b", "c~d")) == "/plugins/0/a~1b/c~0d"
    assert text_of(()) == ""


def test_values_of_a_playbook_are_found_by_their_origin():
    tags = pytest.importorskip("ansible._internal._datatag._tags")

    def at(value, line, column):
        return tags.Origin(path="/p.yml", line_num=line, col_num=column).tag(value)

    data = at({at("type", 4, 3): at("bridge", 4, 9), at("mtu", 5, 3): 1500}, 3, 3)
    found = DataPositions(data)
    assert found.find(("type",)) == (4, 9)
    assert found.find(("type",), key=True) == (4, 3)
    assert found.find(("nothing",)) == (3, 3)


def test_without_origins_there_is_no_position(monkeypatch):
    monkeypatch.setattr(positions, "Origin", None)
    assert DataPositions({"a": 1}).find(("a",)) == UNKNOWN
