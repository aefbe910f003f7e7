# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""All networks of one pod: its cluster network, the default networks, and those of its annotations."""

from __future__ import annotations

from ..fields import is_ipv4
from .definitions import configuration_at, configuration_from_files, find_definition
from .delegates import Delegate, load_delegate
from .errors import NetworksError
from .routes import mark_default_routes
from .selection import DEFAULT_NETWORK, NETWORKS, NetworkSelection, parse_networks

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from .configuration import MultusConf
    from .definitions import Definitions

_TRY = "TryLoadPodDelegates: "


class Pod:
    """What is known of a pod: `namespace`, `name`, `annotations`.

    `devices`: device IDs by resource, as the kubelet allocated them.
    """

    __slots__ = ("annotations", "devices", "name", "namespace")

    def __init__(
        self,
        namespace: str,
        name: str,
        annotations: t.Mapping[str, str] | None = None,
        devices: t.Mapping[str, t.Sequence[str]] | None = None,
    ) -> None:
        self.namespace = namespace
        self.name = name
        self.annotations = annotations or {}
        self.devices = devices or {}


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
        # Each device is handed out once. Multus asks again for the default network, and hands the first out twice.
        self._devices = {resource: iter(ids) for resource, ids in pod.devices.items()}

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
        if any(delegate.default_route is not None for delegate in delegates):
            try:
                mark_default_routes(delegates)
            except NetworksError as exc:
                exc.annotation, exc.pointer = NETWORKS, _second_route(requested)
                raise
        return PodNetworks(delegates, len(requested))

    def _cluster_networks(self) -> list[Delegate]:
        conf = self._conf
        try:
            first = self._named(conf.cluster_network)
        except NetworksError as exc:
            raise NetworksError(
                f"GetDefaultNetworks: failed to get clusterNetwork {conf.cluster_network} in namespace "
                f"{conf.multus_namespace}",
                "/clusterNetwork",
                exc.explain(),
            ) from exc
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
                rule = f"{of_definition.rule or of_definition.msg}, and {exc.msg}"
                raise NetworksError(f"getNetDelegate: cannot find network: {value}", rule=rule) from exc
            return load_delegate(data)

    def _defined(self, selection: NetworkSelection) -> Delegate:
        definition = find_definition(self._definitions, selection.namespace, selection.name)
        device_id = next(self._devices.get(definition.resource_name, iter(())), "")
        data = definition.configuration(self._conf.conf_dir)
        return load_delegate(data, selection, device_id, definition.resource_name)

    def _default_network(self, text: str) -> Delegate:
        prefix = (
            f"{_TRY}error in loading K8s cluster default network from pod annotation: tryLoadK8sPodDefaultNetwork: "
        )
        try:
            selections = parse_networks(text, self._conf.multus_namespace, DEFAULT_NETWORK)
        except NetworksError as exc:
            text = f"{prefix}failed to parse CRD object: {exc.msg}"
            place = (exc.line, exc.column)
            raise NetworksError(text, exc.pointer, exc.rule or exc.msg, DEFAULT_NETWORK, *place) from exc
        if len(selections) != 1:
            found = f"more than one default network is specified: {text}" if selections else "no network is specified"
            raise NetworksError(prefix + found, "", "name exactly one network", DEFAULT_NETWORK)
        try:
            delegate = self._defined(selections[0])
        except NetworksError as exc:
            raise _of_definition(exc, prefix, DEFAULT_NETWORK, 0, selections[0]) from exc
        delegate.first = True
        return delegate

    def _requested(self, selections: t.Sequence[NetworkSelection]) -> list[Delegate]:
        prefix = f"{_TRY}error in getting k8s network for pod: GetNetworkDelegates: "
        delegates = []
        for index, selection in enumerate(selections):
            if not self._allowed(selection.namespace):
                raise NetworksError(
                    f"{prefix}namespace isolation enabled, annotation violates permission, pod is in namespace "
                    f"{self._pod.namespace} but refers to target namespace {selection.namespace}",
                    f"/{index}/namespace",
                    f"namespaceIsolation lets pods of {self._pod.namespace} use networks of that namespace and of "
                    f"{', '.join(self._conf.global_namespaces)} only",
                    NETWORKS,
                )
            try:
                delegates.append(self._defined(selection))
            except NetworksError as exc:
                raise _of_definition(exc, prefix, NETWORKS, index, selection) from exc
        return delegates

    def _allowed(self, namespace: str) -> bool:
        isolated = self._conf.namespace_isolation and namespace != self._pod.namespace
        return not isolated or namespace in self._conf.global_namespaces


def _second_route(requested: t.Sequence[Delegate]) -> str:
    """Return where an annotation asks for a second default route of a family."""
    seen: set[bool] = set()
    for index, delegate in enumerate(requested):
        for gateway in filter(None, delegate.default_route or ()):
            if is_ipv4(gateway) in seen:
                return f"/{index}/default-route"
            seen.add(is_ipv4(gateway))
    return ""


def _of_definition(
    error: NetworksError, prefix: str, annotation: str, index: int, selection: NetworkSelection
) -> NetworksError:
    rule = error.rule or error.msg
    if error.line is not None or error.pointer:
        # That place is in the definition, not in the annotation.
        rule = f"NetworkAttachmentDefinition {selection.namespace}/{selection.name}: {error.explain()}"
    return NetworksError(f"{prefix}failed getting the delegate: {error.msg}", f"/{index}", rule, annotation)
