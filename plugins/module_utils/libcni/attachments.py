# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""Attachments and their cache entries (Go: libcni/api.go, the parts about RuntimeConf and the cache)."""

from __future__ import annotations

from . import cache, gojson, types, version
from .errors import CacheError, CNIError, JSONError, ResultError, quote

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


def prepare(cache_dir: str, name: str, rt: RuntimeConf) -> None:
    """Make sure, before a plugin runs, that the attachment could be cached. Raises `CacheError`, `ValidationError`."""
    try:
        gojson.dumps(rt.capability_args)
        cache.prepare(cache_dir, name, rt.container_id, rt.if_name)
    except (CacheError, JSONError) as exc:
        raise _write_error(name, exc) from exc


def store(cache_dir: str, result: types.Result, config: bytes, name: str, rt: RuntimeConf) -> None:
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


def cached_result(cache_dir: str, name: str, cni_version: str, rt: RuntimeConf) -> types.Result | None:
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


def cached_result_for_check(cache_dir: str, name: str, cni_version: str, rt: RuntimeConf) -> types.Result | None:
    """Return the cached result for CHECK. Raises `CacheError` for an entry that cannot be used."""
    try:
        return cached_result(cache_dir, name, cni_version, rt)
    except (CacheError, JSONError, ResultError) as exc:
        raise CacheError(f"failed to get network {quote(name)} cached result: {exc}") from exc


def cached_result_for_del(cache_dir: str, name: str, cni_version: str, rt: RuntimeConf) -> types.Result | None:
    """Return the cached result for DEL, None before 0.4.0. An entry that cannot be used is removed.

    Raises `VersionError`.
    """
    if not version.greater_than_or_equal_to(cni_version, "0.4.0"):
        return None
    try:
        return cached_result(cache_dir, name, cni_version, rt)
    except (CacheError, JSONError, ResultError):
        # A broken entry must not keep an attachment from being deleted.
        cache.remove_entry(cache_dir, name, rt.container_id, rt.if_name)
        return None


def cached_config(cache_dir: str, name: str, rt: RuntimeConf) -> tuple[bytes | None, RuntimeConf | None]:
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
