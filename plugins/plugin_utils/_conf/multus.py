# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The conflists of Multus and of podwire-multinet, made from the networks that they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

from ...module_utils._host.binaries.types import MULTINET
from ...module_utils._host.checks.multus import capabilities_of
from ...module_utils._host.json_text import parse_json
from ...module_utils._host.problems import Finding, errors_of, summary
from .networks import CheckedNetworks, no_files
from .validate import Checked, DataSource

# The filter has options for these, or takes them from the networks.
_OWN = ("type", "name", "cniVersion", "delegates", "clusterNetwork")
# containerd sends a pod's annotations to a plugin that declares this.
_ANNOTATIONS = "io.kubernetes.cri.pod-annotations"


def multus_network(
    networks: Any,
    settings: Mapping[str, Any],
    cluster_network: Optional[str],
    shim: bool,
    name: str,
    levels: Sequence[str],
) -> dict[str, Any]:
    """Return the conflist of Multus for entries of cni_networks, of which the first is the network of every pod.

    *settings* are further keys of Multus. With *cluster_network*, a name or path, the networks are not part of the
    conflist; their version and capabilities are. Raises ValueError with everything that is wrong.
    """
    delegates = _networks(networks, levels)
    if not delegates:
        raise ValueError("there is no network; Multus needs at least the network of every pod")
    _check_settings(settings)
    if shim and not cluster_network:
        raise ValueError("thick Multus runs no delegates of its shim; set cluster_network to the network of every pod")
    if cluster_network and not shim and not settings.get("kubeconfig"):
        raise ValueError(
            "cluster_network needs a cluster: without kubeconfig in settings every ADD fails; write it, or leave "
            "cluster_network out"
        )
    capabilities = _capabilities(delegates, settings)
    plugin: dict[str, Any] = {
        "type": "multus-shim" if shim else "multus",
        **({"capabilities": capabilities} if capabilities else {}),
        **{key: value for key, value in settings.items() if key != "capabilities"},
        **({"clusterNetwork": cluster_network} if cluster_network else {"delegates": delegates}),
    }
    return _conflist(name, plugin, delegates[0], levels)


def absent_networks(networks: Sequence[Any], name: str) -> list[dict[str, Any]]:
    """Return entries that remove the files of networks which Multus runs. *name* is that of its own."""
    names = [_name_of(entry) for entry in networks]
    return [{"name": other, "state": "absent"} for other in names if isinstance(other, str) and other != name]


def multinet_networks(
    networks: Sequence[Any], name: str, settings: Mapping[str, Any], levels: Sequence[str]
) -> list[dict[str, Any]]:
    """Return entries of cni_networks, the one of the network *name* with podwire-multinet in front of it.

    Name and file stay, so that the runtime uses the same network, and its running containers can be deleted. *settings*
    are further keys of the plugin. Raises ValueError with everything that is wrong.
    """
    _check_settings(settings)
    entries = list(networks)
    at = [index for index, entry in enumerate(entries) if _name_of(entry) == name]
    if len(at) != 1:
        raise ValueError(f"there {'is no network' if not at else 'are several networks'} {name!r} in the list")
    entry = entries[at[0]]
    inner = _networks([entry], levels)
    if not inner:
        raise ValueError(f"the network {name!r} would be removed, so nothing can be put in front of it")
    network = inner[0]
    plugin: dict[str, Any] = {
        "type": MULTINET,
        "capabilities": {_ANNOTATIONS: True, **_capabilities([network], settings)},
        **{key: value for key, value in settings.items() if key != "capabilities"},
        "delegates": [network],
    }
    kept = {key: value for key, value in entry.items() if key not in ("conflist", "content")}
    entries[at[0]] = {**kept, "name": name, "conflist": _conflist(name, plugin, network, levels)}
    return entries


def _conflist(name: str, plugin: dict[str, Any], first: Mapping[str, Any], levels: Sequence[str]) -> dict[str, Any]:
    """Return the conflist of a plugin that runs others, with the version of the *first* network."""
    version = first.get("cniVersion")
    conflist = {**({"cniVersion": version} if version else {}), "name": name, "plugins": [plugin]}
    _accept(Checked(DataSource(conflist), f"the configuration of {plugin['type']}", None, levels).problems)
    return conflist


def _name_of(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return None
    if entry.get("name"):
        return entry["name"]
    conflist = entry.get("conflist")
    if conflist is None and isinstance(entry.get("content"), str):
        try:
            conflist = parse_json(entry["content"])
        except ValueError:
            return None
    return conflist.get("name") if isinstance(conflist, dict) else None


def _check_settings(settings: Mapping[str, Any]) -> None:
    for key in settings:
        if key in _OWN:
            raise ValueError(f"settings: {key} is not one of them; it comes from the networks or from another option")


def _networks(networks: Any, levels: Sequence[str]) -> list[dict[str, Any]]:
    checked = CheckedNetworks(networks, list(levels), no_files, may_be_empty=True)
    _accept(checked.problems)
    return [parse_json(entry["content"]) for entry in checked.rendered if entry["state"] == "present"]


def _accept(problems: list[Finding]) -> None:
    if errors_of(problems):
        raise ValueError(summary(problems))


def _capabilities(networks: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> dict[str, bool]:
    """Return what the settings or any plugin of the networks declare: a runtime sends Multus nothing else."""
    given = settings.get("capabilities")
    capabilities = dict(given) if isinstance(given, dict) else {}
    capabilities.update(
        dict.fromkeys(capabilities_of([plugin for network in networks for plugin in network["plugins"]]), True)
    )
    return {key: capabilities[key] for key in sorted(capabilities)}
