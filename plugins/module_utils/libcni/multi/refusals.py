# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""Rules for the networks of a pod that Multus applies only while it adds them, or not at all.

Multus finds an interface name that occurs twice, or that is too long, after some networks have been added, and its
roll-back then removes interfaces that worked.
"""

from __future__ import annotations

from ..errors import ValidationError, quote
from ..validate import validate_if_name
from .delegates import interface_names
from .errors import NetworksError
from .selection import NETWORKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from .pod import PodNetworks
    from .selection import NetworkSelection


def check_selections(selections: t.Sequence[NetworkSelection], annotation: str = NETWORKS) -> None:
    """Raise `NetworksError` for a network without a name, or with a name that leads elsewhere."""
    for index, selection in enumerate(selections):
        if not selection.name:
            text = "the name is empty; remove the item, or a comma too many"
            raise NetworksError(f"network {index}: {text}", f"/{index}", text, annotation)
        for key, value in (("name", selection.name), ("namespace", selection.namespace)):
            if "/" in value or value in (".", ".."):
                text = f"{quote(value)} is not a name"
                raise NetworksError(f"network {index}: {text}", f"/{index}/{key}", text, annotation)


def pod_interface_names(networks: PodNetworks, ifname: str) -> list[str]:
    """Return the name of each network's interface, see `delegates.interface_names`.

    Raises `NetworksError` for a name that the kernel refuses, or that occurs twice.
    """
    names = interface_names(networks.delegates, ifname)
    seen: dict[str, int] = {}
    for index, name in enumerate(names):
        place = index - (len(names) - networks.requested)
        pointer, annotation = (f"/{place}", NETWORKS) if place >= 0 else ("", "")
        network = networks.delegates[index].name
        try:
            validate_if_name(name)
        except ValidationError as exc:
            text = f"interface name {quote(name)}: {exc}"
            raise NetworksError(f"network {network}: {text}", pointer, text, annotation) from exc
        if name in seen:
            other = networks.delegates[seen[name]].name
            text = f"interface name {name} is that of network {other}, too; request another one"
            raise NetworksError(f"network {network}: {text}", pointer, text, annotation)
        seen[name] = index
    return names
