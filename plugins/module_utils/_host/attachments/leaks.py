# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an attachment left behind after its DEL, found by its unique container ID, and its removal."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Container, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from ...libcni.cache import Entry, list_entries
from ...libcni.conf import NetworkConfigList
from .. import leases, netlink
from ..addresses import packed, result_addresses
from ..errors import HostError
from ..kinds import META, bridge_of, kind_named, member_of
from ..netns import Netns, visit
from .request import Key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..firewall.chains import ChainKey
    from ..firewall.owners import RuleSet

Links = Mapping[int, netlink.Link]
Row = Dict[str, Any]
Detached = Mapping[Key, Tuple[Optional[NetworkConfigList], Iterable[str]]]
"""Attachment -> its network (None: not known), and its addresses, such as 10.1.0.2/24."""

_LOCK_TIMEOUT = 10.0


def leak_row(kind: str, ident: str, message: str, remove: Callable[[], None]) -> Row:
    """Remove a leak and return the row that reports it."""
    try:
        remove()
    except HostError as error:
        return {"kind": kind, "id": ident, "message": f"{message}; {error.msg}", "removed": False}
    return {"kind": kind, "id": ident, "message": message, "removed": True}


class Interfaces:
    """The interfaces of the host and of one namespace before an ADD, and which new ones are left after the DEL."""

    def __init__(self, netns: Netns) -> None:
        self._netns = netns
        self._host = netlink.links()
        self._inside = self._look_inside()
        self._made: Dict[int, str] = {}

    def _look_inside(self) -> Links:
        return visit([self._netns], netlink.links).get(self._netns.path, {})

    def note(self, result: Mapping[str, Any]) -> None:
        """Note what an ADD with that *result* made on the host: the interfaces in it, and the other ends of veths."""
        entries = result.get("interfaces")
        names = {str(e.get("name")) for e in entries if isinstance(e, dict)} if isinstance(entries, list) else set()
        ends = {link.link for index, link in self._look_inside().items() if index not in self._inside and link.abroad}
        for index, link in netlink.links().items():
            # Containers share a bridge, and no plugin removes it.
            if index not in self._host and link.kind != "bridge" and (link.name in names or index in ends):
                self._made[index] = link.name

    def left(self) -> List[Row]:
        """Return what is left after the DEL. An interface inside goes with its namespace."""
        rows = [
            leak_row("link", link.name, f"the interface {link.name} is still in the container", lambda: None)
            for index, link in sorted(self._look_inside().items())
            if index not in self._inside
        ]
        here = netlink.links()
        for index, name in sorted(self._made.items()):
            if index in here and here[index].name == name:
                text = f"the interface {name} is still on the host"
                rows.append(leak_row("link", name, text, partial(netlink.delete_link, index, name)))
        return rows

    def remove_new_bridges(self, config: NetworkConfigList) -> None:
        """Remove the bridges of the network that did not exist before and have no ports."""
        names = {bridge_of(plugin.network) for plugin in config.plugins}
        here = netlink.links()
        ports = {link.master for link in here.values()}
        for index, link in here.items():
            if index not in self._host and link.kind == "bridge" and link.name in names and index not in ports:
                netlink.delete_link(index, link.name)


def leases_left(key: Key, config: Optional[NetworkConfigList]) -> List[Row]:
    """Release the addresses that host-local still reserves for the attachment, and return them.

    Without *config* only host-local's default directory is known.
    """
    rows = []
    for lease in _leases(key, config):
        # Old releases of host-local do not write the interface's name.
        if lease.container_id == key.container_id and lease.ifname in ("", key.ifname):
            text = f"{lease.path} still reserves the address"
            rows.append(leak_row("lease", lease.ip, text, partial(leases.remove_lease, lease, _LOCK_TIMEOUT)))
    return rows


def _leases(key: Key, config: Optional[NetworkConfigList]) -> Iterator[leases.Lease]:
    plugins = config.plugins if config else []
    for data_dir, network in leases.lease_stores([(key.network, plugin.network) for plugin in plugins]):
        if network == key.network:
            yield from leases.read_leases(data_dir, network)[0]


def makes_rules(config: NetworkConfigList) -> bool:
    """Tell whether a plugin of the network may put rules for a container into the host's firewall."""
    return any(
        (kind_named(plugin.type).rules and kind_named(plugin.type).role == META)
        or any(member_of(plugin.network, option) is True for option in ("ipmasq", "macspoofchk"))
        for plugin in config.plugins
    )


def rules_left(
    detached: Detached,
    problems: List[str],
    cache_dir: str = "",
    kinds: Optional[Container[str]] = None,
    recorded: Optional[Mapping[Key, Iterable[ChainKey]]] = None,
) -> Dict[Key, List[Row]]:
    """Remove the firewall rules of the attachments in *detached*, and return them; one reading serves all.

    *cache_dir*: that of all attachments, "" if the others do not matter. *kinds*: see firewall.kinds; None: all.
    *recorded*: rules in footprints; what is left of them and cannot be told to be the attachment's is returned, too,
    and stays. What cannot be read of the firewall is added to *problems*. Raises CacheError.
    """
    # Imported late: most networks have no rules.
    from ..firewall import change, owners
    from ..firewall.kinds import FIREWALL

    found = owners.read_rules()
    problems += [str(entry["message"]) for entry in found.problems]
    # Read after the rules: only an ADD that runs has rules and no entry.
    entries = list_entries(cache_dir) if cache_dir else []
    found.attribute({key.network for key in detached}, {key.container_id for key in detached})
    by_id: Dict[str, List[Key]] = {}
    for key in detached:
        by_id.setdefault(key.container_id, []).append(key)
    by_address = _free_addresses(detached, entries)
    owned: Dict[Tuple[str, str, str, str], Key] = {}
    for one in found.sets:
        if kinds is not None and one.plugin not in kinds:
            continue
        keys = [key for key in by_id.get(one.owner.container_id or "", ()) if _may_be_of(one, key, entries)]
        if not keys and one.owner.container_id is None and one.plugin == FIREWALL:
            keys = [by_address[address] for address in one.addresses if address in by_address]
        if keys:
            owned[one.key] = keys[0]
    rows: Dict[Key, List[Row]] = {}
    for one, error in change.drop_rules([one for one in found.sets if one.key in owned]):
        text = one.text if error is None else f"{one.text}; {error.msg}"
        entry = {"kind": "rule", "id": " ".join(one.key), "message": text, "removed": error is None}
        rows.setdefault(owned[one.key], []).append(entry)
    for key, places in (recorded or {}).items():
        for place in found.unknown(places):
            text = (
                f"the rule {place[-1]} of the chain {place[4]} ({place[1]} {place[2]}, table {place[3]}) is still there"
            )
            rows.setdefault(key, []).append({"kind": "rule", "id": " ".join(place), "message": text, "removed": False})
    return rows


def _free_addresses(detached: Detached, entries: Iterable[Entry]) -> Dict[str, Key]:
    """Return the addresses in *detached* that no other attachment has received since.

    A lease is older than the first rule; an entry is not, but not every IPAM plugin keeps leases.
    """
    others = [entry for entry in entries if (entry.network_name, entry.container_id, entry.if_name) not in detached]
    taken = {packed(ip.partition("/")[0]) for entry in others for ip in result_addresses(entry.result)}
    free: Dict[str, Key] = {}
    for key, (config, ips) in detached.items():
        leased = {packed(lease.ip) for lease in _leases(key, config) if lease.container_id != key.container_id}
        addresses = [ip.partition("/")[0] for ip in ips]
        free.update((address, key) for address in addresses if packed(address) not in taken | leased)
    return free


def _may_be_of(one: RuleSet, key: Key, entries: Iterable[Entry]) -> bool:
    """Tell whether rules of the container of *key* may belong to that attachment, by network and ifname."""
    # Rules that do not name the network may be of any attachment of the container.
    ifnames = {entry.if_name for entry in entries if entry.container_id == key.container_id}
    of_network = one.owner.network == key.network or (one.owner.network is None and ifnames <= {key.ifname})
    return of_network and one.owner.ifname in (None, key.ifname)
