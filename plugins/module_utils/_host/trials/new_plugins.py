# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Rehearses the networks of a host with new plugins before these go live, so that a broken release never does."""

from __future__ import annotations

import contextlib
from typing import Dict, List, Mapping, Sequence, Tuple

from ...libcni.conf import NetworkConfigList
from ..attachments.drift import Present
from ..attachments.request import Key, Networks
from ..attachments.store import Attached
from ..binaries.outcome import PluginsPlan
from ..confdir import network_files
from ..errors import HostError
from ..hostview import HostView
from ..struct import grouped
from .rehearsal import rehearse

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
    configs, networks = [], Networks(conf_dir, (), HostView())
    for file in network_files(conf_dir):
        with contextlib.suppress(HostError):
            configs += [] if file.error else [networks.load(file.network or "")]
    return configs


def _refuse_broken(
    plan: PluginsPlan, networks: Sequence[NetworkConfigList], bin_dirs: Sequence[str], staged: Mapping[str, str]
) -> None:
    failed, skipped = _rehearse(networks, bin_dirs, staged)
    for why, names in grouped((why, name) for name, why in skipped.items()).items():
        plan.warn("not_rehearsed", f"the new plugins were not rehearsed with {', '.join(names)}: {why}")
    # A network that fails with the old plugins, too, does not count against the new ones.
    old = _rehearse([network for network in networks if network.name in failed], bin_dirs, {}) if failed else ({}, {})
    broken = {name: why for name, why in failed.items() if not any(name in reasons for reasons in old)}
    if broken:
        each = "; ".join(f"{name}: {why}" for name, why in sorted(broken.items()))
        text = f"the new plugins would break networks that work with the old ones, so nothing was installed: {each}"
        raise HostError(text, code="rehearsal_failed", networks=sorted(broken))


def _rehearse(
    networks: Sequence[NetworkConfigList], bin_dirs: Sequence[str], staged: Mapping[str, str]
) -> Tuple[Dict[str, str], Dict[str, str]]:
    """Return the networks whose ADD fails, and those that cannot be rehearsed, each with the reason."""
    attachments = [Attached(Key(config.name, _CONTAINER, _IFNAME), config, "", [], {}, None) for config in networks]
    outcomes = rehearse([Present(attached, {}, None) for attached in attachments], bin_dirs, staged)
    errors = {key.network: error for key, error in outcomes.items() if isinstance(error, HostError)}
    failed = {name: error.msg for name, error in errors.items() if error.code != "not_rehearsed"}
    return failed, {name: error.msg for name, error in errors.items() if name not in failed}
