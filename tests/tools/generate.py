# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the generated files of the documentation; tests/unit/docs tests that they are up to date."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))
import schemas  # noqa: E402


def generated() -> dict[Path, str]:
    """Return the content of every generated file."""
    folder = ROOT / "docs" / "schemas"
    return {folder / name: text for name, text in schemas.published().items()}


def main() -> None:
    for path, text in generated().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
