# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The molecule scenarios and the virtual machines of their runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import yaml
from machine import CACHE, ROOT, run_directory

# Every run has its own directory, so that runs at the same time do not interfere.
RUNS = CACHE / "molecule"


def vm(*arguments: str | Path) -> None:
    """Call playbooks/vm/vm.py, with its files in the cache."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(CACHE.parent)}
    program = ROOT / "playbooks" / "vm" / "vm.py"
    subprocess.run([sys.executable, program, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)


def names() -> list[str]:
    """Return the names of all scenarios."""
    return sorted(path.parent.name for path in ROOT.glob("molecule/*/molecule.yml"))


def images(scenarios: Iterable[str]) -> list[str]:
    """Return the images that *scenarios* need, as arguments of vm.py."""
    shared = yaml.safe_load((ROOT / "molecule" / "config.yml").read_text())["platforms"]
    found: dict[str, None] = {}
    for scenario in scenarios:
        own = yaml.safe_load((ROOT / "molecule" / scenario / "molecule.yml").read_text()) or {}
        for machine in own.get("platforms", shared):
            image = machine.get("vm_image", machine.get("image", machine["name"]))
            found[image if isinstance(image, str) else json.dumps(image)] = None
    return list(found)


def _remove(run: Path) -> None:
    vm("destroy", run)
    shutil.rmtree(run)


def destroy_all() -> None:
    """Destroy the machines of all runs."""
    vm("destroy", RUNS)
    shutil.rmtree(RUNS, ignore_errors=True)


def test(results: Path, wanted: list[str]) -> int:
    """Run scenarios one after the other, and write to *results* how many passed and failed."""
    wanted = names() if wanted == ["--all"] else wanted
    unknown = [name for name in wanted if name not in names()]
    if unknown or not wanted:
        problem = f"no such scenario: {', '.join(unknown)}" if unknown else "no scenario given"
        print(f"{problem}; there are: {' '.join(names())}; --all runs all of them", file=sys.stderr)
        return 2
    report = []
    with run_directory(RUNS, _remove) as run:
        vm("build", *images(wanted))
        for name in wanted:
            print(f"Scenario {name}", flush=True)
            (run / name).mkdir()
            begun = time.monotonic()
            done = subprocess.run(
                ["molecule", "-c", "molecule/config.yml", "test", "--no-command-borders", "--scenario-name", name],
                cwd=ROOT,
                env={**os.environ, "MOLECULE_EPHEMERAL_DIRECTORY": str(run / name)},
                stdin=subprocess.DEVNULL,
                check=False,
            )
            report.append((name, done.returncode == 0, time.monotonic() - begun))
    for name, passed, seconds in report:
        print(f"{'ok' if passed else 'FAILED':6} {name}  {seconds:.0f} s")
    failed = sum(not passed for _name, passed, _seconds in report)
    results.write_text(json.dumps({"passed": len(report) - failed, "failed": failed}))
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "destroy":
        destroy_all()
    else:
        sys.exit(test(Path(sys.argv[2]), sys.argv[3:]))
