# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where several configurations of the IPAM plugin host-local keep their reservations in one directory."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Sequence, Tuple

from ..problems import problem
from .uses import Pool, Uses
from .view import ConfView

# A configuration: the path of its file, and the pointer of its ipam object.
Place = Tuple[str, str]


def store_problems(view: ConfView, uses: Sequence[Uses]) -> Iterator[Dict[str, Any]]:
    """Yield what is wrong with the directories of host-local. A network's directory is ``dataDir/NETWORK``."""
    stores: Dict[str, Dict[Place, List[Pool]]] = {}
    for pool in (pool for use in uses for pool in use.pools):
        place = (pool.path, pool.pointer.partition("/ipam")[0] + "/ipam")
        stores.setdefault(pool.store, {}).setdefault(place, []).append(pool)
    for store, found in sorted(stores.items()):
        yield from _shared(view, store, found)
        outer = next((other for other in stores if store.startswith(other + "/")), None)
        if outer is not None:
            yield _nested(view, store, found, outer, stores[outer])


def _shared(view: ConfView, store: str, found: Dict[Place, List[Pool]]) -> Iterator[Dict[str, Any]]:
    (first, theirs), *others = found.items()
    for place, mine in others:
        same_list = place[0] == first[0]
        if not same_list and _ranges(mine) == _ranges(theirs):
            # One network in two files: that is what duplicate_name says.
            continue
        if same_list and any(_overlap(one, other) for one in mine for other in theirs):
            effect = "the second of them fails (duplicate allocation is not allowed)"
        else:
            effect = "what one of them reserves or frees counts for the other"
        text = "host-local keeps the reservations of this and of %s in one directory, %s: %s; %s"
        other = first[1] if same_list else "%s, %s" % first
        message = text % (other, store, effect, "give one of them another 'dataDir'")
        yield problem(view.level(mine[0].file, theirs[0].file), "shared_store", message, *place)


def _nested(
    view: ConfView, store: str, found: Dict[Place, List[Pool]], outer: str, around: Dict[Place, List[Pool]]
) -> Dict[str, Any]:
    place, mine = next(iter(found.items()))
    theirs = next(iter(around.values()))[0]
    text = (
        "host-local's directory for this network, %s, is inside of that of the network %r, %s, where it does not "
        "belong; give this network another 'dataDir'"
    )
    message = text % (store, theirs.file.network, outer)
    return problem(view.level(mine[0].file, theirs.file), "shared_store", message, *place)


def _ranges(pools: Sequence[Pool]) -> List[Tuple[int, int, int]]:
    return [(pool.range.family, pool.range.start, pool.range.end) for pool in pools]


def _overlap(one: Pool, other: Pool) -> bool:
    return (
        one.range.family == other.range.family
        and one.range.start <= other.range.end
        and other.range.start <= one.range.end
    )
