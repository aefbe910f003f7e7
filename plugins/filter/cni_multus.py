# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter cni_multus: the network entry that makes a host use Multus."""

from __future__ import annotations

from typing import Any, Callable, Optional

from ansible.errors import AnsibleFilterError
from ansible.module_utils.parsing.convert_bool import boolean

from ..plugin_utils._conf.multus import absent_networks, multus_network
from ..plugin_utils._conf.schema import MISSING
from ..plugin_utils.controller import jsonschema_needed

LEVELS = ("syntax", "schema")


def cni_multus(
    networks: Any,
    settings: Optional[dict[str, Any]] = None,
    cluster_network: Optional[str] = None,
    shim: bool = False,
    name: str = "multus-cni-network",
    file: str = "00-multus.conflist",
    validate: Optional[list[str]] = None,
    alone: bool = False,
) -> Any:
    """Return an entry of cni_networks, or a list of them; see the filter's documentation."""
    levels = list(LEVELS) if validate is None else validate
    if not isinstance(levels, list) or any(level not in LEVELS for level in levels):
        raise AnsibleFilterError("cni_multus: validate must be a list of 'syntax' and 'schema'")
    if "schema" in levels and MISSING is not None:
        raise AnsibleFilterError(
            jsonschema_needed("cni_multus: the level 'schema'", MISSING) + ", or write validate=['syntax']"
        ) from MISSING
    if not isinstance(settings or {}, dict):
        raise AnsibleFilterError("cni_multus: settings must be a mapping of keys of Multus")
    if not all(isinstance(text or "", str) for text in (cluster_network, name, file)):
        raise AnsibleFilterError("cni_multus: cluster_network, name and file must be strings")
    try:
        is_shim, is_alone = boolean(shim), boolean(alone)
    except TypeError as error:
        raise AnsibleFilterError("cni_multus: shim must be true or false, as must alone") from error
    try:
        conflist = multus_network(networks, settings or {}, cluster_network, is_shim, name, levels)
    except ValueError as error:
        raise AnsibleFilterError(f"cni_multus: {error}") from error
    entry = {"name": name, "file": file, "conflist": conflist}
    return [entry, *absent_networks(networks, name)] if is_alone else entry


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cni_multus": cni_multus}
