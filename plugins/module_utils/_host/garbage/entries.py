# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Cache entries and leases as candidates for ``cni_gc``: attachments to detach, useless files, reserved addresses."""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from ...libcni.api import CNIConfig
from ...libcni.conf import NetworkConfigList
from ...libcni.errors import CNIError, MultiError, PluginError, PluginNotFoundError, VersionError
from ...libcni.invoke import find_in_path
from ...libcni.version import greater_than_or_equal_to
from .. import leases
from ..addresses import packed
from ..attachments.cache import OTHER, UNREADABLE, CacheContents, CachedAttachment, remove_files
from ..attachments.records import Attached
from ..attachments.verbs import Verbs
from ..binaries.types import types_of
from ..containers.live import LiveSet
from ..containers.sources import other_runtime
from ..errors import HostError
from ..executor import SafeExecutor
from ..leases import Lease
from ..secrets import one_line, scrub, secrets_of
from .outcome import ATTACHMENT, CACHE, LEASE, Candidate, GcPlan, GcSettings, when


class GcVerb:
    """GC for one network. ``send``: whether it is sent; ``reason``: why not; ``error``: of a run that failed."""

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
            # What is still cached is valid: dead attachments were detached before, with the configuration of their ADD,
            # and a DEL that failed must not be repeated with another one.
            cached = [one for one in cni.get_cached_attachments() if one.network == self.network]
            valid = self._valid | {(one.container_id, one.if_name) for one in cached if one.container_id}
            cni.gc_network_list(self._config, sorted(valid))
        except (CNIError, HostError) as error:
            known = secrets_of([plugin.network for plugin in self._config.plugins])
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
    causes = [one if isinstance(one, PluginError) else one.__cause__ for one in errors]
    return "\n".join(cause.stderr for cause in causes if isinstance(cause, PluginError) and cause.stderr)


def gc_verbs(
    configs: Sequence[NetworkConfigList], live: LiveSet, leased: Sequence[Tuple[str, str]], settings: GcSettings
) -> List[GcVerb]:
    """Return a GcVerb for each network that has GC. *leased*: (container ID, interface) of each lease."""
    valid = set(live.pairs())
    # All known interfaces of a container that is kept as a whole.
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
        return "the network sets disableGC"
    runtime = other_runtime(live)
    if runtime:
        return f"{runtime} and may use the network"
    return f"not every container is known: {live.why}" if live.why else ""


class Entries:
    """Makes the candidates of one cache directory."""

    def __init__(
        self, contents: CacheContents, live: LiveSet, plan: GcPlan, settings: GcSettings, verbs: Verbs
    ) -> None:
        self._entries = contents.entries
        self._live = live
        self._plan = plan
        self._settings = settings
        self._verbs = verbs
        self._missing: Dict[int, str] = {}
        self._booted = _boot_time()

    def attachments(self) -> List[Candidate]:
        """Return the attachments whose namespace is no longer the one of their ADD, and interrupted ones."""
        wanted = []
        for entry in self._entries:
            key, attached = entry.key, entry.attached
            if key is None or attached is None or entry.problem or not self._settings.wants(key.network):
                continue
            here = self._live.homes.of(entry)
            if here and not entry.interrupted:
                self._plan.kept[ATTACHMENT] += 1
                continue
            candidate = Candidate(
                ATTACHMENT,
                key.network,
                f"{key.container_id}/{key.ifname}",
                str(key),
                partial(self._detach, entry),
                container_id=key.container_id,
                ifname=key.ifname,
                addresses=entry.ips,
                since=entry.written,
                managed=entry.managed,
                cause="interrupted" if entry.interrupted else "",
                before={
                    "netns": attached.netns,
                    "args": dict(attached.args),
                    "capability_args": attached.capability_args,
                    "ips": entry.ips,
                },
                evidence=self._evidence(entry),
            )
            # The number of a process is given again: the live container of that ID is another one.
            candidate.reused = key.container_id.isdigit() and bool(self._live.homes.replaced(entry))
            missing = self._missing_plugin(entry)
            if here:
                candidate.leave("live", f"{here} still exists; the next cni_attach of it begins with a DEL")
            elif missing:
                candidate.leave("missing_plugin", missing)
            wanted.append(candidate)
        return wanted

    def _evidence(self, entry: CachedAttachment) -> List[str]:
        evidence = ["its ADD was interrupted"] if entry.interrupted else []
        if not self._live.homes.of(entry):
            evidence.append(self._live.homes.death_of(entry))
        if 0 < entry.written < self._booted:
            evidence.append(f"the host was rebooted later, at {when(self._booted)}")
        return evidence

    def _missing_plugin(self, entry: CachedAttachment) -> str:
        """Return which plugin that a DEL needs is missing, in words; "" if none is."""
        if entry.attached is None:
            return ""
        config = entry.attached.config
        # Attachments share what was loaded once.
        if id(config) not in self._missing:
            self._missing[id(config)] = _missing(types_of([p.network for p in config.plugins]), self._settings.bin_dirs)
        return self._missing[id(config)]

    def _detach(self, entry: CachedAttachment) -> None:
        attached = entry.attached
        if attached is not None:
            # Its namespace is gone, and the path may lead to that of another container.
            gone = Attached(attached.key, attached.config, "", attached.args, attached.capability_args, attached.result)
            self._verbs.delete(gone, entry.record, "", later=True)

    def files(self) -> List[Candidate]:
        """Return files that no DEL can use. If attachments are not in scope, also those from before the boot."""
        wanted = []
        for entry in self._entries:
            network = entry.key.network if entry.key else ""
            if not self._settings.wants(network):
                continue
            cause, message = entry.problem, entry.message
            if not cause and not entry.attached:
                continue
            if not cause:
                if ATTACHMENT in self._settings.scope or entry.written >= self._booted:
                    continue
                if self._live.homes.of(entry):
                    continue
                cause, message = (
                    "before_boot",
                    f"it is older than this boot ({when(self._booted)}), and {self._live.homes.death_of(entry)}",
                )
            wanted.append(self._file(entry, network, cause, message))
        return wanted

    def _file(self, entry: CachedAttachment, network: str, cause: str, message: str) -> Candidate:
        files = entry.files
        candidate = Candidate(
            CACHE,
            network,
            files[0].path,
            files[0].path,
            partial(remove_files, files),
            container_id=entry.key.container_id if entry.key else "",
            ifname=entry.key.ifname if entry.key else "",
            since=entry.written,
            managed=entry.managed,
            cause=cause,
            before={"files": [file.path for file in files]},
            evidence=[message],
        )
        here = self._live.homes.of(entry)
        if cause in (OTHER, UNREADABLE):
            candidate.leave(cause, "its purpose is not known")
        elif here:
            candidate.leave("live", f"{here} still exists; cni_attach with force: true replaces the entry")
        else:
            self._leave_if_named(candidate, entry)
        return candidate

    def _leave_if_named(self, candidate: Candidate, entry: CachedAttachment) -> None:
        """Leave a file that has a live container's ID in its name: there may be no other sign of its owner."""
        if entry.key is None:
            for container_id in self._live.ids():
                if f"-{container_id}-" in entry.name or entry.name.startswith(f".{container_id}:"):
                    candidate.leave("live", f"its name is that of an attachment of {container_id}, which is alive")
                    return


def _missing(types: Sequence[str], bin_dirs: Sequence[str]) -> str:
    for name in types:
        try:
            find_in_path(name, bin_dirs)
        except PluginNotFoundError:
            return f"its DEL needs the plugin {name}, which is not in {', '.join(bin_dirs)}"
    return ""


def _boot_time() -> float:
    try:
        with open("/proc/stat", encoding="ascii") as stream:
            for line in stream:
                if line.startswith("btime "):
                    return float(line.split()[1])
    except (OSError, ValueError) as error:
        raise HostError(f"cannot read /proc/stat: {error}", code="kernel_unreadable") from error
    return 0.0


def lease_candidates(
    found: Sequence[Lease], contents: CacheContents, live: LiveSet, plan: GcPlan, settings: GcSettings
) -> List[Candidate]:
    """Return the leases that do not clearly belong to a live container; the rest is counted as kept."""
    wanted = []
    for lease in found:
        if not settings.wants(lease.network):
            continue
        if lease.ifname and live.has(lease.container_id, lease.ifname):
            plan.kept[LEASE] += 1
        else:
            wanted.append(_lease_candidate(lease, contents, settings))
    return wanted


def _lease_candidate(lease: Lease, contents: CacheContents, settings: GcSettings) -> Candidate:
    owner = f"container {lease.container_id}, interface {lease.ifname}"
    if not lease.container_id:
        owner = "no container: the file is empty, as after a crash"
    elif not lease.ifname:
        owner = f"container {lease.container_id} (old format, without an interface)"
    if lease.container_id:
        managed = (lease.network, lease.container_id) in contents.made
    else:
        managed = (lease.network, packed(lease.ip)) in contents.made_addresses
    return Candidate(
        LEASE,
        lease.network,
        lease.ip,
        lease.path,
        # host-local holds its lock for milliseconds.
        partial(leases.remove_lease, lease, settings.timeout),
        container_id=lease.container_id,
        ifname=lease.ifname,
        addresses=[lease.ip],
        since=lease.status.st_mtime if lease.status else None,
        managed=managed,
        cause="" if lease.container_id else "empty",
        before={"container_id": lease.container_id, "ifname": lease.ifname},
        evidence=[f"{lease.path} reserves it for {owner}"],
    )
