# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Loading network configurations (Go: libcni/conf.go).

Deviation from Go: the network's name becomes part of a path only if it is a valid name. A file with an invalid
network name loads without its drop-in folder, so that the name cannot lead elsewhere; every verb refuses it later.
"""

from __future__ import annotations

import os

from . import gojson, version
from .dns import decode_dns
from .errors import ConfigError, JSONError, NoConfigsFoundError, NotFoundError, VersionError, os_error_text, quote
from .files import read_file
from .validate import is_name, validate_network_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

_LIST = "error parsing configuration list: "
_PLUGIN = "error parsing configuration: "


class PluginConfig:
    """One plugin's configuration (Go: PluginConfig, alias NetworkConfig).

    `bytes` is the JSON as it was given, `network` the same parsed. The other attributes are what libcni itself uses of
    it: `type`, `name`, `cni_version`, `capabilities`, `ipam_type`.
    """

    type = name = cni_version = ipam_type = ""

    def __init__(self, data: bytes, network: dict[str, t.Any]) -> None:
        self.bytes = data
        self.network = network
        self.capabilities: dict[str, bool] = {}


class NetworkConfigList:
    """A network: a name, a version and its plugins (Go: NetworkConfigList).

    `bytes` is the list's JSON as it was given; plugins that came from a drop-in folder are not in it, `drop_ins` counts
    them (they are the last ones of `plugins`).
    """

    disable_check = disable_gc = load_only_inlined_plugins = False
    drop_ins = 0

    def __init__(self, name: str, cni_version: str, plugins: list[PluginConfig], data: bytes) -> None:
        self.name = name
        self.cni_version = cni_version
        self.plugins = plugins
        self.bytes = data

    def expanded_bytes(self) -> bytes:
        """Return the JSON that stands for the whole list: `bytes`, with the drop-ins added if there are any.

        Go caches `bytes` even then, so that a DEL with the cached configuration leaves out the drop-ins' plugins.
        """
        if not self.drop_ins:
            return self.bytes
        raw = gojson.as_object(gojson.loads(self.bytes), "")
        raw["plugins"] = [gojson.loads(plugin.bytes) for plugin in self.plugins]
        return gojson.dumps(raw)


def _failed(prefix: str, error: JSONError) -> ConfigError:
    return ConfigError(f"{prefix}{error}", line=error.line, column=error.column)


def _read(path: str) -> bytes:
    try:
        return read_file(path)
    except OSError as exc:
        verb = "read" if isinstance(exc, IsADirectoryError) else "open"
        raise ConfigError(f"error reading {path}: {os_error_text(verb, path, exc)}", path) from exc
    except ValueError as exc:
        raise ConfigError(f"error reading {quote(path)}: open {quote(path)}: invalid argument", path) from exc


def _join(directory: str, name: str) -> str:
    """Join and clean a path as Go's filepath.Join does."""
    path = os.path.normpath(os.path.join(directory, name))
    return path[1:] if path.startswith("//") else path


# ---- one plugin


def network_plugin_conf_from_bytes(data: bytes) -> PluginConfig:
    """Parse one plugin's configuration. Raises `ConfigError`.

    As in Go, keys that libcni knows must have the right type even where libcni does not use them.
    """
    try:
        conf = decode_plugin_conf(gojson.loads(data), data)
    except JSONError as exc:
        raise ConfigError(f"{_PLUGIN}{exc}", line=exc.line, column=exc.column) from exc
    if not conf.type:
        raise ConfigError(_PLUGIN + "missing 'type'")
    return conf


def decode_plugin_conf(parsed: t.Any, data: bytes) -> PluginConfig:
    """Return the configuration `parsed`, the JSON of `data`, whose type may be missing. Raises `JSONError`."""
    conf = PluginConfig(data, gojson.as_object(parsed, ""))
    for field, value in gojson.struct_items(parsed, (*_STRING_FIELDS, "capabilities", "ipam", *_CHECKED_FIELDS)):
        _set_plugin_field(conf, field, value)
    return conf


def _set_plugin_field(conf: PluginConfig, field: str, value: t.Any) -> None:
    if field in _STRING_FIELDS:
        name = _STRING_FIELDS[field]
        setattr(conf, name, gojson.string_over(getattr(conf, name), value, field))
    elif field == "capabilities":
        if value is None:
            conf.capabilities = {}
        for key, enabled in gojson.as_object(value, field).items():
            conf.capabilities[key] = gojson.as_bool(enabled, f"{field}/{key}")
    elif field == "ipam":
        for _name, ipam_type in gojson.struct_items(gojson.as_object(value, field), ("type",)):
            conf.ipam_type = gojson.as_string(ipam_type, "ipam/type")
    else:
        _CHECKED_FIELDS[field](value, field)


def _check_attachments(value: t.Any, where: str) -> None:
    for attachment in gojson.as_list(value, where):
        for name, item in gojson.struct_items(gojson.as_object(attachment, where), ("containerID", "ifname")):
            gojson.as_string(item, f"{where}/{name}")


_STRING_FIELDS = {"cniVersion": "cni_version", "name": "name", "type": "type"}
_CHECKED_FIELDS: dict[str, t.Callable[[t.Any, str], t.Any]] = {
    "dns": decode_dns,
    "prevResult": gojson.as_object,
    "cni.dev/valid-attachments": _check_attachments,
}


def network_plugin_conf_from_file(path: str) -> PluginConfig:
    """Read and parse one plugin's configuration, a `.conf` file (Go: ConfFromFile). Raises `ConfigError`."""
    data = _read(path)
    try:
        return network_plugin_conf_from_bytes(data)
    except ConfigError as exc:
        exc.path = path
        raise


def network_plugin_confs_from_files(directory: str, name: str) -> list[PluginConfig]:
    """Return the drop-in plugins of a network: all of DIRECTORY/NAME/*.conf, in the order of their names.

    A missing folder is no error. Raises `ConfigError`, and `ValidationError` for an invalid network name.
    """
    validate_network_name(name)
    folder = _join(directory, name)
    try:
        paths = conf_files(folder, (".conf",))
    except ConfigError as exc:
        raise ConfigError(f"failed to read plugin config files in {folder}: {exc}", folder) from exc
    return [network_plugin_conf_from_file(path) for path in paths]


# ---- lists


def network_conf_from_bytes(data: bytes) -> NetworkConfigList:
    """Parse a network list. A list without the key `plugins` is accepted and has none. Raises `ConfigError`."""
    try:
        raw = gojson.as_object(gojson.loads(data), "")
    except JSONError as exc:
        raise _failed(_LIST, exc) from exc
    if "name" not in raw:
        raise ConfigError(_LIST + "no name")
    name = raw["name"]
    if not isinstance(name, str):
        raise ConfigError(f"{_LIST}invalid name type {gojson.type_name(name)}")

    conf = NetworkConfigList(name, _negotiate_version(raw), [], data)
    conf.disable_check = _read_bool(raw, "disableCheck")
    conf.disable_gc = _read_bool(raw, "disableGC")
    conf.load_only_inlined_plugins = _read_bool(raw, "loadOnlyInlinedPlugins")

    if "plugins" not in raw:
        if conf.load_only_inlined_plugins:
            raise ConfigError(_LIST + "`loadOnlyInlinedPlugins` is true, and no 'plugins' key")
        return conf
    plugins = raw["plugins"]
    if not isinstance(plugins, list):
        raise ConfigError(f"{_LIST}invalid 'plugins' type {gojson.type_name(plugins)}")
    if not plugins:
        raise ConfigError(_LIST + "no plugins in list")
    for index, plugin in enumerate(plugins):
        # A plugin of a list gets its configuration encoded again: compact, with sorted keys.
        try:
            conf.plugins.append(network_plugin_conf_from_bytes(gojson.dumps(plugin)))
        except ConfigError as exc:
            raise ConfigError(f"failed to parse plugin config {index}: {exc}") from exc
    return conf


def _negotiate_version(raw: dict[str, t.Any]) -> str:
    """Return the list's version: the highest of cniVersions and cniVersion that this package knows.

    Without cniVersions, or if all are too new, cniVersion is used as it is ("" without cniVersion).
    """
    cni_version = raw.get("cniVersion", "")
    if not isinstance(cni_version, str):
        raise ConfigError(f"{_LIST}invalid cniVersion type {gojson.type_name(cni_version)}")
    if "cniVersions" not in raw:
        return cni_version
    entries = raw["cniVersions"]
    if not isinstance(entries, list):
        raise ConfigError(_LIST + "invalid type for cniVersions: []interface {}")
    candidates = []
    for index, entry in enumerate(entries):
        if not isinstance(entry, str):
            raise ConfigError(f"{_LIST}invalid type for cniVersions index {index}: {gojson.type_name(entry)}")
        if _is_known(entry, f"cniVersions entry {entry} at index {index}"):
            candidates.append(entry)
    if cni_version and _is_known(cni_version, f"cniVersion {cni_version}"):
        candidates.append(cni_version)
    return max(candidates, key=version.parse_version) if candidates else cni_version


def _is_known(cni_version: str, what: str) -> bool:
    try:
        return not version.greater_than(cni_version, version.CURRENT)
    except VersionError as exc:
        raise ConfigError(f"{_LIST}invalid {what}: {exc}") from exc


def _read_bool(raw: dict[str, t.Any], key: str) -> bool:
    value = raw.get(key, False)
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise ConfigError(f"{_LIST}invalid type {gojson.type_name(value)} for {key}")
    lower = value.lower()
    if lower not in ("true", "false"):
        raise ConfigError(f"{_LIST}invalid value {quote(lower)} for {key}")
    return lower == "true"


def network_conf_from_file(
    path: str, data: bytes | None = None, drop_ins_of: t.Callable[[str], list[PluginConfig] | None] | None = None
) -> NetworkConfigList:
    """Read a `.conflist` file and add its drop-ins, unless it says `loadOnlyInlinedPlugins`. Raises `ConfigError`.

    `data` is the content that the file will have, if it is not to be read. `drop_ins_of` returns the drop-ins that a
    network will have, None if they are to be read.
    """
    try:
        conf = network_conf_from_bytes(_read(path) if data is None else data)
    except ConfigError as exc:
        exc.path = path
        raise
    if not conf.load_only_inlined_plugins and conf.name and is_name(conf.name):
        known = drop_ins_of(conf.name) if drop_ins_of else None
        drop_ins = network_plugin_confs_from_files(os.path.dirname(path), conf.name) if known is None else known
        conf.plugins.extend(drop_ins)
        conf.drop_ins = len(drop_ins)
    if not conf.plugins:
        raise ConfigError("no plugin configs found", path)
    return conf


def conf_list_from_conf(original: PluginConfig) -> NetworkConfigList:
    """Convert a single plugin's configuration to a list. Raises `ConfigError`."""
    plugins = [gojson.loads(original.bytes)]
    conf = {"name": original.name, "cniVersion": original.cni_version, "plugins": plugins}
    return network_conf_from_bytes(gojson.dumps(conf))


# ---- directories


def conf_files(directory: str, extensions: t.Sequence[str]) -> list[str]:
    """Return the paths in `directory` (not below) whose text from the last dot on is one of `extensions`.

    Hidden files and links count, directories do not. Sorted by bytes, as Go's callers do. A directory that does not
    exist has no files. Raises `ConfigError` if it cannot be read.
    """
    try:
        with os.scandir(directory or ".") as entries:
            names = [entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as exc:
        reason = os_error_text("open", directory, exc) if isinstance(exc, OSError) else "invalid path"
        raise ConfigError(reason, directory) from exc
    paths = [_join(directory, name) for name in names if _extension(name) in extensions]
    return sorted(paths, key=os.fsencode)


def _extension(name: str) -> str:
    # Go's filepath.Ext counts a leading dot as the start of the extension; os.path.splitext does not.
    dot = name.rfind(".")
    return name[dot:] if dot >= 0 else ""


def load_conf(directory: str, name: str) -> PluginConfig:
    """Return the first single-plugin configuration (`.conf`, `.json`) of that name (Go: LoadConf).

    Raises `NoConfigsFoundError`, `NotFoundError`, or the `ConfigError` of a broken file that sorts before.
    """
    paths = conf_files(directory, (".conf", ".json"))
    if not paths:
        raise NoConfigsFoundError(directory)
    for path in paths:
        conf = network_plugin_conf_from_file(path)
        if conf.name == name:
            return conf
    raise NotFoundError(directory, name)


def load_network_conf(
    directory: str, name: str, read: t.Callable[[str], NetworkConfigList] = network_conf_from_file
) -> NetworkConfigList:
    """Return the network of that name: the first `.conflist`, else the first `.conf` or `.json` as a list of one.

    Loading a network reads the files that sort before its own; a `read` that caches them saves time for many networks.
    Raises `NoConfigsFoundError`, `NotFoundError`, or the `ConfigError` of a broken file that sorts before.
    """
    paths = conf_files(directory, (".conflist",))
    for path in paths:
        conf = read(path)
        if conf.name == name:
            return conf
    try:
        return conf_list_from_conf(load_conf(directory, name))
    except NoConfigsFoundError:
        if paths:
            raise NotFoundError(directory, name) from None
        raise


def inject_conf(original: PluginConfig, values: t.Mapping[str, t.Any]) -> PluginConfig:
    """Return `original` with `values` set at its top level, encoded with sorted keys. Raises `ConfigError`."""
    return network_plugin_conf_from_bytes(injected(original.bytes, values))


def injected(data: bytes, values: t.Mapping[str, t.Any]) -> bytes:
    """Return the JSON of a plugin's configuration as `inject_conf` changes it."""
    try:
        config = gojson.as_object(gojson.loads(data), "")
    except JSONError as exc:
        raise _failed("unmarshal existing network bytes: ", exc) from exc
    for key, value in values.items():
        if key == "":
            raise ConfigError("keys cannot be empty")
        if value is None:
            raise ConfigError(f"key '{key}' value must not be nil")
        config[key] = value
    return gojson.dumps(config)
