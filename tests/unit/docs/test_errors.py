# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of the documentation have every code that the source can return, and no other.

The codes are collected from the syntax trees of plugins/, so files may move. A code is a string that is

- passed for a parameter ``code``, by name or by position, or is the default of such a parameter;
- the value of the key ``code`` of a dict, or is assigned to a variable ``code``;
- followed by a message in a tuple that is returned, yielded, or in a table of a module.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import codes as table
import pytest

ROOT = Path(__file__).resolve().parents[3]
PLUGINS = ROOT / "plugins"
PAGES = [ROOT / "docs" / "errors.md", ROOT / "docs" / "errors-attachments.md"]
ENTRIES = list(table.entries())
LISTED = {code for entry in ENTRIES for code in entry.codes}

# They never leave the package: whoever calls turns them into something else.
INTERNAL = {"not_answered", "not_rehearsed", "tolerated", "too_many"}

CODE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Takers:
    """Which position of which callable takes a code. Private names count in their own file only."""

    def __init__(self, trees):
        self._public = {}
        self._local = {}
        for path, tree in trees.items():
            self._visit(path, tree, None)

    def _visit(self, path, node, klass):
        if isinstance(node, ast.ClassDef):
            klass = node.name
            fields = [
                entry.target.id
                for entry in node.body
                if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name)
            ]
            if "code" in fields:
                self._add(path, node.name, fields.index("code"))
        elif isinstance(node, FUNCTIONS):
            names = [argument.arg for argument in node.args.args]
            if "code" in names:
                bound = klass is not None and names[0] in ("self", "cls")
                name = klass if node.name == "__init__" else node.name
                self._add(path, name, names.index("code") - bound)
            klass = None
        for child in ast.iter_child_nodes(node):
            self._visit(path, child, klass)

    def _add(self, path, name, position):
        self._local.setdefault((path, name), set()).add(position)
        if not name.startswith("_"):
            self._public.setdefault(name, set()).add(position)

    def given(self, path, call):
        """Return the expressions that *call* passes for a code."""
        named = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
        if named:
            return named
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        positions = self._local.get((path, name)) or self._public.get(name, ())
        return [call.args[position] for position in positions if position < len(call.args)]


class Codes:
    """``found``: code -> where. ``patterns``: of codes that are formatted, such as ``f"bad_{option}"``."""

    def __init__(self, trees):
        self.found = {}
        self.patterns = {}
        self._takers = Takers(trees)
        self._constants = {}
        for tree in trees.values():
            for node in tree.body:
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                    for target in node.targets:
                        self._constants.setdefault(getattr(target, "id", ""), set()).add(node.value.value)
        for path, tree in trees.items():
            self._collect(path, tree)

    def _collect(self, path, tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                for value in self._takers.given(path, node):
                    self._resolve(path, value)
            elif isinstance(node, FUNCTIONS):
                arguments = [*node.args.args, *node.args.kwonlyargs]
                defaults = [*node.args.defaults, *node.args.kw_defaults]
                for argument, default in zip(reversed(arguments), reversed(defaults)):
                    if argument.arg == "code" and default is not None:
                        self._resolve(path, default)
            elif isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values):
                    if isinstance(key, ast.Constant) and key.value == "code":
                        self._resolve(path, value)
            elif isinstance(node, ast.Assign):
                if any(getattr(target, "id", "") == "code" for target in node.targets):
                    self._resolve(path, node.value)
            elif isinstance(node, (ast.Return, ast.Yield)) and node.value is not None:
                self._tuples(path, node.value)
        for node in tree.body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                self._tuples(path, node.value)

    def _tuples(self, path, root):
        for node in ast.walk(root):
            if isinstance(node, ast.Tuple):
                for one, other in zip(node.elts, node.elts[1:]):
                    if isinstance(one, ast.Constant) and "_" in str(one.value) and is_message(other):
                        self._resolve(path, one)

    def _resolve(self, path, value):
        if isinstance(value, ast.Constant):
            self._put(path, value.value, value.lineno)
        elif isinstance(value, ast.IfExp):
            self._resolve(path, value.body)
            self._resolve(path, value.orelse)
        elif isinstance(value, ast.BoolOp):
            for part in value.values:
                self._resolve(path, part)
        elif isinstance(value, ast.Name):
            for constant in self._constants.get(value.id, ()):
                self._put(path, constant, value.lineno)
        elif isinstance(value, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else None for part in value.values]
            self._put_pattern(path, "".join("%s" if part is None else part for part in parts).split("%s"), value.lineno)

    def _put(self, path, code, line):
        if isinstance(code, str) and CODE.fullmatch(code):
            self.found.setdefault(code, []).append(f"{path}:{line}")

    def _put_pattern(self, path, parts, line):
        if len(parts) > 1 and CODE.fullmatch("x".join(parts)):
            self.patterns["[a-z0-9_]+".join(map(re.escape, parts))] = f"{path}:{line}"


def is_message(node):
    if isinstance(node, ast.Name):
        return node.id in ("message", "text")
    if isinstance(node, ast.Constant):
        return " " in str(node.value)
    return isinstance(node, (ast.JoinedStr, ast.BinOp))


def parse(sources):
    return {path: ast.parse(text) for path, text in sources.items()}


@pytest.fixture(scope="module")
def codes():
    files = [path for path in PLUGINS.rglob("*.py") if "libcni" not in path.relative_to(PLUGINS).parts]
    return Codes(parse({str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}))


@pytest.fixture(scope="module")
def page():
    """The text of all pages with codes."""
    return "".join(page.read_text(encoding="utf-8") for page in PAGES)


def test_every_code_is_listed(codes):
    listed = {*LISTED, *INTERNAL}
    missing = {code: where for code, where in codes.found.items() if code not in listed}
    assert not missing, f"docs/errors.md and the pages that it names lack {missing}"
    unlisted = [where for pattern, where in codes.patterns.items() if not any(re.fullmatch(pattern, c) for c in listed)]
    assert not unlisted, f"docs/errors.md and the pages that it names lack what is formatted in {unlisted}"


def test_every_listed_code_exists(codes):
    gone = {
        code
        for code in {*LISTED, *INTERNAL}
        if code not in codes.found and not any(re.fullmatch(pattern, code) for pattern in codes.patterns)
    }
    assert not gone, f"the source does not have {sorted(gone)}"


def test_no_table_has_a_code_twice():
    listed = [(entry.page, entry.heading, code) for entry in ENTRIES for code in entry.codes]
    assert sorted(listed) == sorted(set(listed))


def test_every_entry_is_whole():
    assert len(ENTRIES) > 250
    for entry in ENTRIES:
        assert entry.codes and all(map(CODE.fullmatch, entry.codes)), entry
        assert entry.cause and entry.remedy and "|" not in entry.cause + entry.remedy, entry


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["drifted"], 0, "cause:  the attachment has drifted"),
        (["duplicate_name"], 0, "adopt it with `file` (docs/howto/migrate-net-d.md), set"),
        (["[missing_plugin]"], 0, "missing_plugin (docs/node-not-ready.md, Causes)"),
        (["unknwn_key"], 2, "did you mean unknown_key?"),
        ([], 0, "unsafe_permissions"),
    ],
)
def test_a_code_is_explained_in_a_terminal(capsys, words, status, said):
    assert table.main(words) == status
    captured = capsys.readouterr()
    assert said in captured.out + captured.err
    assert bool(captured.err) == bool(status)


def test_the_numbers_of_cni_are_listed(page):
    tree = ast.parse((PLUGINS / "module_utils" / "libcni" / "errors.py").read_text(encoding="utf-8"))
    numbers = {
        node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "").startswith("ERR_")
    }
    assert len(numbers) > 10
    assert numbers <= {int(number) for number in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}


def test_what_counts_as_a_code():
    """By name and by position, through conditions, constants and rows; not for the private names of another file."""
    source = """
A = "of_constant"
def own(level, code="of_default"):
    raise HostError("no", code=A if level else error.code or "fallback")
own(1, "of_function")
row = {"code": "of_dict", "message": "no"}
plan.warn("by_position", "no")
_refuse("in_another_file")
raise HostError("no", code=f"{o}_gone")
"""
    plan = (
        "class Plan:\n    def warn(self, code, message):\n        pass\n\n    def _refuse(self, code):\n        pass\n"
    )
    found = Codes(parse({"a.py": source, "deep/down/plan.py": plan}))
    expected = {"of_constant", "of_default", "fallback", "of_function", "of_dict", "by_position"}
    assert (set(found.found), set(found.patterns)) == (expected, {"[a-z0-9_]+_gone"})
