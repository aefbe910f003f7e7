# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter cni_multinet: networks of a host, one of them with podwire-multinet in front of it."""

from __future__ import annotations

from typing import Any, Callable, Optional

from ansible.errors import AnsibleFilterError

from ..plugin_utils._conf.multus import multinet_networks
from ..plugin_utils._conf.schema import MISSING
from ..plugin_utils.controller import jsonschema_needed

LEVELS = ("syntax", "schema")


def cni_multinet(
    networks: Any, network: str, settings: Optional[dict[str, Any]] = None, validate: Optional[list[str]] = None
) -> list[dict[str, Any]]:
    """Return entries of cni_networks; see the filter's documentation."""
    levels = list(LEVELS) if validate is None else validate
    if not isinstance(levels, list) or any(level not in LEVELS for level in levels):
        raise AnsibleFilterError("cni_multinet: validate must be a list of 'syntax' and 'schema'")
    if "schema" in levels and MISSING is not None:
        raise AnsibleFilterError(
            jsonschema_needed("cni_multinet: the level 'schema'", MISSING) + ", or write validate=['syntax']"
        ) from MISSING
    if not isinstance(networks, list) or not isinstance(network, str) or not isinstance(settings or {}, dict):
        raise AnsibleFilterError(
            "cni_multinet: expected a list of networks, the name of one, and a mapping of settings"
        )
    try:
        return multinet_networks(networks, network, settings or {}, levels)
    except ValueError as error:
        raise AnsibleFilterError(f"cni_multinet: {error}") from error


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cni_multinet": cni_multinet}
