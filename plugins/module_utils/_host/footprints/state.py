# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a host and of containers' namespaces, read at one time."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, Optional, Tuple

from ..firewall.chains import CHAIN, TABLE, FoundChains, read_chains
from ..kernel.objects import CONF4, CONF6, KernelObject, ObjectKey, State, read_objects
from ..kernel.sysctls import GLOBAL, read_globals, sysctl_place
from ..leases import read_leases
from ..netns import Netns, visit

HOST = ""
"""The space of the host. Other spaces are paths of namespaces."""
LEASE = "lease"
SWITCH = "switch"
"""The kind of a difference: plugins use another backend of iptables than the one that the rules are in."""
IN_FIREWALL = (CHAIN, TABLE, "set", "map")
OF_INTERFACES = (CONF4, CONF6)
ON_INTERFACES = ("link", *OF_INTERFACES, "vlan", "addr", "neigh", "fdb", "qdisc", "class", "filter")
"""The kinds whose key has the name of the interface in its second place."""
# A chain's key has this length, that of a rule in it one more.
CHAIN_KEY_LENGTH = 5

# The kernel's routing rules for the tables local, main and default.
_DEFAULT_RULES = (0, 32766, 32767)
Store = Tuple[str, str]


class Look:
    """What was read: ``spaces`` (space -> objects), and the firewall ``chains`` of the host (None: not asked for).

    ``misplaced`` are recorded rules that are there, but not in their recorded order; see comparison.note_order.
    ``switched``: backend of iptables that plugins no longer use -> the present one.

    Besides the kinds of kernel.objects there are ``(sysctl, name)`` with a text, and ``(lease, data dir, network,
    address)`` with the text of the file.
    """

    __slots__ = ("_counts", "chains", "misplaced", "spaces", "switched")

    def __init__(self, spaces: Dict[str, State], chains: Optional[FoundChains] = None) -> None:
        self.spaces = spaces
        self.chains = chains
        self.misplaced: FrozenSet[ObjectKey] = frozenset()
        self.switched: Mapping[str, str] = {}
        self._counts: Dict[ObjectKey, Counter[str]] = {}

    def found(self, space: str, key: ObjectKey) -> Optional[KernelObject]:
        """Return the kernel's object, None if there is none. Parts of objects have none: rules, single sysctls."""
        return self.spaces.get(space, {}).get(key)

    def value(self, space: str, key: ObjectKey) -> Any:
        """Return the value of an object or of a part of one, None if it is not there."""
        kind = key[0]
        if kind in IN_FIREWALL:
            return self._in_firewall(key)
        objects = self.spaces.get(space, {})
        if kind in OF_INTERFACES:
            values = objects.get(key[:2])
            place = sysctl_place(str(kind), str(key[2]))
            return values.value[place] if values is not None and place < len(values.value) else None
        there = objects.get(key)
        return None if there is None else there.value

    def _in_firewall(self, key: ObjectKey) -> Any:
        if self.chains is None:
            return None
        place = key if len(key) == CHAIN_KEY_LENGTH or key[0] == TABLE else key[:-1]
        there = self.chains.chains.get(place)
        if there is None:
            return None
        if place == key:
            return there.body
        if place not in self._counts:
            self._counts[place] = Counter(there.rules)
        return self._counts[place][str(key[-1])] or None


def read_look(wanted: Mapping[str, Iterable[ObjectKey]], namespaces: Iterable[Netns] = ()) -> Look:
    """Read the host, and those of *namespaces* that *wanted* names: space -> the keys that will be asked for.

    All kernel objects of these spaces are read; sysctls, leases and the firewall as far as keys ask for them. A
    namespace that is gone is left out. Raises HostError.
    """
    names = sorted({name for path in wanted if path != HOST for name in sysctls_of(wanted[path])})
    spaces = visit([one for one in namespaces if one.path in wanted], lambda: {**read_objects(), **read_globals(names)})
    if HOST not in wanted:
        return Look(spaces)
    keys = list(wanted[HOST])
    spaces[HOST] = {**read_objects(), **read_globals(sysctls_of(keys)), **read_stores(stores_of(keys))}
    return Look(spaces, read_chains() if any(key[0] in IN_FIREWALL for key in keys) else None)


def read_stores(stores: Iterable[Store]) -> State:
    """Return the leases of stores of host-local, (data dir, network)."""
    found: State = {}
    for data_dir, network in stores:
        for lease in read_leases(data_dir, network)[0]:
            found[LEASE, data_dir, network, lease.ip] = KernelObject(lease.text)
    return found


def unread(look: Look, key: ObjectKey) -> str:
    """Return why nothing is known of *key*, "" if it was read."""
    if key[0] not in IN_FIREWALL:
        return ""
    if look.chains is None:
        return "the firewall was not read"
    return look.chains.why_unread(key)


def is_default_rule(key: ObjectKey) -> bool:
    """Tell whether a routing rule is one that a namespace has from the beginning, and all its traffic needs."""
    return key[0] == "rule" and key[2] in _DEFAULT_RULES


def stores_of(keys: Iterable[ObjectKey]) -> List[Store]:
    """Return the stores of the leases among *keys*."""
    return list(dict.fromkeys((str(key[1]), str(key[2])) for key in keys if key[0] == LEASE))


def sysctls_of(keys: Iterable[ObjectKey]) -> List[str]:
    """Return the names of the global sysctls among *keys*."""
    return [str(key[1]) for key in keys if key[0] == GLOBAL]
