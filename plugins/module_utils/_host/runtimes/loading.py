# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""How a runtime's libcni loads a file: the port here is of libcni 1.3, and this adds the differences of older releases.

libcni 1.1 knows neither ``cniVersions`` nor ``disableGC``, and accepts only a boolean for ``disableCheck``, where later
releases also accept a string. Drop-in folders, ``loadOnlyInlinedPlugins`` and conflists without ``plugins`` are new in
1.3.
(Go: libcni/conf.go of v1.1.2, v1.2.3 and v1.3.0.)
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from ...libcni import conf, gojson
from ...libcni.errors import ConfigError, JSONError
from ..addresses import packed, prefix_length
from ..confdir import ConfFile, drop_ins
from ..kinds import HOST_LOCAL, member_of, object_of, text_of

_TEXTS = ("type", "bridge", "master", "mode")
_NUMBERS = ("mtu", "vlan")
_FLAGS = ("isGateway", "isDefaultGateway", "forceAddress", "ipMasq", "hairpinMode", "promiscMode")
_ADDRESSES = ("gateway", "rangeStart", "rangeEnd")


def unconvertible(plugin: Dict[str, Any]) -> str:
    """Return why podman cannot convert *plugin*, "" if it can."""
    if text_of(plugin, "type") not in ("bridge", "macvlan", "ipvlan"):
        return ""
    for keys, kind in ((_TEXTS, str), (_NUMBERS, int), (_FLAGS, bool)):
        for key in keys:
            value = member_of(plugin, key.lower())
            if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
                return f"{key} is not understood"
    ipam = object_of(plugin, "ipam")
    parts = _parts(member_of(ipam, "ranges"))
    routes = member_of(ipam, "routes") or []
    if parts is None or not isinstance(routes, list) or not all(isinstance(route, dict) for route in routes):
        return "the ranges or routes are not understood"
    if text_of(ipam, "type") != HOST_LOCAL:
        return ""
    for part in parts:
        if not _is_subnet(member_of(part, "subnet")):
            return "a subnet is not understood"
        for key in _ADDRESSES:
            value = member_of(part, key.lower())
            if value not in (None, "") and not _is_address(value):
                return f"{key} is not understood"
    return ""


def _parts(ranges: Any) -> Optional[List[Dict[str, Any]]]:
    """Return all ranges of a list of lists of objects, None for any other type; null counts as empty."""
    parts: List[Dict[str, Any]] = []
    for entry in [] if ranges is None else ranges if isinstance(ranges, list) else [ranges]:
        if entry is not None and not isinstance(entry, list):
            return None
        parts.extend(entry or [])
    return parts if all(isinstance(part, dict) for part in parts) else None


def _is_subnet(value: Any) -> bool:
    address, _slash, bits = value.partition("/") if isinstance(value, str) else ("", "", "")
    return _is_address(address) and prefix_length(bits, 128 if ":" in address else 32) is not None


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and bool(packed(value))


_LIST = "error parsing configuration list: "
# All releases load a text without any of these in the same way.
_MARKS = (b"cniVersions", b"disableCheck", b"disableGC", b"loadOnlyInlinedPlugins", b"valid-attachments", b"\\u")


class Loaded(NamedTuple):
    """A file as a runtime loads it: the network's ``name``, ``version`` and ``plugins`` (parsed), or the ``error``.

    ``untyped``: it is an object without a type, which is no configuration of a plugin.
    """

    name: str = ""
    version: str = ""
    plugins: Sequence[Dict[str, Any]] = ()
    error: str = ""
    untyped: bool = False

    @property
    def types(self) -> List[str]:
        """The types of the plugins."""
        return [text_of(plugin, "type") for plugin in self.plugins]


class Loader:
    """Loads the files of one directory with the rules of one release of libcni.

    *files* are all of the directory, *folder_of* returns the files of a network's drop-in folder.
    """

    def __init__(
        self,
        level: str,
        files: Sequence[ConfFile],
        with_drop_ins: bool = True,
        folder_of: Callable[[str, str], List[ConfFile]] = drop_ins,
    ) -> None:
        self.level = level
        self.files = files
        self.with_drop_ins = with_drop_ins and level == "1.3"
        self.folder_of = folder_of

    def load(self, file: ConfFile, as_list: bool) -> Loaded:
        """Load *file* as the runtime does: as a conflist, or as the configuration of a single plugin."""
        if file.text is None:
            # An unmanaged file that was not read, or a file that is known without its text.
            return Loaded(file.network or "", file.cni_version, file.plugins, file.error)
        if as_list != (file.kind == "conflist") or file.error or self._depends_on_release(file):
            loaded = self._parse(file.text, as_list)
        else:
            loaded = Loaded(file.network or "", file.cni_version, file.plugins)
        if loaded.error or not as_list:
            return loaded
        if self.with_drop_ins and not file.inlined_only:
            loaded = self._with_drop_ins(file, loaded)
        if not loaded.plugins and not loaded.error and self.level != "1.3":
            return Loaded(error=_LIST + "no 'plugins' key")
        if not loaded.plugins and not loaded.error and self.with_drop_ins:
            return Loaded(error="no plugin configs found")
        return loaded

    def _depends_on_release(self, file: ConfFile) -> bool:
        return self.level != "1.3" and any(mark in (file.text or b"") for mark in _MARKS)

    def _parse(self, text: bytes, as_list: bool) -> Loaded:
        try:
            if self.level != "1.3":
                text = self._without_later_keys(text)
            if as_list:
                network = conf.network_conf_from_bytes(text)
                return Loaded(network.name, network.cni_version, [plugin.network for plugin in network.plugins])
            plugin = conf.network_plugin_conf_from_bytes(text)
        except ConfigError as error:
            return Loaded(error=str(error), untyped=_is_untyped(text))
        return Loaded(plugin.name, plugin.cni_version, [plugin.network])

    def _without_later_keys(self, text: bytes) -> bytes:
        """Return *text* without the keys that this release ignores. ConfigError for what only later ones accept."""
        try:
            data = gojson.loads(text)
        except JSONError:
            return text
        if not isinstance(data, dict):
            return text
        data.pop("loadOnlyInlinedPlugins", None)
        if self.level == "1.1":
            check = data.get("disableCheck", False)
            if not isinstance(check, bool):
                raise ConfigError(f"{_LIST}invalid disableCheck type {gojson.type_name(check)}")
            data.pop("cniVersions", None)
            data.pop("disableGC", None)
            plugins = data.get("plugins")
            for plugin in [data, *(plugins if isinstance(plugins, list) else [])]:
                if isinstance(plugin, dict):
                    for key in [key for key in plugin if key.lower() == "cni.dev/valid-attachments"]:
                        del plugin[key]
        return gojson.dumps(data)

    def _with_drop_ins(self, file: ConfFile, loaded: Loaded) -> Loaded:
        if not loaded.name:
            # Joined with an empty name, the path would be the directory itself.
            extras = [other for other in self.files if other.kind == "conf"]
        else:
            extras = self.folder_of(os.path.dirname(file.path), loaded.name)
        for extra in extras:
            if extra.error:
                return Loaded(error=f"{extra.error} (in {extra.path})")
        return loaded._replace(plugins=[*loaded.plugins, *(plugin for extra in extras for plugin in extra.plugins)])


def _is_untyped(text: bytes) -> bool:
    try:
        data = gojson.loads(text)
    except JSONError:
        return False
    return isinstance(data, dict) and not text_of(data, "type")
