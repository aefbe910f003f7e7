# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import addresses
from ansible_collections.podwire.cni.plugins.module_utils._host.problems import (
    ERROR,
    INFO,
    WARNING,
    Finding,
    error_of,
    strict,
    summary,
)


def test_a_row():
    assert Finding(ERROR, "code", "text").problem() == {
        "level": "error",
        "code": "code",
        "file": None,
        "pointer": "",
        "line": None,
        "column": None,
        "message": "text",
    }


def test_strict_makes_warnings_errors():
    kept = [Finding(ERROR, "a", "x"), Finding(INFO, "b", "x"), Finding(WARNING, "missing_plugin", "x")]
    found = strict([*kept, Finding(WARNING, "c", "text", "remedy")])
    assert found[:3] == kept
    message = "text; remedy (a warning, which 'strict' makes an error)"
    assert (found[3].level, found[3].message) == (ERROR, message)


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        (Finding(ERROR, "a", "x"), ""),
        (Finding(ERROR, "a", "x", "", "f"), "f: "),
        (Finding(ERROR, "a", "x", "", "f", "/p"), "f, /p: "),
        (Finding(ERROR, "a", "x", "", "f", "/p", 3, 4), "f, line 3, column 4, /p: "),
        (Finding(ERROR, "a", "x", pointer="/p"), "/p: "),
    ],
)
def test_places(finding, text):
    assert finding.sentence == f"{text}x"
    assert summary([finding, Finding(WARNING, "b", "y")]) == f"{text}x [a]"


def test_several_errors():
    error = error_of([Finding(WARNING, "c", "z"), Finding(ERROR, "a", "x", "", "f"), Finding(ERROR, "b", "y")])
    assert (error.msg, error.code) == ("2 errors:\n- f: x [a]\n- y [b]", "a")
    assert [row["code"] for row in error.facts["problems"]] == ["c", "a", "b"]


# ---- addresses


def test_addresses_sort_by_family_and_value():
    assert addresses.packed("10.0.0.1") == b"4\x0a\0\0\1"
    assert addresses.packed("::1") == b"6" + bytes(15) + b"\1"
    for text in (
        "",
        "10.0.0",
        "10.0.0.1/24",
        "\0",
        "10.0.0.1\0",
        "fe80::1%eth0",
        "\ud800",
        "10.0.0.\udcff",
        "\u0661.1.1.1",
    ):
        assert addresses.packed(text) == b""


def test_an_address_is_in_a_subnet_of_its_family():
    assert addresses.is_in("10.1.2.3", "10.1.2.200", 24)
    assert addresses.is_in("fd00::1", "fd00::ffff", 64)
    assert not addresses.is_in("10.1.3.3", "10.1.2.200", 24)
    assert not addresses.is_in("::1", "10.1.2.200", 0)


def test_addresses_are_written_as_they_were():
    for text in ("10.0.0.1", "fd00::1", "::"):
        assert addresses.written(addresses.packed(text)) == text
    assert addresses.written(b"") == ""


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        ("0", 32, 0),
        ("32", 32, 32),
        ("33", 32, None),
        ("128", 128, 128),
        ("024", 32, 24),
        ("0024", 32, None),
        ("", 32, None),
        ("-1", 32, None),
        ("\u0663", 32, None),
    ],
)
def test_prefix_lengths(text, longest, expected):
    assert addresses.prefix_length(text, longest) == expected
