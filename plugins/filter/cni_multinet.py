# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Filter cni_multinet: networks of a host, one of them with podwire-multinet in front of it."""

from __future__ import annotations

from typing import Any, Callable, Optional

from ..plugin_utils._conf.multus import multinet_networks
from ..plugin_utils.filters import validating


@validating
def cni_multinet(
    networks: Any, network: str, settings: Optional[dict[str, Any]] = None, *, validate: Any = None
) -> list[dict[str, Any]]:
    """Return entries of cni_networks; see the filter's documentation."""
    if not isinstance(networks, list) or not isinstance(network, str) or not isinstance(settings or {}, dict):
        raise ValueError("expected a list of networks, the name of one, and a mapping of settings")
    return multinet_networks(networks, network, settings or {}, validate)


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cni_multinet": cni_multinet}
