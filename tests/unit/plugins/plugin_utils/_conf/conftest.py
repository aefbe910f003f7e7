# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils._conf.validate import Checked, DataSource


@pytest.fixture()
def problems():
    """Return a function that validates one plugin and returns (level, code, pointer in the plugin, message) of each."""

    def check(plugin, version="1.0.0", before=()):
        data = {"cniVersion": version, "name": "a", "plugins": [*before, plugin]}
        entries = Checked(DataSource(data), "here", None, ("syntax", "schema")).problems
        place = "/plugins/%d" % len(before)
        return [(e.level, e.code, e.pointer.replace(place, "", 1), e.message) for e in entries]

    return check
