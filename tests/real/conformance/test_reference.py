# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Reference plugins, one of each kind, with the verdicts that its README has."""

from __future__ import annotations

import re

import pytest

from ansible_collections.podwire.cni.tests.real.conformance.conftest import ROOT

PAGE = (ROOT / "conformance" / "README.md").read_text()
NAMES = {"old": "1.1.1", "new": "1.9.1"}
# Go's skel violates both, and so does each plugin that is written with it.
OF_SKEL = {"version.echo", "error.version"}


def documented(plugin, release):
    """Return what the table says: how many clauses passed, and the violated ones of must and of should."""
    row = re.search(rf"^\| {plugin} \| {re.escape(release)} \| (\d+) \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
    return int(row[1]), set(re.findall(r"`(.*?)`", row[2])), set(re.findall(r"`(.*?)`", row[3]))


# Others run on a virtual machine (molecule/conformance), or take long.
@pytest.mark.parametrize("generation", NAMES)
@pytest.mark.parametrize("plugin", ["dhcp", "host-local", "loopback"])
def test_the_table_has_the_verdicts(conformance, releases, plugin, generation):
    newest = {"old": "1.0.0", "new": "1.1.0"}[generation]
    judged = conformance(f"{releases[generation]}/{plugin}", "--versions", "0.4.0", newest, "--parallel", "4")
    assert judged.report["problem"] == "", judged.stderr
    passed, must, should = documented(plugin, NAMES[generation])
    failed = {
        level: {
            entry["clause"]
            for entry in judged.report["verdicts"]
            if (entry["status"], entry["level"]) == ("failed", level)
        }
        for level in ("must", "should")
    }
    assert (failed["must"], failed["should"] - OF_SKEL) == (must, should)
    assert len(judged.clauses("passed") - judged.clauses("failed")) == passed
