# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints how long a report of 1,000 hosts takes to be made and to be opened; CHROMIUM names the browser."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from chromium import browser, opened
from fleet import fleet

from ansible_collections.podwire.cni.plugins.plugin_utils._report import folder

HOSTS = 1000
PAINTED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def limit(what: str, seconds: float, most: float) -> None:
    """Print one line of the table."""
    print("  %-54s %8.2f s  < %g  %s" % (what, seconds, most, "met" if seconds < most else "NOT MET"))


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, browser() as started:
        for record in fleet(HOSTS):
            folder.write_record(directory, record)
        begun = time.monotonic()
        folder.write_report(directory)
        limit("%s hosts: read, render and write JSON and HTML" % format(HOSTS, ","), time.monotonic() - begun, 10)
        page = Path(directory) / folder.HTML_NAME
        with opened(started, "about:blank") as tab:
            begun = time.monotonic()
            tab.goto("file://%s" % page)
            tab.evaluate(PAINTED)
            limit("%s hosts: open the page in Chromium" % format(HOSTS, ","), time.monotonic() - begun, 3)
        print("\n%d CPUs; the page has %.1f MB." % (os.cpu_count() or 0, page.stat().st_size / 1e6))


if __name__ == "__main__":
    main()
