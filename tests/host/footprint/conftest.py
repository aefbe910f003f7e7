# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.host.footprint.chains import CHAINS
from ansible_collections.podwire.cni.tests.host.footprint.site import Site

_HEADER = ("generation", "chain", "objects", "breaks", "seen", "repaired in place", "connections", "alive after all")


@pytest.fixture
def new_site(host, tmp_path_factory, generations):
    """Return a function that makes a site with the chain of that name; the site before is removed."""
    sites = []

    def remove():
        while sites:
            sites.pop().remove()

    def make(chain, generation="new", environment=None):
        remove()
        site = Site(host, tmp_path_factory.mktemp("site"), generations[generation], CHAINS[chain], environment)
        sites.append(site)
        site.make()
        # Kinds of links that the kernel of this machine lacks; molecule has them on virtual machines.
        if site.lacks():
            pytest.skip(f"no {site.lacks()} here")
        return site

    yield make
    remove()


@pytest.fixture
def attached(new_site):
    """Return a function that makes a site with attached containers and open connections."""

    def make(chain, *names, generation="new", **more):
        site = new_site(chain, generation)
        for name in names or ("ctr",):
            site.add_container(name, **more)
        site.attach()
        site.connect()
        return site

    return make


def pytest_terminal_summary(terminalreporter):
    """Print what was broken and repaired, as rows of the documentation."""
    rows = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "breaks" and report.when == "call"
    ]
    if rows:
        lines = [_HEADER, tuple("---" for _column in _HEADER), *rows]
        terminalreporter.write_line("")
        for line in lines:
            terminalreporter.write_line(f"| {' | '.join(map(str, line))} |")
