# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""podwire-multinet: gives a pod the networks that its annotation asks for, without an API server.

Configuration: the keys of Multus' thin plugin, and `nadDir` and `podDir`, directories with
NetworkAttachmentDefinitions and with annotations. docs/podwire-multinet.md describes them.

ADD records all networks before it adds the first one. Whatever ends it, DEL removes what the record says, not what the
annotation says by then.
"""

from __future__ import annotations

import os
import time

from ..libcni.errors import ERR_INTERNAL, ERR_TRY_AGAIN_LATER, ERR_UNKNOWN_CONTAINER, CNIError, PluginError
from ..libcni.multi.records import RecordFile, create_record, open_record, record_path
from ..libcni.multi.runner import AddNetworksError, PodRunner, add_networks
from ..libcni.skel import plugin_main
from .multinet_pod import NAME, PATIENCE, PodCall, Settings, code_of, interfaces, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..libcni.multi.records import NetworkRecord, PodRecord
    from ..libcni.skel import CmdArgs
    from ..libcni.types import Result

ABOUT = f"{NAME}: the networks that a pod's annotation asks for"
ERR_ALREADY_ADDED = 101
# As Multus, for the readiness file.
_READY_WITHIN, _READY_PAUSE = 45.0, 0.1


# ---- ADD


def _add(args: CmdArgs) -> Result:
    settings = Settings(args)
    call = PodCall(args, settings)
    record = call.planned()
    _wait_until_ready(call.conf.readiness_file)
    _settle_old_record(call)
    _require_free_names(call, record)
    try:
        file = create_record(settings.cni_dir, record)
    except FileExistsError:
        raise _already(call, "another ADD has begun") from None
    with file:
        os.set_inheritable(file.lock, True)
        return _add_all(call, record, file)


def _add_all(call: PodCall, record: PodRecord, file: RecordFile) -> Result:
    runner = call.runner(keep=(file.lock,))
    version = call.args.cni_version

    def add(network: NetworkRecord) -> Result:
        try:
            result = runner.add(network)
        except OSError as exc:
            raise CNIError(f"{exc.filename or 'the kernel'}: {exc.strerror}") from exc
        # A result that the runtime cannot be given is found while everything can be taken back.
        return result.as_version(version) if network is record.networks[0] else result

    try:
        results = add_networks(record.networks, add, runner.delete)
    except AddNetworksError as exc:
        if not exc.left:
            file.remove()
        raise PluginError(code_of(exc.cause), f"pod {call.pod}: {exc}") from exc
    return results[0]


def _wait_until_ready(path: str) -> None:
    end = time.monotonic() + _READY_WITHIN
    while path and not os.path.exists(path):
        if time.monotonic() > end:
            raise PluginError(ERR_TRY_AGAIN_LATER, f"readinessindicatorfile: {path} is not there")
        time.sleep(_READY_PAUSE)


def _settle_old_record(call: PodCall) -> None:
    """Refuse a second ADD of a pod that has its interfaces; take away what an earlier life of the pod has left."""
    args = call.args
    try:
        file = open_record(record_path(call.settings.cni_dir, args.container_id, args.ifname), 0)
    except BlockingIOError:
        raise _already(call, "another ADD or DEL of it runs") from None
    if file is None:
        return
    with file:
        if file.record is None:
            raise PluginError(ERR_INTERNAL, f"{file.path}: {file.reason}", "remove the file, or DEL the pod first")
        existing = interfaces(args.netns)
        taken = [network.ifname for network in file.record.networks if network.ifname in existing]
        if taken:
            raise _already(call, f"{', '.join(taken)} exists")
        from .multinet_delete import delete_recorded

        # The namespace of the record is another one, and nothing in this one is to be touched.
        delete_recorded(file, call.settings, "")


def _require_free_names(call: PodCall, record: PodRecord) -> None:
    existing = interfaces(call.args.netns)
    for network in record.networks:
        if network.ifname in existing:
            raise call.refusal(f"network {network.name}: an interface {network.ifname} exists in {call.args.netns}")


def _already(call: PodCall, why: str) -> PluginError:
    args = call.args
    text = f"pod {call.pod}: container {args.container_id}, {args.ifname} is attached already: {why}"
    return PluginError(ERR_ALREADY_ADDED, text, "nothing was changed; DEL it first")


# ---- the other verbs


def _delete(args: CmdArgs) -> None:
    # Imported where it is needed, as below: an ADD has no use for it.
    from .multinet_delete import delete

    delete(args)


def _check(args: CmdArgs) -> None:
    settings = Settings(args)
    path = record_path(settings.cni_dir, args.container_id, args.ifname)
    try:
        file = open_record(path, PATIENCE)
    except BlockingIOError:
        raise PluginError(ERR_TRY_AGAIN_LATER, f"another call for {args.container_id} runs") from None
    if file is None:
        raise PluginError(ERR_UNKNOWN_CONTAINER, f"container {args.container_id} has no networks: {path} is not there")
    with file:
        if file.record is None:
            raise PluginError(ERR_INTERNAL, f"{path}: {file.reason}")
        runner = PodRunner(settings.path, settings.cni_dir, args.container_id, args.netns)
        errors = []
        for network in file.record.networks:
            try:
                runner.check(network)
            except CNIError as exc:
                errors.append((f"network {network.name} ({network.ifname})", exc))
    if errors:
        raise joined(errors)


def _gc(args: CmdArgs) -> None:
    from .multinet_host import collect

    collect(args)


def _status(args: CmdArgs) -> None:
    from .multinet_host import require_ready

    require_ready(args)


def main() -> None:
    """Be the plugin."""
    plugin_main(add=_add, check=_check, delete=_delete, gc=_gc, status=_status, about=ABOUT, error_version=True)


if __name__ == "__main__":
    main()
