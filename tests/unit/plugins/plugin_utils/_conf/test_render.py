# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._conf.render import parse, render


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
