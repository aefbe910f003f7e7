# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""tests/tools/tutorial.py, with a shell of this machine; `./run fresh trixie tutorial` follows the real page."""

from __future__ import annotations

import pytest
import tutorial
from tutorial import missing


@pytest.mark.parametrize(
    ("expected", "printed", "line"),
    [
        ([], "anything\n", None),
        (["a"], "a\n", None),
        (["a b"], "  a    b\n", None),
        (["...", "b", "..."], "a\nb\nc\n", None),
        (["a", "c"], "a\nb\nc\n", None),
        (["ok: [a] => 1", "ok: [b] => 2", "c"], "ok: [b] => 2\nok: [a] => 1\nc\n", None),
        (["ok: [a] => 1", "ok: [b] => 2", "c"], "ok: [b] => 2\nc\nok: [a] => 1\n", "c"),
        (["ok: [a] => 1", "...", "ok: [b] => 2"], "ok: [b] => 2\nok: [a] => 1\n", "ok: [b] => 2"),
        (["c", "a"], "a\nb\nc\n", "a"),
        (["a", "a"], "a\n", "a"),
        (["x ... z"], "x y z\n", None),
        (["x ... z"], "x y\nz\n", "x ... z"),
        (["x.z"], "xyz\n", "x.z"),
    ],
)
def test_output(expected, printed, line):
    assert missing(expected, printed) == line


def follow(page, *prepare):
    return list(tutorial.follow(page, ["bash"], prepare))


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("$ false", "  [FAILED] false: exit status 1"),
        ("$ echo a\nb", "  [FAILED] echo a: it does not print the line 'b'"),
        ("$ kill -KILL $$", "  [FAILED] the shell has ended"),
    ],
)
def test_it_stops_at_what_fails(block, said):
    lines = "\n".join(follow(f"```console\n$ true\n{block}\n$ true\n```\n")).splitlines()
    assert lines[0] == "  [ok] true"
    assert lines[-1] == said
