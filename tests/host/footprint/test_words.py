# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Containers whose IDs are words of other containers' rules."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh


def add(site, name, container_id, port):
    mappings = [{"hostPort": port, "containerPort": 80, "protocol": "tcp"}]
    container = site.add_container(name, container_id=container_id, capability_args={"portMappings": mappings})
    container.container_id = container_id
    return container


@pytest.mark.parametrize("chain", ["portmap", "portmap-nft"])
@pytest.mark.parametrize("word", ["", "nat", "id", "cni_hostport", "ip"])
def test_a_dead_container_s_port_does_not_come_back(new_site, chain, word):
    site = new_site(chain)
    # Without a word: it is named like its network.
    mine = add(site, "one", word or site.chain.network, 18081)
    api = add(site, "two", "api", 18082)
    site.attach()
    for container, others in ((mine, "18082"), (api, "18081")):
        assert others not in str(container.footprint().host)
        assert "1808" in str(container.footprint().host)
    site.host.run("cni_attach", attachments=[api.absent])
    before = sh("nft list ruleset")
    assert "18082" not in before
    result = site.run(attachments=[mine.wanted], on_drift="repair")
    assert not result["changed"], result["actions"]
    assert sh("nft list ruleset") == before
