# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.usable import Binaries
from ansible_collections.podwire.cni.plugins.module_utils._host.checks.multus import multus_obstacles
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView

PODS = {"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "ipam": {"type": "host-local"}}]}


@pytest.fixture
def codes(tmp_path):
    """Return a function that returns the codes of the obstacles in a configuration; @ is a directory of the host."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "there").write_text("")
    (tmp_path / "multus.sock").write_text("")
    for name in ("bridge", "host-local"):
        (tmp_path / "bin" / name).write_text("")

    def run(**keys):
        keys = {
            key: value.replace("@", str(tmp_path)) if isinstance(value, str) else value for key, value in keys.items()
        }
        binaries = Binaries([str(tmp_path / "bin")], HostView())
        return [one.code for one in multus_obstacles({"type": "multus", **keys}, binaries)]

    return run


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ({"delegates": [PODS], "readinessindicatorfile": "@/there"}, []),
        ({"delegates": [PODS], "readinessindicatorfile": "@/gone"}, ["no_readiness_file"]),
        ({"delegates": [{**PODS, "plugins": [{"type": "nosuch"}]}]}, ["missing_plugin"]),
        ({"delegates": [{"name": "pods", "type": "nosuch", "ipam": {"type": "host-local"}}]}, ["missing_plugin"]),
        ({"clusterNetwork": "@/there", "kubeconfig": "/k"}, []),
        ({"clusterNetwork": "@/gone", "kubeconfig": "/k"}, ["no_cluster_network"]),
        ({"clusterNetwork": "pods"}, ["no_kubeconfig"]),
        ({"type": "multus-shim", "clusterNetwork": "pods", "daemonSocketDir": "@"}, []),
        ({"type": "multus-shim", "clusterNetwork": "pods", "daemonSocketDir": "@/gone"}, ["no_multus_daemon"]),
        # Its daemon sees other paths.
        ({"type": "multus-shim", "clusterNetwork": "/host/etc/cni/net.d/10-pods.conflist", "daemonSocketDir": "@"}, []),
        ({"type": "multus-shim", "readinessindicatorfile": "/host/gone", "daemonSocketDir": "@"}, []),
    ],
)
def test_what_multus_waits_for(codes, keys, found):
    assert codes(**keys) == found
