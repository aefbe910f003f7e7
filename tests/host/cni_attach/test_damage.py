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
