# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forced removal of an attachment whose DEL fails: every plugin runs, then what is left of the attachment is removed.

That is the container's interface, its firewall rules, its leases of host-local, the cache entry and the record.
"""

from __future__ import annotations

from typing import List, Mapping, Optional, Sequence

from ...libcni import cache
from ...libcni.api import CNIConfig, RuntimeConf
from ...libcni.errors import CNIError, PluginNotFoundError
from ...libcni.invoke import Executor
from .. import netlink
from ..errors import HostError
from ..netns import Netns, visit
from . import leaks
from .records import Attached
from .request import Key

# Kinds of interfaces that an ADD makes. A device that host-device moved can be of any kind and belongs to the host.
_VIRTUAL = ("veth", "macvlan", "ipvlan", "macvtap", "ipvtap", "vlan", "dummy", "tun")


class Tolerant(Executor):
    """Runs each plugin with another executor, and keeps the errors of failing ones in ``said``."""

    __slots__ = ("_executor", "said")

    def __init__(self, executor: Executor) -> None:
        super().__init__()
        self._executor = executor
        self.said: List[str] = []

    def find_in_path(self, plugin: str, paths: Sequence[str]) -> str:
        try:
            return self._executor.find_in_path(plugin, paths)
        except PluginNotFoundError as error:
            self.said.append(str(error))
            return ""

    def exec_plugin(self, path: str, stdin: bytes, env: Mapping[str, str], timeout: Optional[float] = None) -> bytes:
        try:
            return self._executor.exec_plugin(path, stdin, env, timeout) if path else b""
        except (CNIError, HostError) as error:
            self.said.append(f"plugin {path.rpartition('/')[2]}: {error}")
            return b""


def remove_by_force(
    cni: CNIConfig, key: Key, attached: Optional[Attached], runtime: RuntimeConf, container: Netns, made: bool
) -> List[str]:
    """Remove an attachment. Returns the errors of DEL, and what is left.

    *attached*: None if it is not known what was attached. *runtime*: passed to DEL. *container*: its
    namespace, which may be gone. *made*: its ADD made the interface.
    """
    others = [other for other in cni.get_cached_attachments(key.container_id) if other.if_name != key.ifname]
    said: List[str] = []
    if attached is not None:
        tolerant = Tolerant(cni.executor)
        try:
            CNIConfig(cni.path, cni.cache_dir, cni.timeout, tolerant).del_network_list(attached.config, runtime)
        except CNIError as error:
            tolerant.said.append(str(error))
        said += tolerant.said
        moves = any(plugin.type == "host-device" for plugin in attached.config.plugins)
        if made and key.ifname != "lo":
            said += _remove_interface(key.ifname, container, moves)
    said += _remove_rules(cni.cache_dir, key, attached, [other.network for other in others])
    said += _left(leaks.leases_left(key, attached.config if attached else None))
    cache.remove_entry(cni.cache_dir, *key)
    return said


def _remove_interface(ifname: str, container: Netns, moves: bool) -> List[str]:
    def work() -> List[str]:
        for link in netlink.links().values():
            if link.name == ifname:
                if moves or link.kind not in _VIRTUAL:
                    return [f"the interface {ifname} is still in {container.path}"]
                netlink.delete_link(link.index, ifname)
        return []

    try:
        return visit([container], work).get(container.path, [])
    except HostError as error:
        return [error.msg]


def _remove_rules(cache_dir: str, key: Key, attached: Optional[Attached], other_networks: List[str]) -> List[str]:
    if attached is not None and not leaks.makes_rules(attached.config):
        return []
    if key.network in other_networks:
        return ["its firewall rules were kept, because another interface of the container shares their chains"]
    problems: List[str] = []
    detached = (attached.config, attached.ips) if attached else (None, ())
    rows = leaks.rules_left({key: detached}, problems, cache_dir)
    return problems + _left([row for some in rows.values() for row in some])


def _left(rows: List[leaks.Row]) -> List[str]:
    return [str(row["message"]) for row in rows if not row["removed"]]
