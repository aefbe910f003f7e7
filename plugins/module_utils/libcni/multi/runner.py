# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Runs the networks of a pod: ADD in order with roll-back, CHECK, DEL in reverse; default routes move as asked for."""

from __future__ import annotations

from .. import api, cache, conf, gojson, types, version
from ..errors import CacheError, CNIError, MultiError
from ..invoke import Executor
from ..validate import validate_network_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from .records import NetworkRecord

    _Failures = t.List[t.Tuple[int, CNIError]]


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
        if not (network.families or network.gateways):
            return result
        from .routes import with_default_routes

        self._move_routes(network)
        changed = with_default_routes(result, network.families, network.gateways)
        self._cache(network, changed)
        return changed

    def check(self, network: NetworkRecord) -> None:
        """CHECK; nothing for a network whose version is older than this verb. Raises `CNIError`."""
        lst = self.conflist(network)
        if not version.greater_than_or_equal_to(lst.cni_version, "0.4.0"):
            return
        self._cni.check_network_list(lst, self._runtime_conf(network))
        for family in network.families:
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
        from ..fields import Route
        from .routes import DEFAULTS, family_of

        removed = [DEFAULTS[family] for family in network.families]
        with netns.inside(self._netns):
            for route in netns.routes(network.ifname):
                if route.dst in removed:
                    netns.delete_route(Route(route.dst, route.gw, priority=route.priority), network.ifname)
            for gateway in network.gateways:
                netns.add_route(Route(DEFAULTS[family_of(gateway)], gateway), network.ifname)

    def _check_routes(self, network: NetworkRecord, family: str) -> None:
        from .. import netns
        from .routes import DEFAULTS, family_of

        wanted = [gateway for gateway in network.gateways if family_of(gateway) == family]
        with netns.inside(self._netns):
            gateways = [route.gw for route in netns.routes(network.ifname) if route.dst == DEFAULTS.get(family)]
        if sorted(gateways) != sorted(wanted):
            shown = ", ".join(f"via {gateway}" if gateway else "without a gateway" for gateway in gateways) or "none"
            raise CNIError(
                f"the IPv{family} default routes of {network.ifname} are {shown}; default-route of the pod wants "
                + (f"via {wanted[0]}" if wanted else "none")
            )


# ---- all networks of a pod: in order, with roll-back


class AddNetworksError(MultiError):
    """The ADD of the network at `index` failed for `cause`.

    `left`: the networks whose DEL failed in the roll-back, as (index, error). Multus does not report them; what is left
    of a network is never removed unless it is known.
    """

    def __init__(self, msg: str, index: int, cause: CNIError, left: _Failures) -> None:
        super().__init__(msg, [cause, *(error for _index, error in left)])
        self.index = index
        self.cause = cause
        self.left = left


class DelNetworksError(MultiError):
    """DEL failed for some networks: `left`, as (index, error). All others are removed."""

    def __init__(self, msg: str, left: _Failures) -> None:
        super().__init__(msg, [error for _index, error in left])
        self.left = left


def add_networks(
    networks: t.Sequence[NetworkRecord],
    add: t.Callable[[NetworkRecord], types.Result],
    delete: t.Callable[[NetworkRecord], None],
) -> list[types.Result]:
    """Call `add` for each network in order and return the results; the first one is the pod's.

    If one fails, `delete` is called for it and for all before it, in reverse, each whatever became of the others.
    Raises `AddNetworksError`. `add` and `delete` raise `CNIError`.
    """
    results = []
    for index, network in enumerate(networks):
        try:
            results.append(add(network))
        except CNIError as exc:
            left = _delete_all(networks[: index + 1], delete)
            text = f'error adding container to network "{network.network}": {exc}'
            if left:
                failures = (f'network "{networks[at].network}": {error}' for at, error in left)
                text += f"; DEL of what was added failed, too: {', '.join(failures)}"
            raise AddNetworksError(text, index, exc, left) from exc
    return results


def delete_networks(networks: t.Sequence[NetworkRecord], delete: t.Callable[[NetworkRecord], None]) -> None:
    """Call `delete` for each network in reverse; one that fails stops none of the others. Raises `DelNetworksError`."""
    left = _delete_all(networks, delete)
    if left:
        raise DelNetworksError(" / ".join(str(error) for _index, error in left), left)


def _delete_all(networks: t.Sequence[NetworkRecord], delete: t.Callable[[NetworkRecord], None]) -> _Failures:
    failures = []
    for index in reversed(range(len(networks))):
        try:
            delete(networks[index])
        except CNIError as exc:
            failures.append((index, exc))
    return failures
