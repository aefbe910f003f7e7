# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What surrounds the ADDs of one plan: the first one on a network runs alone, and their footprints are recorded."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import Counter
from functools import partial
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ...libcni.conf import NetworkConfigList
from ...libcni.gojson import fold
from ..addresses import result_gateways
from ..binaries.types import types_of
from ..errors import HostError
from ..firewall.chains import FoundChains
from ..footprints.attribution import Party, is_of_plugins
from ..footprints.footprint import Owner
from ..footprints.object_kinds import HOST, LEASE
from ..footprints.recorder import (
    SWITCHES,
    Defaults,
    RecordedAdd,
    lost_connections,
    owned_changes,
    read_host,
    read_inside,
    read_unusual,
    record_footprints,
)
from ..footprints.state import LeaseStore, Reading
from ..kernel.objects import ObjectKey, State
from ..kernel.sysctls import GLOBAL, interface_defaults, interface_sysctl
from ..kinds import IFNAME, REFERENCE, bridge_of, forwards, lease_dir, member_of, tuned_sysctls
from ..netlink import UP
from ..netns import Netns, apart, same, seen_here, visit
from .outcome import ADD, DELETE, RENEW, AttachPlan, Outcome
from .request import Key
from .store import Attached, AttachmentStore
from .verbs import AddWatch

_PROMISCUOUS = 0x100
# What reference plugins set of interfaces, on the host and in the container.
_INTERFACE_SYSCTLS = ["accept_ra", "arp_notify", "ndisc_notify", "route_localnet"]
_INTERFACE_SYSCTLS += ["accept_dad", "disable_ipv6", "enhanced_dad", "keep_addr_on_down"]


class FirstAlone:
    """Lets the first ADD on each network run while no other does, and all later ones at the same time.

    portmap and bridge make chains that all containers share, and several at once collide (iptables-nft has no lock).
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._known: Set[str] = set()
        self._running = 0
        self._alone = False

    @contextlib.contextmanager
    def running(self, network: str) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._alone and (network in self._known or self._running == 0))
            alone = network not in self._known
            self._alone = alone
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._known.add(network)
                if alone:
                    self._alone = False
                self._changed.notify_all()


class Recording(AddWatch):
    """Records the footprints of the attachments that a plan makes. What cannot be read or written is a warning.

    Namespaces that get one attachment are read together before and after the batch, because a thread for each of them
    costs as much as the reading. Others are read around each ADD, so that each change has one owner.
    Threads may share it between ``begin`` and ``finish``.
    """

    def __init__(self, store: AttachmentStore, plan: AttachPlan) -> None:
        self._store = store
        self._plan = plan
        self._before: Optional[Reading] = None
        # What was read, and of which namespace.
        self._inside: Dict[Key, Tuple[State, Optional[Mapping[str, Any]]]] = {}
        self._done: Dict[Key, Attached] = {}
        self._added: Dict[Key, RecordedAdd] = {}
        self._stores: List[LeaseStore] = []
        self._usual: Optional[Defaults] = None
        self._in_use: Set[Owner] = set()

    def begin(self) -> None:
        """Read the host before the first ADD, and the namespaces that get one attachment."""
        made = [outcome for outcome in self._plan.outcomes if outcome.todo in (ADD, RENEW) and outcome.config]
        if not made:
            return
        self._in_use = self._store.in_use({outcome.key.network for outcome in made})
        self._stores = _stores(outcome.config for outcome in made if outcome.config)
        self._before = self._try(lambda: self._host_before(made))
        if self._before is not None:
            self._read_before([outcome for outcome in made if outcome.todo == ADD])

    def _host_before(self, made: Sequence[Outcome]) -> Reading:
        """Return the state of the host without what the attachments that are made again have there."""
        before = read_host(self._stores)
        renewed = [outcome.attached for outcome in made if outcome.todo == RENEW and outcome.attached]
        if renewed:
            for attached in renewed:
                before.leave_out(attached.footprint.host if attached.footprint is not None else ())
            # Without a footprint, only the form of leases and of plugins' rules tells what its first ADD made.
            parties = [party_of(attached, None) for attached in renewed if attached.footprint is None]
            nothing = Reading({HOST: {}}, FoundChains())
            owned = owned_changes(nothing, before, parties, {})
            keys = [key for owner, objects in owned.items() if len(owner) > 1 for key in objects]
            before.leave_out([key for key in keys if key[0] == LEASE or is_of_plugins(key)])
        return before

    def _read_before(self, added: Iterable[Outcome]) -> None:
        count = Counter(outcome.wanted.netns for outcome in self._plan.outcomes if outcome.todo in (ADD, DELETE, RENEW))
        single = {outcome.wanted.netns: outcome for outcome in added if count[outcome.wanted.netns] == 1}
        lists = [sysctls_set_by(outcome.config, outcome.key.ifname) for outcome in single.values() if outcome.config]
        sysctls = _union(lists)
        # What cannot be read now is read before its ADD, which tells why not.
        with contextlib.suppress(HostError):
            readings = visit(map(Netns, single), lambda: (read_inside(sysctls), seen_here().identity))
            self._inside.update((single[path].key, reading) for path, reading in readings.items())

    def before(self, given: Attached, container: Netns) -> None:
        """Read the namespace of the container before its ADD, unless that is done."""
        if self._before is None or same(self._inside.get(given.key, (None, None))[1], container.identity):
            return
        self._inside.pop(given.key, None)
        sysctls = sysctls_set_by(given.config, given.key.ifname)
        reading = self._try(lambda: visit([container], partial(read_inside, sysctls)).get(container.path), given.key)
        if reading is not None:
            self._inside[given.key] = reading, container.identity

    def after(self, given: Attached, container: Netns) -> None:
        """Read the namespace of the container after its ADD, or let ``finish`` do so. *given* has the result."""
        if given.key not in self._inside or not container.identity:
            return
        self._done[given.key] = given
        if self._neighbours(given):
            self._try(lambda: self._read_after([given.key]), given.key)

    def _neighbours(self, given: Attached) -> Set[str]:
        """Return the interfaces of other attachments in the namespace of *given*."""
        return {
            outcome.key.ifname
            for outcome in self._plan.outcomes
            if outcome.wanted.netns == given.netns and outcome.key != given.key
        }

    def _read_after(self, keys: Iterable[Key]) -> None:
        def read() -> None:
            for key in keys:
                given = self._done[key]
                if Netns(given.netns, given.identity).enter():
                    self._added[key] = self._read_one(given)

        apart(read)

    def _read_one(self, given: Attached) -> RecordedAdd:
        """Return what this thread's namespace is after the ADD."""
        ifname = given.key.ifname
        named, before = sysctls_set_by(given.config, ifname), self._inside[given.key][0]
        # A plugin that is not known may set any.
        usual = interface_defaults() if self._usual is None or named is None else self._usual
        self._usual = usual
        after, defaults = read_unusual(before, named, usual, interface_sysctls_set_by(given.config, ifname))
        party = party_of(given, after)
        digest = hashlib.sha256(given.config.expanded_bytes()).hexdigest()
        needed = sysctls_of_tuning(given.config, ifname)
        return RecordedAdd(party, before, after, defaults, given.identity, digest, self._neighbours(given), needed)

    def forget(self, key: Key) -> None:
        """Record nothing of an attachment, because it has been detached again."""
        self._done.pop(key, None)
        self._added.pop(key, None)

    def finish(self) -> None:
        """Read the host after the last ADD, and the namespaces that were not read yet; write the footprints."""
        before = self._before
        if before is not None:
            self._try(lambda: self._read_after([key for key in self._done if key not in self._added]))
            self._try(lambda: self._compare(before, read_host(self._stores)))

    def _compare(self, before: Reading, after: Reading) -> None:
        """Report what the host has lost, and write the footprints of attachments, and of what they share."""
        lost = lost_connections(before.spaces[HOST], after.spaces[HOST])
        if lost:
            text = f"the host has lost {'; '.join(lost)} while this run attached containers; find out what removed it"
            self._plan.warn("host_route_lost", f"{text}, and restore it where the host's network is configured")
        if not self._added:
            return
        shared, added = self._store.read_shared(), list(self._added.values())
        footprints = record_footprints(shared, before, after, added, self._in_use)
        for key in self._added:
            self._done[key].footprint = footprints[key]
            self._store.write(self._done[key])
        self._store.write_shared(shared)

    def _try(self, read: Callable[[], Any], key: Optional[Key] = None) -> Any:
        try:
            return read()
        except HostError as error:
            whose = f"{key}: its footprint was" if key else "footprints were"
            text = f"{whose} not recorded ({error.msg}), so only the result of the ADD is compared to find drift"
            self._plan.warn("footprint_missing", text)
            return None


def _union(lists: Iterable[Optional[List[str]]]) -> Optional[List[str]]:
    """Return the names of all *lists*; None if one of them is None, which stands for all names."""
    union: Dict[str, None] = {}
    for names in lists:
        if names is None:
            return None
        union.update(dict.fromkeys(names))
    return list(union)


def sysctls_set_by(config: NetworkConfigList, ifname: str) -> Optional[List[str]]:
    """Return the global sysctls that an ADD may set in the container, as kernel.sysctls names them; None if any.

    Reference plugins set no others than forwarding and those that tuning is told to. To read all costs as much as a
    small plugin.
    """
    if not REFERENCE.issuperset(types_of([plugin.network for plugin in config.plugins])):
        return None
    return [*SWITCHES, *(str(key[1]) for key in sysctls_of_tuning(config, ifname) if key[0] == GLOBAL)]


def interface_sysctls_set_by(config: NetworkConfigList, ifname: str) -> List[Tuple[str, str]]:
    """Return the sysctls of its own interface that tuning is told to set, as kernel.sysctls names their defaults."""
    return [(str(key[0]), str(key[2])) for key in sysctls_of_tuning(config, ifname) if key[0] != GLOBAL]


def sysctls_of_tuning(config: NetworkConfigList, ifname: str) -> List[ObjectKey]:
    """Return the sysctls that tuning is told to set, global ones and those of the attachment's own interface.

    Those of other interfaces and of neighbours are no objects of a footprint.
    """
    keys: List[ObjectKey] = []
    for path in tuned_sysctls(plugin.network for plugin in config.plugins):
        kind, interface, name = interface_sysctl(path)
        if not interface:
            keys.append((GLOBAL, path))
        elif kind and interface in (IFNAME, ifname):
            keys.append((kind, ifname, name))
    return keys


def party_of(attached: Attached, inside: Optional[State]) -> Party:
    """Return an attachment with what its plugins do on a host. *inside*: the state of its namespace after the ADD.

    Reference plugins set no other sysctls of interfaces than these and those that tuning is told to.
    """
    plugins = [plugin.network for plugin in attached.config.plugins]
    reference = REFERENCE.issuperset(types_of(plugins))
    bridges = [plugin for plugin in plugins if bridge_of(plugin)]
    is_gateway = any(map(forwards, bridges))
    families = {":" in address for address in attached.ips}
    named = [name for kind, name in interface_sysctls_set_by(attached.config, attached.key.ifname)]
    routes = any(map(forwards, plugins))
    named += ["forwarding"] if routes else []
    return Party(
        attached.key,
        [address.partition("/")[0] for address in attached.ips],
        inside,
        texts_of(attached.config),
        result_gateways(attached.result) if is_gateway or not reference else (),
        UP | (_PROMISCUOUS if any(member_of(plugin, "promiscmode") for plugin in bridges) else 0),
        {*_INTERFACE_SYSCTLS, *named} if reference else None,
        [name for name, is_six in zip(SWITCHES, (False, True)) if routes and is_six in families],
    )


def _stores(configs: Iterable[NetworkConfigList]) -> List[LeaseStore]:
    """Return the stores of host-local that ADDs with *configs* use, whether they exist yet or not."""
    stores: Dict[LeaseStore, None] = {}
    for config in configs:
        for plugin in config.plugins:
            data_dir = lease_dir(plugin.network)
            if data_dir:
                stores[data_dir, config.name] = None
    return list(stores)


def texts_of(config: NetworkConfigList) -> List[str]:
    """Return all texts of a configuration: some are names of interfaces, whatever a plugin calls their option."""
    texts: List[str] = []
    waiting: List[Any] = [plugin.network for plugin in config.plugins]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [inner for key, inner in value.items() if fold(key) not in ("name", "type", "cniversion")]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            texts.append(value)
    return texts
