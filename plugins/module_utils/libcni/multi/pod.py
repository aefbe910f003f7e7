# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""All networks of one pod: its cluster network, the default networks, and those of its annotations."""

from __future__ import annotations

from ..errors import ValidationError, quote
from ..validate import validate_if_name
from .definitions import configuration_at, configuration_from_files
from .delegates import Delegate, load_delegate
from .errors import NetworksError
from .routes import default_route_changes, family_of
from .selection import DEFAULT_NETWORK, NETWORKS, NetworkSelection, parse_networks

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from .configuration import MultusConf
    from .definitions import Definitions


class Pod:
    """What is known of a pod: `namespace`, `name`, `annotations`."""

    __slots__ = ("annotations", "name", "namespace")

    def __init__(self, namespace: str, name: str, annotations: t.Mapping[str, str] | None = None) -> None:
        self.namespace = namespace
        self.name = name
        self.annotations = annotations or {}


class PodNetworks:
    """The networks of a pod in the order of ADD: `delegates`. The last `requested` ones are those of its annotation."""

    __slots__ = ("delegates", "requested")

    def __init__(self, delegates: list[Delegate], requested: int) -> None:
        self.delegates = delegates
        self.requested = requested


def pod_networks(conf: MultusConf, pod: Pod, definitions: Definitions) -> PodNetworks:
    """Return the networks of a pod. `definitions`: every NetworkAttachmentDefinition by (namespace, name).

    Nothing is run, so all that can be refused is refused before the first ADD. Raises `NetworksError`. Without a
    cluster Multus runs `conf.delegates` alone, whatever the annotations are; with `definitions` from files this
    function does for a host what Multus does for a cluster.
    """
    return _Resolver(conf, pod, definitions).resolve()


class _Resolver:
    def __init__(self, conf: MultusConf, pod: Pod, definitions: Definitions) -> None:
        self._conf = conf
        self._pod = pod
        self._definitions = definitions

    def resolve(self) -> PodNetworks:
        delegates = [*self._conf.delegates]
        if self._conf.cluster_network:
            delegates = self._cluster_networks()
        # An empty annotation is an error for the default network, and none for the others, as in Multus.
        text = self._pod.annotations.get(DEFAULT_NETWORK)
        if text is not None:
            delegates[0] = self._default_network(text)
        text = self._pod.annotations.get(NETWORKS, "")
        requested = self._requested(parse_networks(text, self._pod.namespace)) if text else []
        delegates += requested
        try:
            default_route_changes([delegate.default_route for delegate in delegates])
        except NetworksError as exc:
            exc.annotation, exc.pointer = NETWORKS, _second_route(requested)
            raise
        return PodNetworks(delegates, len(requested))

    def _cluster_networks(self) -> list[Delegate]:
        conf = self._conf
        try:
            first = self._named(conf.cluster_network)
        except NetworksError as exc:
            raise NetworksError(exc.explain(), "/clusterNetwork") from exc
        first.first = True
        if self._pod.namespace in conf.system_namespaces:
            return [first]
        return [first, *map(self._named, conf.default_networks)]

    def _named(self, value: str) -> Delegate:
        """Return the network of clusterNetwork or of defaultNetworks: a path, a definition, or a network in a file."""
        conf = self._conf
        if "/" in value:
            return load_delegate(configuration_at(value))
        try:
            return self._defined(NetworkSelection(value, conf.multus_namespace))
        except NetworksError as of_definition:
            try:
                data = configuration_from_files(value, conf.conf_dir)
            except NetworksError as exc:
                raise NetworksError(f"{of_definition.msg}, and {exc.msg}") from exc
            return load_delegate(data)

    def _defined(self, selection: NetworkSelection) -> Delegate:
        definition = self._definitions.get((selection.namespace, selection.name))
        if definition is None:
            raise NetworksError(f"there is not a NetworkAttachmentDefinition {selection.namespace}/{selection.name}")
        return load_delegate(definition.configuration(self._conf.conf_dir), selection)

    def _default_network(self, text: str) -> Delegate:
        selections = parse_networks(text, self._conf.multus_namespace, DEFAULT_NETWORK)
        if len(selections) != 1:
            raise NetworksError("name exactly one network", "", DEFAULT_NETWORK)
        delegate = self._asked_for(selections[0], DEFAULT_NETWORK, 0)
        delegate.first = True
        return delegate

    def _requested(self, selections: t.Sequence[NetworkSelection]) -> list[Delegate]:
        delegates = []
        for index, selection in enumerate(selections):
            if not self._allowed(selection.namespace):
                raise NetworksError(
                    f"namespaceIsolation lets pods of {self._pod.namespace} use networks of that namespace and of "
                    f"{', '.join(self._conf.global_namespaces)} only",
                    f"/{index}/namespace",
                    NETWORKS,
                )
            delegates.append(self._asked_for(selection, NETWORKS, index))
        return delegates

    def _asked_for(self, selection: NetworkSelection, annotation: str, index: int) -> Delegate:
        try:
            return self._defined(selection)
        except NetworksError as exc:
            text = exc.msg
            if exc.line is not None or exc.pointer:
                # That place is in the definition, not in the annotation.
                text = f"NetworkAttachmentDefinition {selection.namespace}/{selection.name}: {exc.explain()}"
            raise NetworksError(text, f"/{index}", annotation) from exc

    def _allowed(self, namespace: str) -> bool:
        isolated = self._conf.namespace_isolation and namespace != self._pod.namespace
        return not isolated or namespace in self._conf.global_namespaces


def _second_route(requested: t.Sequence[Delegate]) -> str:
    """Return where an annotation asks for a second default route of a family."""
    seen: set[str] = set()
    for index, delegate in enumerate(requested):
        for family in map(family_of, filter(None, delegate.default_route or ())):
            if family in seen:
                return f"/{index}/default-route"
            seen.add(family)
    return ""


def pod_interface_names(networks: PodNetworks, ifname: str) -> list[str]:
    """Return the name of each network's interface. Raises `NetworksError` for a bad name, or one that occurs twice.

    Multus finds that only after some networks have been added, and its roll-back then removes interfaces that worked.
    """
    names: list[str] = []
    for index, delegate in enumerate(networks.delegates):
        name = delegate.interface(index, ifname)
        text = ""
        try:
            validate_if_name(name)
        except ValidationError as exc:
            text = f"interface name {quote(name)} of network {delegate.name}: {exc}"
        if name in names:
            other = networks.delegates[names.index(name)].name
            text = f"interface name {name} is that of network {other}, too; request another one for {delegate.name}"
        if text:
            place = index - (len(networks.delegates) - networks.requested)
            pointer, annotation = (f"/{place}", NETWORKS) if place >= 0 else ("", "")
            raise NetworksError(text, pointer, annotation)
        names.append(name)
    return names
