# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages about error codes, from the table in plugins/plugin_utils/_codes.

docs/errors/SECTION.md has an entry for each code: cause, evidence, remedy. The tables in other pages have the same
texts.
"""

from __future__ import annotations

import importlib.util
import posixpath
import re
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def _codes() -> ModuleType:
    """Import the table without Ansible."""
    spec = importlib.util.spec_from_file_location("podwire_codes", ROOT / "plugins" / "plugin_utils" / "codes.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


codes = _codes()
LINK = re.compile(r"\]\((?![a-z]+://)([^)\s]*)\)")


def row(entry) -> str:
    """Return the row of a table."""
    level = f" ({entry.level})" if entry.level else ""
    return f"| {', '.join(f'`{code}`' for code in entry.codes)}{level} | {entry.cause} | {entry.remedy} |"


def with_tables(page: str, sections) -> str:
    """Return the text of a page with the rows of its tables written again."""
    for section in sections:
        rows = "\n".join(map(row, section.entries))
        heading = re.escape(section.heading)
        pattern = re.compile(rf"(^##+ {heading}\n.*?^\|[ -]*-[-| ]*\|\n)(?:^\|[^\n]*\n)+", re.MULTILINE | re.DOTALL)
        page, count = pattern.subn(lambda match, rows=rows: f"{match[1]}{rows}\n", page, count=1)
        assert count == 1, f"{section.page} has no table under the heading {section.heading}"
    return page


def _moved(text: str, page: str) -> str:
    """Return a text of *page* with links that hold in docs/errors."""

    def replaced(match: re.Match[str]) -> str:
        path, hash_, anchor = match[1].partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        return f"]({posixpath.relpath(target, 'docs/errors')}{hash_}{anchor})"

    return LINK.sub(replaced, text)


def entries_page(section) -> str:
    """Return the page with the entries of a section."""
    anchor = re.sub(r"[^\w\- ]", "", section.heading.lower()).replace(" ", "-")
    source = posixpath.relpath(section.page, "docs/errors")
    parts = [
        f"# {section.title}: error codes\n",
        f"<!-- Made by ./run generate from plugins/plugin_utils/_codes/{section.name}.toml -->\n",
        f"As a table: [{posixpath.basename(section.page)}]({source}#{anchor}). In a terminal: `./run explain CODE`.\n",
    ]
    for entry in section.entries:
        level = f" ({entry.level})" if entry.level else ""
        for code in entry.codes:
            parts.append(f"## `{code}`\n")
            parts.append(
                f"- Cause{level}: {_moved(entry.cause, section.page)}\n"
                f"- Evidence: {_moved(entry.evidence, 'docs/errors.md')}\n"
                f"- Remedy: {_moved(entry.remedy, section.page)}\n"
            )
    return "\n".join(parts)


def generated() -> dict[Path, str]:
    """Return the content of every page that has codes."""
    all_sections = list(codes.sections())
    found = {ROOT / "docs" / "errors" / f"{section.name}.md": entries_page(section) for section in all_sections}
    for page in dict.fromkeys(section.page for section in all_sections):
        text = (ROOT / page).read_text(encoding="utf-8")
        found[ROOT / page] = with_tables(text, [section for section in all_sections if section.page == page])
    return found
