# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The predictions in the shape of what runtimes say of themselves."""

from __future__ import annotations

import re

from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import scan_conf_dir
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.rules import judge
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.runtime import Runtime

# What Go says of broken JSON, of wrong types and of files differs with its release.
_GO = re.compile(r": (json: |.*\(line |cannot be opened|is not a regular|is empty).*", re.DOTALL)
# The plugins that are there for podman, and what they support.
PLUGINS = {"bridge", "host-local", "macvlan", "ptp", "static", "dhcp"}
VERSIONS = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0"]


def _ask(plugin):
    if plugin in PLUGINS:
        return VERSIONS
    raise HostError("there is none", code="missing_plugin")


def containerd_prediction(profile, conf_dir, networks):
    """Return ``networks`` in the order of the interfaces, and as much of the ``error`` as Go's release leaves alone."""
    runtime = Runtime(profile, conf_dir=conf_dir)
    runtime.max_networks = networks
    verdict = judge(runtime, scan_conf_dir(conf_dir), _ask)
    error = _GO.sub("", verdict.reason.replace("no network: ", "")) if verdict.failed else ""
    return {"networks": [network.name for network in verdict.networks], "error": error.replace(conf_dir, "DIR")}


def podman_prediction(conf_dir, version="4.3.1"):
    """Return the ``networks`` of `podman network ls`, sorted."""
    verdict = judge(Runtime("podman", version, conf_dir=conf_dir), scan_conf_dir(conf_dir), _ask)
    return {"networks": sorted({network.name for network in verdict.networks} | {verdict.network}), "error": ""}


def agree(predicted, seen):
    """Tell whether a prediction came true."""
    if predicted["networks"] != seen["networks"] or bool(predicted["error"]) != bool(seen["error"]):
        return False
    return predicted["error"] in seen["error"]
