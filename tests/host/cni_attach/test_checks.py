# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""When CHECK runs: by default only where a footprint does not tell everything."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh

pytestmark = pytest.mark.parametrize("generation", ["new"], indirect=True)
WEB = {"network": "pwacheck", "container_id": "web", "netns": "pwa-web"}
# Each plugin notes its verb, and does what bridge does.
PLUGIN = """#!/bin/sh
echo "$CNI_COMMAND" >>{log}
exec {bridge}
"""


@pytest.fixture
def verbs(host, work, plugins, bridge, write_network):
    """Return a function that attaches by a plugin of a type, and returns the verbs that ran."""
    log, folder = work / "verbs", work / "noting"
    folder.mkdir()

    def run(kind, **options):
        plugin = folder / kind
        plugin.write_text(PLUGIN.format(log=log, bridge=plugins / "bridge"))
        plugin.chmod(0o755)
        write_network("pwacheck", [{**bridge("pwacheck0", "10.64.0.0/24"), "type": kind}])
        log.write_text("")
        result = host.run("cni_attach", attachments=[WEB], bin_dirs=[str(folder), str(plugins)], **options)
        return result, [verb for verb in log.read_text().split() if verb != "VERSION"]

    return run


@pytest.mark.parametrize(
    ("kind", "check", "runs"),
    [
        ("bridge", None, False),
        ("bridge", "auto", False),
        ("bridge", "always", True),
        ("bridge", "never", False),
        # Nobody knows what else it needs.
        ("custom", None, True),
        ("custom", "never", False),
    ],
)
def test_check_runs_where_it_is_wanted(verbs, kind, check, runs):
    options = {"check": check} if check else {}
    checks = ["CHECK"] if runs else []
    assert verbs(kind, **options)[1] == ["ADD", *checks]
    for check_mode in (True, False):
        result, ran = verbs(kind, check_mode=check_mode, **options)
        assert not result["changed"] and ran == checks
    sh("ip -n pwa-web address flush dev eth0")
    result, ran = verbs(kind, on_drift="repair", **options)
    assert [step["class"] for step in result["actions"]] == ["safe"] and ran == []
