# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of error codes in the documentation, from plugins/plugin_utils/codes.toml."""

from __future__ import annotations

import importlib.util
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


def generated() -> dict[Path, str]:
    """Return the content of every page that has codes."""
    all_sections = list(codes.sections())
    found = {}
    for page in dict.fromkeys(section.page for section in all_sections):
        text = (ROOT / page).read_text(encoding="utf-8")
        found[ROOT / page] = with_tables(text, [section for section in all_sections if section.page == page])
    return found
