# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import json
import os

import pytest


@pytest.fixture
def needed(host, work, new):
    """Install four plugins, three of which are needed, and return the options that say by what."""
    host.run("cni_plugins", src=new, plugins=["bridge", "host-local", "portmap", "vrf"])
    apps = {"cniVersion": "1.0.0", "name": "apps", "plugins": [{"type": "bridge", "ipam": {"type": "host-local"}}]}
    gone = {"cniVersion": "1.0.0", "name": "gone", "plugins": [{"type": "portmap"}]}
    attachment = {
        "kind": "cniCacheV1",
        "containerId": "c1",
        "ifName": "eth0",
        "networkName": "gone",
        "config": base64.b64encode(json.dumps(gone).encode()).decode(),
    }
    (work / "results").mkdir(mode=0o700)
    for path, content in (("10-apps.conflist", apps), ("results/gone-c1-eth0", attachment)):
        (work / path).write_text(json.dumps(content))
        (work / path).chmod(0o600)
    return {"conf_dir": str(work), "cache_dir": str(work)}


def test_plugins_that_are_needed_are_not_removed(refuse, bin_dir, work, needed):
    plugins = ["bridge", "host-local", "portmap", "vrf"]
    refused = refuse("plugin_in_use", plugins=plugins, state="absent", **needed)
    network = f"the network 'apps' in {work}/10-apps.conflist"
    assert refused["users"] == [
        {"name": "bridge", "users": [network]},
        {"name": "host-local", "users": [network]},
        {"name": "portmap", "users": ["the attachment gone/c1/eth0"]},
    ]
    assert sorted(os.listdir(bin_dir)) == plugins
