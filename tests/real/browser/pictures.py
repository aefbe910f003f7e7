# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Takes the pictures of the documentation: pictures.py DIRECTORY; CHROMIUM names the browser."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from chromium import browser, opened, write
from fleet import fleet

DESKTOP, PHONE, PAPER = (1280, 800), (360, 740), (1040, 720)
PICTURES = (
    ("report-1", 1, "light", DESKTOP),
    ("report-50", 50, "light", DESKTOP),
    ("report-50-host", 50, "dark", DESKTOP),
    ("report-1000", 1000, "dark", DESKTOP),
    ("report-phone", 50, "light", PHONE),
    ("report-print", 50, "light", PAPER),
)


def main() -> None:
    with browser() as started, tempfile.TemporaryDirectory() as folder:
        for name, size, scheme, (width, height) in PICTURES:
            address = write(Path(folder) / "report.html", fleet(size))
            with opened(started, address, color_scheme=scheme) as page:
                page.set_viewport_size({"width": width, "height": height})
                if name == "report-50-host":
                    page.locator("#matrix tbody tr[data-tags~=disruptive] th a").first.click()
                    page.locator("details[open] table.containers").wait_for()
                if name == "report-print":
                    page.evaluate("dispatchEvent(new Event('beforeprint'))")
                    page.emulate_media(media="print")
                page.screenshot(path=Path(sys.argv[1]) / (name + ".png"))


if __name__ == "__main__":
    main()
