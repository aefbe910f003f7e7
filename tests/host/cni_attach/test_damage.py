# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are no namespaces, plugins that fail, entries of the cache that are damaged or lost."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.parametrize("generation", ["new"], indirect=True)

WEB = {"network": "pwatwo", "container_id": "web", "netns": "pwa-web"}


def test_a_file_is_no_namespace(host, work):
    """As `ip netns` leaves it where the namespace was unmounted."""
    (work / "file").touch()
    assert host.fail("cni_attach", attachments=[{**WEB, "netns": f"{work}/file"}])["code"] == "missing_netns"


def test_a_failed_add_quotes_the_plugin(host, write_network):
    write_network("pwabad", [{"type": "die"}])
    refused = host.fail("cni_attach", attachments=[{**WEB, "network": "pwabad"}])
    (row,) = refused["attachments"]
    assert row["error"]["code"] == "add_failed"
    assert row["error"]["plugin"] == "die" and row["error"]["message"]
    assert "stderr" in row["error"]


def test_a_damaged_entry_of_the_cache_is_no_json(host, cache):
    file = cache / "results" / "pwatwo-junk-eth0"
    file.parent.mkdir(parents=True)
    file.write_text("{")
    found = host.run("cni_info", gather=["attachments"])["problems"]
    (damaged,) = [problem for problem in found if problem["code"] == "cache_damaged"]
    assert damaged["file"] == str(file)


def test_a_lost_entry_of_the_cache_leaves_its_record(host, attach, cache):
    attach(WEB)
    (cache / "results" / "pwatwo-web-eth0").unlink()
    (row,) = attach(WEB)["attachments"]
    assert (row["action"], row["reason"]) == ("adopted", "lost")
    attach({**WEB, "state": "absent"})
