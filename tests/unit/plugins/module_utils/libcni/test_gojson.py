# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""JSON as Go reads and writes it (libcni.md 1.3)."""

from __future__ import annotations

import json
import random
import sys

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import gojson
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import CNIError, ConfigError, JSONError


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1.0", "1"),
        ("1500.0", "1500"),
        ("1e3", "1000"),
        ("-0", "-0"),
        ("-0.0", "-0"),
        ("0", "0"),
        ("0.0", "0"),
        ("0e5", "0"),
        ("1e20", "100000000000000000000"),
        ("123456789012345680000.0", "123456789012345680000"),
        ("1e21", "1e+21"),
        ("1.5e300", "1.5e+300"),
        ("1e-6", "0.000001"),
        ("0.000001", "0.000001"),
        ("0.00000123", "0.00000123"),
        ("1e-7", "1e-7"),
        ("1.25e-7", "1.25e-7"),
        ("1e-10", "1e-10"),
        ("-2.5e-8", "-2.5e-8"),
        ("5e-324", "5e-324"),
        ("0.1", "0.1"),
        ("-123.456", "-123.456"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        # Exact, where Go would go through float64.
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551615", "18446744073709551615"),
        ("1000000000000000000000", "1000000000000000000000"),
        ("-9223372036854775809", "-9223372036854775809"),
    ],
)
def test_numbers(text, written):
    assert gojson.dumps(gojson.loads(text)) == written.encode()


def test_longest_integers():
    largest = "1" + "0" * 308
    assert gojson.dumps(gojson.loads(largest)) == largest.encode()
    for text in ("2" + "0" * 308, "-1" + "0" * 309, "1" * 5000):
        with pytest.raises(JSONError, match=r"is not a number that JSON allows"):
            gojson.loads(text)


def test_numbers_that_cannot_be_written():
    for value in (float("nan"), float("inf"), float("-inf"), 1 << 1025, 10**5000):
        with pytest.raises(JSONError, match=r"unsupported value"):
            gojson.dumps({"a": value})


@pytest.mark.parametrize("value", [{1: 2}, {"a": {None: 1}}, object(), b"bytes", {"a": {1, 2}}])
def test_types_that_cannot_be_written(value):
    with pytest.raises(JSONError, match=r"unsupported type"):
        gojson.dumps(value)


def test_layout():
    value = {"b": [1, {}, []], "a": {"z": None, "y": True, "B": False}, "": ""}
    assert gojson.dumps(value) == b'{"":"","a":{"B":false,"y":true,"z":null},"b":[1,{},[]]}'
    assert gojson.dumps(value, 4) == json.dumps(value, indent=4, sort_keys=True).encode()
    assert gojson.dumps({}, 4) == b"{}"
    assert gojson.dumps((1, 2)) == b"[1,2]"


def test_struct_keeps_its_order():
    value = {"z": gojson.Struct(b=1, a={"d": 1, "c": gojson.Struct(y=1, x=2)}), "a": 0}
    assert gojson.dumps(value) == b'{"a":0,"z":{"b":1,"a":{"c":{"y":1,"x":2},"d":1}}}'


def test_escapes():
    text = '<a> & \u2028\u2029 \x7f \u00e9 \U0001f600 " \\ / \b\f\n\r\t\x01\x1f'
    expected = (
        '"\\u003ca\\u003e \\u0026 \\u2028\\u2029 \x7f \u00e9 \U0001f600 \\" \\\\ / \\b\\f\\n\\r\\t\\u0001\\u001f"'
    )
    assert gojson.dumps(text) == expected.encode("utf-8")
    assert gojson.dumps({"<k>": 1}) == b'{"\\u003ck\\u003e":1}'


@pytest.mark.parametrize(
    ("data", "value"),
    [
        # One U+FFFD for each bad byte, also of a truncated sequence.
        (b'"\xff"', "\ufffd"),
        (b'"\xe2\x82"', "\ufffd\ufffd"),
        (b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
        (b'"\xc0\x80x"', "\ufffd\ufffdx"),
        (b'"\\ud800"', "\ufffd"),
        (b'"\\udc00\\ud800x"', "\ufffd\ufffdx"),
        (b'"\\uD83D\\uDE00"', "\U0001f600"),
        (b'{"\\ud800":["\\udfff"]}', {"\ufffd": ["\ufffd"]}),
        (b'"\\\\ud800"', "\\ud800"),
        ('"\ud800"', "\ufffd"),
    ],
)
def test_bad_text_becomes_replacement_characters(data, value):
    assert gojson.loads(data) == value


def test_surrogates_are_never_written():
    assert gojson.dumps({"a\ud800": "\udcff"}) == '{"a\ufffd":"\ufffd"}'.encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"{",
        b'{"a":1,}',
        b"[1,]",
        b'{"a":1} x',
        b"{} {}",
        b"// comment\n{}",
        b"/* */{}",
        b"{'a':1}",
        b"{a:1}",
        b"\xef\xbb\xbf{}",
        '{"a":1}'.encode("utf-16"),
        '{"a":1}'.encode("utf-32"),
        '{"a":1}'.encode("utf-16-le"),
        b"NaN",
        b'{"a":Infinity}',
        b"[-Infinity]",
        b"1e999",
        b"[-1e400]",
        b"01",
        b"+1",
        b".5",
        b"1.",
        b"0x10",
        b"1_000",
        b"True",
        b'"a\nb"',
        b'"\t"',
        b'"\\x41"',
        b'"\\u12"',
        b"\xff",
        b"\x00",
        b"\xc2\xa0{}",
        b'"unterminated',
    ],
)
def test_what_is_no_json(data):
    with pytest.raises(JSONError) as caught:
        gojson.loads(data)
    assert caught.value.line is not None
    assert caught.value.column is not None
    assert isinstance(caught.value, ConfigError)
    assert isinstance(caught.value, CNIError)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{\n  "a": 1,\n  b\n}', 3, 3),
        ('{"NaN": "NaN",\n "b": NaN}', 2, 7),
        ('["1e999 \\" 1e999", "1e999",\n\n  1e999]', 3, 3),
        ("\ufeff{}", 1, 1),
    ],
)
def test_position(text, line, column):
    with pytest.raises(JSONError) as caught:
        gojson.loads(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).endswith(f" (line {line}, column {column})")


def test_byte_order_mark_says_so():
    with pytest.raises(JSONError, match=r"byte order mark"):
        gojson.loads(b"\xef\xbb\xbf{}")


def test_truncated_text_says_so():
    with pytest.raises(JSONError, match=r"^unexpected end of JSON input"):
        gojson.loads(b'{"a":')


@pytest.mark.parametrize("text", ["[" * 200000, '{"a":' * 200000, "[" * 200000 + "]" * 200000])
def test_deep_nesting_is_an_error(text):
    with pytest.raises(JSONError):
        gojson.loads(text)


def test_deep_nesting_cannot_be_written():
    value = []
    for _level in range(sys.getrecursionlimit() * 2):
        value = [value]
    with pytest.raises(JSONError, match=r"nested too deeply"):
        gojson.dumps(value)


def test_duplicate_keys():
    assert gojson.loads(b'{"a":1,"b":2,"a":3}') == {"a": 3, "b": 2}
    # It counts where the last one stands, for keys that differ in case only.
    assert list(gojson.loads(b'{"a":1,"b":2,"a":3}')) == ["b", "a"]


def test_struct_items_yield_every_occurrence():
    value = gojson.loads(b'{"a":1,"x":0,"A":2,"a":3,"s":"\\ud800"}')
    assert list(gojson.struct_items(value, ("a",))) == [("a", 1), ("a", 2), ("a", 3)]
    assert gojson.dumps(value) == '{"A":2,"a":3,"s":"\ufffd","x":0}'.encode()


def test_struct_items_fold_case():
    value = {"TYPE": 1, "type": 2, "Typ\u0435": 3, "advm\u017f\u017f": 4, "\u212aind": 5, "other": 6}
    names = ("type", "advmss", "kind")
    assert list(gojson.struct_items(value, names)) == [("type", 1), ("type", 2), ("advmss", 4), ("kind", 5)]
    assert list(gojson.struct_items(None, names)) == []
    with pytest.raises(JSONError, match=r"cannot unmarshal array into the top-level value of type object"):
        list(gojson.struct_items([], names))


@pytest.mark.parametrize(
    ("function", "good", "zero", "bad"),
    [
        (gojson.as_string, "x", "", 1),
        (gojson.as_bool, True, False, "true"),
        (gojson.as_bool, True, False, 1),
        (gojson.as_int, 5, 0, 1.0),
        (gojson.as_int, -5, 0, True),
        (gojson.as_int, 2**63 - 1, 0, 2**63),
        (gojson.as_list, [1], [], {}),
        (gojson.as_object, {"a": 1}, {}, []),
    ],
)
def test_typed_reading(function, good, zero, bad):
    assert function(good, "x") == good
    assert function(None, "x") == zero
    with pytest.raises(JSONError, match=r"into field x/y of type"):
        function(bad, "x/y")


def test_negative_zero_is_an_integer_if_it_is_written_as_one():
    assert gojson.as_int(gojson.loads("-0"), "x") == 0
    for text, minimum in (("-0.0", -1), ("-0", 0)):
        with pytest.raises(JSONError):
            gojson.as_int(gojson.loads(text), "x", minimum)


def test_type_names():
    values = [None, True, 1, 1.5, "s", [], {}]
    names = ["<nil>", "bool", "float64", "float64", "string", "[]interface {}", "map[string]interface {}"]
    assert [gojson.type_name(value) for value in values] == names


def nested(depth):
    return ["[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, '{"a":1,"a":' * depth + "1" + "}" * depth]


def test_the_levels_of_a_text_are_known_before_it_is_parsed():
    source = random.Random(1)

    def value(levels):
        if levels == 0:
            return source.choice(["", "[", "]]", '\\"[', "{\\", '"', "\\\\", "é{", 1, None])
        inner = value(levels - 1)
        shallow = value(source.randrange(min(levels, 3)))
        return [inner, shallow] if source.random() < 0.5 else {source.choice(["a", '"[', "\\"]): inner, "b": shallow}

    for _number in range(500):
        levels = source.randrange(12)
        text = json.dumps(value(levels), ensure_ascii=source.random() < 0.5)
        assert not gojson.is_deeper(text, levels)
        assert levels == 0 or gojson.is_deeper(text, levels - 1)
    assert gojson.is_deeper('["]]]]", ' * 600, 500)


@pytest.mark.parametrize("text", nested(500))
def test_nesting_of_500_levels_is_read_wherever_the_caller_is_in_the_stack(text):
    gojson.loads(text)


@pytest.mark.parametrize("text", [*nested(501), *nested(900), *nested(5000)])
def test_deeper_nesting_is_refused_whatever_the_recursion_limit(text):
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20000)
    try:
        with pytest.raises(JSONError, match=r"nested too deeply \(more than 500 levels\)"):
            gojson.loads(text)
    finally:
        sys.setrecursionlimit(before)


def test_lax_reading_accepts_what_go_does_not_decode():
    big = "9" * 5000
    value = gojson.loads(f'{{"x": [1e999, -1e999, {big}], "n": 12345678901234567890}}', lax=True)
    assert value == {"x": [float("inf"), float("-inf"), float("inf")], "n": 12345678901234567890}
    deep = "[" * 9999 + "]" * 9999
    assert isinstance(gojson.loads(deep, lax=True), list)
    with pytest.raises(JSONError, match="nested too deeply"):
        gojson.loads("[" + deep + "]" + "", lax=False)
    for text in ("NaN", "[1,]", "\ufeff{}", "[" * 10001 + "]" * 10001):
        with pytest.raises(JSONError):
            gojson.loads(text, lax=True)
