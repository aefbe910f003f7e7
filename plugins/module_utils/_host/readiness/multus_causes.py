# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Multus waits for, or cannot do without, before it adds the first network of a pod."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator

from ..binaries.types import delegates_of, inner_plugins, named_plugins
from ..binaries.usable import Binaries
from ..kinds import text_of
from .obstacle import Obstacle
from .plugin_files import found_plugin, why_not_there

# Multus' own defaults.
_SOCKET_DIR, _SOCKET = "/run/multus", "multus.sock"


def multus_obstacles(plugin: Dict[str, Any], binaries: Binaries) -> Iterator[Obstacle]:
    """Yield the obstacles in the configuration *plugin* of Multus. *binaries* are those that the runtime finds."""
    ready = text_of(plugin, "readinessindicatorfile")
    if ready and not os.path.exists(ready):
        text = "Multus waits for the network of the cluster, and every ADD fails after 45 seconds"
        remedy = "start the daemon that writes the file, or correct readinessindicatorfile"
        yield Obstacle("no_readiness_file", text, f"{ready} does not exist", remedy)
    target = text_of(plugin, "clusternetwork")
    if text_of(plugin, "type") == "multus-shim":
        path = os.path.join(text_of(plugin, "daemonsocketdir") or _SOCKET_DIR, _SOCKET)
        if not os.path.exists(path):
            text = "the daemon of Multus, which does the work of its shim, does not run"
            yield Obstacle("no_multus_daemon", text, f"its socket {path} does not exist", "start it (DaemonSet)")
    elif target and not text_of(plugin, "kubeconfig"):
        text = "Multus asks a cluster for clusterNetwork, and no kubeconfig names one"
        yield Obstacle("no_kubeconfig", text, "kubeconfig is not set", "write it, or write delegates instead")
    if target.startswith("/") and not os.path.exists(target):
        text = "Multus does not find the network of every pod"
        remedy = "write the network there, or correct clusterNetwork"
        yield Obstacle("no_cluster_network", text, f"{target} does not exist", remedy)
    inner = [one for _place, network in delegates_of(plugin) for _at, one in inner_plugins(network)]
    names = [name for one in inner for _pointer, name in named_plugins(one)]
    directory = text_of(plugin, "bindir")
    places = [*([directory] if directory else []), *binaries.bin_dirs]
    for name in dict.fromkeys(names):
        if not found_plugin(name, places):
            yield why_not_there(name, places, [])
