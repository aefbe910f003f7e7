# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Networks of tests: plugins, and what the option ``networks`` and a runtime take."""

from __future__ import annotations

from typing import Any

LOOPBACK = {"type": "loopback"}
PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}
DEFAULT_ROUTE = [{"dst": "0.0.0.0/0"}]


def host_local(*subnets: str, **keys: Any) -> dict[str, Any]:
    """Return an IPAM with a range for each subnet. One subnet may be the key ``subnet`` instead, in the old form."""
    ranges = {"ranges": [[{"subnet": subnet}] for subnet in subnets]} if subnets else {}
    return {"type": "host-local", **ranges, **keys}


def bridge(name: str, *subnets: str, **keys: Any) -> dict[str, Any]:
    """Return a plugin bridge that is the gateway of its subnets. *keys* has its other keys, perhaps ``ipam``."""
    return {"type": "bridge", "bridge": name, "isGateway": True, "ipam": host_local(*subnets), **keys}


def conflist(*plugins: dict[str, Any], version: str = "1.0.0", **keys: Any) -> dict[str, Any]:
    return {"cniVersion": version, **keys, "plugins": list(plugins)}


def definition(name: str, config: Any) -> dict[str, Any]:
    """Return a NetworkAttachmentDefinition."""
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name},
        "spec": {"config": config},
    }


def network(name: str, *plugins: dict[str, Any], version: str = "1.0.0", **options: Any) -> dict[str, Any]:
    """Return an entry of the option ``networks``; without *plugins*, its plugin is loopback."""
    return {"name": name, "conflist": conflist(*(plugins or (LOOPBACK,)), version=version), **options}
