# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Results of every spec version and their conversions (Go: pkg/types/020, 040, 100, create).

A result is decoded as Go decodes it into its structs: keys that the spec does not name are dropped, addresses get
their canonical form. Deviation: null in ips, routes or interfaces is refused (Go accepts it and crashes on conversion).
"""

from __future__ import annotations

import os
import sys

from . import gojson, version
from .dns import decode_dns
from .errors import ERR_UNKNOWN, JSONError, PluginError, ResultError, quote
from .fields import (
    DNS,
    UNSET,
    Interface,
    IPConfig,
    Route,
    decode_cidr,
    decode_ip,
    decode_route,
    is_ipv4,
    required_object,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from .invoke import Executor

    _Data = t.Dict[str, t.Any]

# The versions that share a shape, by the names of Go's packages.
_SHAPES = {
    "020": ("0.1.0", "0.2.0"),
    "040": ("0.3.0", "0.3.1", "0.4.0"),
    "100": ("1.0.0", "1.1.0"),
}
_SHAPE_OF = {cni_version: shape for shape, versions in _SHAPES.items() for cni_version in versions}
_INTERFACE = {
    "040": ("name", "mac", "sandbox"),
    "100": ("name", "mac", "mtu", "sandbox", "socketPath", "pciID"),
}
_IP = {
    "020": ("ip", "gateway", "routes"),
    "040": ("version", "interface", "address", "gateway"),
    "100": ("interface", "address", "gateway"),
}
_MEMBERS = {
    "020": ("cniVersion", "ip4", "ip6", "dns"),
    "040": ("cniVersion", "interfaces", "ips", "routes", "dns"),
    "100": ("cniVersion", "interfaces", "ips", "routes", "dns"),
}


class Result:
    """A plugin's answer to ADD. Immutable: the attributes give copies.

    Made by `build`, by `create` and `create_from_bytes` from JSON, and by `parse_prev_result`.
    """

    __slots__ = ("_data",)

    def __init__(self, data: _Data) -> None:
        self._data = data

    @classmethod
    def build(
        cls,
        interfaces: t.Sequence[Interface] = (),
        ips: t.Sequence[IPConfig] = (),
        routes: t.Sequence[Route] = (),
        dns: DNS | None = None,
    ) -> Result:
        """Return a result of the current version with this content.

        Raises `JSONError` for an address that is none, `ResultError` for an interface that `interfaces` does not have.
        """
        for ip in ips:
            if ip.interface is not None and not 0 <= ip.interface < len(interfaces):
                raise ResultError(f"the address {ip.address} is on interface {ip.interface} of {len(interfaces)}")
        data = {
            "cniVersion": version.CURRENT,
            "interfaces": [interface.to_dict() for interface in interfaces],
            "ips": [ip.to_dict() for ip in ips],
            "routes": [route.to_dict() for route in routes],
            "dns": dns.to_dict() if dns else {},
        }
        return cls(_decode("100", data))

    def replace(self, **parts: t.Any) -> Result:
        """Return a result of the current version with other `interfaces`, `ips`, `routes` or `dns`, as for `build`."""
        kept = {name: getattr(self, name) for name in ("interfaces", "ips", "routes", "dns") if name not in parts}
        return Result.build(**kept, **parts)

    @property
    def version(self) -> str:
        """The result's spec version, never ""."""
        return str(self._data["cniVersion"])

    @property
    def interfaces(self) -> list[Interface]:
        """The interfaces; none before 0.3.0."""
        return [
            Interface(
                item["name"],
                item.get("mac", ""),
                item.get("sandbox", ""),
                item.get("mtu", 0),
                item.get("socketPath", ""),
                item.get("pciID", ""),
            )
            for item in self._current.get("interfaces", [])
        ]

    @property
    def ips(self) -> list[IPConfig]:
        """The addresses, whatever the version."""
        return [
            IPConfig(item.get("address", ""), item.get("gateway", ""), item.get("interface"))
            for item in self._current.get("ips", [])
        ]

    @property
    def addresses(self) -> list[str]:
        """The addresses with their prefix lengths: `["10.1.0.2/24", "fd00::2/64"]`."""
        return [item["address"] for item in self._current.get("ips", [])]

    @property
    def routes(self) -> list[Route]:
        """The routes, whatever the version."""
        return [Route(**item) for item in self._current.get("routes", [])]

    @property
    def dns(self) -> DNS:
        """The name servers."""
        return DNS(**self._data["dns"])

    @property
    def _current(self) -> _Data:
        return self.as_version(version.CURRENT)._data

    @property
    def _shape(self) -> str:
        return _SHAPE_OF[self.version]

    def to_dict(self) -> dict[str, t.Any]:
        """Return the result as JSON data, its keys in the order of Go's output.

        Go writes results up to 0.4.0 as structs and later ones sorted and without an empty dns.
        """
        if self._shape != "100":
            return gojson.Struct((key, _struct(item)) for key, item in self._data.items())
        out: dict[str, t.Any] = _sorted(self._data)
        if not out["dns"]:
            del out["dns"]
        return out

    def to_json(self, indent: int | None = None) -> bytes:
        """Return the result as Go writes it; with `indent=4` as Go prints it."""
        return gojson.dumps(self.to_dict(), indent)

    def as_version(self, cni_version: str) -> Result:
        """Return the result in another spec version ("" is 0.1.0), itself if it has it. Raises `ResultError`.

        What the older version cannot express is lost, as in Go (`GetAsVersion`).
        """
        target = cni_version or "0.1.0"
        if target == self.version:
            return self
        if target not in _SHAPE_OF:
            raise ResultError(f"no converter for CNI result version {self.version} to {target}")
        data = self._data
        for step in _STEPS.get((self._shape, _SHAPE_OF[target]), ()):
            data = step(data)
        return Result({**data, "cniVersion": target})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self._data == other._data

    __hash__ = None  # type: ignore[assignment]

    def print(self, cni_version: str) -> None:
        """Print the result to stdout in the version asked for, as Go does ("" is 0.1.0). Raises `ResultError`."""
        sys.stdout.write(self.as_version(cni_version).to_json(4).decode("utf-8"))

    def __repr__(self) -> str:
        return f"Result({self.to_json().decode('utf-8')})"


def _struct(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return gojson.Struct((key, _struct(item)) for key, item in value.items())
    return [_struct(item) for item in value] if isinstance(value, list) else value


def _sorted(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


# ---- decoding


def create(cni_version: str, data: bytes) -> Result:
    """Decode a result of the version `cni_version`, which must be one that the text's own cniVersion goes with.

    Raises `ResultError` for an unknown or another version, `JSONError` for broken text.
    """
    shape = _SHAPE_OF.get(cni_version or "0.1.0")
    if shape is None:
        raise ResultError(f"unsupported CNI result version {quote(cni_version)}")
    return Result(_decode(shape, gojson.loads(data)))


def create_from_bytes(data: bytes) -> Result:
    """Decode a result of the version that it names; without one it is 0.1.0. Raises as `create`."""
    return create(version.decode_config_version(data), data)


def parse_prev_result(cni_version: str, raw: t.Mapping[str, t.Any] | None) -> Result | None:
    """Decode the prevResult of a configuration of that version, as a plugin does (Go: version.ParsePrevResult).

    Raises `ResultError`.
    """
    if raw is None:
        return None
    filled = dict(raw)
    if filled.get("CNIVersion", "") == "":
        # Go's spelling. In sorted output, an existing cniVersion comes later and wins.
        filled["CNIVersion"] = cni_version
    try:
        return create(cni_version, gojson.dumps(filled))
    except (JSONError, ResultError) as exc:
        # Go's text: the place of an address is in the cause.
        raise ResultError(f"could not parse prevResult: {exc.msg if isinstance(exc, JSONError) else exc}") from exc


def _decode(shape: str, parsed: t.Any) -> _Data:
    result: _Data = {"cniVersion": "", "dns": gojson.Struct()}
    for name, value in gojson.struct_items(parsed, _MEMBERS[shape]):
        if name == "cniVersion":
            result[name] = gojson.string_over(result[name], value, name)
        elif name == "dns":
            result[name] = decode_dns(value, name, result[name])
        elif name in ("ip4", "ip6"):
            result[name] = None if value is None else _decode_ip_config(value, name, shape)
        elif name == "interfaces":
            result[name] = _decode_interfaces(value, name, shape, result.get(name, []))
        else:
            items = [(item, f"{name}/{at}") for at, item in enumerate(gojson.as_list(value, name))]
            result[name] = [_decode_ip_config(*item, shape) if name == "ips" else decode_route(*item) for item in items]
    if shape == "020":
        result["cniVersion"] = result["cniVersion"] or "0.1.0"
    if result["cniVersion"] not in _SHAPES[shape]:
        supported = " ".join(("", *_SHAPES[shape]) if shape == "020" else _SHAPES[shape])
        raise ResultError(
            f"result type supports [{supported}] but unmarshalled CNIVersion is {quote(result['cniVersion'])}"
        )
    dns = result.pop("dns")
    return {**gojson.pick(result, _MEMBERS[shape]), "dns": dns}


def _decode_interfaces(value: t.Any, where: str, shape: str, before: list[_Data]) -> list[_Data]:
    """Return interfaces. They extend `before`, from an earlier equal key, because Go decodes into the same slice."""
    items = gojson.as_list(value, where)
    known = [*before[: len(items)], *({} for _item in items[len(before) :])]
    return [_decode_interface(item, f"{where}/{at}", shape, known[at]) for at, item in enumerate(items)]


def _decode_interface(value: t.Any, where: str, shape: str, before: _Data) -> _Data:
    members: _Data = {"name": "", **before}
    for name, item in gojson.struct_items(required_object(value, where), _INTERFACE[shape]):
        at = f"{where}/{name}"
        if name != "mtu":
            members[name] = gojson.string_over(members.get(name, ""), item, at)
        elif item is not None:
            members[name] = gojson.as_int(item, at)
    return {"name": members["name"], **gojson.pick(members, _INTERFACE[shape][1:])}


def _decode_ip_config(value: t.Any, where: str, shape: str) -> _Data:
    address = "ip" if shape == "020" else "address"
    entry: _Data = {address: UNSET}
    for name, item in gojson.struct_items(required_object(value, where), _IP[shape]):
        at = f"{where}/{name}"
        if name == address:
            entry[name] = decode_cidr(item, at)
        elif name == "gateway":
            entry[name] = decode_ip(item, at)
        elif name == "version":
            entry[name] = gojson.as_string(item, at)
        elif name == "interface":
            entry[name] = None if item is None else gojson.as_int(item, at)
        else:
            entry[name] = [decode_route(route, f"{at}/{index}") for index, route in enumerate(gojson.as_list(item, at))]
    return _ip_config(shape, entry)


def _ip_config(shape: str, entry: t.Mapping[str, t.Any]) -> _Data:
    """Return an ip entry with its members in order. Keeps interface 0 and an empty version, no other empty member."""
    out: _Data = {}
    for name in _IP[shape]:
        value = entry.get(name)
        if name == "version":
            out[name] = value or ""
        elif value or (name == "interface" and value is not None):
            out[name] = value
    return out


# ---- converting; each step takes data of one shape and returns data of the next, with a cniVersion still to be set


def _020_to_040(data: _Data) -> _Data:
    ips: list[_Data] = []
    routes: list[_Data] = []
    for key, family in (("ip4", "4"), ("ip6", "6")):
        if key in data:
            old = data[key]
            ips.append(_ip_config("040", {"version": family, "address": old["ip"], "gateway": old.get("gateway")}))
            routes += old.get("routes", [])
    return _members("040", data, ips=ips, routes=routes)


def _040_to_020(data: _Data) -> _Data:
    families: dict[str, _Data] = {}
    for ip in data.get("ips", []):
        key = {"4": "ip4", "6": "ip6"}.get(ip["version"])
        if key is not None and key not in families:
            families[key] = {"ip": ip["address"], "gateway": ip.get("gateway"), "routes": []}
    if not families:
        raise ResultError("cannot convert: no valid IP addresses")
    for route in data.get("routes", []):
        key = "ip4" if is_ipv4(route["dst"]) else "ip6"
        if key in families:
            families[key]["routes"].append(gojson.pick(route, ("dst", "gw")))
    return _members("020", data, **{key: _ip_config("020", families[key]) for key in families})


def _040_to_100(data: _Data) -> _Data:
    return _members("100", data, ips=[_ip_config("100", ip) for ip in data.get("ips", [])])


def _100_to_040(data: _Data) -> _Data:
    return _members(
        "040",
        data,
        interfaces=[{k: v for k, v in nic.items() if k in _INTERFACE["040"]} for nic in data.get("interfaces", [])],
        ips=[
            _ip_config("040", {**ip, "version": "4" if is_ipv4(ip["address"]) else "6"}) for ip in data.get("ips", [])
        ],
    )


def _members(shape: str, data: _Data, **changed: t.Any) -> _Data:
    return {**gojson.pick({**data, **changed}, _MEMBERS[shape]), "dns": data["dns"]}


_STEPS: dict[tuple[str, str], tuple[t.Callable[[_Data], _Data], ...]] = {
    ("020", "040"): (_020_to_040,),
    ("020", "100"): (_020_to_040, _040_to_100),
    ("040", "020"): (_040_to_020,),
    ("040", "100"): (_040_to_100,),
    ("100", "020"): (_100_to_040, _040_to_020),
    ("100", "040"): (_100_to_040,),
}


# ---- running a plugin for its result (Go: pkg/invoke/exec.go)


def exec_plugin_with_result(
    path: str, net_conf: bytes, env: t.Mapping[str, str], executor: Executor, timeout: float | None = None
) -> Result:
    """Run the plugin at `path` and decode what it prints; `timeout` in seconds.

    As in Go, a result of another version than the configuration's is accepted. Raises `PluginError`, also for
    output that is not a result.
    """
    stdout = executor.exec_plugin(path, net_conf, env, timeout)
    try:
        return create(*fixup_result_version(net_conf, stdout))
    except (JSONError, ResultError) as exc:
        raise PluginError(
            ERR_UNKNOWN, str(exc), plugin=os.path.basename(path), stderr=getattr(stdout, "stderr", ""), cause=exc
        ) from exc


def fixup_result_version(net_conf: bytes, data: bytes) -> tuple[str, bytes]:
    """Return a plugin's output with the version to decode it as: its own, else the configuration's, set in the output.

    Raises `JSONError`.
    """
    conf_version = version.decode_config_version(net_conf)
    try:
        raw = gojson.as_object(gojson.loads(data), "")
    except JSONError as exc:
        raise JSONError(f"failed to unmarshal raw result: {exc.msg}", line=exc.line, column=exc.column) from exc
    own = raw.get("cniVersion")
    if own and isinstance(own, str):
        return own, data
    raw["cniVersion"] = conf_version
    return conf_version, gojson.dumps(raw)
