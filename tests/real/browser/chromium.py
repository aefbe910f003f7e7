# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The report in a real browser: clicked through, with hostile hosts in it; and its pictures for the documentation.

CHROMIUM names the browser. ``python -m pytest tests/real/browser`` tests; ``python tests/real/browser/pictures.py
DIRECTORY`` is for the pictures.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, sync_playwright

from ansible_collections.podwire.cni.plugins.plugin_utils._report.commands import Commands
from ansible_collections.podwire.cni.plugins.plugin_utils._report.fleet import fleet
from ansible_collections.podwire.cni.plugins.plugin_utils._report.history import Change, Run
from ansible_collections.podwire.cni.plugins.plugin_utils._report.page import Written, findings_by_host, pages

SIZE = {"width": 1280, "height": 800}


INVENTORY, FOLDER, NOW = "/srv/fleet/hosts.yml", "/srv/cni-report", "2026-11-21T06:30:00Z"


def write(path, records) -> str:
    """Write the page of *records*, with a past, and return its address."""
    report = fleet(records, NOW, inventory=[INVENTORY])
    groups: dict[str, list[str]] = {}
    for record in report["hosts"]:
        for group in ("all", *record["groups"]):
            groups.setdefault(group, []).append(record["host"])
    by_host = findings_by_host(report)
    (page,) = pages(with_past(report, by_host), by_host, Commands([INVENTORY], groups, FOLDER))
    path.write_text(page, encoding="utf-8")
    return "file://%s" % path


def with_past(report, by_host) -> Written:
    """Return a report with a past in which some hosts were clean."""
    since = {
        name: {one.key: "2026-11-%02dT06:00:00Z" % (12 + (index + number) % 10) for number, one in enumerate(findings)}
        for index, (name, findings) in enumerate(by_host.items())
    }
    new = [(name, [one.key for one in findings if one.level]) for name, findings in by_host.items()]
    changes = [Change(name, "clean", "drift", keys, []) for name, keys in new if keys][:3]
    return Written(report, since, Run("2026-11-20T06:00:00Z", NOW, {}), changes)


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
