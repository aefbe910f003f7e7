# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import sys

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import toml

DUMPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dumps")


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("", {}),
        ("# nothing\n\n", {}),
        ("a = 1", {"a": 1}),
        ("a = 1\r\nb = 2\r\n", {"a": 1, "b": 2}),
        ('a = "x" # why', {"a": "x"}),
        ("a = 'C:\\x'", {"a": "C:\\x"}),
        (r'a = "\t\"\\\u00e9\U0001F600"', {"a": '\t"\\\u00e9\U0001f600'}),
        ('a = """\none\n  two\\\n   three"""', {"a": "one\n  twothree"}),
        ('a = """x\\""" y"""', {"a": 'x""" y'}),
        ("a = '''\n\\x'''", {"a": "\\x"}),
        ("a = true\nb = false", {"a": True, "b": False}),
        (
            "a = -1\nb = 1_000\nc = 0x_1F\nd = 0o17\ne = 0b11\nf = +007",
            {"a": -1, "b": 1000, "c": 31, "d": 15, "e": 3, "f": 7},
        ),
        ("a = 1.5\nb = 1979-05-27T07:32:00Z\nc = inf\nd = 07:32:00", {"a": None, "b": None, "c": None, "d": None}),
        ('a = ["x", \'y\'\n , # z\n "w",\n]', {"a": ["x", "y", "w"]}),
        ("a = [[1], []]", {"a": [[1], []]}),
        ("a = {b = 1, c.d = 'x'}", {"a": {"b": 1, "c": {"d": "x"}}}),
        ("a = " + "9" * 5000, {"a": None}),
        ('a = ["x", {append = true}]', {"a": ["x", {"append": True}]}),
        ("[a]\nb = 1\n[a.c]\nd = 2\n[ e . 'f.g' ]\nh = 3", {"a": {"b": 1, "c": {"d": 2}}, "e": {"f.g": {"h": 3}}}),
        ('[plugins."io.x".cni]\nk = 1', {"plugins": {"io.x": {"cni": {"k": 1}}}}),
        ("[[a]]\nb = 1\n[a.c]\nd = 1\n[[a]]\nb = 2", {"a": [{"b": 1, "c": {"d": 1}}, {"b": 2}]}),
        ("a.b.c = 1\na.d = 2", {"a": {"b": {"c": 1}, "d": 2}}),
        ("1 = 2\n-a_ = 3", {"1": 2, "-a_": 3}),
    ],
)
def test_what_runtimes_and_people_write_is_understood(text, tables):
    assert toml.load_toml(text) == tables


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a", 1),
        ("\na =", 2),
        ("a = x", 1),
        ('a = "x', 1),
        ('a = "x\n"', 1),
        ("a = 'x", 1),
        ('a = """x', 1),
        ("a = [1", 1),
        ("a = [1 2]", 1),
        ("a = {b = 1", 1),
        ("a = {b}", 1),
        ("[a", 1),
        ("[[a]", 1),
        ("[]", 1),
        ("a = 1 b = 2", 1),
        ("a = 1\n\n[a]\n", 3),
        ("a = 1\na.b = 2", 2),
        ("a = 1\n[[a]]", 2),
        (r'a = "\q"', 1),
        ("a = " + "[" * 10000, 1),
        ("[" + "a." * 10000 + "a]", 1),
        ('"a', 1),
        ("= 1", 1),
        ("a = {\n" * 200, 51),
    ],
)
def test_what_is_not_understood_is_an_error_with_its_line(text, line):
    with pytest.raises(HostError) as error:
        toml.load_toml(text)
    assert error.value.code == "not_understood"
    assert "line %d is not understood" % line in error.value.msg


@pytest.mark.parametrize("name", sorted(os.listdir(DUMPS)))
def test_real_dumps_are_read_as_pythons_own_reader_does(name):
    with open(os.path.join(DUMPS, name), encoding="utf-8") as stream:
        text = stream.read()
    tables = toml.load_toml(text)
    assert "plugins" in tables and tables["version"] in (2, 3)
    if sys.version_info >= (3, 11):
        import tomllib

        assert tables == tomllib.loads(text, parse_float=lambda number: None)


def test_any_beginning_of_a_dump_is_read_or_refused():
    with open(os.path.join(DUMPS, "containerd-1.6.20.toml"), encoding="utf-8") as stream:
        text = stream.read()
    for end in range(0, len(text), 7):
        try:
            toml.load_toml(text[:end])
        except HostError as error:
            assert error.code == "not_understood"


@pytest.mark.parametrize(
    "text",
    [
        "a = 0x_",
        "a = 0b__",
        "a = 0o",
        ".".join("a" * 50) + " = {" + (".".join("a" * 50) + " = {") * 49,
        'a = """' + '\\"""' * 20000,
        'a = """' + "\\" * 99999 + '"' * 99999,
    ],
)
def test_numbers_that_are_none_and_tables_too_deep_are_not_understood_in_linear_time(text):
    with pytest.raises(HostError) as error:
        toml.load_toml(text)
    assert error.value.code == "not_understood"
