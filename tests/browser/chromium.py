# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report in a real browser: clicked through, with hostile hosts in it; and its pictures for the documentation.

CHROMIUM names the browser. ``python -m pytest tests/browser`` tests; ``python tests/browser/pictures.py DIRECTORY`` is
for the pictures.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, sync_playwright

from ansible_collections.podwire.cni.plugins.plugin_utils._report.fleet import fleet
from ansible_collections.podwire.cni.plugins.plugin_utils._report.page import render

SIZE = {"width": 1280, "height": 800}


def write(path, records) -> str:
    """Write the page of *records* and return its address."""
    path.write_text(render(fleet(records)), encoding="utf-8")
    return "file://%s" % path


@contextmanager
def browser() -> Iterator:
    """Start the browser."""
    with sync_playwright() as playwright:
        # Its own sandbox does not start inside the namespaces of the tests, where it runs as root.
        started = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"])
        try:
            yield started
        finally:
            started.close()


@contextmanager
def opened(started, address: str, **options) -> Iterator[Page]:
    """Open *address* and note in ``page.complaints`` whatever a page must not do."""
    context = started.new_context(viewport=SIZE, **options)
    page = context.new_page()
    page.complaints = []
    page.on("console", lambda message: page.complaints.append("console: " + message.text))
    page.on("pageerror", lambda error: page.complaints.append("error: %s" % error))
    page.on("dialog", lambda dialog: page.complaints.append("dialog: " + dialog.message))
    page.on("request", lambda request: request.url == address or page.complaints.append("request: " + request.url))
    page.goto(address)
    try:
        yield page
    finally:
        context.close()
