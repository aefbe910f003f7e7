# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The preview of an ADD tells what the ADD then changes, and changes nothing itself."""

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.footprints.object_kinds import describe
from ansible_collections.podwire.cni.tests.host.footprint import pictures
from ansible_collections.podwire.cni.tests.host.footprint.chains import CHAINS, NEW

# With an IPAM that gives addresses only to a real ADD, there is no preview.
MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")
PREVIEWED = [name for name, chain in CHAINS.items() if name != "dhcp" and NEW in chain.generations]


def preview(site, **options):
    """Return the previews of a check that changes nothing, and the result."""
    before = site.picture()
    result = site.run(check_mode=True, diff=True, preview=True, **options)
    assert pictures.differences(before, site.picture()) == []
    assert "Traceback" not in json.dumps(result)
    return [row.get("preview") for row in result["attachments"]], result


def plain(phrases):
    """Return phrases without MACs, and without forwarding entries, of which a rehearsal does not tell."""
    return {MAC.sub("MAC*", text) for text in phrases if not text.startswith("forwarding entry")}


@pytest.mark.parametrize("chain", PREVIEWED)
def test_a_preview_tells_what_an_add_changes(new_site, chain):
    site = new_site(chain)
    container = site.add_container("ctr")
    (found,), result = preview(site)
    assert result.get("warnings", []) == []
    (shown,) = result["diff"]
    assert shown["after"]["preview"] == found
    site.attach()
    footprint = container.footprint()
    assert plain(found["container"]) == plain(describe(footprint.inside))
    assert plain(found["host"]) == plain(describe(footprint.host))
    shared = [one.host for one in site.shared(container.key[0])]
    real = {text for objects in shared for text in describe(objects)}
    assert plain(found["shared"]) == plain(real)


def test_the_addresses_are_those_that_are_free(new_site):
    site = new_site("bridge")
    site.add_container("ctr")
    site.attach()
    for name in ("more", "third"):
        site.add_container(name)
    found, _result = preview(site)
    assert found[0] is None
    given = [text for one in found[1:] for text in one["host"] if text.startswith("lease")]
    assert given == [f"lease of 10.88.0.{number} in {site.leases}/pwf-bridge" for number in (3, 4)]
    # The bridge is there, but a rehearsal does not know of it.
    assert any("interface pwf0" in text for text in found[1]["shared"])
    rows = site.run()["attachments"]
    assert [row["ips"] for row in rows[1:]] == [["10.88.0.3/16"], ["10.88.0.4/16"]]


def test_what_cannot_be_previewed_is_said(new_site):
    site = new_site("bridge")
    conflist = site.chain.conflist(site.leases)
    conflist["plugins"][0]["ipam"] = {"type": "dhcp"}
    site.write_network(conflist)
    site.add_container("ctr")
    (found,), result = preview(site)
    assert "dhcp" in found["unknown"]
    assert [text for text in result["warnings"] if "[no_preview]" in text]

    # Its ADD would fail.
    conflist["plugins"][0]["ipam"] = {"type": "host-local", "dataDir": str(site.leases), "subnet": "10.88.0.0/33"}
    site.write_network(conflist)
    (found,), result = preview(site)
    assert "its ADD fails in a rehearsal" in found["unknown"]
    assert [row["action"] for row in result["attachments"]] == ["added"]


def test_without_check_mode_nothing_is_previewed(new_site):
    site = new_site("bridge")
    site.add_container("ctr")
    result = site.run(preview=True)
    assert "preview" not in result["attachments"][0]
    again = site.run(preview=True, check_mode=True)
    assert "preview" not in again["attachments"][0] and not again["changed"]
