# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""The annotation `k8s.v1.cni.cncf.io/networks`: which networks a pod asks for, in either form.

There are two parsers in the field, that of Multus and that of network-attachment-definition-client, which other
programs use. They differ in the checks and in the keys.
"""

from __future__ import annotations

import re

from .. import gojson
from ..errors import JSONError, quote
from ..validate import GO_SPACES, MAX_INTERFACE_NAME_LENGTH
from .errors import NetworksError
from .requests import decode_bandwidth, decode_gateways, decode_port_mappings, decode_strings, is_address, is_mac

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

NETWORKS = "k8s.v1.cni.cncf.io/networks"
DEFAULT_NETWORK = "v1.multus-cni.io/default-network"

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NOT_IN_INTERFACE = frozenset(" \t\n\v\f\r/")
_BLANKS = "".join(sorted(GO_SPACES))
_PREFIX = "parsePodNetworkAnnotation: "


class NetworkSelection:
    """One network that a pod asks for (Go: NetworkSelectionElement). None is "not given", which differs from empty.

    `ips`, `port_mappings`, `bandwidth`, `cni_args` and `default_route` can be None, the other attributes are strings.
    """

    __slots__ = (
        "bandwidth",
        "cni_args",
        "default_route",
        "device_id",
        "infiniband_guid",
        "interface",
        "ipam_claim",
        "ips",
        "legacy_interface",
        "mac",
        "name",
        "namespace",
        "port_mappings",
    )

    def __init__(self, name: str = "", namespace: str = "", interface: str = "") -> None:
        self.name = name
        self.namespace = namespace
        self.interface = interface
        self.legacy_interface = ""
        self.mac = ""
        self.infiniband_guid = ""
        self.device_id = ""
        self.ipam_claim = ""
        self.ips: list[str] | None = None
        self.port_mappings: list[gojson.Struct] | None = None
        self.bandwidth: gojson.Struct | None = None
        self.cni_args: dict[str, t.Any] | None = None
        self.default_route: list[str] | None = None

    def to_dict(self) -> gojson.Struct:
        """Return the element as JSON data, in the keys of the annotation."""
        out = gojson.Struct(name=self.name)
        for key, attribute in _KEYS.items():
            value = getattr(self, attribute)
            # Go omits an empty value of these, and what is not given of the others.
            if value or (value is not None and attribute in ("bandwidth", "cni_args", "default_route")):
                out[key] = value
        return out


_KEYS = {
    "namespace": "namespace",
    "ips": "ips",
    "mac": "mac",
    "infiniband-guid": "infiniband_guid",
    "interface": "interface",
    "interfaceRequest": "legacy_interface",
    "portMappings": "port_mappings",
    "bandwidth": "bandwidth",
    "deviceID": "device_id",
    "cni-args": "cni_args",
    "default-route": "default_route",
    "ipam-claim-reference": "ipam_claim",
}
_ATTRIBUTES = {"name": "name", **_KEYS}
_OF_MULTUS = tuple(key for key in _ATTRIBUTES if key != "ipam-claim-reference")
_OF_CLIENT = tuple(key for key in _ATTRIBUTES if key not in ("interfaceRequest", "deviceID"))


def parse_networks(text: str, namespace: str, annotation: str = NETWORKS) -> list[NetworkSelection]:
    """Return the networks of an annotation, as Multus reads it. `namespace` is that of the pod.

    Raises `NetworksError`. As in Multus, the JSON form allows any text as name and interface, and an item of the
    comma-delimited form may be empty; `refusals` has the rules for them.
    """
    try:
        networks = _parse(text, 'pod annotation does not have "network" as key', _OF_MULTUS, _check_interface)
        for index, network in enumerate(networks):
            network.namespace = network.namespace or namespace
            _check_requests(network, f"/{index}")
            network.interface = network.interface or network.legacy_interface
    except NetworksError as exc:
        exc.annotation = annotation
        raise
    return networks


def parse_networks_of_client(text: str, namespace: str) -> list[NetworkSelection]:
    """Return the networks of an annotation as network-attachment-definition-client reads it. Raises `NetworksError`.

    It does not check addresses, knows `ipam-claim-reference`, and does not know `deviceID` and `interfaceRequest`.
    """
    try:
        networks = _parse(text, 'pod annotation not having "network" as key', _OF_CLIENT, None)
    except NetworksError as exc:
        exc.annotation = NETWORKS
        exc.msg = exc.msg.replace("parsePodNetworkObjectName: ", "")
        exc.args = (exc.msg,)
        raise
    for network in networks:
        network.namespace = network.namespace or namespace
        # A slice there, so that an empty one is like none.
        network.default_route = network.default_route or None
    return networks


def _parse(
    text: str, missing: str, keys: t.Sequence[str], check_interface: t.Callable[[str, str], None] | None
) -> list[NetworkSelection]:
    if text == "":
        raise NetworksError(_PREFIX + missing, rule="the annotation is empty; remove it, or name a network")
    if any(char in text for char in '[{"'):
        return _parse_json(text, keys)
    return [_parse_item(item, f"/{index}", check_interface) for index, item in enumerate(text.split(","))]


# ---- the form NAMESPACE/NAME@INTERFACE,...


def _parse_item(item: str, pointer: str, check_interface: t.Callable[[str, str], None] | None) -> NetworkSelection:
    first, slash, rest = item.strip(_BLANKS).partition("/")
    if "/" in rest:
        raise _bad_item("Invalid network object (failed at '/')", pointer, "write [NAMESPACE/]NAME[@INTERFACE]")
    namespace, network = (first.strip(_BLANKS), rest) if slash else ("", first)
    name, _at, interface = network.partition("@")
    if "@" in interface:
        raise _bad_item("Invalid network object (failed at '@')", pointer, "write [NAMESPACE/]NAME[@INTERFACE]")
    selection = NetworkSelection(name.strip(_BLANKS), namespace, interface.strip(_BLANKS))
    labels = [selection.namespace, selection.name]
    for label in labels if check_interface else [*labels, selection.interface]:
        if label and re.fullmatch(_LABEL, label) is None:
            raise _bad_item(
                "Failed to parse: one or more items did not match comma-delimited format (must consist of lower case "
                f"alphanumeric characters). Must start and end with an alphanumeric character), mismatch @ '{label}'",
                pointer,
                f"{quote(label)} must consist of lower-case letters, digits and -, and not start or end with -",
            )
    if check_interface:
        check_interface(selection.interface, pointer)
    return selection


def _check_interface(name: str, pointer: str) -> None:
    if len(name.encode("utf-8", "surrogatepass")) > MAX_INTERFACE_NAME_LENGTH or not _NOT_IN_INTERFACE.isdisjoint(name):
        raise _bad_item(
            "Failed to parse interface name: must be less than 15 chars and not contain '/' or spaces. "
            f"interface name '{name}'",
            pointer,
            f"the interface name {quote(name)} must have at most {MAX_INTERFACE_NAME_LENGTH} bytes, no blank and no /",
        )


def _bad_item(text: str, pointer: str, rule: str) -> NetworksError:
    return NetworksError(f"{_PREFIX}parsePodNetworkObjectName: {text}", pointer, rule)


# ---- the form [{"name": ...}, ...]


def _parse_json(text: str, keys: t.Sequence[str]) -> list[NetworkSelection]:
    pointer = ""
    networks = []
    try:
        for index, value in enumerate(gojson.as_list(gojson.loads(text), "")):
            pointer = f"/{index}"
            networks.append(_element(value, pointer, keys))
    except JSONError as exc:
        raise NetworksError(
            f"{_PREFIX}failed to parse pod Network Attachment Selection Annotation JSON format: {exc.msg}",
            pointer,
            exc.msg if exc.line is None else f"{exc.msg}; write a list of objects, or names with commas",
            line=exc.line,
            column=exc.column,
        ) from exc
    return networks


def _element(value: t.Any, pointer: str, keys: t.Sequence[str]) -> NetworkSelection:
    if value is None:
        # Multus panics later.
        raise JSONError("an element is null; write an object with the key name")
    selection = NetworkSelection()
    for key, item in gojson.struct_items(gojson.as_object(value, pointer), keys):
        where = f"{pointer}/{key}"
        decode = _DECODERS.get(key)
        if decode is not None:
            setattr(selection, _ATTRIBUTES[key], decode(item, where))
        elif item is not None:
            setattr(selection, _ATTRIBUTES[key], gojson.as_string(item, where))
    return selection


def _decode_cni_args(value: t.Any, where: str) -> dict[str, t.Any] | None:
    return None if value is None else gojson.as_object(value, where)


_DECODERS: dict[str, t.Callable[[t.Any, str], t.Any]] = {
    "ips": decode_strings,
    "portMappings": decode_port_mappings,
    "bandwidth": decode_bandwidth,
    "cni-args": _decode_cni_args,
    "default-route": decode_gateways,
}


def _check_requests(network: NetworkSelection, pointer: str) -> None:
    for key, address, text in (
        ("mac", network.mac, "failed to mac"),
        ("infiniband-guid", network.infiniband_guid, "failed to validate infiniband GUID"),
    ):
        if address and not is_mac(address):
            raise NetworksError(
                f"{_PREFIX}{text}: address {address}: invalid MAC address",
                f"{pointer}/{key}",
                f"{quote(address)} is not a hardware address, such as 02:00:00:00:00:01",
            )
    for index, ip in enumerate(network.ips or []):
        if is_address(ip):
            continue
        text = f"failed to parse IP address {quote(ip)}"
        if "/" in ip:
            text = f"failed to parse CIDR {quote(ip)}: invalid CIDR address: {ip}"
        rule = f"{quote(ip)} is not an address, such as 10.1.0.5/24 or 10.1.0.5"
        raise NetworksError(text, f"{pointer}/ips/{index}", rule)
