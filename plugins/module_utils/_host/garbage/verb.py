# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""GC of the plugins: networks of CNI 1.1.0 or later tell theirs which attachments are valid."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from ...libcni.api import CNIConfig
from ...libcni.conf import NetworkConfigList
from ...libcni.errors import CNIError, MultiError, PluginError
from ...libcni.version import is_at_least
from ..containers.live import LiveSet
from ..containers.sources import other_runtime
from ..errors import HostError
from ..executor import SafeExecutor
from ..secrets import one_line, scrub, secrets_of
from ..struct import struct
from .candidate import GcSettings


@struct
class GcVerb:
    """GC for one network. ``send``: whether it is sent; ``reason``: why not; ``error``: of a run that failed."""

    config: NetworkConfigList
    settings: GcSettings
    valid: Set[Tuple[str, str]]
    reason: str
    error: Optional[Dict[str, Any]] = None

    @property
    def network(self) -> str:
        return self.config.name

    @property
    def send(self) -> bool:
        return not self.reason

    def run(self) -> None:
        """Send GC to every plugin of the network."""
        settings = self.settings
        cni = CNIConfig(settings.bin_dirs, settings.cache_dir, settings.timeout, executor=SafeExecutor())
        try:
            # What is still cached is valid: a DEL that failed must not be repeated with another configuration.
            cached = [entry for entry in cni.get_cached_attachments() if entry.network == self.network]
            valid = self.valid | {(entry.container_id, entry.if_name) for entry in cached if entry.container_id}
            cni.gc_network_list(self.config, sorted(valid))
        except (CNIError, HostError) as error:
            known = secrets_of([plugin.network for plugin in self.config.plugins])
            text = one_line(scrub(str(error), known))
            message = f"GC of {self.network} failed: {text}"
            self.error = {"code": "gc_failed", "message": message, "stderr": scrub(_stderr(error), known)}

    def row(self) -> Dict[str, Any]:
        """Return the module's result for it."""
        action = "failed" if self.error else "sent" if self.send else "left"
        return {"network": self.network, "action": action, "reason": self.reason, "error": self.error}


def _stderr(error: Exception) -> str:
    """Return what the plugins wrote to stderr. libcni reports the errors of all of them at once."""
    errors = error.errors if isinstance(error, MultiError) else [error]
    causes = [failure if isinstance(failure, PluginError) else failure.__cause__ for failure in errors]
    return "\n".join(cause.stderr for cause in causes if isinstance(cause, PluginError) and cause.stderr)


def gc_verbs(
    configs: Sequence[NetworkConfigList], live: LiveSet, leased: Sequence[Tuple[str, str]], settings: GcSettings
) -> List[GcVerb]:
    """Return a GcVerb for each network that has GC. *leased*: (container ID, interface) of each lease."""
    valid = set(live.pairs())
    # All known interfaces of a container that is kept as a whole.
    valid.update(pair for pair in leased if pair[1] and live.owner(pair[0]))
    valid.update((container_id, "eth0") for container_id, names in (settings.keep or {}).items() if names is None)
    verbs = []
    for config in configs:
        if is_at_least(config.cni_version, "1.1.0") and settings.wants(config.name):
            verbs.append(GcVerb(config, settings, valid, _why_not(config, live)))
    return verbs


def _why_not(config: NetworkConfigList, live: LiveSet) -> str:
    if config.disable_gc:
        return "the network sets disableGC"
    runtime = other_runtime(live)
    if runtime:
        return f"{runtime} and may use the network"
    return f"not every container is known: {live.why}" if live.why else ""
