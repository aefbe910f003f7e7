# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Makes mutants of a room of the managed host's code, and runs the unit tests of the room against each.

    mutation.py [--sample N] [--seed S] ROOM

It must run in a copy of the collection that ends with it (the session `mutation` of noxfile.py). cosmic-ray makes the
mutants, with operators of its own and those below. Why it does not run the tests is in
docs/contributing/mutation_tests.md.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import coverage
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator
from parso.python.tree import Keyword
from parso.tree import NodeOrLeaf, search_ancestor

CODE = Path("plugins", "module_utils")
TESTS = Path("tests", "unit", "plugins", "module_utils")
PRIVATE = Path("tests", "private.sh")
Span = tuple[tuple[int, int], tuple[int, int]]


class RemoveStatement(Operator):
    """Replaces a statement of a function with `pass`."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Span]:
        if node.type != "simple_stmt" or not search_ancestor(node, "funcdef"):
            return
        statement = node.children[0]
        # An expression in parentheses is an atom, and a docstring is a string.
        if statement.type in ("expr_stmt", "atom_expr", "raise_stmt", "del_stmt", "yield_expr"):
            yield statement.start_pos, statement.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        statement = node.children[0]
        node.children[0] = Keyword("pass", statement.start_pos, statement.get_first_leaf().prefix)
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (Example("def f():\n    print()\n", "def f():\n    pass\n"),)


class ReplaceReturnValue(Operator):
    """Lets a function return None."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Span]:
        # True and False have operators of their own.
        if node.type == "return_stmt" and node.children[1].type != "keyword":
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        node.children[1] = Keyword("None", node.children[1].start_pos, " ")
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (Example("def f():\n    return 1 + 2\n", "def f():\n    return None\n"),)


class NegateMembership(Operator):
    """Swaps `in` and `not in`."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Span]:
        if node.type == "comparison":
            for word in node.children[1::2]:
                if word.get_code().split() in (["in"], ["not", "in"]):
                    yield word.start_pos, word.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        places = [
            place
            for place in range(1, len(node.children), 2)
            if node.children[place].get_code().split() in (["in"], ["not", "in"])
        ]
        word = node.children[places[index]]
        other = "not in" if word.get_code().split() == ["in"] else "in"
        node.children[places[index]] = Keyword(other, word.start_pos, word.get_first_leaf().prefix)
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (Example("1 in x", "1 not in x"), Example("1 not in x", "1 in x"))


class NegateFilter(Operator):
    """Negates the condition of a comprehension."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Span]:
        if node.type == "comp_if":
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        condition = node.children[1]
        text = f"not ({condition.get_code(include_prefix=False)})"
        node.children[1] = Keyword(text, condition.start_pos, condition.get_first_leaf().prefix)
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (Example("[x for x in y if x or z]", "[x for x in y if not (x or z)]"),)


OWN = (RemoveStatement, ReplaceReturnValue, NegateMembership, NegateFilter)


@dataclass(frozen=True)
class Mutant:
    """A change of one file: the *occurrence*-th one that *operator* can make."""

    file: Path
    operator: Operator
    occurrence: int
    # The first line of the statement and the line of the change.
    lines: tuple[int, int]

    def apply(self, code: str) -> str:
        return str(mutate_code(code, self.operator, self.occurrence))


@dataclass
class Result:
    mutant: Mutant
    code: str
    survived: bool


@dataclass
class Baseline:
    """What the tests do when nothing is mutated."""

    seconds: float
    # Which tests run a line: by file and line.
    tests: dict[tuple[Path, int], set[str]] = field(default_factory=dict)

    def of(self, mutant: Mutant) -> list[str]:
        first, last = mutant.lines
        found = (self.tests.get((mutant.file, line), set()) for line in range(first, last + 1))
        return sorted(set().union(*found))


def room_files(room: str) -> tuple[list[Path], list[Path]]:
    """Return the code of a room, and its tests: files and directories."""
    if room == "base":
        return sorted((CODE / "_host").glob("*.py")), sorted((TESTS / "_host").glob("test_*.py"))
    place = Path(room) if room == "libcni" else Path("_host", room)
    files, tests = sorted((CODE / place).glob("*.py")), TESTS / place
    if not files or not tests.is_dir():
        rooms = sorted(path.parent.name for path in (CODE / "_host").glob("*/__init__.py"))
        sys.exit(f"no such room: {room}; the rooms are base, libcni, {', '.join(rooms)}")
    return files, [tests]


def operators() -> Iterator[Operator]:
    for name in plugins.operator_names():
        operator = plugins.get_operator(name)
        # An operator with arguments needs the names of variables.
        if not operator.arguments():
            yield operator()
    for operator in OWN:
        yield operator()


def in_annotation(node: NodeOrLeaf) -> bool:
    """Whether a node is part of a type, which nothing evaluates."""
    while node.parent:
        node, inner = node.parent, node
        if node.type == "annassign":
            return inner is node.children[1]
        if node.type == "tfpdef" or (node.type == "funcdef" and inner is node.annotation):
            return True
    return False


def statement_line(node: NodeOrLeaf) -> int:
    while node.parent and node.parent.type not in ("file_input", "suite"):
        node = node.parent
    return int(node.start_pos[0])


def places(file: Path, code: str) -> list[list[Mutant]]:
    """Return the mutants of a file, those of the same kind at the same place together.

    One `+` has eleven mutants, and would take eleven times the share of a sample that a `not` has.
    """
    found: dict[tuple[str, tuple[int, int]], list[Mutant]] = {}
    nodes = list(ast_nodes(get_ast(code)))
    for operator in operators():
        changes = ((node, span) for node in nodes for span in operator.mutation_positions(node))
        for occurrence, (node, (start, _end)) in enumerate(changes):
            if not in_annotation(node):
                key = type(operator).__name__.partition("_")[0], start
                mutant = Mutant(file, operator, occurrence, (statement_line(node), start[0]))
                found.setdefault(key, []).append(mutant)
    return [found[key] for key in sorted(found)]


def choose(files: Sequence[Path], number: int, seed: int) -> tuple[list[tuple[Mutant, str]], int]:
    """Return a sample of mutants with their code, and how many places there are to choose from."""
    chance = random.Random(seed)
    found = [place for file in files for place in places(file, file.read_text(encoding="utf-8"))]
    chosen: list[tuple[Mutant, str]] = []
    for place in chance.sample(found, len(found)):
        mutant = chance.choice(place)
        code = mutant.apply(mutant.file.read_text(encoding="utf-8"))
        with contextlib.suppress(SyntaxError):
            compile(code, str(mutant.file), "exec", dont_inherit=True)
            chosen.append((mutant, code))
        if len(chosen) == number:
            break
    return sorted(chosen, key=lambda entry: (entry[0].file, entry[0].lines)), len(found)


def run_tests(tree: Path, arguments: Sequence[str], timeout: float | None = None) -> bool:
    """Run pytest in a copy of the collection, and return whether all tests passed in time."""
    environment = {**os.environ, "PYTHONPATH": str(tree.parents[2]), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(tree / PRIVATE), sys.executable, "-m", "pytest", "-x", "-q", "--color=no", *arguments]
    with tempfile.TemporaryFile("w+") as output:
        running = subprocess.Popen(
            command, cwd=tree, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            status = running.wait(timeout)
        except subprocess.TimeoutExpired:
            # The private namespaces end with the first process in them.
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            return False
        output.seek(0)
        text = output.read()
    # 1: a test failed. 2: a file of tests could not be imported. 4: conftest.py could not be.
    if status not in (0, 1, 2, 4):
        sys.exit(f"pytest ended with {status}:\n{text}")
    if timeout is None and status:
        sys.exit(f"The tests fail without a mutant:\n{text}")
    return status == 0


def measure(tree: Path, tests: Sequence[Path]) -> Baseline:
    """Run the tests without a mutant, and note which of them run which line."""
    with tempfile.TemporaryDirectory(prefix="podwire-") as folder:
        data = Path(folder, "data")
        settings = Path(folder, "coveragerc")
        settings.write_text(f"[run]\ndata_file = {data}\n")
        start = time.monotonic()
        options = [f"--cov={CODE}", "--cov-report=", "--cov-context=test", f"--cov-config={settings}"]
        run_tests(tree, [*options, *map(str, tests)])
        baseline = Baseline(time.monotonic() - start)
        measured = coverage.CoverageData(str(data))
        measured.read()
        for name in measured.measured_files():
            file = Path(name).resolve().relative_to(tree.resolve())
            for line, contexts in measured.contexts_by_lineno(name).items():
                # A context is a test with its phase. All cases of a test run together.
                functions = {context.partition("|")[0].partition("[")[0] for context in contexts if context}
                baseline.tests[file, line] = functions
    return baseline


def survives(tree: Path, mutant: Mutant, code: str, tests: Sequence[Path], baseline: Baseline) -> bool:
    """Whether all tests pass with a mutant: those that run its lines first, as they most likely fail."""
    path = tree / mutant.file
    try:
        path.write_text(code, encoding="utf-8")
        timeout = 30 + 3 * baseline.seconds
        nearest = baseline.of(mutant)
        return (not nearest or run_tests(tree, nearest, timeout)) and run_tests(tree, [*map(str, tests)], timeout)
    finally:
        # With its time, so that Python takes what was compiled of it.
        shutil.copy2(mutant.file, path)


def run_mutants(room: str, number: int, seed: int) -> tuple[list[Result], int]:
    files, tests = room_files(room)
    chosen, total = choose(files, number, seed)
    workers = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="podwire-") as folder, ThreadPoolExecutor(workers) as pool:
        trees: queue.Queue[Path] = queue.Queue()
        for worker in range(workers):
            tree = Path(folder, str(worker), "ansible_collections", "podwire", "cni")
            shutil.copytree(".", tree, symlinks=True)
            trees.put(tree)
        first = trees.get()
        baseline = measure(first, tests)
        trees.put(first)

        def run(entry: tuple[Mutant, str]) -> Result:
            tree = trees.get()
            try:
                result = Result(*entry, survives(tree, *entry, tests, baseline))
            finally:
                trees.put(tree)
            print("S" if result.survived else ".", end="", flush=True)
            return result

        results = list(pool.map(run, chosen))
    print()
    return results, total


def show(result: Result) -> str:
    name = str(result.mutant.file)
    original = result.mutant.file.read_text(encoding="utf-8")
    lines = difflib.unified_diff(original.splitlines(), result.code.splitlines(), name, name, lineterm="")
    return "\n".join([type(result.mutant.operator).__name__, *lines, ""])


def summary(room: str, results: Sequence[Result], total: int) -> str:
    killed = sum(not result.survived for result in results)
    share = f"{100 * killed / len(results):.0f} % killed" if results else "nothing to mutate"
    return (
        f"{room}: {len(results)} mutants at {total} places, {killed} killed, {len(results) - killed} survived: {share}"
    )


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="./run nox -s mutation --", description="Run tests against mutants of a room."
    )
    parser.add_argument("room", help="a room of plugins/module_utils/_host, or base (its other files), or libcni")
    parser.add_argument("--sample", type=int, default=80, help="how many mutants (80)")
    parser.add_argument("--seed", type=int, default=1, help="which mutants (1)")
    options = parser.parse_args(arguments)
    results, total = run_mutants(options.room, options.sample, options.seed)
    for result in results:
        if result.survived:
            print(show(result))
    print(summary(options.room, results, total))


if __name__ == "__main__":
    main(sys.argv[1:])
