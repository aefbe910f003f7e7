# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The networks of a pod, as the controller has found them in its annotations, and what is recorded of each.

A pod is one entry of ``cni_attach`` with several networks. Each of them is an attachment of its own; the pod is what
they have in common.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from ...libcni.conf import (
    NetworkConfigList,
    conf_list_from_conf,
    network_conf_from_bytes,
    network_plugin_conf_from_bytes,
)
from ...libcni.errors import CNIError
from ..errors import HostError
from ..struct import field, struct

# What a runtime asks for its pod goes to the pod's own network. Others get what they are asked for themselves.
_OF_FIRST = ("portMappings", "ips", "mac", "infinibandGUID", "deviceID", "CNIDeviceInfoFile", "ipRanges")
_ARGS_OF_FIRST = ("IP", "GATEWAY", "MAC")


@struct
class PodRoutes:
    """What the annotations ask for the default routes of one network.

    ``families`` ("4", "6") whose default routes the network loses, then one route via each of ``gateways``.
    """

    families: Sequence[str] = ()
    gateways: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.families)

    def to_data(self) -> Dict[str, Any]:
        return {"families": sorted(self.families), "gateways": list(self.gateways)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> PodRoutes:
        """Return what ``to_data`` gave. Raises KeyError or TypeError for another shape."""
        return cls(_texts(data["families"]), _texts(data["gateways"]))


@struct
class PodMember:
    """What is recorded of an attachment that belongs to a pod.

    ``place`` is that of the network in the pod (0: its own), ``network`` its name in network-status. ``routes`` is what
    was done to its default routes; then ``result`` is what ADD returned, and ``removed`` are the routes that the kernel
    had, as results write them. ``moving``: that has only begun.
    """

    place: int
    network: str
    routes: PodRoutes = field(default_factory=PodRoutes)
    result: Optional[Dict[str, Any]] = None
    removed: List[Dict[str, Any]] = field(default_factory=list)
    moving: bool = False

    def to_data(self) -> Dict[str, Any]:
        data: Dict[str, Any] = {"place": self.place, "network": self.network}
        if self.routes:
            data.update(routes=self.routes.to_data(), result=self.result, removed=self.removed, moving=self.moving)
        return data

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> PodMember:
        """Return what ``to_data`` gave. Raises KeyError, TypeError or ValueError for another shape."""
        network, place = data["network"], data["place"]
        if not (isinstance(network, str) and isinstance(place, int)):
            raise TypeError("no network of a pod")
        if "routes" not in data:
            return cls(place, network)
        result, routes = data["result"], PodRoutes.from_data(data["routes"])
        removed = [_route(route) for route in data["removed"]]
        return cls(place, network, routes, result and dict(result), removed, bool(data.get("moving")))


def _route(data: Any) -> Dict[str, Any]:
    """Return a route of the kernel, whose members are those of a result."""
    kinds = dict.fromkeys(("mtu", "advmss", "priority", "table", "scope"), int)
    for name, value in data.items():
        if not isinstance(value, kinds.get(name, str)) or (name not in kinds and name not in ("dst", "gw")):
            raise TypeError("no route")
    return dict(data, dst=str(data["dst"]))


def _texts(values: Any) -> List[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("no list of texts")
    return values


@struct
class PodUnit:
    """One pod of the request: ``name`` (NAMESPACE/NAME), ``entry`` (its place in the request), and what all share.

    ``item`` (a request.Key) is what its steps have as item: they succeed or fail as one. None if each stands alone, to
    be detached.
    """

    name: str
    entry: int
    container_id: str
    netns: str
    item: Any


@struct
class PodPart:
    """One network of a pod in the request.

    ``place``, ``network``, ``routes``: see PodMember. ``asked`` are the capabilities that this network is asked for.
    ``config`` is its configuration as JSON text; without one it is in a file of ``conf_dir``, "" for that of the
    request.
    """

    unit: PodUnit
    place: int
    network: str
    routes: PodRoutes = field(default_factory=PodRoutes)
    config: Optional[str] = None
    conf_dir: str = ""
    asked: Sequence[str] = ()

    def member(self) -> PodMember:
        """Return what to record before an ADD."""
        return PodMember(self.place, self.network)

    def reroutes(self, member: Optional[PodMember]) -> bool:
        """Tell whether other default routes are asked for than *member*, which is recorded, has for certain."""
        routes = member.routes if member else PodRoutes()
        return bool(member and member.moving) or self.routes.to_data() != routes.to_data()

    def load(self, where: str) -> NetworkConfigList:
        """Return the configuration in ``config``. Raises HostError ``bad_config``."""
        data = (self.config or "").encode("utf-8", "surrogatepass")
        try:
            config = network_conf_from_bytes(data)
            return config if config.plugins else conf_list_from_conf(network_plugin_conf_from_bytes(data))
        except CNIError as error:
            raise HostError(f"{where}: the network {self.network} cannot be loaded: {error}", "bad_config") from error


def reaching(shared: Mapping[str, Any], own: Optional[Mapping[str, Any]], place: int) -> Dict[str, Any]:
    """Return the capability args, or the CNI_ARGS, of one network of a pod: its *own*, and those of the pod.

    The network with the place 0 gets all of them, the others those that do not concern one interface.
    """
    left_out = () if place == 0 else (*_OF_FIRST, *_ARGS_OF_FIRST)
    return {**{name: value for name, value in shared.items() if name not in left_out}, **(own or {})}
