# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""DEL of podwire-multinet: what the record of the ADD says, and what can be known without it.

Runtimes call DEL again without a namespace, without a prevResult and after everything is gone; all of these succeed.
A record stays until every network of it is deleted, so that a later DEL, or cni_gc, can finish the work.
"""

from __future__ import annotations

from ..libcni import cache
from ..libcni.errors import ERR_TRY_AGAIN_LATER, CacheError, CNIError, PluginError
from ..libcni.multi.records import NetworkRecord, open_record, record_path, record_paths
from ..libcni.multi.runner import DelNetworksError, PodRunner, delete_networks
from .multinet_pod import PATIENCE, PodCall, Settings, joined, note

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from ..libcni.multi.records import PodRecord, RecordFile
    from ..libcni.skel import CmdArgs


def delete(args: CmdArgs) -> None:
    """Delete the networks of a container. Raises `PluginError` if something of them may be left."""
    settings = Settings(args, tolerant=True)
    path = record_path(settings.cni_dir, args.container_id, args.ifname)
    file = _open(path, args)
    if file is None:
        _delete_unrecorded(args, settings)
    else:
        with file:
            _delete_file(file, args, settings)
    cache.remove_unfinished(path)


def _open(path: str, args: CmdArgs) -> RecordFile | None:
    """Return what `open_record` does. Raises `PluginError` if its ADD does not end."""
    try:
        return open_record(path, PATIENCE)
    except BlockingIOError:
        text = f"plugins of the ADD of {args.container_id} still run after {PATIENCE:g} s"
        raise PluginError(ERR_TRY_AGAIN_LATER, text) from None


def _delete_file(file: RecordFile, args: CmdArgs, settings: Settings) -> None:
    if file.record is not None:
        delete_recorded(file, settings, args.netns, lambda: _planned(args, settings))
        return
    note(f"{file.path}: {file.reason}")
    _delete_unrecorded(args, settings)
    file.remove()


def delete_recorded(
    file: RecordFile,
    settings: Settings,
    netns: str,
    planned: t.Callable[[], PodRecord | None] = lambda: None,
) -> None:
    """Delete the networks of a record in a namespace ("" for none), in reverse, and then the record.

    `planned`: returns the networks that the pod would get now; if the DEL of one fails as it was added, it is tried as
    it is now: its configuration may have been repaired. Raises `PluginError`.
    """
    record = file.record
    if record is None:
        return
    runner = PodRunner(settings.path, settings.cni_dir, record.container_id, netns)

    def delete_one(network: NetworkRecord) -> None:
        try:
            _run(runner, network)
        except CNIError:
            now = next((other for other in getattr(planned(), "networks", ()) if _is_repaired(network, other)), None)
            if now is None:
                raise
            _run(runner, now)

    try:
        delete_networks(record.networks, delete_one)
    except DelNetworksError as exc:
        networks = record.networks
        raise joined(
            [(f"network {networks[at].name} ({networks[at].ifname})", error) for at, error in exc.left]
        ) from exc
    file.remove()


def _run(runner: PodRunner, network: NetworkRecord) -> None:
    try:
        runner.delete(network)
    except OSError as exc:
        raise CNIError(f"{exc.filename or 'the kernel'}: {exc.strerror}") from exc


def _is_repaired(network: NetworkRecord, now: NetworkRecord) -> bool:
    return (now.network, now.ifname) == (network.network, network.ifname) and now.config != network.config


def _planned(args: CmdArgs, settings: Settings) -> PodRecord | None:
    try:
        return PodCall(args, settings).planned_as_far_as_possible()
    except CNIError:
        return None


def _delete_unrecorded(args: CmdArgs, settings: Settings) -> None:
    """Delete what libcni's cache knows of the container, then what a pod like this would get now.

    The container may never have been added, so that an error of the latter is none of this call. It may also have got
    its network before this plugin was put in front of it.
    """
    done: set[tuple[str, str]] = set()
    errors = []
    runner = PodRunner(settings.path, settings.cni_dir, args.container_id, args.netns)
    for network in reversed(_cached(args, settings)):
        done.add((network.network, network.ifname))
        try:
            _run(runner, network)
        except CNIError as exc:
            errors.append((f"network {network.name} ({network.ifname})", exc))
    planned = _planned(args, settings)
    for network in reversed(planned.networks if planned else []):
        if (network.network, network.ifname) not in done:
            try:
                _run(runner, network)
            except CNIError as exc:
                note(f"network {network.name} ({network.ifname}), which {args.container_id} may not have: {exc}")
    if errors:
        raise joined(errors)


def _cached(args: CmdArgs, settings: Settings) -> list[NetworkRecord]:
    """Return the container's networks in libcni's cache, except for those of its other records."""
    others = _of_other_records(args, settings)
    networks = []
    try:
        entries = cache.list_entries(settings.cni_dir, args.container_id)
    except CacheError as exc:
        note(str(exc))
        return []
    for entry in entries:
        if (entry.network_name, entry.if_name) not in others:
            network = NetworkRecord(entry.network_name, entry.if_name, entry.config, True)
            network.args = [(pair[0], pair[1]) for pair in entry.cni_args or ()]
            network.capability_args = entry.capability_args or {}
            networks.append(network)
    return networks


def _of_other_records(args: CmdArgs, settings: Settings) -> set[tuple[str, str]]:
    pairs: set[tuple[str, str]] = set()
    own = record_path(settings.cni_dir, args.container_id, args.ifname)
    for path in record_paths(settings.cni_dir):
        if path != own and path.startswith(own[: -len(args.ifname)]):
            file = _open(path, args)
            if file is not None:
                with file:
                    pairs.update((network.network, network.ifname) for network in getattr(file.record, "networks", ()))
    return pairs
