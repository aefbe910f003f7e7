# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Prints how many lines each part of the collection has, and how many files a walk opens, and fails above a limit.

What is above its budget may shrink only: its limit is what it has now, and who makes it smaller lowers it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# Data, not code.
DATA = ("*.json", "*/dumps/*", "*.png", "*.svg")


class Part(NamedTuple):
    name: str
    pattern: str
    budget: int
    # Of today, where that is more.
    limit: int = 0
    excluded: str = ""


PARTS = (
    Part("plugins", "plugins/*", 42_000, 54_460),
    Part("_host", "plugins/module_utils/_host/*", 21_000, 32_421),
    Part("libcni", "plugins/module_utils/libcni/*", 5_000, excluded="plugins/module_utils/libcni/multi/*"),
    Part("libcni/multi", "plugins/module_utils/libcni/multi/*", 1_800),
    Part("conformance", "conformance/*.py", 2_500),
    Part("examples", "examples/*.py", 450),
    Part("plugin_utils", "plugins/plugin_utils/*", 7_500, 9_044),
    Part("docs", "docs/*", 15_000),
)
# What the rooms of _host were meant to have, and have.
ROOMS = {
    "attachments": (3_613, 5_192),
    "binaries": (2_110, 2_421),
    "checks": (1_030, 1_769),
    "containers": (1_192, 1_150),
    "firewall": (842, 1_563),
    "footprints": (1_127, 1_978),
    "garbage": (947, 1_267),
    "host": (600, 725),
    "info": (560, 557),
    "kernel": (957, 1_018),
    "networks": (1_060, 2_433),
    "runtimes": (2_760, 4_144),
    "trials": (1_714, 3_662),
}
HOST = "plugins/module_utils/_host"
BASE = Part("  base files", f"{HOST}/*.py", 3_635, 4_542, f"{HOST}/*/*")
# The tests of a line, and how many there are today.
TESTS, TESTS_LIMIT = 1.4, 81_722
# The files that each "On its way, ... opens these files" of architecture.md names.
WALKS = {"a new network": (8, 9), "a new attachment": (8, 8), "the lease of a dead container": (8, 8)}


def lines(pattern: str, excluded: str = "") -> int:
    """Return how many lines the files have that git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    names = (name for name in listed if fnmatch(name, pattern) and not (excluded and fnmatch(name, excluded)))
    paths = (ROOT / name for name in names if not any(fnmatch(name, data) for data in DATA))
    return sum(path.read_bytes().count(b"\n") for path in paths if path.is_file() and not path.is_symlink())


def walks() -> Iterator[tuple[str, int]]:
    """Yield what walks through the code, and how many files that opens. Fails if a walk is no longer described."""
    text = (ROOT / "docs/contributing/architecture.md").read_text(encoding="utf-8")
    for subject in WALKS:
        paragraph = re.search(rf"^On its way, {subject} (.+?)(\n\n|\Z)", text, re.DOTALL | re.MULTILINE)
        assert paragraph, f"architecture.md does not say which files {subject} opens"
        yield subject, paragraph[1].count(".py`")


def main() -> int:
    # What is tested here.
    code = sum(lines(f"{folder}/*") for folder in ("plugins", "conformance", "examples"))
    parts = [*PARTS, BASE, *(Part(f"  {room}", f"{HOST}/{room}/*", *most) for room, most in ROOMS.items())]
    rows = [(part.name, lines(part.pattern, part.excluded), part.budget, part.limit or part.budget) for part in parts]
    rows.append(("tests", lines("tests/*"), int(TESTS * code), TESTS_LIMIT))
    rows += [(f"files that {subject} opens", count, *WALKS[subject]) for subject, count in walks()]
    print(f"{'lines of a part':45}{'now':>8}{'budget':>8}{'limit':>8}")
    for name, count, budget, limit in rows:
        print(f"{name:45}{count:8}{budget:8}{limit:8}{'  too many' if count > limit else ''}")
    return int(any(count > limit for _name, count, _budget, limit in rows))


if __name__ == "__main__":
    sys.exit(main())
