# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the gate twice beside a busy process for each processor, its test files in two orders: stress.py [SEED]

A test that fails, or that one of the runs has and the other has not, is named, with the seed that brings the orders
back. Waits of the tests take longer before they give up (PODWIRE_PATIENCE); nothing else is loosened.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = "6"


@contextlib.contextmanager
def busy_processors() -> Iterator[None]:
    burn = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(burn) for _processor in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def run_gate(results: Path, order: str) -> tuple[int, dict[str, str]]:
    """Return the exit status of the gate, and the outcome of each test by its name."""
    environment = {**os.environ, "PODWIRE_RESULTS": str(results), "PODWIRE_ORDER": order, "PODWIRE_PATIENCE": PATIENCE}
    status = subprocess.run([ROOT / "run", "test"], env=environment, check=False).returncode
    outcomes = {}
    for report in results.glob("*.xml"):
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            name = f"{report.name.partition('.xml')[0]} {case.get('classname')}::{case.get('name')}"
            outcomes[name] = ", ".join(sorted({child.tag for child in case} - {"properties"})) or "passed"
    return status, outcomes


def main(seed: str) -> int:
    print(f"seed {seed}", flush=True)
    runs = []
    with busy_processors():
        for order in (f"{seed}-1", f"{seed}-2"):
            with tempfile.TemporaryDirectory(prefix="podwire-") as results:
                runs.append(run_gate(Path(results), order))
    (first_status, first), (second_status, second) = runs
    differing = [name for name in sorted({*first, *second}) if first.get(name) != second.get(name)]
    for name in differing:
        print(f"{name}: {first.get(name, 'not run')}, then {second.get(name, 'not run')}")
    failed = bool(first_status or second_status or differing or not first)
    print(f"./run test --stress {seed}: {len(first)} tests, {len(differing)} differ")
    print(f"{int(not failed)} passed, {int(failed)} failed, 0 skipped")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else f"{random.SystemRandom().randrange(10**6):06d}"))
