# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which networks of a host can be tried without harm, and why others cannot."""

from __future__ import annotations

import os
import stat
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ...libcni.conf import NetworkConfigList, conf_list_from_conf, network_conf_from_file, network_plugin_conf_from_file
from ...libcni.errors import CNIError
from ..binaries.types import member_of, object_of, text_of, types_of
from ..confdir import ConfFile, paths_of, scan_conf_dir
from ..errors import HostError
from ..secrets import mask_text
from ..trust import check_trusted

_DHCP_SOCKET = "/run/cni/dhcp.sock"
# What needs nothing but a namespace and what is in its configuration.
_REFERENCE = {
    "bandwidth",
    "bridge",
    "dhcp",
    "dummy",
    "firewall",
    "host-device",
    "host-local",
    "ipvlan",
    "loopback",
    "macvlan",
    "portmap",
    "ptp",
    "sbr",
    "static",
    "tap",
    "tuning",
    "vlan",
    "vrf",
}
# They move a device into the container, or make one of which there can be one only.
_TAKE_DEVICES = {"host-device", "ib-sriov", "sriov", "vlan"}

Reason = Tuple[str, str]


def network_files(conf_dir: str) -> List[ConfFile]:
    """Return the file of each network, in the order of the runtimes, and those that no runtime can load.

    Of several files with one network's name libcni takes the first list, else the first other one. What has no name is
    no network that libcni could attach to, and kubeconfigs are never read.
    """
    files = [file for file in scan_conf_dir(conf_dir) if "kubeconfig" not in file.name.lower()]
    chosen: Dict[str, ConfFile] = {}
    for file in sorted(files, key=lambda file: file.kind != "conflist"):
        if file.network:
            chosen.setdefault(file.network, file)
    return [file for file in files if file.error or (file.network and chosen[file.network] is file)]


def load(file: ConfFile) -> NetworkConfigList:
    """Return the network with its drop-ins. Raises HostError ``bad_config`` or ``unsafe_permissions``."""
    try:
        if file.error:
            raise HostError(file.error)
        for path in paths_of(os.path.dirname(file.path), file.path, file.network or ""):
            check_trusted(path)
        if file.kind == "conflist":
            return network_conf_from_file(file.path)
        return conf_list_from_conf(network_plugin_conf_from_file(file.path))
    except (CNIError, HostError) as error:
        if isinstance(error, HostError) and error.code == "unsafe_permissions":
            raise
        text = mask_text(str(error)).replace(f"{file.path}: ", "")
        raise HostError(
            f"{file.path} cannot be loaded: {text}; fix or remove the file, runtimes cannot load it either",
            code="bad_config",
        ) from error


def reason_against(config: NetworkConfigList) -> Optional[Reason]:
    """Return (word, sentence) for what speaks against trying the network unless it is asked for by name."""
    plugins = [plugin.network for plugin in config.plugins]
    unknown = [name for name in types_of(plugins) if name not in _REFERENCE | _TAKE_DEVICES]
    if unknown:
        names = ", ".join(unknown)
        return "third_party", f"nobody can tell whether {names} works outside of a runtime, and what it leaves behind"
    return next((reason for plugin in plugins for reason in _reasons(plugin)), None)


def _reasons(plugin: Mapping[str, Any]) -> Iterator[Reason]:
    plugin = dict(plugin)
    kind, ipam = text_of(plugin, "type"), object_of(plugin, "ipam")
    if kind in _TAKE_DEVICES or (kind == "macvlan" and text_of(plugin, "mode") == "passthru"):
        yield "takes_device", f"{kind} takes a device, which a container may have or need"
    if text_of(ipam, "type") == "static":
        yield "fixed_address", "its address is fixed, and a container may have it"
    if kind == "tuning" and member_of(plugin, "mac"):
        yield "fixed_address", "its MAC is fixed, and a container may have it"
    if text_of(ipam, "type") == "dhcp":
        path = text_of(ipam, "daemonsocketpath") or _DHCP_SOCKET
        if not _is_socket(path):
            yield "no_dhcp_daemon", f"its addresses come from the daemon of dhcp, which has no socket {path}"


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def choose(conf_dir: str, names: Optional[Sequence[str]]) -> Tuple[List[ConfFile], List[str]]:
    """Return the files of the networks *names* (None: of all), and those of *names* that there are none of."""
    files = network_files(conf_dir)
    if names is None:
        return files, []
    found = [file for file in files if file.network in names]
    return found, [name for name in names if name not in {file.network for file in found}]
