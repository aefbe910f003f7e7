# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a run that changes nothing imports: the host compiles each file in each run."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.host.host import PYTHON

# The sections without attachments, and all. A change that needs more changes these numbers and says why in its commit.
MOST = {"without": 72, "with": 100}
# What only a change needs.
NEVER = (
    "adoption",
    "archive",
    "aside",
    "batch",
    "capabilities",
    "changes",
    "download",
    "execute",
    "force",
    "removal",
    "steps",
    "versions",
)


@pytest.mark.parametrize("generation", ["new"], indirect=True)
@pytest.mark.parametrize("attachments", ["without", "with"])
def test_an_unchanged_run_imports_what_it_needs(host, desired, work, attachments):
    # From the controller, which sends only what differs.
    desired["plugins"]["remote_src"] = False
    if attachments == "without":
        del desired["attachments"]
    host.run("cni_host", **desired)
    # The second run remembers what the plugins answer.
    assert not host.run("cni_host", **desired)["changed"]
    python = work / "python"
    python.write_text(f'#!/bin/sh\nexec {PYTHON} -X importtime "$@" 2>{work}/imported\n')
    python.chmod(0o755)
    assert not host.run("cni_host", python=str(python), **desired)["changed"]
    lines = (work / "imported").read_text().splitlines()
    found = {line.rpartition("|")[2].strip() for line in lines if "ansible_collections.podwire.cni" in line}
    files = sorted(name.partition(".podwire.cni.plugins.")[2] for name in found if ".podwire.cni.plugins." in name)
    assert [name for name in files if name.rpartition(".")[2] in NEVER] == []
    assert 0 < len(files) <= MOST[attachments], (len(files), files)
