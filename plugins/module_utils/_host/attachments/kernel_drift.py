# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Differences between the kernel and the result of an ADD: interfaces, addresses, routes, bridges and firewall rules.

CHECK leaves most of this to the plugins, and most plugins check only their own part. A difference that existed right
after the ADD is not drift: sbr moves routes to another table, and dhcp may deviate from its result. The record beside
the cache entry keeps such differences.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...libcni import gojson, types
from ...libcni.errors import CNIError
from .. import netlink
from ..addresses import packed, prefix_length
from ..firewall.kinds import FIREWALL, IPMASQ, MACSPOOFCHK, PORTMAP, chain_name, instance_hash, made_by
from ..kinds import member_of
from ..netlink import MAIN_TABLE, Route
from ..netns import Netns, visit
from .records import UNKNOWN_LATER, Attached, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..firewall.owners import RuleSet

# Kind of rules -> the text that reports their loss.
_TEXTS = {
    IPMASQ: "its masquerading rules are gone",
    PORTMAP: "the rules of its port mappings are gone",
    FIREWALL: "its rules in the chain CNI-FORWARD are gone",
    MACSPOOFCHK: "its rules against MAC spoofing are gone",
}


class Missing:
    """Finds missing rules in what was read. If not all rules could be read, none count as missing."""

    __slots__ = ("_sets", "_whole", "problems")

    def __init__(self, sets: Iterable[RuleSet] = (), problems: Sequence[Dict[str, Any]] = ()) -> None:
        self._sets: Dict[Tuple[str, str], List[RuleSet]] = {}
        for one in sets:
            if one.rules and not one.inert:
                for name in (one.name, *one.addresses):
                    self._sets.setdefault((one.plugin, name), []).append(one)
        self._whole = not problems
        self.problems = list(problems)

    def of(self, attached: Attached) -> List[Tuple[str, str]]:
        """Return (kind, sentence without a full stop) for each kind of rules that *attached* has lost."""
        if not self._whole:
            return []
        return [(kind, _TEXTS[kind]) for kind in made_rules(attached) if not self._is_there(kind, attached)]

    def _is_there(self, kind: str, attached: Attached) -> bool:
        network, container_id, ifname = attached.key
        addresses = [address.partition("/")[0] for address in attached.ips]
        if kind == FIREWALL:
            return all((kind, address) in self._sets for address in addresses)
        if kind == MACSPOOFCHK:
            return (kind, f"{container_id}-{ifname}") in self._sets
        if kind == PORTMAP:
            return any((kind, name) in self._sets for name in (container_id, chain_name("DN-", network, container_id)))
        if (kind, instance_hash(network, ifname, container_id)) in self._sets:
            return True
        found = self._sets.get((kind, chain_name("", network, container_id)), [])
        return {_family(address) for address in addresses} <= {one.family for one in found}


def read_missing_rules(entries: Iterable[Attached]) -> Missing:
    """Read the firewall, if one of *entries* should have rules in it."""
    if not any(made_rules(attached) for attached in entries):
        return Missing()
    # Imported late: most networks have no rules.
    from ..firewall import owners

    found = owners.read_rules()
    return Missing(found.sets, found.problems)


def made_rules(attached: Attached) -> List[str]:
    """Return the kinds of rules that the plugins of *attached* make for it."""
    some = [made_by(plugin.network, attached.capability_args) for plugin in attached.config.plugins]
    kinds = dict.fromkeys(kind for kinds in some for kind in kinds)
    # All other kinds are for addresses.
    return [kind for kind in kinds if attached.ips or kind == MACSPOOFCHK]


def _family(address: str) -> str:
    return "ipv4" if packed(address).startswith(b"4") else "ipv6"


# An address as addresses.packed returns it, and the length of its prefix.
Address = Tuple[bytes, int]


class Interface(NamedTuple):
    """One interface. ``master`` is the name of its bridge ("" if it has none), ``link`` the number of its other end."""

    number: int
    name: str
    kind: str
    mac: str
    mtu: int
    up: bool
    master: str
    link: int
    addresses: Sequence[Address]


class KernelView:
    """One namespace: ``interfaces`` by name, and ``routes``."""

    __slots__ = ("_by_index", "interfaces", "routes")

    def __init__(self, interfaces: Iterable[Interface], routes: Sequence[Route]) -> None:
        self.interfaces = {interface.name: interface for interface in interfaces}
        self.routes = routes
        self._by_index = {interface.number: interface for interface in self.interfaces.values()}

    def name_of(self, number: int) -> str:
        """Return the name of the interface with that number, "" if there is none."""
        found = self._by_index.get(number)
        return found.name if found else ""

    def other_end(self, inside: Interface) -> Optional[Interface]:
        """Return the host's end of a container's veth, if this is the host's view and the end exists."""
        other = self._by_index.get(inside.link)
        return other if other and other.kind == "veth" and other.link == inside.number else None


def read_here() -> KernelView:
    """Return the view of the namespace that this thread is in. Raises HostError ``kernel_unreadable``."""
    addresses: Dict[int, List[Address]] = {}
    for raw, index, length in netlink.address_list():
        addresses.setdefault(index, []).append((raw, length))
    links = netlink.links()
    interfaces = [
        Interface(
            link.index,
            link.name,
            link.kind,
            link.mac,
            link.mtu,
            link.up,
            links[link.master].name if link.master in links else "",
            link.link,
            addresses.get(link.index, ()),
        )
        for link in links.values()
    ]
    return KernelView(interfaces, netlink.routes())


def parse_address(text: str) -> Address:
    """Return an address such as "10.1.0.2/24" in the form of the kernel's answers; (b"", -1) if it is not valid."""
    address, _slash, behind = text.partition("/")
    raw, length = packed(address), prefix_length(behind, 128)
    return (raw, length) if raw and length is not None else (b"", -1)


# In results of these versions, the compared members are where the newest version has them.
_WITH_INTERFACES = ("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")


class ResultDifference(NamedTuple):
    """``key`` identifies the difference in later runs, ``text`` is human-readable."""

    key: str
    text: str


class Kernel:
    """What the kernel has: the ``host``, the namespaces of attachments ``inside`` by path, and the firewall's rules."""

    __slots__ = ("host", "inside", "missing")

    def __init__(self, host: KernelView, inside: Mapping[str, KernelView], missing: Missing) -> None:
        self.host = host
        self.inside = inside
        self.missing = missing

    def differences(self, attached: Attached) -> List[ResultDifference]:
        """Return how the kernel differs from the result of *attached*, in the result's order."""
        inside = self.inside.get(attached.netns)
        if inside is None:
            return []
        found = list(_Comparison(attached, inside, self.host).differences())
        return found + [ResultDifference(f"rules {what}", text) for what, text in self.missing.of(attached)]

    def drift(self, attached: Attached, record: Optional[Record]) -> List[str]:
        """Return what has changed since the ADD, as sentences without a full stop."""
        known = record.untrue if record else UNKNOWN_LATER
        return [difference.text for difference in self.differences(attached) if difference.key not in known]


def read_kernel(
    entries: Sequence[Attached],
    identities: Mapping[str, Optional[Mapping[str, Any]]],
    rules_of: Optional[Sequence[Attached]] = None,
) -> Kernel:
    """Return what the kernel has of *entries*. *identities*: path of a namespace -> what it is, None for nothing.

    *rules_of*: the entries whose firewall rules are of interest, if not all.
    """
    namespaces = {one.netns: Netns(one.netns, identities[one.netns]) for one in entries if identities.get(one.netns)}
    inside = visit(namespaces.values(), read_here)
    return Kernel(read_here(), inside, read_missing_rules(entries if rules_of is None else rules_of))


def never_was(added: Sequence[Tuple[Attached, KernelView]]) -> List[List[str]]:
    """Return for each new attachment, given with a view of its namespace, the differences that are not drift later."""
    entries = [attached for attached, _inside in added]
    host, missing = read_here(), read_missing_rules(entries)
    return [
        [difference.key for difference in Kernel(host, {attached.netns: inside}, missing).differences(attached)]
        for attached, inside in added
    ]


class _Comparison:
    def __init__(self, attached: Attached, inside: KernelView, host: KernelView) -> None:
        self.inside = inside
        self.host = host
        self.result = _newest(attached.result)
        self.ifname = attached.key.ifname
        self.mtu = _configured_mtu(attached)
        self.netns = attached.netns

    def differences(self) -> Iterator[ResultDifference]:
        entries = _objects(self.result.get("interfaces"))
        for entry in entries:
            name = str(entry.get("name") or "")
            view = self.inside if entry.get("sandbox") else self.host
            yield from self._interface(entry, name, view.interfaces.get(name), "" if view is self.inside else "host's ")
        yield from self._bridge(entries)
        for address in _objects(self.result.get("ips")):
            yield from self._address(address, entries)
        for route in _objects(self.result.get("routes")):
            yield from self._route(route)

    def _interface(
        self, entry: Mapping[str, Any], name: str, here: Optional[Interface], whose: str
    ) -> Iterator[ResultDifference]:
        if here is None:
            yield ResultDifference(f"{whose}interface {name}", f"the {whose}interface {name} is gone")
            return
        if not here.up:
            yield ResultDifference(f"{whose}up {name}", f"the {whose}interface {name} is down")
        # The reference plugins set the configured MTU, but leave it out of their results.
        mtu = entry.get("mtu") or (self.mtu if name == self.ifname and not whose else 0)
        if isinstance(mtu, int) and mtu and here.mtu != mtu:
            text = f"the {whose}interface {name} has the MTU {here.mtu} instead of {mtu}"
            yield ResultDifference(f"{whose}mtu {name}", text)
        mac = str(entry.get("mac") or "").lower()
        # The MAC of a bridge changes with its ports, and udev assigns new ones to the host's veths.
        if mac and not whose and here.mac != mac:
            yield ResultDifference(f"mac {name}", f"the interface {name} has the MAC {here.mac} instead of {mac}")

    def _bridge(self, entries: Sequence[Mapping[str, Any]]) -> Iterator[ResultDifference]:
        """Compare the bridge that the container is connected to with the one in the result."""
        inside = self.inside.interfaces.get(self.ifname)
        names = [str(entry.get("name") or "") for entry in entries if not entry.get("sandbox")]
        here = [self.host.interfaces[name] for name in names if name in self.host.interfaces]
        bridge = next((one for one in here if one.kind == "bridge"), None)
        port = self.host.other_end(inside) if inside else None
        if bridge and port and port.name in names and port.master != bridge.name:
            text = f"the host's interface {port.name} is no longer a port of {bridge.name}"
            if port.master:
                text = f"the host's interface {port.name} is a port of {port.master} instead of {bridge.name}"
            yield ResultDifference(f"bridge {port.name}", text)

    def _address(self, entry: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Iterator[ResultDifference]:
        index = entry.get("interface")
        name = self.ifname
        if isinstance(index, int):
            if not 0 <= index < len(entries) or not entries[index].get("sandbox"):
                return
            name = str(entries[index].get("name") or "")
        here = self.inside.interfaces.get(name)
        text = str(entry.get("address"))
        wanted = parse_address(text)
        if here is not None and wanted[0] and wanted not in here.addresses:
            yield ResultDifference(f"address {name} {text}", f"the address {text} on {name} is gone")

    def _route(self, entry: Mapping[str, Any]) -> Iterator[ResultDifference]:
        text = str(entry.get("dst"))
        network = _network(text)
        if not network[0] or entry.get("table"):
            return
        gateway = packed(str(entry.get("gw") or ""))
        for here in self.inside.routes:
            if here.table == MAIN_TABLE and (here.raw, here.length) == network and gateway in (b"", here.gateway):
                return
        through = f" through {entry['gw']}" if gateway else ""
        yield ResultDifference(f"route {text}", f"the route to {text}{through} is gone")


def _configured_mtu(attached: Attached) -> int:
    """Return the MTU that the chain gives the container's interface, 0 if it is left to the kernel."""
    told = [member_of(plugin.network, "mtu") for plugin in attached.config.plugins]
    return next((mtu for mtu in reversed(told) if isinstance(mtu, int) and mtu > 0), 0)


def _network(text: str) -> Address:
    """Return a destination without its host bits, which the kernel drops."""
    raw, length = parse_address(text)
    bits = 8 * (len(raw) - 1) - length
    if not raw or bits < 0:
        return b"", -1
    number = int.from_bytes(raw[1:], "big") >> bits << bits
    return raw[:1] + number.to_bytes(len(raw) - 1, "big"), length


def _newest(result: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """Return a result with its members where the newest version has them; {} if it is not a valid result."""
    if not result:
        return {}
    version = str(result.get("cniVersion") or "")
    if version in _WITH_INTERFACES:
        return dict(result)
    try:
        return types.create(version, gojson.dumps(dict(result))).as_version("1.1.0").to_dict()
    except CNIError:
        return {}


def _objects(value: Any) -> List[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
