# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The example of docs/multi-network.md prints what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[6]


def test_the_example_prints_what_the_page_shows():
    page = (ROOT / "docs" / "multi-network.md").read_text(encoding="utf-8")
    code, shown = re.search(r"```python\n(.*?)```.*?```text\n(.*?)```", page, re.DOTALL).groups()
    setup = f"import sys; sys.path.insert(0, {str(ROOT / 'plugins' / 'module_utils')!r})\n"
    done = subprocess.run([sys.executable, "-I", "-c", setup + code], capture_output=True, text=True, check=True)
    assert done.stdout == shown
