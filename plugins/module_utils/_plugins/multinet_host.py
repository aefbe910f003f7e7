# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""STATUS and GC of podwire-multinet: for all networks of its configuration, and for those of all pods."""

from __future__ import annotations

import os

from ..libcni import api, gojson
from ..libcni.errors import ERR_INVALID_NETWORK_CONFIG, ERR_PLUGIN_NOT_AVAILABLE, CNIError, JSONError, PluginError
from ..libcni.multi.errors import NetworksError
from ..libcni.multi.pod import Pod, pod_networks
from ..libcni.multi.records import NetworkRecord, PodRecord, open_record, record_paths
from ..libcni.multi.runner import PodRunner
from ..libcni.multi.sources import DefinitionFiles
from .multinet_delete import delete_recorded
from .multinet_pod import NAME, Settings, check_file, interfaces, joined, load_conf, note

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from ..libcni.skel import CmdArgs

    _Pairs = t.Set[t.Tuple[str, str]]
    _Errors = t.List[t.Tuple[str, CNIError]]


def _configured(args: CmdArgs, settings: Settings, errors: _Errors) -> list[NetworkRecord | None]:
    """Return the networks of every pod, their own first; None for one that cannot be read, which is an error."""
    conf = load_conf(args, settings)
    definitions = DefinitionFiles(settings.nad_dir, "default", settings.conf_dir, check_file)
    networks: list[NetworkRecord | None] = []
    for name in (conf.cluster_network, *(conf.default_networks if conf.cluster_network else ())):
        # Each as if it were the only one, so that the others do not depend on it.
        conf.cluster_network, conf.default_networks = name, []
        try:
            delegates = pod_networks(conf, Pod("", NAME), definitions).delegates
        except NetworksError as exc:
            errors.append((f"network {name}", PluginError(ERR_PLUGIN_NOT_AVAILABLE, exc.msg)))
            networks.append(None)
        else:
            networks += [NetworkRecord(each.network, "", each.data, each.is_list, each.name) for each in delegates]
    return networks


# ---- STATUS


def require_ready(args: CmdArgs) -> None:
    """Raise `PluginError` unless every network of the configuration is ready."""
    settings = Settings(args)
    conf = load_conf(args, settings)
    if conf.readiness_file and not os.path.exists(conf.readiness_file):
        text = f"readinessindicatorfile: {conf.readiness_file} is not there"
        raise PluginError(ERR_PLUGIN_NOT_AVAILABLE, text)
    runner = PodRunner(settings.path, settings.cni_dir, "", "")
    cni = api.CNIConfig(settings.path, settings.cni_dir)
    errors: _Errors = []
    for network in filter(None, _configured(args, settings, errors)):
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
    errors: _Errors = []
    kept, known, busy = _collect_records(args, settings, valid, errors)
    if busy:
        # What an ADD has got so far is in no list.
        note(f"no GC for the networks: an ADD or DEL of {busy} runs")
    configured = _configured(args, settings, errors)
    networks = {network.network: network for network in [*configured, *kept] if network}
    runner = PodRunner(settings.path, settings.cni_dir, "", "")
    cni = api.CNIConfig(settings.path, settings.cni_dir)
    first = configured[0].network if configured[0] else ""
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
    names = ("cni.dev/valid-attachments", "cni.dev/attachments")
    pairs = set()
    try:
        given = [pair for pair in gojson.struct_items(args.config, names) if pair[1] is not None]
        if not given:
            raise JSONError(f"{names[0]} is missing: without it, all would be deleted")
        for place, entries in given:
            gojson.as_list(entries, place)
        for at, item in enumerate(entries):
            texts = dict.fromkeys(("containerID", "ifname"), "")
            for key, value in gojson.struct_items(item, tuple(texts)):
                texts[key] = gojson.as_string(value, f"{place}/{at}/{key}")
            pairs.add((texts["containerID"], texts["ifname"]))
    except JSONError as exc:
        raise PluginError(ERR_INVALID_NETWORK_CONFIG, str(exc)) from exc
    return pairs


def _collect_records(
    args: CmdArgs, settings: Settings, valid: _Pairs, errors: _Errors
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
                    delete_recorded(file, settings, _home(record, settings))
                    continue
                except CNIError as exc:
                    errors.append((f"container {record.container_id}", exc))
            known[key] = {(network.network, network.ifname) for network in record.networks}
            kept += record.networks
    return kept, known, busy


def _home(record: PodRecord, settings: Settings) -> str:
    """Return the namespace of a record, "" if its path leads to another one by now, or nowhere."""
    try:
        macs = interfaces(record.netns)
    except CNIError:
        return ""
    runner = PodRunner(settings.path, settings.cni_dir, record.container_id, record.netns)
    for network in record.networks:
        if macs.get(network.ifname) in runner.cached_macs(network):
            return record.netns
    return ""
