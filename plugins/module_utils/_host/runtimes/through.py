# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The networks that containers get through Multus: those of every pod, as far as this host can tell."""

from __future__ import annotations

import os
from typing import Any, Collection, Container, Dict, List, Mapping, Optional, Sequence

from ..binaries.types import MULTINET, delegates_of
from ..confdir import ConfFile
from ..errors import HostError
from ..hostview import HostView
from ..kinds import member_of, text_of

# The plugins' own defaults.
_CONF_DIR, _CONF_DIR_OF_MULTINET = "/etc/cni/multus/net.d", "/etc/cni/multinet/net.d"


def networks_through(file: ConfFile, conf_dir: str, files: Sequence[ConfFile], view: HostView) -> List[Dict[str, Any]]:
    """Return the networks that *file*, whose first plugin is Multus, gives every pod.

    Each is ``{interface, network, file, source}``: ``interface`` is None for the first one, whose name the runtime
    chooses, and ``network`` is None if it is not known here, because its definition is in the cluster. *files* are what
    *conf_dir* will have; *view* has those of other directories.
    """
    plugin = file.plugins[0]
    target = text_of(plugin, "clusternetwork")
    if not target:
        rows = [
            {"network": text_of(network, "name") or None, "file": file.path, "source": "delegates"}
            for _place, network in delegates_of(plugin)
        ]
    else:
        others = member_of(plugin, "defaultnetworks")
        names = [target, *(others if isinstance(others, list) else [])]
        where = requested_from(plugin)
        rows = [_named(str(name), where, conf_dir, files, view) for name in names]
    return [{"interface": f"net{index}" if index else None, **row} for index, row in enumerate(rows)]


def requested_from(plugin: Mapping[str, Any]) -> str:
    """Return the directory of the networks that pods may request from *plugin*, which is Multus."""
    default = _CONF_DIR_OF_MULTINET if text_of(plugin, "type") == MULTINET else _CONF_DIR
    return text_of(plugin, "confdir") or default


def _named(name: str, where: str, conf_dir: str, files: Sequence[ConfFile], view: HostView) -> Dict[str, Any]:
    """Return the network of clusterNetwork or defaultNetworks; a definition in the cluster comes before a file."""
    if "/" in name:
        file = network_file(name, conf_dir, files, view)
    else:
        candidates = _files(where, conf_dir, files, view)
        file = next((candidate for candidate in candidates if candidate.network == name), None)
    if file is None or file.error:
        return {"network": None, "file": None, "source": name}
    return {"network": file.network, "file": file.path, "source": name}


def network_file(path: str, conf_dir: str, files: Sequence[ConfFile], view: HostView) -> Optional[ConfFile]:
    """Return the file at *path*, which for a directory is its first one; None if there is none.

    *files* are those that *conf_dir* will have, *view* has those of other directories.
    """
    is_directory = os.path.isdir(path)
    present = _files(path if is_directory else os.path.dirname(path), conf_dir, files, view)
    return next((file for file in present if is_directory or file.name == os.path.basename(path)), None)


def _files(directory: str, conf_dir: str, files: Sequence[ConfFile], view: HostView) -> Sequence[ConfFile]:
    if os.path.normpath(directory) == os.path.normpath(conf_dir):
        return files
    try:
        return view.conf_files(os.path.normpath(directory))
    except HostError:
        return []


def runs_only_others(
    plugin: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    networks: Collection[str],
    managed: Container[str],
    conf_dir: str,
) -> bool:
    """Tell whether the Multus of *plugin* certainly runs none of *networks*, which are in *conf_dir*.

    *rows* are the networks that it gives every pod. It runs others by name, from its own confDir; a shim's daemon has a
    configuration of its own.
    """
    by_name = text_of(plugin, "type") == "multus-shim" or os.path.normpath(text_of(plugin, "confdir")) == conf_dir
    others = [row["network"] and row["network"] not in networks and row["file"] not in managed for row in rows]
    return bool(others) and all(others) and not by_name


def in_words(networks: Sequence[Dict[str, Any]]) -> str:
    """Return the networks as a sentence, without its full stop: ``Multus gives every pod pods, net1: storage``."""
    named = []
    for row in networks:
        name = row["network"] or f"{row['source']} of the cluster"
        named.append(f"{row['interface']}: {name}" if row["interface"] else name)
    return f"Multus gives every pod {', '.join(named)}" if named else ""
