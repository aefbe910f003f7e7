# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""tests/tools/prose.py finds what the style guide rejects, and skips what is not prose."""

from __future__ import annotations

import prose
import pytest

STYLE = """# Style guide

| word | not |
|---|---|
| `network` | `net` |

## Rejected words

| word or phrase | write |
|---|---|
| `anew` | again |
| `mend`, `mended` | fix |
| `of ours` | managed |
| `there is no ... any more` | is gone |
| `e.g.` | for example |

## Another section

| `fine` | better |
"""
RULES = prose.read_rules(STYLE)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Of these, one stays.", ["Of"]),
        ("It ends. What is left stays.", ["What"]),
        ("- Have the daemon.", ["- Have"]),
        ("# What is left\n\n| What | x |\n", []),
        ("What is left? The rest of what we have.", []),
        ("It tells what is left.", []),
    ],
)
def test_sentences_begin_with_their_subject(text, words):
    assert [row.words for row in prose.findings(prose.of_markdown(text), [prose.BEGINNING])] == words


MODULE = '''#!/usr/bin/python
"""Files anew are fine here."""

DOCUMENTATION = r"""
module: x
description:
  - Writes the file anew.
  - Option O(anew) and V(anew) of P(anew.anew.anew#role).
"""

EXAMPLES = r"""
- name: Write it anew
"""

RETURN = r"""
changed:
  description: Whether it was mended.
"""

ANEW = "anew"
# anew
'''
FRAGMENT = '''class ModuleDocFragment:
    LOCK = r"""
description: a file of ours
"""
'''


def words(text):
    return [(finding.line, finding.words) for finding in prose.findings(text, RULES)]


@pytest.mark.parametrize("style", ["", "## Rejected words\n", STYLE.replace("## Rejected words", "## Other words")])
def test_a_style_guide_without_the_table(style):
    with pytest.raises(SystemExit, match="has no table"):
        prose.read_rules(style)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is written anew.", [(1, "anew")]),
        ("Anew, and (anew).", [(1, "Anew"), (1, "anew")]),
        ("First.\n\nIt was mended.", [(3, "mended")]),
        ("a file of ours", [(1, "of ours")]),
        ("a file of\n  ours", [(1, "of ours")]),
        ("there is no `x` any more", [(1, "there is no any more")]),
        ("there is no file of this network any\nmore", [(1, "there is no file of this network any more")]),
        ("some, e.g. this", [(1, "e.g.")]),
        ("| a cell anew | another |", [(1, "anew")]),
        ("# A heading anew", [(1, "anew")]),
        ("[a link anew](page.md)", [(1, "anew")]),
        ("```\nanew\n```\nanew\n\n`anew` anew", [(4, "anew"), (6, "anew")]),
    ],
)
def test_what_is_found(text, expected):
    assert words(prose.of_markdown(text)) == expected


def test_documentation_of_a_module():
    assert words(prose.of_python(MODULE)) == [(7, "anew"), (17, "mended")]
    assert words(prose.of_python(FRAGMENT)) == [(3, "of ours")]


def test_documentation_in_yaml():
    text = "DOCUMENTATION:\n  description: Made anew.\n\nEXAMPLES: |\n  - name: anew\n\nRETURN:\n  x: mended\n"
    assert words(prose.of_documentation(text)) == [(2, "anew"), (8, "mended")]


def test_the_program(tmp_path, capsys):
    (tmp_path / "docs" / "contributing").mkdir(parents=True)
    (tmp_path / prose.STYLE).write_text(STYLE, encoding="utf-8")
    (tmp_path / "README.md").write_text("All is well.\n", encoding="utf-8")
    assert prose.main(tmp_path) == 0
    role = tmp_path / "roles" / "x"
    role.mkdir(parents=True)
    (role / "README.md").write_text("One.\nMade anew.\n", encoding="utf-8")
    assert prose.main(tmp_path) == 1
    assert "roles/x/README.md:2: 'anew': write again" in capsys.readouterr().out
