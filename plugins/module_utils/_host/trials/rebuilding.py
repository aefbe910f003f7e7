# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Footprints of attachments of this collection whose notes are damaged: found again by rehearsals of their ADDs."""

from __future__ import annotations

import hashlib
import os
from typing import Dict, List, Mapping, Sequence, Tuple, Union

from ...libcni.cache import cache_path
from ..attachments.drift import Rebuilt
from ..attachments.records import Attached
from ..attachments.request import Key
from ..errors import HostError
from ..footprints.note import Footprint, Objects
from ..footprints.object_kinds import HOST
from ..footprints.state import read_look, wanted_keys
from ..netns import Netns
from ..plan import workers_of
from .private_host import work_apart
from .rehearsal import Rehearsal, Rehearsed, order_rules

_TIMEOUT, _TOTAL = 20.0, 60.0


def rebuild(attachments: Sequence[Attached], cache_dir: str, bin_dirs: Sequence[str]) -> Rebuilt:
    """Rehearse the ADDs of *attachments*, and return their footprints and what they share.

    What is shared is complete if each network has one of them. Raises HostError if the host cannot be read.
    """
    rehearsed: Dict[Key, Rehearsed] = {}
    rebuilt = Rebuilt()
    waiting: List[Tuple[Attached, Rehearsal]] = []
    for attached in attachments:
        rehearsal = Rehearsal(attached, _written(cache_dir, attached.key), bin_dirs)
        if rehearsal.obstacle or rehearsal.partly:
            rebuilt.obstacles[attached.key] = rehearsal.obstacle or rehearsal.partly
        else:
            waiting.append((attached, rehearsal))
    works = [rehearsal.work for _attached, rehearsal in waiting]
    answers = work_apart(works, bin_dirs, workers_of(), _TIMEOUT, _TOTAL) if works else []
    for (attached, rehearsal), answer in zip(waiting, answers):
        try:
            rehearsed[attached.key] = rehearsal.understand(_answer(answer))
        except HostError as error:
            rebuilt.obstacles[attached.key] = error.msg
    _settle({attached.key: attached for attached in attachments}, rehearsed, rebuilt)
    return rebuilt


def _answer(answer: Union[bytes, HostError]) -> bytes:
    if isinstance(answer, HostError):
        raise HostError(answer.msg or f"there was no time to rehearse it within {_TOTAL:g} s") from answer
    return answer


def _written(cache_dir: str, key: Key) -> float:
    """Return when the cache entry of an attachment was written, 0 if it is gone."""
    try:
        return os.stat(cache_path(cache_dir, *key)).st_mtime
    except OSError:
        return 0.0


def _settle(there: Mapping[Key, Attached], rehearsed: Mapping[Key, Rehearsed], rebuilt: Rebuilt) -> None:
    """Give the interfaces of the rehearsals their present indexes."""
    if not rehearsed:
        return
    wanted: Dict[str, List[Tuple[Union[str, int], ...]]] = {}
    for key, one in rehearsed.items():
        everything = [Footprint(objects, one.inside) for objects in one.owned.values()] or [Footprint({}, one.inside)]
        for space, keys in wanted_keys(there[key].netns, everything).items():
            wanted.setdefault(space, []).extend(keys)
    look = read_look(wanted, {one.netns: Netns(one.netns) for one in there.values()}.values())
    shared: Dict[str, Objects] = {}
    for key, one in rehearsed.items():
        netns = there[key].netns
        own = one.settled(one.owned.get(tuple(key), {}), look, HOST)
        rebuilt.attachments[key] = Footprint(own, one.settled(one.inside, look, netns))
        for owner, objects in one.owned.items():
            if len(owner) < 2:
                shared.setdefault("".join(owner), {}).update(one.settled(objects, look, HOST))
    digests = {
        key.network: hashlib.sha256(attached.config.expanded_bytes()).hexdigest() for key, attached in there.items()
    }
    rebuilt.shared = {name: Footprint(objects, config=digests.get(name, "")) for name, objects in shared.items()}
    rebuilt.order = order_rules(look, [one.order for one in rehearsed.values()])
