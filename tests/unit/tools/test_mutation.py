# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""tests/tools/mutation.py tells the mutants that tests kill from those that survive."""

from __future__ import annotations

from pathlib import Path

import mutation
import pytest

# The tool is for who writes tests, and takes its time.
pytestmark = pytest.mark.full

CODE = "def keep(words):\n    found = [word for word in words if word]\n    return sorted(found)\n"


@pytest.fixture
def collection(tmp_path, monkeypatch):
    """A collection with one room and one test, and no namespaces."""
    monkeypatch.setattr(mutation, "PRIVATE", Path("/usr/bin/env"))
    # Those of ansible-test.
    monkeypatch.delenv("PYTEST_PLUGINS", raising=False)
    monkeypatch.setattr(mutation.os, "sched_getaffinity", lambda _pid: {0, 1})
    room, tests = tmp_path / mutation.CODE / "_host" / "words", tmp_path / mutation.TESTS / "_host" / "words"
    room.mkdir(parents=True)
    tests.mkdir(parents=True)
    (room / "__init__.py").write_text("")
    (room / "keep.py").write_text(CODE)
    (tests / "test_keep.py").write_text(
        "import sys\n"
        "from pathlib import Path\n"
        f"sys.path.insert(0, str(Path(__file__).resolve().parents[6] / '{mutation.CODE}/_host/words'))\n"
        "from keep import keep\n"
        "def test_keep():\n"
        "    assert keep(['a', '']) == ['a']\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_survivors(collection, capsys):
    mutation.main(["words", "--sample", "99"])
    printed = capsys.readouterr().out
    # The assignment, the condition and the value.
    assert printed.endswith("words: 3 mutants at 3 places, 3 killed, 0 survived: 100 % killed\n")
    test = collection / mutation.TESTS / "_host" / "words" / "test_keep.py"
    test.write_text(test.read_text().replace("== ['a']", "is not None"))
    mutation.main(["words", "--sample", "99"])
    printed = capsys.readouterr().out
    assert (
        "-    found = [word for word in words if word]\n+    found = [word for word in words if not (word)]" in printed
    )
    assert printed.endswith("words: 3 mutants at 3 places, 2 killed, 1 survived: 67 % killed\n")
    assert (collection / mutation.CODE / "_host" / "words" / "keep.py").read_text() == CODE
    test.write_text("def test_keep():\n    assert False\n")
    with pytest.raises(SystemExit, match="fail without a mutant"):
        mutation.main(["words"])
