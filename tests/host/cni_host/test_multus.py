# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Networks without Multus, with it, and in both of its layouts: what the variables of the role host mean."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils.settings import Settings
from ansible_collections.podwire.cni.tests.host.cni_host.conftest import CONF_DIR, brief
from ansible_collections.podwire.cni.tests.host.networks import network

pytestmark = pytest.mark.parametrize("generation", ["new"], indirect=True)
MULTUS_DIR = CONF_DIR.parent / "multus" / "net.d"
NETWORKS = [
    network("pods", {"type": "bridge", "bridge": "multus0"}, priority=20),
    network("storage", {"type": "bridge", "bridge": "multus1"}, priority=30),
]
GONE = {"name": "multus-cni-network", "state": "absent"}
WITHIN = {"settings": {"capabilities": {"ips": True}}}
BESIDE = {"cluster_network": f"{MULTUS_DIR}/20-pods.conflist", "settings": {"kubeconfig": "/etc/cni/k"}}
NAMES = ["20-pods.conflist", "30-storage.conflist"]


def options(multus, *more):
    variables = {
        "cni_multus": multus,
        "cni_networks": [*NETWORKS, *more],
        "cni_pod_networks_dir": str(MULTUS_DIR),
        # Multus itself is not among the plugins of the tests.
        "cni_networks_validate": ["syntax", "schema", "directory"],
    }
    return Settings(variables, lambda value: value).options_of_host()


def names(folder):
    return sorted(path.name for path in folder.glob("*.conflist"))


def test_each_layout_comes_about_from_the_one_before(change):
    layouts = [
        ("", [], NAMES, []),
        (WITHIN, [], ["00-multus.conflist"], []),
        (BESIDE, [], ["00-multus.conflist"], NAMES),
        # The directory of Multus is not declared any longer; no runtime reads it.
        ("", [GONE], NAMES, NAMES),
        (BESIDE, [], ["00-multus.conflist"], NAMES),
    ]
    for multus, more, here, there in layouts:
        run = change(warnings=None, **options(multus, *more)).run
        assert (names(CONF_DIR), names(MULTUS_DIR)) == (here, there)
        # A file goes only when those that replace it are complete.
        kinds = [kind for _section, kind, _target in brief(run)]
        assert kinds == sorted(kinds, key=lambda kind: kind == "remove")
