# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What an attachment left behind after its DEL, and its removal.

That are interfaces that its ADD made on the host, leases with its container ID, and firewall rules that name it. What
another interface of the container shares is not left.

bridge and ptp remove the masquerading rules of the addresses that they find on the container's interface
(plugins/main/bridge/bridge.go:cmdDel). If the interface has lost its addresses, or is gone with its namespace, the
rules stay. They apply to the next container that gets the address, and a later DEL of the same container fails because
its chain is still referenced. No plugin finds rules in another backend of iptables than the present one.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ...libcni.cache import Entry, list_entries
from ...libcni.conf import NetworkConfigList
from ...libcni.errors import CacheError
from .. import leases, netlink
from ..addresses import packed, result_addresses
from ..errors import HostError
from ..firewall.chains import CHAIN
from ..kinds import META, kind_named, member_of
from ..netns import Netns, visit
from ..struct import grouped
from .request import Key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..firewall.owners import RuleSet

Objects = Mapping[Tuple[Any, ...], Any]
"""Objects of a host, as footprints have them."""
Row = Dict[str, Any]
# Kinds of interfaces that an ADD makes. A device that host-device moved can be of any kind and belongs to the host.
_VIRTUAL = ("veth", "macvlan", "ipvlan", "macvtap", "ipvtap", "vlan", "dummy", "tun")
_LOCK_TIMEOUT = 10.0
_RULE_KEY_LENGTH = 6


class Departed(NamedTuple):
    """An attachment whose DEL has run at the time ``since``.

    ``objects`` are what its ADD made on the host, ``config`` is its network (None: not known), ``ips`` are its
    addresses, such as 10.1.0.2/24. ``shares``: the container has another interface in the network, which its chains
    and comments do not tell from this one.
    """

    key: Key
    since: float
    objects: Objects
    config: Optional[NetworkConfigList] = None
    ips: Sequence[str] = ()
    shares: bool = False

    @property
    def may_have_rules(self) -> bool:
        """Whether a plugin has put rules for the attachment into the host's firewall, or may have."""
        if self.config is None or _recorded_rules(self):
            return True
        return any(
            (kind_named(plugin.type).rules and kind_named(plugin.type).role == META)
            or any(member_of(plugin.network, option) is True for option in ("ipmasq", "macspoofchk"))
            for plugin in self.config.plugins
        )


class Remain(NamedTuple):
    """One object that is left. ``drop`` removes it: rules, which go with all others, or a call; None: it stays."""

    key: Key
    kind: str
    ident: str
    message: str
    drop: Union[RuleSet, Callable[[], None], None]


class Dropped(NamedTuple):
    """The rows that report what was left, and what could not be read, so that something may still be there."""

    rows: Dict[Key, List[Row]]
    problems: List[str]

    def kept(self, key: Key) -> str:
        """Return what could not be removed, in words; "" if nothing is there."""
        return "; ".join(str(row["message"]) for row in self.rows.get(key, ()) if not row["removed"])


def drop_remains(departed: Sequence[Departed], cache_dir: str) -> Dropped:
    """Find and remove what attachments in *cache_dir* have left; one reading of the host serves all."""
    remains = _links_of(departed) + _leases_of(departed)
    searched = [attachment for attachment in departed if attachment.may_have_rules and not attachment.shares]
    problems: List[str] = []
    if searched:
        try:
            remains += _rules_of(searched, cache_dir, problems)
        except CacheError as error:
            # Rules by an address may be those of the container that has it now.
            remains += [Remain(attachment.key, "rule", "", str(error), None) for attachment in searched]
    return Dropped(_drop(remains), problems)


def _drop(remains: Sequence[Remain]) -> Dict[Key, List[Row]]:
    """Remove what is left, and return the rows that report it."""
    sets = [remain.drop for remain in remains if remain.drop is not None and not callable(remain.drop)]
    errors: Dict[Any, HostError] = {}
    if sets:
        from ..firewall import change

        errors = change.drop_rules(sets)
    rows: Dict[Key, List[Row]] = {}
    for remain in remains:
        message, removed = remain.message, remain.drop is not None
        error = None
        if callable(remain.drop):
            try:
                remain.drop()
            except HostError as raised:
                error = raised
        elif remain.drop is not None:
            error = errors.get(remain.drop.key)
        if error is not None:
            message, removed = f"{message}; {error.msg}", False
        row = {"kind": remain.kind, "id": remain.ident, "message": message, "removed": removed}
        rows.setdefault(remain.key, []).append(row)
    return rows


# ---- interfaces


def _links_of(departed: Iterable[Departed]) -> List[Remain]:
    """Return the interfaces of footprints that are still there. A bridge is what containers share."""
    # Of an interface that was there before, only what changed is recorded.
    made = [
        (attachment.key, key[1], recorded)
        for attachment in departed
        for key, recorded in attachment.objects.items()
        if key[0] == "link" and recorded.value is not None and "mtu" in recorded.value
    ]
    present = netlink.links() if made else {}
    remains = []
    for key, name, recorded in made:
        link = present.get(recorded.ifindex)
        if link is not None and link.name == name and link.kind == recorded.value["kind"] != "bridge":
            text = f"the interface {name} is still on the host"
            remains.append(Remain(key, "link", name, text, partial(netlink.delete_link, link.index, name)))
    return remains


def remove_inside(ifname: str, container: Netns, moves: bool) -> List[str]:
    """Remove the interface of a container, unless it may be one of the host. *moves*: a plugin moves such in.

    Returns why it is still there, [] if it is not.
    """

    def work() -> List[str]:
        for link in netlink.links().values():
            if link.name == ifname:
                if moves or link.kind not in _VIRTUAL:
                    return [f"the interface {ifname} is still in {container.path}"]
                netlink.delete_link(link.index, ifname)
        return []

    try:
        return visit([container], work).get(container.path, [])
    except HostError as error:
        return [error.msg]


# ---- leases


def _leases_of(departed: Iterable[Departed]) -> List[Remain]:
    stores: Dict[Tuple[str, str], List[leases.Lease]] = {}
    return [
        Remain(
            attachment.key,
            "lease",
            lease.ip,
            f"{lease.path} still reserves the address",
            partial(leases.remove_lease, lease, _LOCK_TIMEOUT),
        )
        for attachment in departed
        for lease in _leases_in_network(attachment, stores)
        if _is_left(lease, attachment)
    ]


def leased_before(departed: Departed, moment: float) -> str:
    """Return which lease of host-local, from before *moment*, prevents an ADD; "" if there is none."""
    # The kernel's clock of files is a little slow.
    departed = departed._replace(since=moment - 1)
    left = [lease for lease in _leases_in_network(departed, {}) if _is_left(lease, departed)]
    places = ", ".join(f"{lease.path} for {lease.ifname or 'an interface'} of {lease.container_id}" for lease in left)
    return f"; host-local has a lease for it from before ({places}), which prevents another one" if left else ""


def _is_left(lease: leases.Lease, departed: Departed) -> bool:
    """Tell whether a lease is one of before the DEL, and of this interface of the container."""
    if lease.container_id != departed.key.container_id:
        return False
    # Old releases of host-local do not write the interface's name.
    is_own = lease.ifname == departed.key.ifname or (not lease.ifname and not departed.shares)
    return is_own and (lease.status is None or lease.status.st_mtime <= departed.since)


def _leases_in_network(departed: Departed, stores: Dict[Tuple[str, str], List[leases.Lease]]) -> Iterable[leases.Lease]:
    """Return the leases of the network. Without its configuration only host-local's default directory is known."""
    plugins = departed.config.plugins if departed.config else []
    network = departed.key.network
    for store in leases.lease_stores([(network, plugin.network) for plugin in plugins]):
        if store[1] == network:
            if store not in stores:
                stores[store] = leases.read_leases(*store)[0]
            yield from stores[store]


# ---- firewall rules


def _recorded_rules(departed: Departed) -> List[Tuple[Any, ...]]:
    """Return the firewall rules in the footprint, as keys of their chains and the rule."""
    return [
        key
        for key, recorded in departed.objects.items()
        if key[0] == CHAIN and len(key) == _RULE_KEY_LENGTH and recorded.value
    ]


def _rules_of(departed: Sequence[Departed], cache_dir: str, problems: List[str]) -> List[Remain]:
    """Return the rules of attachments in *cache_dir*.

    What is left of a footprint, and nothing but the footprint tells to be the attachment's, is returned and stays.
    Raises CacheError.
    """
    from ..firewall import owners
    from ..firewall.kinds import FIREWALL

    rules = owners.read_rules()
    problems += [finding.message for finding in rules.problems]
    # Read after the rules: only an ADD that runs has rules and no entry.
    entries = list_entries(cache_dir)
    ids = {attachment.key.container_id for attachment in departed}
    sets = owners.attribute(rules.sets, {attachment.key.network for attachment in departed}, ids)
    by_id = grouped((attachment.key.container_id, attachment.key) for attachment in departed)
    by_address = _free_addresses(departed, entries)
    remains = []
    for ruleset in sets:
        container_id = ruleset.owner.container_id
        keys = [key for key in by_id.get(container_id or "", ()) if _may_be_of(ruleset, key, entries)]
        if not keys and container_id is None and ruleset.plugin == FIREWALL:
            keys = [by_address[address] for address in ruleset.addresses if address in by_address]
        if keys:
            remains.append(Remain(keys[0], "rule", " ".join(ruleset.key), ruleset.text, ruleset))
    for attachment in departed:
        for place in rules.unknown(_recorded_rules(attachment)):
            backend, family, table, chain, rule = place[1:]
            text = f"the rule {rule} of the chain {chain} ({backend} {family}, table {table}) is still there"
            remains.append(Remain(attachment.key, "rule", " ".join(place), text, None))
    return remains


def _free_addresses(departed: Sequence[Departed], entries: Iterable[Entry]) -> Dict[str, Key]:
    """Return the addresses of *departed* that no other attachment has received since.

    A lease is older than the first rule; an entry is not, but not every IPAM plugin keeps leases.
    """
    keys = {attachment.key for attachment in departed}
    others = [entry for entry in entries if (entry.network_name, entry.container_id, entry.if_name) not in keys]
    taken = {packed(ip.partition("/")[0]) for entry in others for ip in result_addresses(entry.result)}
    free: Dict[str, Key] = {}
    stores: Dict[Tuple[str, str], List[leases.Lease]] = {}
    for attachment in departed:
        present = _leases_in_network(attachment, stores)
        leased = {packed(lease.ip) for lease in present if lease.container_id != attachment.key.container_id}
        addresses = [ip.partition("/")[0] for ip in attachment.ips]
        free.update((address, attachment.key) for address in addresses if packed(address) not in taken | leased)
    return free


def _may_be_of(ruleset: RuleSet, key: Key, entries: Iterable[Entry]) -> bool:
    """Tell whether rules of the container of *key* may belong to that attachment, by network and ifname."""
    # Rules that do not name the network may be of any attachment of the container.
    ifnames = {entry.if_name for entry in entries if entry.container_id == key.container_id}
    network, ifname = ruleset.owner.network, ruleset.owner.ifname
    of_network = network == key.network or (network is None and ifnames <= {key.ifname})
    return of_network and ifname in (None, key.ifname)
