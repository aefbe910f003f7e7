# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The verbs of CNI on networks and on single plugins (Go: libcni/api.go).

Deviations from Go: container id, network name and interface name are validated on every verb that has them, not on ADD
only; whether the cache can be written is tested before ADD runs a plugin; the cached configuration includes plugins of
the drop-in folder; GC without a list of valid attachments is refused, as is a cache directory that cannot be read; GC
leaves entries with invalid names alone.
"""

from __future__ import annotations

from . import cache, gojson, types, version
from .conf import NetworkConfigList, PluginConfig, injected
from .errors import (
    CacheError,
    CheckNotSupportedError,
    CNIError,
    ConfigError,
    JSONError,
    MultiError,
    PluginListError,
    ResultError,
    ValidationError,
    quote,
)
from .invoke import Executor, get_version_info, plugin_env
from .types import Result, exec_plugin_with_result
from .validate import validate_container_id, validate_if_name, validate_network_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t


class RuntimeConf:
    """One attachment: which container, where, under which name, with which arguments (Go: RuntimeConf).

    `args`: pairs for CNI_ARGS, in order. `capability_args`: data for plugins by capability; JSON values.
    """

    __slots__ = ("args", "capability_args", "container_id", "if_name", "net_ns")

    def __init__(
        self,
        container_id: str,
        net_ns: str,
        if_name: str,
        args: t.Iterable[t.Sequence[str]] | None = None,
        capability_args: t.Mapping[str, t.Any] | None = None,
    ) -> None:
        self.container_id = container_id
        self.net_ns = net_ns
        self.if_name = if_name
        self.args = [(pair[0], pair[1]) for pair in args or ()]
        self.capability_args = dict(capability_args or {})


class NetworkAttachment:
    """One attachment from the cache (Go: NetworkAttachment)."""

    __slots__ = ("capability_args", "cni_args", "config", "container_id", "if_name", "net_ns", "network")

    def __init__(self, entry: cache.Entry) -> None:
        self.network = entry.network_name
        self.container_id = entry.container_id
        self.if_name = entry.if_name
        self.config = entry.config
        self.net_ns = entry.net_ns
        self.cni_args = [list(pair) for pair in entry.cni_args or ()]
        self.capability_args = dict(entry.capability_args or {})


class CNIConfig:
    """Runs the verbs (Go: CNIConfig).

    `path`: absolute plugin directories, searched in order. `cache_dir`: default /var/lib/cni. `timeout`: seconds for
    each plugin call, None for no limit. `executor`: what runs the plugins. An object has no state: threads can share
    one, for different attachments.
    """

    __slots__ = ("cache_dir", "executor", "path", "timeout")

    def __init__(
        self,
        path: t.Sequence[str],
        cache_dir: str | None = None,
        timeout: float | None = None,
        executor: Executor | None = None,
    ) -> None:
        self.path = list(path)
        self.cache_dir = cache_dir or cache.DEFAULT_DIR
        self.timeout = timeout
        self.executor = executor or Executor()

    # ---- networks

    def add_network_list(self, lst: NetworkConfigList, rt: RuntimeConf) -> Result:
        """ADD: run the plugins in order, each with the result of the one before, and cache the last one's.

        A failure stops and leaves what earlier plugins did: the caller has to DEL. Raises `PluginListError`;
        `CacheError` if the result cannot be cached.
        """
        result: Result | None = None
        for plugin in lst.plugins:
            try:
                result = self._add(lst.name, lst.cni_version, plugin, result, rt)
            except CacheError:
                raise
            except CNIError as exc:
                raise PluginListError(_description(plugin), "add", plugin.type, exc) from exc
        if result is None:
            raise ConfigError(f"network {quote(lst.name)} has no plugins")
        _store(self.cache_dir, result, lst.expanded_bytes(), lst.name, rt)
        return result

    def check_network_list(self, lst: NetworkConfigList, rt: RuntimeConf) -> None:
        """CHECK: run the plugins in order, all with the cached result; nothing if the network has disableCheck.

        Raises `CheckNotSupportedError` for a version before 0.4.0, `CacheError` if the cached result cannot be used,
        and whatever the first failing plugin raises.
        """
        _validate(lst.name, rt)
        _require_check(lst.cni_version)
        if lst.disable_check:
            return
        cached = _cached_result_for_check(self.cache_dir, lst.name, lst.cni_version, rt)
        for plugin in lst.plugins:
            self._run("CHECK", lst.name, lst.cni_version, plugin, cached, rt)

    def del_network_list(self, lst: NetworkConfigList, rt: RuntimeConf) -> None:
        """DEL: run the plugins in reverse order, from 0.4.0 on with the cached result, then remove the cache entry.

        A failure stops and keeps the entry. The cached arguments are not used; see
        `get_network_list_cached_config`. Raises `PluginListError`, `VersionError`, `ValidationError`.
        """
        _validate(lst.name, rt)
        cached = _cached_result_for_del(self.cache_dir, lst.name, lst.cni_version, rt)
        for plugin in reversed(lst.plugins):
            try:
                self._run("DEL", lst.name, lst.cni_version, plugin, cached, rt)
            except CNIError as exc:
                raise PluginListError(_description(plugin), "delete", plugin.type, exc) from exc
        cache.remove_entry(self.cache_dir, lst.name, rt.container_id, rt.if_name)

    def get_network_list_cached_result(self, lst: NetworkConfigList, rt: RuntimeConf) -> Result | None:
        """Return the result of the ADD in the network's version, None if none is cached.

        Raises `CNIError` for an entry that cannot be used.
        """
        return _cached_result(self.cache_dir, lst.name, lst.cni_version, rt)

    def get_network_list_cached_config(
        self, lst: NetworkConfigList, rt: RuntimeConf
    ) -> tuple[bytes | None, RuntimeConf | None]:
        """Return the configuration of the ADD, and `rt` with the arguments of the ADD; (None, None) if not cached.

        The cached netns is not included. Raises `CacheError` for an entry that cannot be used.
        """
        return _cached_config(self.cache_dir, lst.name, rt)

    def validate_network_list(self, lst: NetworkConfigList) -> list[str]:
        """Check that every plugin exists and supports the network's version; return the capabilities, sorted.

        IPAM plugins and other delegates are not checked. Raises `MultiError`.
        """
        validate_network_name(lst.name)
        capabilities: set[str] = set()
        errors: list[CNIError] = []
        for plugin in lst.plugins:
            try:
                self._validate_plugin(plugin.type, lst.cni_version)
            except CNIError as exc:
                errors.append(exc)
            capabilities.update(name for name, enabled in plugin.capabilities.items() if enabled)
        if errors:
            raise MultiError(f"[{' '.join(map(str, errors))}]", errors)
        return sorted(capabilities)

    def gc_network_list(self, lst: NetworkConfigList, valid: t.Iterable[t.Sequence[str]]) -> None:
        """GC: DEL the network's cached attachments that are not in `valid`, then send GC to plugins from 1.1.0 on.

        `valid`: pairs (container id, interface name). Nothing happens if the network has disableGC. An entry with names
        that no attachment can have is left alone, since no DEL can be sent for it. Errors do not stop the rest. Raises
        `MultiError`; `CacheError` if the cache cannot be read.
        """
        if valid is None:
            raise CNIError("GC needs the list of valid attachments: without it, all would be deleted")
        validate_network_name(lst.name)
        if lst.disable_gc:
            return
        # A string given instead of a pair must not count as a pair of its first two letters.
        pairs = [{"containerID": container_id, "ifname": if_name} for container_id, if_name in valid]
        errors = self._delete_stale(lst, {(pair["containerID"], pair["ifname"]) for pair in pairs})
        if version.is_at_least(lst.cni_version, "1.1.0"):
            values = {
                "name": lst.name,
                "cniVersion": lst.cni_version,
                "cni.dev/valid-attachments": pairs,
                "cni.dev/attachments": pairs,
            }
            for plugin in lst.plugins:
                try:
                    stdin = injected(plugin.bytes, values)
                except ConfigError as exc:
                    # Go also reports it, but then runs the plugin without a configuration and crashes.
                    errors.append(_prefixed(f"failed to generate configuration to GC plugin {plugin.type}", exc))
                    continue
                try:
                    self._run_bare("GC", plugin, stdin)
                except CNIError as exc:
                    errors.append(_prefixed(f"failed to GC plugin {plugin.type}", exc))
        if errors:
            raise MultiError("\n".join(map(str, errors)), errors)

    def _delete_stale(self, lst: NetworkConfigList, keep: set[tuple[str, str]]) -> list[CNIError]:
        errors: list[CNIError] = []
        for attachment in self.get_cached_attachments():
            key = (attachment.container_id, attachment.if_name)
            if attachment.network != lst.name or key in keep:
                continue
            rt = RuntimeConf(
                attachment.container_id,
                attachment.net_ns,
                attachment.if_name,
                attachment.cni_args,
                attachment.capability_args,
            )
            try:
                _validate(lst.name, rt)
            except ValidationError:
                continue
            try:
                self.del_network_list(lst, rt)
            except CNIError as exc:
                errors.append(_prefixed(f"failed to delete stale attachment {key[0]} {key[1]}", exc))
        return errors

    def get_status_network_list(self, lst: NetworkConfigList) -> None:
        """STATUS: raise what the first plugin raises that is not ready; before 1.1.0 every network is ready."""
        validate_network_name(lst.name)
        if not version.is_at_least(lst.cni_version, "1.1.0"):
            return
        for plugin in lst.plugins:
            try:
                stdin = injected(plugin.bytes, {"name": lst.name, "cniVersion": lst.cni_version})
            except ConfigError as exc:
                raise _prefixed(f"failed to generate configuration to get plugin STATUS {plugin.type}", exc) from exc
            self._run_bare("STATUS", plugin, stdin)

    # ---- single plugins

    def add_network(self, net: PluginConfig, rt: RuntimeConf) -> Result:
        """ADD with one plugin. Raises what it raises; `CacheError` if the result cannot be cached."""
        result = self._add(net.name, net.cni_version, net, None, rt)
        _store(self.cache_dir, result, net.bytes, net.name, rt)
        return result

    def check_network(self, net: PluginConfig, rt: RuntimeConf) -> None:
        """CHECK with one plugin. Raises as `check_network_list`."""
        _validate(net.name, rt)
        _require_check(net.cni_version)
        cached = _cached_result_for_check(self.cache_dir, net.name, net.cni_version, rt)
        self._run("CHECK", net.name, net.cni_version, net, cached, rt)

    def del_network(self, net: PluginConfig, rt: RuntimeConf) -> None:
        """DEL with one plugin, and remove the cache entry. Raises what the plugin raises."""
        _validate(net.name, rt)
        cached = _cached_result_for_del(self.cache_dir, net.name, net.cni_version, rt)
        self._run("DEL", net.name, net.cni_version, net, cached, rt)
        cache.remove_entry(self.cache_dir, net.name, rt.container_id, rt.if_name)

    def get_network_cached_result(self, net: PluginConfig, rt: RuntimeConf) -> Result | None:
        """Return the result of the ADD, as `get_network_list_cached_result`."""
        return _cached_result(self.cache_dir, net.name, net.cni_version, rt)

    def get_network_cached_config(self, net: PluginConfig, rt: RuntimeConf) -> tuple[bytes | None, RuntimeConf | None]:
        """Return the configuration of the ADD, as `get_network_list_cached_config`."""
        return _cached_config(self.cache_dir, net.name, rt)

    def validate_network(self, net: PluginConfig) -> list[str]:
        """Check that the plugin exists and supports the version; return its capabilities, sorted."""
        self._validate_plugin(net.type, net.cni_version)
        return sorted(name for name, enabled in net.capabilities.items() if enabled)

    # ---- other

    def get_cached_attachments(self, container_id: str = "") -> list[NetworkAttachment]:
        """Return all cached attachments, or one container's, in the order of their file names. Raises `CacheError`."""
        return [NetworkAttachment(entry) for entry in cache.list_entries(self.cache_dir, container_id)]

    def get_version_info(self, plugin_type: str) -> list[str]:
        """Return the versions that a plugin supports. Raises `PluginNotFoundError` and `PluginError`."""
        return get_version_info(self.executor.find_in_path(plugin_type, self.path), self.executor, self.timeout)

    # ---- running one plugin

    def _add(
        self, name: str, cni_version: str, plugin: PluginConfig, prev_result: Result | None, rt: RuntimeConf
    ) -> Result:
        path = self.executor.find_in_path(plugin.type, self.path)
        _validate(name, rt)
        if prev_result is None:
            _prepare(self.cache_dir, name, rt)
        stdin = _build_one_config(name, cni_version, plugin, prev_result, rt)
        return exec_plugin_with_result(path, stdin, self._env("ADD", rt), self.executor, self.timeout)

    def _run(
        self,
        command: str,
        name: str,
        cni_version: str,
        plugin: PluginConfig,
        prev_result: Result | None,
        rt: RuntimeConf,
    ) -> None:
        path = self.executor.find_in_path(plugin.type, self.path)
        stdin = _build_one_config(name, cni_version, plugin, prev_result, rt)
        self.executor.exec_plugin(path, stdin, self._env(command, rt), self.timeout)

    def _run_bare(self, command: str, plugin: PluginConfig, stdin: bytes) -> None:
        path = self.executor.find_in_path(plugin.type, self.path)
        self.executor.exec_plugin(path, stdin, self._env(command, RuntimeConf("", "", "")), self.timeout)

    def _env(self, command: str, rt: RuntimeConf) -> dict[str, str]:
        return plugin_env(command, rt.container_id, rt.net_ns, rt.args, rt.if_name, ":".join(self.path))

    def _validate_plugin(self, plugin_type: str, cni_version: str) -> None:
        cni_version = cni_version or "0.1.0"
        if cni_version not in self.get_version_info(plugin_type):
            raise CNIError(f"plugin {plugin_type} does not support config version {quote(cni_version)}")


def _validate(name: str, rt: RuntimeConf) -> None:
    validate_container_id(rt.container_id)
    validate_network_name(name)
    validate_if_name(rt.if_name)


def _require_check(cni_version: str) -> None:
    if not version.greater_than_or_equal_to(cni_version, "0.4.0"):
        raise CheckNotSupportedError(cni_version)


def _build_one_config(
    name: str, cni_version: str, plugin: PluginConfig, prev_result: Result | None, rt: RuntimeConf
) -> bytes:
    """Return what a plugin gets on stdin: its configuration with the network's name and version and the result so far.

    runtimeConfig gets the arguments of the capabilities that the plugin has; without any, it is not changed.
    """
    values: dict[str, t.Any] = {"name": name, "cniVersion": cni_version}
    if prev_result is not None:
        values["prevResult"] = prev_result.to_dict()
    stdin = injected(plugin.bytes, values)
    runtime_config = {
        capability: rt.capability_args[capability]
        for capability, enabled in plugin.capabilities.items()
        if enabled and capability in rt.capability_args
    }
    # In a second turn as in Go, by which the keys of prevResult are sorted, too.
    return injected(stdin, {"runtimeConfig": runtime_config}) if runtime_config else stdin


def _description(plugin: PluginConfig) -> str:
    return f"type={quote(plugin.type)}" + (f" name={quote(plugin.name)}" if plugin.name else "")


def _prefixed(prefix: str, error: CNIError) -> CNIError:
    wrapped = CNIError(f"{prefix}: {error}")
    wrapped.__cause__ = error
    return wrapped


# ---- cache entries of attachments


def _prepare(cache_dir: str, name: str, rt: RuntimeConf) -> None:
    """Make sure, before a plugin runs, that the attachment could be cached. Raises `CacheError`, `ValidationError`."""
    try:
        gojson.dumps(rt.capability_args)
        cache.prepare(cache_dir, name, rt.container_id, rt.if_name)
    except (CacheError, JSONError) as exc:
        raise _write_error(name, exc) from exc


def _store(cache_dir: str, result: Result, config: bytes, name: str, rt: RuntimeConf) -> None:
    """Cache an attachment (Go: cacheAdd). Raises `CacheError`, `ValidationError`."""
    entry = cache.Entry(
        container_id=rt.container_id,
        config=config,
        if_name=rt.if_name,
        network_name=name,
        net_ns=rt.net_ns,
        cni_args=[list(pair) for pair in rt.args],
        capability_args=rt.capability_args,
        # As Go does it: written and read again, so that all keys are sorted.
        result=gojson.loads(result.to_json()),
    )
    try:
        cache.write_entry(cache_dir, entry)
    except (CacheError, JSONError) as exc:
        raise _write_error(name, exc) from exc


def _write_error(name: str, error: CNIError) -> CacheError:
    return CacheError(f"failed to set network {quote(name)} cached result: {error}", getattr(error, "path", ""))


def _cached_result(cache_dir: str, name: str, cni_version: str, rt: RuntimeConf) -> Result | None:
    """Return the result of the ADD in that version, None if there is none (Go: getCachedResult).

    Raises `CacheError`, `JSONError`, `ResultError` or `ValidationError`.
    """
    path = cache.cache_path(cache_dir, name, rt.container_id, rt.if_name)
    data = cache.read_bytes(path)
    if data is None:
        return None
    try:
        entry = cache.Entry.from_bytes(data)
    except JSONError:
        entry = cache.Entry(kind="")
    if entry.kind == cache.KIND:
        cache.check_owner(entry, path, name, rt.container_id, rt.if_name)
        data = gojson.dumps(entry.result)
    # Any other kind of file is a bare result, which old versions cached.
    result = types.create_from_bytes(data)
    try:
        # The configuration may have changed since; its plugins expect the result in its version.
        return result.as_version(cni_version)
    except ResultError as exc:
        raise ResultError(f"failed to convert cached result to config version {quote(cni_version)}: {exc}") from exc


def _cached_result_for_check(cache_dir: str, name: str, cni_version: str, rt: RuntimeConf) -> Result | None:
    """Return the cached result for CHECK. Raises `CacheError` for an entry that cannot be used."""
    try:
        return _cached_result(cache_dir, name, cni_version, rt)
    except (CacheError, JSONError, ResultError) as exc:
        raise CacheError(f"failed to get network {quote(name)} cached result: {exc}") from exc


def _cached_result_for_del(cache_dir: str, name: str, cni_version: str, rt: RuntimeConf) -> Result | None:
    """Return the cached result for DEL, None before 0.4.0. An entry that cannot be used is removed.

    Raises `VersionError`.
    """
    if not version.greater_than_or_equal_to(cni_version, "0.4.0"):
        return None
    try:
        return _cached_result(cache_dir, name, cni_version, rt)
    except (CacheError, JSONError, ResultError):
        # A broken entry must not keep an attachment from being deleted.
        cache.remove_entry(cache_dir, name, rt.container_id, rt.if_name)
        return None


def _cached_config(cache_dir: str, name: str, rt: RuntimeConf) -> tuple[bytes | None, RuntimeConf | None]:
    """Return the configuration of the ADD and `rt` with its arguments; (None, None) if not cached.

    As in Go, the cached netns is not included. Raises `CacheError`, `ValidationError`.
    """
    path = cache.cache_path(cache_dir, name, rt.container_id, rt.if_name)
    data = cache.read_bytes(path)
    if data is None:
        return None, None
    try:
        entry = cache.Entry.from_bytes(data)
    except JSONError as exc:
        raise CacheError(f"failed to unmarshal cached network {quote(name)} config: {exc}", path) from exc
    if entry.kind != cache.KIND:
        raise CacheError(f"read cached network {quote(name)} config has wrong kind: {entry.kind}", path)
    cache.check_owner(entry, path, name, rt.container_id, rt.if_name)
    args = rt.args if entry.cni_args is None else entry.cni_args
    return entry.config, RuntimeConf(rt.container_id, rt.net_ns, rt.if_name, args, entry.capability_args)
