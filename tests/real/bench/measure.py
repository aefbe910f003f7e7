# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Measures our libcni next to Go's, in turns: measure.py GO_PROGRAM OUTPUT

Writes the medians as JSON: `import` in milliseconds, beyond a Python that imports nothing; the rest in microseconds a
call: `go` and `python` of a DEL with a plugin that does nothing, `python_500` and `python_10000` of that beside as many
cache entries of others, `bare` of that plugin through `subprocess` alone, `write` of a durable cache write.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
MODULE_UTILS = HERE.parents[2] / "plugins" / "module_utils"
ROUNDS = 9
CALLS = 60
OTHERS = (500, 10_000)
NETWORK = {"cniVersion": "1.1.0", "name": "bench", "plugins": [{"type": "nothing", "ipam": {"subnet": "10.1.0.0/16"}}]}


def seconds(code: str) -> float:
    """Return how long a Python of its own takes for the code, start and end included."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
    return time.perf_counter() - begun


def measure_import(directory: str) -> float:
    """Return what cni_attach needs of libcni costs to import, from compiled files as an installed package has them."""
    shutil.copytree(MODULE_UTILS / "libcni", f"{directory}/libcni", ignore=shutil.ignore_patterns("__pycache__"))
    code = f"import sys; sys.path.insert(0, {directory!r}); import libcni.api, libcni.process"
    seconds(code)
    turns = [(seconds(code), seconds("import sys")) for _turn in range(4 * ROUNDS)]
    return median(with_it - without for with_it, without in turns) * 1000


def cache_of(cache_dir: str, count: int) -> str:
    """Make a cache directory with this many entries, which no call looks for."""
    results = Path(cache_dir, "results")
    results.mkdir(parents=True)
    for number in range(count):
        (results / f"other-{number}-eth0").write_text("{}", encoding="utf-8")
    return cache_dir


def measure_calls(go_program: str, directory: str) -> dict[str, float]:
    shutil.copy("/bin/true", f"{directory}/nothing")
    conflist = f"{directory}/nothing.conflist"
    with open(conflist, "w", encoding="utf-8") as stream:
        json.dump(NETWORK, stream)
    ours = [sys.executable, str(HERE / "calls.py")]
    commands = {"go": [go_program, "del"], "python": [*ours, "del"], "bare": [*ours, "bare"], "write": [*ours, "write"]}
    caches = {f"python_{count}": cache_of(f"{directory}/cache_{count}", count) for count in OTHERS}
    commands.update(dict.fromkeys(caches, commands["python"]))
    took: dict[str, list[float]] = {name: [] for name in commands}
    for _round in range(ROUNDS):
        for name, command in commands.items():
            arguments = [str(CALLS), directory, caches.get(name, f"{directory}/cache"), conflist]
            output = subprocess.run([*command, *arguments], stdout=subprocess.PIPE, check=True).stdout
            took[name] += map(float, output.split())
    return {name: median(times) for name, times in took.items()}


def main() -> None:
    go_program, output = sys.argv[1:]
    # Not in memory: a durable write to a disk is what is measured.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        found = {"import": measure_import(directory), **measure_calls(go_program, directory)}
    with open(output, "w", encoding="utf-8") as stream:
        json.dump(found, stream)


if __name__ == "__main__":
    main()
