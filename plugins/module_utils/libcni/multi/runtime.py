# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""What each network of a pod gets from the runtime and from the pod: runtimeConfig and CNI_ARGS."""

from __future__ import annotations

from .. import gojson
from ..errors import ConfigError, quote
from .selection import decode_bandwidth, decode_port_mappings, decode_strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from .delegates import Delegate

    _Pairs = t.List[t.Tuple[str, str]]

# Multus knows these only: with it, dns, cgroupPath, aliases and the pod's annotations reach no network.
_CAPABILITIES = ("portMappings", "bandwidth", "ips", "mac", "infinibandGUID", "deviceID", "CNIDeviceInfoFile")
_DEVICE_FILES = "/var/run/k8s.cni.cncf.io/devinfo/cni/"
# What a runtime means for the one interface that it knows. Multus passes it to every network that declares it.
_OF_FIRST = ("portMappings", "ips", "ipRanges", "mac", "infinibandGUID", "deviceID", "CNIDeviceInfoFile")
_ARGS_OF_FIRST = ("IP", "GATEWAY", "MAC")
_DNS = ("servers", "searches", "options")

_POD_KEYS = ("K8S_POD_NAMESPACE", "K8S_POD_NAME", "K8S_POD_INFRA_CONTAINER_ID", "K8S_POD_UID")
_TRUE, _FALSE = ("1", "true"), ("0", "false")


def _requested(delegate: Delegate) -> dict[str, t.Any]:
    """Return what the pod asks a network for. None is "not given", which differs from empty."""
    asked = delegate.selection
    capabilities: dict[str, t.Any] = {}
    if asked is not None:
        lists = {"portMappings": asked.port_mappings, "ips": asked.ips, "bandwidth": asked.bandwidth}
        capabilities.update({name: value for name, value in lists.items() if value is not None})
        texts = {"mac": asked.mac, "infinibandGUID": asked.infiniband_guid}
        capabilities.update({name: value for name, value in texts.items() if value})
    if delegate.device_id:
        capabilities["deviceID"] = delegate.device_id
    return capabilities


def _decode_dns(value: t.Any, where: str) -> gojson.Struct:
    lists = gojson.struct_items(gojson.as_object(value, where), _DNS)
    texts = {part: decode_strings(values, f"{where}/{part}") for part, values in lists}
    return gojson.Struct((part, texts[part]) for part in _DNS if texts.get(part) is not None)


_DECODERS: dict[str, t.Callable[[t.Any, str], t.Any]] = {
    **dict.fromkeys(_CAPABILITIES, gojson.as_string),
    "portMappings": decode_port_mappings,
    "bandwidth": decode_bandwidth,
    "ips": decode_strings,
    "dns": _decode_dns,
}


def decode_capabilities(value: t.Any) -> dict[str, t.Any]:
    """Return a runtimeConfig without the empty values that Multus knows. Raises `JSONError`.

    Keys that Multus knows, dns and cgroupPath match regardless of case, because containerd writes capitals.
    """
    given = gojson.as_object(value, "runtimeConfig")
    known = {name.lower(): name for name in (*_CAPABILITIES, "dns", "cgroupPath")}
    capabilities: dict[str, t.Any] = {}
    for key, item in given.items():
        name = known.get(key.lower(), key)
        if item is not None:
            decode = _DECODERS.get(name)
            capabilities[name] = decode(item, f"runtimeConfig/{name}") if decode else item
    return {name: item for name, item in capabilities.items() if item or name not in _CAPABILITIES}


def network_capabilities(
    incoming: t.Mapping[str, t.Any], delegate: Delegate, container_id: str, ifname: str
) -> dict[str, t.Any]:
    """Return the capability arguments for one network of a pod, as a runtime's user means them.

    `incoming`: from `decode_capabilities`. What concerns one interface (port mappings, addresses, devices) is for the
    first network only; all else, such as dns and cgroupPath, reaches every network. The pod's requests come first.
    """
    capabilities = {name: value for name, value in incoming.items() if delegate.first or name not in _OF_FIRST}
    capabilities.update(_requested(delegate))
    if capabilities.get("deviceID"):
        capabilities["CNIDeviceInfoFile"] = _DEVICE_FILES + f"{delegate.name}-{container_id}_{ifname}".replace("/", "-")
    return {name: value for name, value in capabilities.items() if value or name not in _CAPABILITIES}


class PodArgs:
    """CNI_ARGS as Multus reads it: `pairs` in order, and the pod's `namespace`, `name`, `sandbox` and `uid` or ""."""

    __slots__ = ("name", "namespace", "pairs", "sandbox", "uid")

    def __init__(self, pairs: _Pairs) -> None:
        self.pairs = pairs
        # The last of several equal keys counts.
        arguments = dict(pairs)
        self.namespace, self.name, self.sandbox, self.uid = (arguments.get(key, "") for key in _POD_KEYS)


def parse_pod_args(text: str) -> PodArgs:
    """Return CNI_ARGS of a call. Raises `ConfigError`: a value has no =, and unknown keys need IgnoreUnknown=1."""
    pairs = []
    for pair in text.split(";") if text else []:
        parts = pair.split("=")
        if len(parts) != 2:
            raise ConfigError(f"ARGS: invalid pair {quote(pair)}")
        pairs.append((parts[0], parts[1]))
    ignore = False
    for key, value in pairs:
        if key == "IgnoreUnknown":
            if value.lower() not in _TRUE + _FALSE:
                reason = f"boolean unmarshal error: invalid input {value}"
                raise ConfigError(f"ARGS: error parsing value of pair {quote(f'{key}={value}')}: {reason}")
            ignore = value.lower() in _TRUE
    unknown = [quote(f"{key}={value}") for key, value in pairs if key not in ("IgnoreUnknown", *_POD_KEYS)]
    if unknown and not ignore:
        raise ConfigError(f"ARGS: unknown args [{' '.join(unknown)}]")
    return PodArgs(pairs)


def network_args(args: PodArgs, delegate: Delegate) -> _Pairs:
    """Return CNI_ARGS for one network: the pod's keys, all that came in, then MAC and IP of the pod's request.

    Addresses that came in are for the first network only.
    """
    values = (args.namespace, args.name, args.sandbox, args.uid)
    pairs = [("IgnoreUnknown", "true"), *zip(_POD_KEYS, values)]
    pairs += [pair for pair in args.pairs if delegate.first or pair[0] not in _ARGS_OF_FIRST]
    if delegate.selection is not None:
        if delegate.selection.mac:
            pairs.append(("MAC", delegate.selection.mac))
        if delegate.selection.ips is not None:
            pairs.append(("IP", ",".join(delegate.selection.ips)))
    return pairs
