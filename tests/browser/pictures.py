# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes the pictures of the documentation: pictures.py DIRECTORY; CHROMIUM names the browser."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from chromium import browser, opened, write
from fleet import fleet

PICTURES = (
    ("report-1", 1, "light", ""),
    ("report-50", 50, "light", ""),
    ("report-50-host", 50, "dark", "lost"),
    ("report-1000", 1000, "dark", ""),
)


def main() -> None:
    with browser() as started, tempfile.TemporaryDirectory() as folder:
        for name, size, scheme, what in PICTURES:
            address = write(Path(folder) / "report.html", fleet(size))
            with opened(started, address, color_scheme=scheme) as page:
                if what == "lost":
                    page.locator("#matrix tbody tr:has(.tag.disruptive) td:nth-child(4) a").first.click()
                    page.locator("details[open] .box").first.wait_for()
                page.screenshot(path=Path(sys.argv[1]) / (name + ".png"))


if __name__ == "__main__":
    main()
