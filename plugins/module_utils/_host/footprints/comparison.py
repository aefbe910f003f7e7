# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drift: what of a footprint is no longer so, and additions that do harm."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from ..addresses import packed
from ..firewall.chains import CHAIN, TABLE
from ..firewall.restoration import misplaced
from ..kernel.objects import KernelObject, ObjectKey, follows
from .note import Footprint, Objects, Recorded
from .state import CHAIN_KEY_LENGTH, HOST, ON_INTERFACES, SWITCH, Look, unread

MISPLACED = "misplaced"
"""The present value of a rule that is there, but on the other side of rules that it stood before or behind."""
_MAIN_TABLE = 254
_MTU_WITHOUT_PORTS = 1500
_UNICAST = 1


class Difference(NamedTuple):
    """One object that differs: where (``space``), which, its recorded value and the present one.

    ``was`` None: an addition that does harm, or an object that the ADD removed; it has to go.
    """

    space: str
    key: ObjectKey
    was: Any
    now: Any


class Compared(NamedTuple):
    """The ``differences`` of one footprint, and ``unread``: why something of it could not be compared."""

    differences: List[Difference]
    unread: List[str]


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
        if key[0] == "link" and now is not None and wanted.value is not None and now["kind"] == "bridge":
            now = _without_followed_mtu(look, space, key, wanted.value, now)
        if _differs(space, key, wanted.value, now):
            yield Difference(space, key, wanted.value, now)
        elif key in look.misplaced:
            yield Difference(space, key, wanted.value, MISPLACED)


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
    if key[0] == "link":
        return any(was.get(name) != now.get(name) for name in was if not follows(space, name, was))
    if key[0] == CHAIN and len(key) > CHAIN_KEY_LENGTH:
        # More than recorded is somebody else's.
        return bool(now < was)
    # A table's comment cannot be changed, and nft 1.0 does not show it.
    return key[0] != TABLE


def _harmful(look: Look, space: str, objects: Objects, default_routes: bool) -> Iterator[Difference]:
    """Yield addresses in a recorded subnet that the interface did not have, and better default routes."""
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
            if any(_is_in(str(key[2]), net, length) for net, length in mine[str(key[1])]):
                yield Difference(space, key, None, there.value)
        elif default_routes and _is_better_default(key, best):
            yield Difference(space, key, None, there.value)


def _is_better_default(key: ObjectKey, best: Mapping[Any, Tuple[int, str]]) -> bool:
    if key[0] != "route" or key[3] != "default/0" or key[1] not in best:
        return False
    return key[2] == _MAIN_TABLE and key[6] == _UNICAST and int(key[5]) < best[key[1]][0]


def _is_in(address: str, network: str, length: int) -> bool:
    """Tell whether an address is in the subnet of another one. A subnet of one address has no second."""
    one, other = packed(address), packed(network)
    bits = 8 * (len(other) - 1) - length
    if one[:1] != other[:1] or not other or bits <= 0:
        return False
    return int.from_bytes(one[1:], "big") >> bits == int.from_bytes(other[1:], "big") >> bits


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
