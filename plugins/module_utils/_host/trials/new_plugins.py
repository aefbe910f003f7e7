# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Rehearses the networks of a host with new plugins before these go live, so that a broken release never does."""

from __future__ import annotations

from typing import Dict, List, Mapping, Sequence, Tuple

from ...libcni.conf import NetworkConfigList
from ..attachments.records import Attached
from ..attachments.request import Key
from ..binaries.outcome import PluginsPlan
from ..errors import HostError
from ..plan import workers_of
from .planner import load, network_files
from .private_host import work_apart
from .rehearsal import Rehearsal

_TIMEOUT, _TOTAL = 20.0, 60.0
_CONTAINER, _IFNAME = "podwire-rehearsal", "eth0"


def rehearse_before(plan: PluginsPlan, conf_dir: str, bin_dirs: Sequence[str]) -> None:
    """Let a plan stop, when its binaries are staged and none is live, if they would break a network of *conf_dir*.

    The error is HostError ``rehearsal_failed``.
    """
    before = plan.batch.preflight

    def preflight() -> None:
        before()
        staged = {change.name: change.staged.path for change in plan.batch.changes if change.staged is not None}
        if staged and plan.store.bin_dir in bin_dirs:
            _refuse_broken(plan, _networks(conf_dir), bin_dirs, staged)

    plan.batch.preflight = preflight


def _networks(conf_dir: str) -> List[NetworkConfigList]:
    """Return the networks that can be loaded. What cannot is no matter of the plugins."""
    found = []
    for file in network_files(conf_dir):
        try:
            found.append(load(file))
        except HostError:
            continue
    return found


def _refuse_broken(
    plan: PluginsPlan, networks: Sequence[NetworkConfigList], bin_dirs: Sequence[str], staged: Mapping[str, str]
) -> None:
    failed, skipped = _rehearse(networks, bin_dirs, staged)
    for why, names in _by_reason(skipped).items():
        text = f"the new plugins were not rehearsed with {', '.join(names)}: {why}"
        plan.warn("not_rehearsed", text)
    # A network that fails with the old plugins, too, does not count against the new ones.
    old = _rehearse([one for one in networks if one.name in failed], bin_dirs, {}) if failed else ({}, {})
    broken = {name: why for name, why in failed.items() if not any(name in there for there in old)}
    if broken:
        each = "; ".join(f"{name}: {why}" for name, why in sorted(broken.items()))
        raise HostError(
            f"the new plugins would break networks that work with the old ones, so nothing was installed: {each}",
            code="rehearsal_failed",
            networks=sorted(broken),
        )


def _rehearse(
    networks: Sequence[NetworkConfigList], bin_dirs: Sequence[str], staged: Mapping[str, str]
) -> Tuple[Dict[str, str], Dict[str, str]]:
    """Return the networks whose ADD fails, and those that cannot be rehearsed, each with the reason."""
    failed: Dict[str, str] = {}
    skipped: Dict[str, str] = {}
    waiting: Dict[str, Rehearsal] = {}
    for config in networks:
        attached = Attached(Key(config.name, _CONTAINER, _IFNAME), config, "", [], {}, None)
        rehearsal = Rehearsal(attached, None, bin_dirs, staged)
        if rehearsal.obstacle:
            skipped[config.name] = rehearsal.obstacle
        else:
            waiting[config.name] = rehearsal
    works = [rehearsal.work for rehearsal in waiting.values()]
    answers = work_apart(works, bin_dirs, workers_of(), _TIMEOUT, _TOTAL) if works else []
    for name, answer in zip(waiting, answers):
        if isinstance(answer, HostError):
            late = answer.code == "too_many"
            place = skipped if late else failed
            place[name] = f"there was no time for it within {_TOTAL:g} s" if late else answer.msg
    return failed, skipped


def _by_reason(skipped: Mapping[str, str]) -> Dict[str, List[str]]:
    found: Dict[str, List[str]] = {}
    for name, why in skipped.items():
        found.setdefault(why, []).append(name)
    return found
