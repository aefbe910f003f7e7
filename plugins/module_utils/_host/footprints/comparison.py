# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drift: what of a footprint is no longer so, and additions that do harm."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from ...libcni.kernel import attributes_in
from ..addresses import is_in
from ..firewall.chains import CHAIN, TABLE
from ..firewall.order import misplaced
from ..kernel.objects import ROUTE, KernelObject, ObjectKey, follows
from .note import Footprint, Objects, Recorded
from .state import CHAIN_KEY_LENGTH, HOST, ON_INTERFACES, SWITCH, Look, unread

MISPLACED = "misplaced"
"""The present value of a rule that is there, but on the other side of rules that it stood before or behind."""
_MAIN_TABLE = 254
_MTU_WITHOUT_PORTS = 1500
_UNICAST = 1
# The place of the protocol in the header of a route, and RTA_GATEWAY.
_PROTOCOL, _GATEWAY = 5, 5


class Difference(NamedTuple):
    """One object that differs: where (``space``), which, its recorded value and the present one.

    ``was`` None: an object that the ADD removed, which has to go, or, if it is ``foreign``, that others have added.
    """

    space: str
    key: ObjectKey
    was: Any
    now: Any
    foreign: bool = False


class Compared(NamedTuple):
    """The ``differences`` of one footprint, and ``unread``: why something of it could not be compared.

    What is ``lost`` can be put back. ``additions`` are what others have added and does harm: they are never removed.
    """

    differences: List[Difference]
    unread: List[str]

    @property
    def lost(self) -> List[Difference]:
        return [one for one in self.differences if not one.foreign]

    @property
    def additions(self) -> List[Difference]:
        return [one for one in self.differences if one.foreign]


def wanted_keys(netns: str, footprints: Iterable[Footprint]) -> Dict[str, List[ObjectKey]]:
    """Return what ``state.read_look`` has to read for footprints whose container's namespace is *netns*."""
    found: Dict[str, List[ObjectKey]] = {HOST: []}
    for footprint in footprints:
        found[HOST].extend(footprint.host)
        if footprint.inside and netns:
            found.setdefault(netns, []).extend(footprint.inside)
    return found


def note_order(look: Look, order: Mapping[ObjectKey, Sequence[str]], footprints: Iterable[Footprint]) -> None:
    """Note in *look* which rules of *footprints* do not stand in the recorded *order*, so that it is drift."""
    ours: Dict[ObjectKey, List[str]] = {}
    for footprint in footprints:
        for key, there in footprint.host.items():
            if key[0] == CHAIN and len(key) > CHAIN_KEY_LENGTH and there.value:
                ours.setdefault(key[:CHAIN_KEY_LENGTH], []).append(str(key[-1]))
    chains = look.chains.chains if look.chains is not None else {}
    look.misplaced = frozenset(
        (*place, rule)
        for place, rules in ours.items()
        if place in chains
        for rule in misplaced(order.get(place, ()), rules, chains[place].rules)
    )


def compare(look: Look, footprint: Footprint, netns: str) -> Compared:
    """Compare one footprint with the present state. *netns* is the path of the container's namespace."""
    differences = list(_differences(look, HOST, footprint.host))
    if netns in look.spaces and netns != HOST:
        differences += _differences(look, netns, footprint.inside)
        differences += _harmful(look, netns, footprint.inside, default_routes=True)
        used = dict.fromkeys(str(key[1]) for key in footprint.host if key[0] == CHAIN and key[1] in look.switched)
        differences += [Difference(HOST, (SWITCH, backend), backend, look.switched[backend]) for backend in used]
    differences += _harmful(look, HOST, footprint.host, default_routes=False)
    reasons = dict.fromkeys(unread(look, key) for key in footprint.host)
    return Compared(differences, [reason for reason in reasons if reason])


def _differences(look: Look, space: str, objects: Objects) -> Iterator[Difference]:
    for key, wanted in objects.items():
        if unread(look, key):
            continue
        now = look.value(space, key)
        if wanted.value is None and key[0] == "route" and now is not None and not _is_same(wanted, look, space, key):
            # Others have added it meanwhile.
            continue
        if key[0] == "link" and now is not None and is_whole(wanted.value) and now["kind"] == "bridge":
            now = _without_followed_mtu(look, space, key, wanted.value, now)
        if _differs(space, key, wanted.value, now):
            yield Difference(space, key, wanted.value, now)
        elif key in look.misplaced:
            yield Difference(space, key, wanted.value, MISPLACED)


def _is_same(removed: Recorded, look: Look, space: str, key: ObjectKey) -> bool:
    """Tell whether a route is the one that the ADD removed: of the same protocol, through the same gateway."""
    present = look.found(space, key)
    raws = [one.raw for one in (removed, present) if one is not None and one.raw]
    return len({(raw[_PROTOCOL], attributes_in(raw, ROUTE.size).get(_GATEWAY)) for raw in raws}) < 2


def is_whole(link: Any) -> bool:
    """Tell whether the value of an interface has all settings: of one that the host had, only flags are recorded."""
    return link is not None and "mtu" in link


def _without_followed_mtu(look: Look, space: str, key: ObjectKey, was: Any, now: Any) -> Any:
    """Return a bridge's present value; its MTU is no difference while it is that of its ports, which it follows."""
    links = (there.value for other, there in look.spaces[space].items() if other[0] == "link")
    ports = [link["mtu"] for link in links if link["master"] == key[1]]
    return dict(now, mtu=was["mtu"]) if now["mtu"] == min(ports, default=_MTU_WITHOUT_PORTS) else now


def _differs(space: str, key: ObjectKey, was: Any, now: Any) -> bool:
    if was is None or now is None:
        return (was is None) != (now is None)
    if was == now:
        return False
    if key[0] == "link" and not is_whole(was):
        return bool(was["flags"] & ~now["flags"])
    if key[0] == "link":
        return any(was.get(name) != now.get(name) for name in was if not follows(space, name, was))
    if key[0] == CHAIN and len(key) > CHAIN_KEY_LENGTH:
        # More than recorded is somebody else's.
        return bool(now < was)
    # A table's comment cannot be changed, and nft 1.0 does not show it.
    return key[0] != TABLE


def _harmful(look: Look, space: str, objects: Objects, default_routes: bool) -> Iterator[Difference]:
    """Yield addresses with a recorded subnet that the interface did not have, and better default routes.

    On the host, an address that brings no subnet along, such as keepalived's, does no harm.
    """
    mine: Dict[str, List[Tuple[str, int]]] = {}
    best: Dict[Any, Tuple[int, str]] = {}
    for key, wanted in objects.items():
        if wanted.value is None:
            continue
        if key[0] == "addr":
            mine.setdefault(str(key[1]), []).append((str(key[2]), int(key[3])))
        elif key[0] == "route" and key[2] == _MAIN_TABLE and key[3] == "default/0" and key[6] == _UNICAST:
            metric = int(key[5])
            best[key[1]] = min(best.get(key[1], (metric, str(key[7]))), (metric, str(key[7])))
    if not mine and not best:
        return
    for key, there in look.spaces.get(space, {}).items():
        if key in objects or there.derived:
            continue
        if key[0] == "addr" and str(key[1]) in mine:
            added, prefix = str(key[2]), int(key[3])
            for net, length in mine[str(key[1])]:
                if is_in(net, added, prefix) or (space != HOST and is_in(added, net, length)):
                    yield Difference(space, key, None, there.value, True)
                    break
        elif default_routes and _is_better_default(key, best):
            yield Difference(space, key, None, there.value, True)


def _is_better_default(key: ObjectKey, best: Mapping[Any, Tuple[int, str]]) -> bool:
    if key[0] != "route" or key[3] != "default/0" or key[1] not in best:
        return False
    return key[2] == _MAIN_TABLE and key[6] == _UNICAST and int(key[5]) < best[key[1]][0]


def without_consequences(differences: Sequence[Difference]) -> List[Difference]:
    """Leave out what is gone only because something else is: what was on a lost interface, or in a lost chain."""
    lost = {(one.space, one.key[1]) for one in differences if one.key[0] == "link" and one.now is None}
    down = {(one.space, one.key[1]) for one in differences if one.key[0] == "link" and _is_down(one)}
    chains = {
        one.key for one in differences if one.key[0] == CHAIN and len(one.key) == CHAIN_KEY_LENGTH and one.now is None
    }
    # The kernel makes these routes with the address.
    addresses = {(one.space, one.key[2]) for one in differences if one.key[0] == "addr" and one.now is None}
    tables = {one.key[1:4] for one in differences if one.key[0] == TABLE and one.now is None}
    return [
        one
        for one in differences
        if not (
            (one.key[0] in ON_INTERFACES and one.key[0] != "link" and (one.space, one.key[1]) in lost)
            or (one.key[0] == "route" and (one.space, one.key[7]) in lost | down)
            or (one.key[0] == "route" and one.now is None and (one.space, one.was["src"]) in addresses)
            or (one.key[0] == CHAIN and len(one.key) > CHAIN_KEY_LENGTH and one.key[:CHAIN_KEY_LENGTH] in chains)
            or (one.key[0] in (CHAIN, "set", "map") and one.key[1:4] in tables)
        )
    ]


def _is_down(one: Difference) -> bool:
    if one.was is None or one.now is None:
        return False
    return bool(one.was["flags"] & 1) and not one.now["flags"] & 1


def as_object(one: Recorded) -> KernelObject:
    return KernelObject(one.value, one.raw, one.ifindex, one.peer)
