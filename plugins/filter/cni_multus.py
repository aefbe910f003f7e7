# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Filter cni_multus: the network entry that makes a host use Multus."""

from __future__ import annotations

from typing import Any, Callable, Optional

from ..plugin_utils._conf.multus import absent_networks, multus_network
from ..plugin_utils.filters import flag, validating


@validating
def cni_multus(
    networks: Any,
    settings: Optional[dict[str, Any]] = None,
    cluster_network: Optional[str] = None,
    shim: bool = False,
    name: str = "multus-cni-network",
    file: str = "00-multus.conflist",
    alone: bool = False,
    *,
    validate: Any = None,
) -> Any:
    """Return an entry of cni_networks, or a list of them; see the filter's documentation."""
    if not isinstance(settings or {}, dict):
        raise ValueError("settings must be a mapping of keys of Multus")
    if not all(isinstance(text or "", str) for text in (cluster_network, name, file)):
        raise ValueError("cluster_network, name and file must be strings")
    is_shim, is_alone = flag("shim", shim), flag("alone", alone)
    conflist = multus_network(networks, settings or {}, cluster_network, is_shim, name, validate)
    entry = {"name": name, "file": file, "conflist": conflist}
    return [entry, *absent_networks(networks, name)] if is_alone else entry


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cni_multus": cni_multus}
