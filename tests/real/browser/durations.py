# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Prints how long reports of 1,000 and 10,000 hosts take to be made and to be opened; CHROMIUM names the browser."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from chromium import browser, opened
from fleet import fleet

from ansible_collections.podwire.cni.plugins.plugin_utils._report import folder

# By the number of hosts: the most seconds and MiB.
SIZES = {1000: (10.0, 1000.0), 10000: (30.0, 1000.0)}
_MEMORY = (
    "import resource; peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
    "open(sys.argv[1] + '/memory', 'w').write(str(peak))"
)
PAINTED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def limit(what: str, found: float, most: float, unit: str = "s") -> None:
    """Print one line of the table."""
    print("  %-54s %8.2f %-3s  < %g  %s" % (what, found, unit, most, "met" if found < most else "NOT MET"))


def measure(hosts: int, directory: str, started: Any, most: tuple[float, float]) -> None:
    """Print how long a report takes to be made and to be opened, and the most of the memory that making it took."""
    for record in fleet(hosts):
        folder.write_record(directory, record)
    count = format(hosts, ",")
    # In a process of its own, whose memory is that of the report.
    program = f"import sys; from {folder.__name__} import write_report; write_report(sys.argv[1])"
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", f"{program}; {_MEMORY}", directory], check=True)
    limit("%s hosts: read, render and write JSON and HTML" % count, time.monotonic() - begun, most[0])
    memory = int(Path(directory, "memory").read_text()) / 1024
    limit("%s hosts: memory for that" % count, memory, most[1], "MiB")
    pages = [path for path in Path(directory).iterdir() if path.suffix == ".html"]
    for path in dict.fromkeys((Path(directory, folder.HTML_NAME), max(pages, key=lambda path: path.stat().st_size))):
        with opened(started, "about:blank") as tab:
            begun = time.monotonic()
            tab.goto("file://%s" % path)
            tab.evaluate(PAINTED)
            what = "%s hosts: open %s (%.1f MB)" % (count, path.name, path.stat().st_size / 1e6)
            limit(what, time.monotonic() - begun, 3)


def main() -> None:
    with browser() as started:
        for hosts, most in SIZES.items():
            with tempfile.TemporaryDirectory() as directory:
                measure(hosts, directory, started, most)
    print("\n%d CPUs." % (os.cpu_count() or 0))


if __name__ == "__main__":
    main()
