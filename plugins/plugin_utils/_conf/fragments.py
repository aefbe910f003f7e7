# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a configuration of containerd, CRI-O or Nomad, as far as it can be told without its host.

Sources: containerd internal/cri/config/config.go (CniConfig), cmd/containerd/server/config; CRI-O pkg/config/config.go
(NetworkConfig); Nomad command/agent/config_parse.go, which refuses keys that it does not know.
"""

from __future__ import annotations

import bisect
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ...module_utils._host.errors import HostError
from ...module_utils._host.problems import ERROR, INFO, WARNING, Finding
from ...module_utils._host.runtimes import reading
from ...module_utils._host.runtimes.nomad import settings_in
from ...module_utils._host.runtimes.profiles import CONTAINERD_CRI
from ...module_utils._host.runtimes.toml import load_toml, statements
from .positions import Position
from .spelling import meant
from .templates import HIDDEN, is_half, is_placeholder, masked
from .validate import SECRET, secrets_in
from .yaml_text import values

_TEXT, _LIST, _NUMBER, _FLAG = str, list, int, bool
_CNI = {
    "bin_dir": _TEXT,
    "bin_dirs": _LIST,
    "conf_dir": _TEXT,
    "conf_template": _TEXT,
    "ip_pref": _TEXT,
    "max_conf_num": _NUMBER,
    "setup_serially": _FLAG,
    "use_internal_loopback": _FLAG,
}
_HANDLER = {"cni_conf_dir": _TEXT, "cni_max_conf_num": _NUMBER}
_CRIO = {"cni_default_network": _TEXT, "network_dir": _TEXT, "plugin_dir": _TEXT, "plugin_dirs": _LIST}
_NOMAD = {"cni_config_dir": _TEXT, "cni_path": _TEXT}
_PATHS = ("bin_dir", "bin_dirs", "conf_dir", "cni_conf_dir", "network_dir", "plugin_dir", "plugin_dirs")
_KINDS = {
    _TEXT: "a string, in quotes",
    _LIST: "a list of strings",
    _NUMBER: "a whole number",
    _FLAG: "true or false, without quotes",
}
_IS_CONTAINERD = re.compile(
    r"""^[^#\n]*\b(io\.containerd\.(grpc\.v1\.cri|cri\.v1)|plugins\.["']?cri)\b""", re.MULTILINE
)
_IS_CRIO = re.compile(r"^\s*\[crio(\.\w+)*\]", re.MULTILINE)
_IS_NOMAD = re.compile(r"""^[\s{]*"?client"?\s*[:=]?\s*[\[{]""", re.MULTILINE)
# The section of CRI by the version of the file; 1.x reads a file without a version as one of version 1.
_NEWEST, _SECOND, _FIRST = CONTAINERD_CRI
_SECTION = {None: _FIRST, 1: _FIRST, 2: _SECOND, 3: _NEWEST, 4: _NEWEST}


def fragment_problems(text: str, path: str, name: str) -> Optional[List[Finding]]:
    """Return what is wrong with a file, None if it is no configuration of a runtime.

    *name* is the *path* without the ending of a template.
    """
    if name.endswith((".hcl", ".json")):
        if not _IS_NOMAD.search(text) or "cni_" not in text:
            return None
        try:
            settings = settings_in(_quoted(masked(text).text))
        except HostError:
            # Terraform and job files have the same form.
            return []
        return list(_Reader(text, path, False).nomad(settings))
    is_crio = bool(_IS_CRIO.search(text)) or "crio.conf.d/" in name or name.endswith("crio.conf")
    if not is_crio and not (name.endswith(".toml") and _IS_CONTAINERD.search(text)):
        return None
    found = masked(text)
    toml = _quoted(found.text)
    try:
        tables = load_toml(toml)
    except HostError as error:
        position = _position(toml, ())
        if found.open or is_half(found.text):
            what = "this is a template; it was not checked, because it is not TOML before it is rendered"
            return [Finding(INFO, "template", what, "", path, "", *position)]
        return [Finding(ERROR, "not_understood", f"this is not TOML: {error.msg}", "", path, "", *position)]
    reader = _Reader(text, path, bool(found.open))
    problems = list(reader.crio(tables) if is_crio else reader.containerd(tables))
    secrets = [_position(toml, pointer) for pointer in secrets_in(tables)]
    return [*problems, *(Finding(WARNING, "secret_in_file", SECRET, "", path, "", *place) for place in secrets)]


def _position(text: str, pointer: Tuple[Any, ...]) -> Position:
    """Return where the statement of TOML begins that sets the value at *pointer*; for (), the one that is no TOML."""
    lines = text.splitlines(keepends=True)
    starts = [line for line, _words in statements(text)]
    # Up to a later statement, the file has the value, or is no TOML.
    late = bisect.bisect_left(starts, True, key=lambda line: _holds(lines[: line - 1], pointer) == bool(pointer))
    line = starts[late - 1]
    return line, len(lines[line - 1]) - len(lines[line - 1].lstrip()) + 1


def _holds(lines: Sequence[str], pointer: Tuple[Any, ...]) -> bool:
    """Tell whether lines are TOML that has a value at *pointer*."""
    try:
        return pointer in dict(values(load_toml("".join(lines))))
    except HostError:
        return False


def _quoted(text: str) -> str:
    """Return TOML with quotes around values that are unknown."""
    text = re.sub(rf"(?m)^([^\"'\n]*=\s*){HIDDEN}+", r'\1"' + HIDDEN + '"', text)
    return re.sub(r"(?m)^\s*\[.*|^[^=\n\"]*=", lambda match: match[0].replace(HIDDEN, "x"), text)


class _Reader:
    def __init__(self, text: str, path: str, is_open: bool) -> None:
        self._text = text
        self._path = path
        self._is_open = is_open

    def containerd(self, tables: Dict[str, Any]) -> Iterator[Finding]:
        plugins = reading.section(tables, "plugins")
        version = tables.get("version")
        for section in CONTAINERD_CRI:
            cni = reading.section(plugins, section, "cni")
            if cni and version in _SECTION and section != _SECTION[version] and not self._is_open:
                yield self._ignored(section, version)
                continue
            yield from self._keys(cni, _CNI, "containerd", f'plugins."{section}".cni')
            if cni.get("bin_dir") and cni.get("bin_dirs"):
                what = "bin_dir and bin_dirs are set, and containerd refuses both together"
                yield self._at(ERROR, "bin_dir_twice", what, "remove bin_dir", "bin_dir")
            elif "bin_dirs" in cni and section != _NEWEST:
                what = f'plugins."{section}".cni has no bin_dirs, and containerd ignores it; only version 3 has it'
                yield self._at(WARNING, "unknown_key", what, "write bin_dir", "bin_dirs")
            for handler, settings in reading.section(plugins, section, "containerd", "runtimes").items():
                own = {key: value for key, value in reading.section(settings).items() if key in _HANDLER}
                yield from self._keys(own, _HANDLER, "containerd", f"runtimes.{handler}")
        configured = [name for name in CONTAINERD_CRI if reading.section(plugins, name, "cni")]
        disabled = tables.get("disabled_plugins")
        if isinstance(disabled, list) and any(name in disabled for name in configured):
            what = "CRI is one of disabled_plugins, so its settings have no effect"
            yield self._at(WARNING, "ignored_setting", what, "remove it there, or the settings", "disabled_plugins")

    def _ignored(self, section: str, version: Any) -> Finding:
        shown = f"version {version}" if version else "no version, which containerd 1.x takes for version 1"
        what = f'the file has {shown}, so plugins."{section}".cni is ignored'
        right = next(number for number, name in _SECTION.items() if number and name == section)
        remedy = f'write version = {right}, or the settings in plugins."{_SECTION[version]}".cni'
        return self._at(WARNING, "ignored_setting", what, remedy, "version")

    def crio(self, tables: Dict[str, Any]) -> Iterator[Finding]:
        crio = reading.section(tables, "crio")
        yield from self._keys(reading.section(crio, "network"), _CRIO, "CRI-O", "crio.network")
        places = {"": tables, "network": reading.section(tables, "network"), "crio": crio}
        places.update({f"crio.{name}": table for name, table in crio.items() if name != "network"})
        for name, table in places.items():
            for key in sorted(set(reading.section(table)) & set(_CRIO)):
                what = f"{name + '.' if name else ''}{key} is ignored by CRI-O; it is one of [crio.network]"
                yield self._at(WARNING, "ignored_setting", what, "move it there", key)

    def nomad(self, settings: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
        for block, table in settings.items():
            for key, value in table.items():
                if not key.startswith("cni_"):
                    continue
                if block != "client" or key not in _NOMAD:
                    near = meant(key, _NOMAD) if block == "client" else ""
                    what = f"Nomad refuses {key} in the block {block}"
                    remedy = f"did you mean {near}?" if near else "remove it, or check its name and place"
                    yield self._at(ERROR, "unknown_key", what, remedy, key)
                elif isinstance(value, str):
                    yield from self._paths(key, value.split(":"))

    def _keys(self, table: Mapping[str, Any], known: Mapping[str, type], program: str, where: str) -> Iterator[Finding]:
        for key, value in table.items():
            if key not in known:
                near = meant(key, known)
                what = f"{where} has no key {key!r}, and {program} ignores it"
                remedy = f"did you mean {near!r}?" if near else "remove it, or check its name"
                yield self._at(WARNING if near or program == "containerd" else INFO, "unknown_key", what, remedy, key)
            elif isinstance(value, str) and HIDDEN in value:
                continue
            elif not isinstance(value, known[key]) or (known[key] is _NUMBER and isinstance(value, bool)):
                what = f"{key} is {value!r:.60}; it must be {_KINDS[known[key]]}"
                yield self._at(ERROR, "bad_setting", what, "", key)
            elif key in _PATHS:
                yield from self._paths(key, value if isinstance(value, list) else [value])

    def _paths(self, key: str, paths: Sequence[Any]) -> Iterator[Finding]:
        for path in paths:
            is_known = isinstance(path, str) and HIDDEN not in path and not is_half(path) and not is_placeholder(path)
            if is_known and path and not path.startswith("/"):
                what = f"{key} has {path!r}, which is relative to the directory in which the program happens to run"
                yield self._at(WARNING, "relative_path", what, "write the path from /", key)

    def _at(self, level: str, code: str, what: str, remedy: str, key: str) -> Finding:
        match = re.search(rf"""^([ \t]*)["']?{re.escape(key)}["']?\s*[=:]""", self._text, re.MULTILINE)
        line = self._text.count("\n", 0, match.end(1)) + 1 if match else None
        return Finding(level, code, what, remedy, self._path, "", line, len(match[1]) + 1 if match else None)
