# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Telling plugins with GC which attachments are valid.

What a plugin then does is its own affair, and it believes the list: so it gets one only if every container is known.
That GC was sent counts as no change, since nobody says whether it changed anything.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from ...libcni.api import CNIConfig
from ...libcni.conf import NetworkConfigList
from ...libcni.errors import CNIError, PluginError, VersionError
from ...libcni.version import greater_than_or_equal_to
from ..containers.live import LiveSet
from ..containers.sources import other_runtime
from ..errors import HostError
from ..executor import SafeExecutor
from ..secrets import one_line, scrub, secrets_of
from .outcome import GcSettings


class GcVerb:
    """GC for one network. ``send``: whether it is sent; ``reason`` why not; ``error`` of a run that failed."""

    __slots__ = ("_config", "_settings", "_valid", "error", "network", "reason", "send")

    def __init__(
        self, config: NetworkConfigList, settings: GcSettings, valid: Set[Tuple[str, str]], reason: str
    ) -> None:
        self.network = config.name
        self.reason = reason
        self.send = not reason
        self.error: Optional[Dict[str, Any]] = None
        self._config = config
        self._settings = settings
        self._valid = valid

    def run(self) -> None:
        """Send GC to every plugin of the network."""
        cni = CNIConfig(
            self._settings.bin_dirs,
            cache_dir=self._settings.cache_dir,
            timeout=self._settings.timeout,
            executor=SafeExecutor(),
        )
        try:
            # What is still cached is valid: the dead were detached before, with what they were attached with, and a
            # DEL that failed is not to be repeated with another configuration.
            cached = [one for one in cni.get_cached_attachments() if one.network == self.network]
            valid = self._valid | {(one.container_id, one.if_name) for one in cached if one.container_id}
            cni.gc_network_list(self._config, sorted(valid))
        except (CNIError, HostError) as error:
            known = secrets_of([plugin.network for plugin in self._config.plugins])
            text = one_line(scrub(str(error), known))
            stderr = scrub(error.stderr, known) if isinstance(error, PluginError) else ""
            self.error = {"code": "gc_failed", "message": f"GC of {self.network} failed: {text}", "stderr": stderr}

    def row(self) -> Dict[str, Any]:
        """Return what the module returns of it."""
        action = "failed" if self.error else "sent" if self.send else "left"
        return {"network": self.network, "action": action, "reason": self.reason, "error": self.error}


def gc_verbs(
    configs: Sequence[NetworkConfigList], live: LiveSet, leased: Sequence[Tuple[str, str]], settings: GcSettings
) -> List[GcVerb]:
    """Return a Verb for each network that has GC. *leased*: (container id, interface) of what has an address."""
    valid = set(live.pairs())
    # Of a container that is kept as a whole, every interface that is known.
    valid.update(pair for pair in leased if pair[1] and live.owner(pair[0]))
    valid.update((container_id, "eth0") for container_id, names in settings.keep.items() if names is None)
    found = []
    for config in configs:
        if _has_gc(config) and settings.wants(config.name):
            found.append(GcVerb(config, settings, valid, _why_not(config, live)))
    return found


def _has_gc(config: NetworkConfigList) -> bool:
    try:
        return greater_than_or_equal_to(config.cni_version, "1.1.0")
    except VersionError:
        return False


def _why_not(config: NetworkConfigList, live: LiveSet) -> str:
    if config.disable_gc:
        return "the network has disableGC"
    runtime = other_runtime(live)
    if runtime:
        return f"{runtime} and may read the network"
    return f"not every container is known: {live.why}" if live.why else ""
