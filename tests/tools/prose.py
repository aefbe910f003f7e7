# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Reports words and phrases that the style guide rejects: prose.py [COLLECTION]

The words are in the table "Rejected words" of docs/contributing/style.md. The program reads the Markdown pages of the
collection and the documentation of modules, plugins and roles, without code, quotations, comments and link targets.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

STYLE = "docs/contributing/style.md"
HEADING = "## Rejected words"

MARKDOWN = (
    "README.md",
    "CONTRIBUTING.md",
    "conformance/*.md",
    "docs/**/*.md",
    "examples/**/*.md",
    "roles/**/README.md",
)
PYTHON = ("plugins/modules/*.py", "plugins/plugin_utils/lookup_*.py", "plugins/doc_fragments/*.py")
YAML = ("plugins/filter/*.yml", "roles/*/meta/argument_specs.yml")

# What was inline code still is a word of its sentence.
CODE = "\ufffc"
GAP = "..."
# Words of a phrase are on one line, or on two lines of one paragraph.
SPACE = r"(?:[ \t]+|[ \t]*\n[ \t]*)"

FENCE = re.compile(r"^[ \t]*(?P<fence>```+|~~~+)[^\n]*\n.*?^[ \t]*(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
BLOCKQUOTE = re.compile(r"^[ \t]*>[^\n]*$", re.MULTILINE)
INLINE_CODE = re.compile(r"(?P<ticks>`+)(?!`)(?:(?!\n\s*\n).)+?(?<!`)(?P=ticks)(?!`)", re.DOTALL)
TARGET = re.compile(r"(?<=\])\([^)\s]*\)|<https?://[^>\s]*>|https?://[^\s)>|]*")
QUOTATION = re.compile(r'"(?:(?!\n\s*\n)[^"])*"')
# Macros of Ansible's documentation that hold code or a link.
MACRO = re.compile(r"\b(?:C|V|O|RV|E|P|M|U)\([^)]*\)")
EXAMPLES = re.compile(r"^EXAMPLES:.*?(?=^[A-Z]+:|\Z)", re.MULTILINE | re.DOTALL)


class Rule(NamedTuple):
    pattern: re.Pattern[str]
    advice: str


# Questions may begin with "What", and headings and cells of tables are no sentences.
BEGINNING = Rule(
    re.compile(r"(?:^[ \t]*(?:[-*]|\d+\.)?[ \t]*|(?<=[.!?:] ))(?:Of|Have|What)\s(?![^.?!]*\?)", re.MULTILINE),
    "a sentence that begins with its subject, or an instruction with its verb",
)


class Finding(NamedTuple):
    line: int
    words: str
    advice: str


def read_rules(style: str) -> list[Rule]:
    """Return the rules of the table in the style guide, from its text."""
    _before, heading, section = style.partition(HEADING + "\n")
    rules = []
    for row in re.findall(r"^\| *(`.*) \| *(.*?) *\|$", section.partition("\n## ")[0], re.MULTILINE):
        phrases = re.findall(r"`([^`]+)`", row[0])
        rules.append(Rule(re.compile("|".join(map(expression, phrases)), re.IGNORECASE), row[1]))
    if not heading or not rules:
        raise SystemExit(f"{STYLE} has no table below {HEADING!r}")
    return rules


def expression(phrase: str) -> str:
    """Return the regular expression of a phrase of whole words."""
    parts = [r"(?:[^\s|]+" + SPACE + "){0,6}?" if word == GAP else re.escape(word) + SPACE for word in phrase.split()]
    return r"(?<![\w-])" + "".join(parts)[: -len(SPACE)] + r"(?![\w-])"


def blank(pattern: re.Pattern[str], text: str, filler: str = " ") -> str:
    """Return *text* with every match filled, so that the rest keeps its place."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", filler, match.group()), text)


def of_markdown(text: str) -> str:
    """Return the prose of a page, at its place."""
    for pattern in (FENCE, COMMENT, BLOCKQUOTE):
        text = blank(pattern, text)
    text = blank(INLINE_CODE, text, CODE)
    return blank(QUOTATION, blank(TARGET, text))


def of_documentation(text: str) -> str:
    """Return the prose of YAML that documents a plugin or role, at its place."""
    return blank(QUOTATION, blank(TARGET, blank(MACRO, blank(EXAMPLES, text), CODE)))


def of_python(text: str) -> str:
    """Return the prose of the documentation of a module or plugin, at its place."""
    lines = [""] * (text.count("\n") + 1)
    source = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
            continue
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        # Fragments have names of their own.
        if isinstance(node.value.value, str) and any(name.isupper() and name != "EXAMPLES" for name in names):
            for number in range(node.value.lineno, node.value.end_lineno or 0):
                lines[number] = source[number]
    return of_documentation("\n".join(lines))


def findings(prose: str, rules: list[Rule]) -> list[Finding]:
    found = []
    for rule in rules:
        for match in rule.pattern.finditer(prose):
            words = " ".join(match.group().replace(CODE, "").split())
            found.append(Finding(prose.count("\n", 0, match.start()) + 1, words, rule.advice))
    return sorted(found)


def pages(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield every file that people read, and its prose."""
    for patterns, prose in ((MARKDOWN, of_markdown), (PYTHON, of_python), (YAML, of_documentation)):
        for pattern in patterns:
            for path in sorted(root.glob(pattern)):
                yield path, prose(path.read_text(encoding="utf-8"))


def main(root: Path) -> int:
    rules = read_rules((root / STYLE).read_text(encoding="utf-8"))
    count = errors = 0
    for path, prose in pages(root):
        count += 1
        # The description of an option may be a phrase: "What to do with the rest".
        for finding in findings(prose, [*rules, BEGINNING] if path.suffix == ".md" else rules):
            errors += 1
            print(f"{path.relative_to(root)}:{finding.line}: {finding.words!r}: write {finding.advice}")
    print(f"{count} files, {errors} rejected words ({STYLE})")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2])))
