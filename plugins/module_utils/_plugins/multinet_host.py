# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""STATUS and GC of podwire-multinet: for all networks of its configuration, and for those of all pods."""

from __future__ import annotations

import os

from ..libcni import api, gojson
from ..libcni.errors import (
    ERR_INVALID_NETWORK_CONFIG,
    ERR_PLUGIN_NOT_AVAILABLE,
    CNIError,
    JSONError,
    PluginError,
)
from ..libcni.multi.pod import Pod, pod_networks
from ..libcni.multi.records import NetworkRecord, RecordFile, open_record, record_paths
from ..libcni.multi.runner import PodRunner
from ..libcni.multi.sources import DefinitionFiles
from .multinet_delete import delete_recorded
from .multinet_pod import NAME, Settings, check_file, interfaces, joined, load_conf, note

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from ..libcni.skel import CmdArgs

    _Pairs = t.Set[t.Tuple[str, str]]


def _configured(args: CmdArgs, settings: Settings) -> list[NetworkRecord]:
    """Return the networks of every pod. Raises `CNIError`."""
    conf = load_conf(args, settings)
    # Pods of a system namespace get no default networks; this one is none.
    definitions = DefinitionFiles(settings.nad_dir, "default", settings.conf_dir, check_file)
    networks = pod_networks(conf, Pod("", NAME), definitions).delegates
    return [NetworkRecord(network.network, "", network.data, network.is_list, network.name) for network in networks]


# ---- STATUS


def require_ready(args: CmdArgs) -> None:
    """Raise `PluginError` unless every network of the configuration is ready."""
    settings = Settings(args)
    conf = load_conf(args, settings)
    if conf.readiness_file and not os.path.exists(conf.readiness_file):
        text = f"readinessindicatorfile: {conf.readiness_file} is not there"
        raise PluginError(ERR_PLUGIN_NOT_AVAILABLE, text)
    try:
        networks = _configured(args, settings)
    except CNIError as exc:
        explain = getattr(exc, "explain", None)
        raise PluginError(ERR_PLUGIN_NOT_AVAILABLE, explain() if explain else str(exc)) from exc
    runner = PodRunner(settings.path, settings.cni_dir, "", "")
    cni = api.CNIConfig(settings.path, settings.cni_dir)
    errors = []
    for network in networks:
        what = f"network {network.name}"
        try:
            runner.require(network)
            cni.get_status_network_list(runner.conflist(network))
        except PluginError as exc:
            errors.append((what, exc))
        except CNIError as exc:
            errors.append((what, PluginError(ERR_PLUGIN_NOT_AVAILABLE, str(exc))))
    if errors:
        raise joined(errors)


# ---- GC


def collect(args: CmdArgs) -> None:
    """Delete the recorded networks of containers that are not valid, and send GC to every network.

    Raises `PluginError` after everything has been tried.
    """
    settings = Settings(args)
    valid = _valid(args)
    errors: list[tuple[str, CNIError]] = []
    kept, known, busy = _collect_records(args, settings, valid, errors)
    if busy:
        # What an ADD has got so far is in no list.
        note(f"no GC for the networks: an ADD or DEL of {busy} runs")
    networks = {network.network: network for network in [*_configured(args, settings), *kept]}
    runner = PodRunner(settings.path, settings.cni_dir, "", "")
    cni = api.CNIConfig(settings.path, settings.cni_dir)
    first = next(iter(networks), "")
    for name, network in networks.items() if not busy else ():
        if name != first and not all(pair in known for pair in valid):
            note(f"no GC for the network {name}: not every valid container has a record in {settings.cni_dir}")
            continue
        pairs = valid | {(pod, ifname) for (pod, _own), names in known.items() for net, ifname in names if net == name}
        try:
            cni.gc_network_list(runner.conflist(network), sorted(pairs))
        except CNIError as exc:
            errors.append((f"network {name}", exc))
    if errors:
        raise joined(errors)


def _valid(args: CmdArgs) -> _Pairs:
    """Return the valid attachments: (container ID, interface). Raises `PluginError` if there is no list of them."""
    entries: t.Any = None
    try:
        for _key, value in gojson.struct_items(args.config, ("cni.dev/valid-attachments", "cni.dev/attachments")):
            entries = gojson.as_list(value, _key) if value is not None else entries
        if entries is None:
            raise JSONError("cni.dev/valid-attachments is missing: without it, all would be deleted")
        pairs = set()
        for at, item in enumerate(entries):
            texts = dict.fromkeys(("containerID", "ifname"), "")
            for key, value in gojson.struct_items(item, tuple(texts)):
                texts[key] = gojson.as_string(value, f"cni.dev/valid-attachments/{at}/{key}")
            pairs.add((texts["containerID"], texts["ifname"]))
    except JSONError as exc:
        raise PluginError(ERR_INVALID_NETWORK_CONFIG, str(exc)) from exc
    return pairs


def _collect_records(
    args: CmdArgs, settings: Settings, valid: _Pairs, errors: list[tuple[str, CNIError]]
) -> tuple[list[NetworkRecord], dict[tuple[str, str], _Pairs], str]:
    """Delete what is not valid.

    Return the networks that stay, the (network, interface) pairs of each container, and a container that has a call of
    its own now, "" for none.
    """
    own = str(args.config.get("name"))
    kept: list[NetworkRecord] = []
    known: dict[tuple[str, str], _Pairs] = {}
    busy = ""
    for path in record_paths(settings.cni_dir):
        try:
            file = open_record(path, 0)
        except BlockingIOError:
            busy = os.path.basename(path).partition(":")[0]
            continue
        except CNIError as exc:
            errors.append((path, exc))
            continue
        if file is None:
            continue
        with file:
            record = file.record
            if record is None:
                errors.append((path, CNIError(file.reason)))
                continue
            key = (record.container_id, record.ifname)
            if record.network == own and key not in valid:
                try:
                    delete_recorded(file, settings, _home(file, settings))
                    continue
                except CNIError as exc:
                    errors.append((f"container {record.container_id}", exc))
            known[key] = {(network.network, network.ifname) for network in record.networks}
            kept += record.networks
    return kept, known, busy


def _home(file: RecordFile, settings: Settings) -> str:
    """Return the namespace of a record, "" if its path leads to another one by now, or nowhere."""
    record = file.record
    if record is None:
        return ""
    try:
        macs = interfaces(record.netns)
    except CNIError:
        return ""
    runner = PodRunner(settings.path, settings.cni_dir, record.container_id, record.netns)
    for network in record.networks:
        if macs.get(network.ifname) in runner.cached_macs(network):
            return record.netns
    return ""
