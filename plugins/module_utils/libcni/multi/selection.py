# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The annotation `k8s.v1.cni.cncf.io/networks`: which networks a pod asks for, in either form, as Multus reads it.

network-attachment-definition-client has another parser, which differs in the checks and in the keys.
"""

from __future__ import annotations

import re

from .. import gojson
from ..errors import JSONError, quote
from ..fields import decode_cidr, decode_ip, required_object
from ..validate import GO_SPACES, MAX_INTERFACE_NAME_LENGTH
from .errors import NetworksError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

NETWORKS = "k8s.v1.cni.cncf.io/networks"
DEFAULT_NETWORK = "v1.multus-cni.io/default-network"

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NOT_IN_INTERFACE = frozenset(" \t\n\v\f\r/")
_BLANKS = "".join(sorted(GO_SPACES))


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
        self.ips: list[str] | None = None
        self.port_mappings: list[gojson.Struct] | None = None
        self.bandwidth: gojson.Struct | None = None
        self.cni_args: dict[str, t.Any] | None = None
        self.default_route: list[str] | None = None


_ATTRIBUTES = {
    "name": "name",
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
}


def parse_networks(text: str, namespace: str, annotation: str = NETWORKS) -> list[NetworkSelection]:
    """Return the networks of an annotation, as Multus reads it. `namespace` is that of the pod.

    Raises `NetworksError`. As in Multus, the JSON form allows any text as name and interface, and an item of the
    comma-delimited form may be empty: `check_selections` and `pod` have the rules for them.
    """
    try:
        networks = _parse(text)
        for index, network in enumerate(networks):
            network.namespace = network.namespace or namespace
            _check_requests(network, f"/{index}")
            network.interface = network.interface or network.legacy_interface
    except NetworksError as exc:
        exc.annotation = annotation
        raise
    return networks


def _parse(text: str) -> list[NetworkSelection]:
    if text == "":
        raise NetworksError("the annotation is empty; remove it, or name a network")
    if any(char in text for char in '[{"'):
        return _parse_json(text)
    return [_parse_item(item, f"/{index}") for index, item in enumerate(text.split(","))]


def check_selections(selections: t.Sequence[NetworkSelection], annotation: str = NETWORKS) -> None:
    """Raise `NetworksError` for a network without a name, or with a name that leads elsewhere; Multus looks it up."""
    for index, selection in enumerate(selections):
        if not selection.name:
            raise NetworksError("the name is empty; remove the item, or a comma too many", f"/{index}", annotation)
        for key, value in (("name", selection.name), ("namespace", selection.namespace)):
            if "/" in value or value in (".", ".."):
                raise NetworksError(f"{quote(value)} is not a name", f"/{index}/{key}", annotation)


# ---- the form NAMESPACE/NAME@INTERFACE,...


def _parse_item(item: str, pointer: str) -> NetworkSelection:
    first, slash, rest = item.strip(_BLANKS).partition("/")
    namespace, network = (first.strip(_BLANKS), rest) if slash else ("", first)
    name, _at, interface = network.partition("@")
    if "/" in rest or "@" in interface:
        raise NetworksError("write [NAMESPACE/]NAME[@INTERFACE]", pointer)
    selection = NetworkSelection(name.strip(_BLANKS), namespace, interface.strip(_BLANKS))
    for label in (selection.namespace, selection.name):
        if label and re.fullmatch(_LABEL, label) is None:
            text = f"{quote(label)} must consist of lower-case letters, digits and -, and not start or end with -"
            raise NetworksError(text, pointer)
    name = selection.interface
    if len(name.encode("utf-8", "surrogatepass")) > MAX_INTERFACE_NAME_LENGTH or not _NOT_IN_INTERFACE.isdisjoint(name):
        text = (
            f"the interface name {quote(name)} must have at most {MAX_INTERFACE_NAME_LENGTH} bytes, no blank and no /"
        )
        raise NetworksError(text, pointer)
    return selection


# ---- the form [{"name": ...}, ...]


def _parse_json(text: str) -> list[NetworkSelection]:
    pointer = ""
    networks = []
    try:
        for index, value in enumerate(gojson.as_list(gojson.loads(text), "")):
            pointer = f"/{index}"
            networks.append(_element(value, pointer))
    except JSONError as exc:
        text = exc.msg if exc.line is None else f"{exc.msg}; write a list of objects, or names with commas"
        raise NetworksError(text, pointer, line=exc.line, column=exc.column) from exc
    return networks


def _element(value: t.Any, pointer: str) -> NetworkSelection:
    if value is None:
        # Multus panics later.
        raise JSONError("an element is null; write an object with the key name")
    selection = NetworkSelection()
    for key, item in gojson.struct_items(gojson.as_object(value, pointer), tuple(_ATTRIBUTES)):
        where = f"{pointer}/{key}"
        decode = _DECODERS.get(key)
        if decode is not None:
            setattr(selection, _ATTRIBUTES[key], decode(item, where))
        elif item is not None:
            setattr(selection, _ATTRIBUTES[key], gojson.as_string(item, where))
    return selection


def _decode_cni_args(value: t.Any, where: str) -> dict[str, t.Any] | None:
    return None if value is None else gojson.as_object(value, where)


# ---- what a network can be asked for, as Go would write it again; errors are `JSONError`

_PORT = ("hostPort", "containerPort", "protocol", "hostIP")
_BANDWIDTH = ("ingressRate", "ingressBurst", "egressRate", "egressBurst")

# Go's net.ParseMAC: pairs with one separator, groups of four with dots, or, since Go 1.27, digits alone.
_MAC = r"[0-9a-fA-F]{2}(?:([:-])[0-9a-fA-F]{2})(?:\1[0-9a-fA-F]{2})+|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4})+|[0-9a-fA-F]+"
_MAC_BYTES = (6, 8, 20)


def decode_port_mappings(value: t.Any, where: str) -> list[gojson.Struct] | None:
    """Return port mappings with lower-case keys, None for null. An element must not be null, which Go accepts."""
    if value is None:
        return None
    return [_port_mapping(item, f"{where}/{index}") for index, item in enumerate(gojson.as_list(value, where))]


def _port_mapping(value: t.Any, where: str) -> gojson.Struct:
    members: dict[str, t.Any] = {"hostPort": 0, "containerPort": 0}
    for name, item in gojson.struct_items(required_object(value, where), _PORT):
        decode: t.Callable[[t.Any, str], t.Any] = gojson.as_int if name.endswith("Port") else gojson.as_string
        if item is not None:
            members[name] = decode(item, f"{where}/{name}")
    return gojson.Struct((name, members[name]) for name in _PORT if name in members and members[name] != "")


def decode_bandwidth(value: t.Any, where: str) -> gojson.Struct | None:
    """Return all four limits in bit/s and bit, None for null."""
    if value is None:
        return None
    limits = dict.fromkeys(_BANDWIDTH, 0)
    for name, item in gojson.struct_items(gojson.as_object(value, where), _BANDWIDTH):
        if item is not None:
            limits[name] = gojson.as_int(item, f"{where}/{name}")
    return gojson.Struct(limits)


def decode_strings(value: t.Any, where: str) -> list[str] | None:
    """Return a list of strings, None for null."""
    if value is None:
        return None
    return [gojson.as_string(item, f"{where}/{index}") for index, item in enumerate(gojson.as_list(value, where))]


def decode_gateways(value: t.Any, where: str) -> list[str] | None:
    """Return addresses in canonical form, "" for an empty one; None for null."""
    if value is None:
        return None
    return [decode_ip(item, f"{where}/{index}") for index, item in enumerate(gojson.as_list(value, where))]


def is_mac(text: str) -> bool:
    """Tell whether `text` is a hardware address of 6, 8 or 20 bytes, in a form that Go reads."""
    if re.fullmatch(_MAC, text) is None:
        return False
    return len(re.sub("[:.-]", "", text)) in [2 * count for count in _MAC_BYTES]


def is_address(text: str) -> bool:
    """Tell whether `text` is an IP address, with or without a prefix length."""
    decode = decode_cidr if "/" in text else decode_ip
    try:
        return decode(text, "") != ""
    except JSONError:
        return False


_DECODERS: dict[str, t.Callable[[t.Any, str], t.Any]] = {
    "ips": decode_strings,
    "portMappings": decode_port_mappings,
    "bandwidth": decode_bandwidth,
    "cni-args": _decode_cni_args,
    "default-route": decode_gateways,
}


def _check_requests(network: NetworkSelection, pointer: str) -> None:
    for key, address in (("mac", network.mac), ("infiniband-guid", network.infiniband_guid)):
        if address and not is_mac(address):
            text = f"{quote(address)} is not a hardware address, such as 02:00:00:00:00:01"
            raise NetworksError(text, f"{pointer}/{key}")
    for index, ip in enumerate(network.ips or []):
        if not is_address(ip):
            text = f"{quote(ip)} is not an address, such as 10.1.0.5/24 or 10.1.0.5"
            raise NetworksError(text, f"{pointer}/ips/{index}")
