# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the networks of a pod: ADD, CHECK and DEL of each, with its default routes as `default-route` moves them."""

from __future__ import annotations

from .. import api, cache, conf, gojson, types, version
from ..errors import CacheError, CNIError, VersionError, quote
from ..invoke import Executor
from ..validate import validate_network_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from .records import NetworkRecord

_DEFAULTS = {"0.0.0.0/0": 4, "::/0": 6}


class PodRunner:
    """Runs networks of one container.

    `path`: plugin directories. `cache_dir`: where libcni keeps what it added. `keep`: descriptors that plugins inherit.
    """

    def __init__(
        self, path: t.Sequence[str], cache_dir: str, container_id: str, netns: str, keep: t.Collection[int] = ()
    ) -> None:
        self._cni = api.CNIConfig(path, cache_dir, executor=Executor(keep=keep))
        self._container_id = container_id
        self._netns = netns

    def conflist(self, network: NetworkRecord) -> conf.NetworkConfigList:
        """Return the network as libcni runs it. Raises `ConfigError`."""
        if network.is_list:
            return conf.network_conf_from_bytes(network.config)
        return conf.conf_list_from_conf(conf.network_plugin_conf_from_bytes(network.config))

    def require(self, network: NetworkRecord) -> None:
        """Raise `CNIError` for what keeps an ADD of the network from starting: a bad name, or a missing plugin."""
        lst = self.conflist(network)
        validate_network_name(lst.name)
        for plugin in lst.plugins:
            for name in filter(None, (plugin.type, plugin.ipam_type)):
                self._cni.executor.find_in_path(name, self._cni.path)

    def add(self, network: NetworkRecord) -> types.Result:
        """ADD. Return the result as it is after default routes have moved. Raises `CNIError`."""
        rt = self._runtime_conf(network)
        result = self._cni.add_network_list(self.conflist(network), rt)
        if not (network.remove_v4 or network.remove_v6 or network.gateways):
            return result
        self._move_routes(network)
        changed = _with_moved_routes(result, network)
        self._cache(network, changed)
        return changed

    def check(self, network: NetworkRecord) -> None:
        """CHECK; nothing for a network whose version is older than this verb. Raises `CNIError`."""
        lst = self.conflist(network)
        if not _has_check(lst.cni_version):
            return
        self._cni.check_network_list(lst, self._runtime_conf(network))
        for family, removed in ((4, network.remove_v4), (6, network.remove_v6)):
            if removed:
                self._check_routes(network, family)

    def delete(self, network: NetworkRecord) -> None:
        """DEL. Raises `CNIError`."""
        self._cni.del_network_list(self.conflist(network), self._runtime_conf(network))

    def cached_macs(self, network: NetworkRecord) -> set[str]:
        """Return the hardware addresses that the network's interfaces had in the result of its ADD."""
        try:
            result = self._cni.get_network_list_cached_result(self.conflist(network), self._runtime_conf(network))
        except CNIError:
            return set()
        return {nic.mac for nic in result.interfaces if nic.sandbox and nic.mac} if result else set()

    def _runtime_conf(self, network: NetworkRecord) -> api.RuntimeConf:
        return api.RuntimeConf(self._container_id, self._netns, network.ifname, network.args, network.capability_args)

    def _cache(self, network: NetworkRecord, result: types.Result) -> None:
        path = cache.cache_path(self._cni.cache_dir, network.network, self._container_id, network.ifname)
        entry = cache.read_entry(path)
        if entry is None:
            raise CacheError(f"the cache entry {path} is gone", path)
        entry.result = gojson.loads(result.to_json())
        cache.write_entry(self._cni.cache_dir, entry)

    # ---- default routes

    def _move_routes(self, network: NetworkRecord) -> None:
        # Few pods ask for it, and importing it takes as long as a plugin.
        from .. import netns
        from ..fields import Route, is_ipv4

        removed = [family for family, wanted in ((4, network.remove_v4), (6, network.remove_v6)) if wanted]
        with netns.inside(self._netns):
            for route in netns.routes(network.ifname):
                if _DEFAULTS.get(route.dst) in removed:
                    netns.delete_route(Route(route.dst, route.gw, priority=route.priority), network.ifname)
            for gateway in network.gateways:
                netns.add_route(Route("0.0.0.0/0" if is_ipv4(gateway) else "::/0", gateway), network.ifname)

    def _check_routes(self, network: NetworkRecord, family: int) -> None:
        from .. import netns
        from ..fields import is_ipv4

        wanted = [gateway for gateway in network.gateways if is_ipv4(gateway) == (family == 4)]
        with netns.inside(self._netns):
            found = [route.gw for route in netns.routes(network.ifname) if _DEFAULTS.get(route.dst) == family]
        if sorted(found) != sorted(wanted):
            there = ", ".join(f"via {gateway}" if gateway else "without a gateway" for gateway in found) or "none"
            raise CNIError(
                f"the IPv{family} default routes of {network.ifname} are {there}; default-route of the pod wants "
                + (f"via {wanted[0]}" if wanted else "none")
            )


def _has_check(cni_version: str) -> bool:
    try:
        return version.greater_than_or_equal_to(cni_version, "0.4.0")
    except VersionError as exc:
        raise CNIError(f"version {quote(cni_version)}: {exc}") from exc


def _with_moved_routes(result: types.Result, network: NetworkRecord) -> types.Result:
    from .routes import with_default_routes, without_default_routes

    left = without_default_routes(result.to_dict(), network.remove_v4, network.remove_v6)
    return types.create_from_bytes(gojson.dumps(with_default_routes(left, network.gateways)))
