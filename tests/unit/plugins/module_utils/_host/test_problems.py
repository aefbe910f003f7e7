# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import addresses
from ansible_collections.podwire.cni.plugins.module_utils._host.problems import (
    ERROR,
    INFO,
    WARNING,
    errors_of,
    place,
    problem,
    strict,
    summary,
)


def test_a_problem():
    assert problem(ERROR, "code", "text") == {
        "level": "error",
        "code": "code",
        "file": None,
        "pointer": "",
        "line": None,
        "column": None,
        "message": "text",
    }


def test_only_errors_prevent_a_run():
    error = problem(ERROR, "a", "x")
    assert errors_of([problem(WARNING, "b", "x"), error, problem(INFO, "c", "x")]) == [error]


def test_strict_makes_warnings_errors():
    kept = [problem(ERROR, "a", "x"), problem(INFO, "b", "x"), problem(WARNING, "missing_plugin", "x")]
    warning = problem(WARNING, "c", "text")
    found = strict([*kept, warning])
    assert found[:3] == kept
    assert (found[3]["level"], found[3]["message"]) == (ERROR, "text (a warning, which 'strict' makes an error)")
    assert warning["level"] == WARNING


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (problem(ERROR, "a", "x"), ""),
        (problem(ERROR, "a", "x", "f"), "f: "),
        (problem(ERROR, "a", "x", "f", "/p"), "f, /p: "),
        (problem(ERROR, "a", "x", "f", "/p", 3, 4), "f, line 3, column 4, /p: "),
        (problem(ERROR, "a", "x", pointer="/p"), "/p: "),
    ],
)
def test_places(entry, text):
    assert place(entry) == text
    assert summary([entry, problem(WARNING, "b", "y")]) == f"{text}x [a]"


def test_several_errors():
    assert summary([problem(ERROR, "a", "x", "f"), problem(ERROR, "b", "y")]) == "2 errors:\n- f: x [a]\n- y [b]"


# ---- addresses


def test_addresses_sort_by_family_and_value():
    assert addresses.packed("10.0.0.1") == b"4\x0a\0\0\1"
    assert addresses.packed("::1") == b"6" + bytes(15) + b"\1"
    for text in ("", "10.0.0", "10.0.0.1/24", "\0", "fe80::1%eth0", "\ud800"):
        assert addresses.packed(text) == b""


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
