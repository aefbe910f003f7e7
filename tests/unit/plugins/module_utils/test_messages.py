# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A message is for people: no code decides on its words or cuts it into parts. Decisions are taken on codes, values.

This reads the source: an expression that is a message of ours (an attribute such as ``error.msg``, a member of a row
such as ``entry["remedy"]``, or either in a call such as ``str()``) may be printed, stored and compared as a whole, and
joined to others, but not searched, split or changed.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parents[4] / "plugins"
# Where messages are kept.
ATTRIBUTES = {"message", "msg", "what", "remedy", "doubt", "reason"}
MEMBERS = {"message", "msg", "remedy", "reason"}
# What asks for words, or cuts.
METHODS = {"startswith", "endswith", "split", "rsplit", "partition", "rpartition", "splitlines", "find", "index"}
METHODS |= {"count", "replace", "removeprefix", "removesuffix", "translate"}
REGULAR = {"search", "match", "fullmatch", "findall", "finditer", "sub", "split"}
# What returns the text, or a form of it.
SAME = {"str", "strip", "rstrip", "lstrip", "lower", "upper", "casefold", "get"}
# path -> why it may: the text is not ours, or nothing is decided.
OTHERS = {"plugin_utils/_conf/wording.py": "jsonschema names a missing key in its message only"}


def is_message(node):
    if isinstance(node, ast.Attribute):
        return node.attr in ATTRIBUTES
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value in MEMBERS
    if isinstance(node, ast.BoolOp):
        return any(map(is_message, node.values))
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name == "get":
            return bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value in MEMBERS
        inner = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
        return name in SAME and any(map(is_message, inner))
    return False


def decisions(tree):
    """Yield the line of each decision on the words of a message."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, subject = node.func.attr, node.func.value
            asked = name in METHODS and is_message(subject)
            if asked or (name in REGULAR and any(map(is_message, node.args))):
                yield node.lineno
        elif isinstance(node, ast.Compare):
            for operator, right in zip(node.ops, node.comparators):
                if isinstance(operator, (ast.In, ast.NotIn)) and is_message(right):
                    yield node.lineno


@pytest.mark.parametrize("path", sorted(PLUGINS.rglob("*.py")), ids=lambda path: str(path.relative_to(PLUGINS)))
def test_no_decision_is_taken_on_the_words_of_a_message(path):
    found = [f"line {line}" for line in decisions(ast.parse(path.read_text(encoding="utf-8")))]
    assert bool(found) == (str(path.relative_to(PLUGINS)) in OTHERS), found


@pytest.mark.parametrize(
    "source",
    [
        'error.msg.startswith("cannot")',
        '"older" in finding.what',
        'str(entry["message"]).rpartition("; ")',
        'entry.get("remedy", "").split("; ")',
        're.search("x", error.msg)',
        'PATTERN.match(entry["message"])',
        '"x" not in (row["message"] or "").lower()',
    ],
)
def test_each_form_of_a_decision_is_seen(source):
    assert list(decisions(ast.parse(source))) == [1]


@pytest.mark.parametrize(
    "source", ['f"{entry.message}; {entry.remedy}"', "error.msg == other.msg", 'entry["code"].startswith("missing_")']
)
def test_what_is_no_decision_on_words_is_allowed(source):
    assert list(decisions(ast.parse(source))) == []
