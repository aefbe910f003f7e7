# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a configuration of containerd, CRI-O or Nomad, as far as it can be told without its host.

Sources: containerd internal/cri/config/config.go (CniConfig), cmd/containerd/server/config; CRI-O pkg/config/config.go
(NetworkConfig); Nomad command/agent/config_parse.go, which refuses keys that it does not know.
"""

from __future__ import annotations

import bisect
import re
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...module_utils._host.errors import HostError
from ...module_utils._host.problems import ERROR, INFO, WARNING, Finding
from ...module_utils._host.runtimes import reading
from ...module_utils._host.runtimes.nomad import settings_in
from ...module_utils._host.runtimes.profiles import CONTAINERD_CRI
from ...module_utils._host.runtimes.toml import load_toml, statements
from .positions import UNKNOWN, Position
from .spelling import meant
from .templates import HIDDEN, is_half, is_placeholder, masked
from .validate import SECRET, secrets_in
from .yaml_text import values

_CNI = {
    "bin_dir": str,
    "bin_dirs": list,
    "conf_dir": str,
    "conf_template": str,
    "ip_pref": str,
    "max_conf_num": int,
    "setup_serially": bool,
    "use_internal_loopback": bool,
}
_HANDLER = {"cni_conf_dir": str, "cni_max_conf_num": int}
_CRIO = {"cni_default_network": str, "network_dir": str, "plugin_dir": str, "plugin_dirs": list}
_NOMAD = ("cni_config_dir", "cni_path")
_PATHS = ("bin_dir", "bin_dirs", "conf_dir", "cni_conf_dir", "network_dir", "plugin_dir", "plugin_dirs")
_KINDS = {
    str: "a string, in quotes",
    list: "a list of strings",
    int: "a whole number",
    bool: "true or false, without quotes",
}
_IS_CONTAINERD = re.compile(
    r"""^[^#\n]*\b(io\.containerd\.(grpc\.v1\.cri|cri\.v1)|plugins\.["']?cri|(disabled|required)_plugins)\b""",
    re.MULTILINE,
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
        return list(_Reader(path, False, lambda pointer: _place_of_key(text, pointer[-1])).nomad(settings))
    is_crio = bool(_IS_CRIO.search(text)) or "crio.conf.d/" in name or name.endswith("crio.conf")
    if not is_crio and not (name.endswith(".toml") and _IS_CONTAINERD.search(text)):
        return None
    certain = masked(text)
    problems: List[Finding] = []
    toml, tables = _quoted(certain.text), None
    while tables is None:
        try:
            tables = load_toml(toml)
        except HostError as error:
            line, column = _position(toml, ())
            if not certain.open and not is_half(certain.text):
                return [Finding(ERROR, "not_understood", f"this is not TOML: {error.msg}", "", path, "", line, column)]
            what = "this is a template; from here on, what is not TOML before it is rendered was not checked"
            problems = problems or [Finding(INFO, "template", what, "", path, "", line, column)]
            toml = _without(toml, line)
    reader = _Reader(path, bool(certain.open), lambda pointer: _position(toml, pointer))
    problems += reader.crio(tables) if is_crio else reader.containerd(tables)
    return problems + [reader.at(WARNING, "secret_in_file", SECRET, "", *pointer) for pointer in secrets_in(tables)]


def _position(text: str, pointer: Tuple[Any, ...]) -> Tuple[int, int]:
    """Return where the statement of TOML begins that sets the value at *pointer*; for (), the one that is no TOML."""
    lines = text.splitlines(keepends=True)
    starts = [line for line, _words in statements(text)] or [1]

    def is_later(line: int) -> bool:
        try:
            return (pointer in dict(values(load_toml("".join(lines[: line - 1]))))) == bool(pointer)
        except HostError:
            return not pointer

    line = starts[bisect.bisect_left(starts, True, key=is_later) - 1]
    return line, len(lines[line - 1]) - len(lines[line - 1].lstrip()) + 1


def _without(text: str, line: int) -> str:
    """Return TOML without the statement of a line, or without the table of which it is the header."""
    lines = text.splitlines(keepends=True)
    later = [(number, words[0] == "[") for number, words in statements(text) if number >= line]
    end = next((number for number, is_header in later[1:] if is_header or not later[0][1]), len(lines) + 1)
    return "".join([*lines[: line - 1], *["\n"] * (end - line), *lines[end - 1 :]])


def _place_of_key(text: str, key: str) -> Position:
    """Return where a key of HCL or JSON is."""
    match = re.search(rf"""(?:^|[{{,])[ \t]*(["']?{re.escape(key)}["']?\s*[=:])""", text, re.MULTILINE)
    at = match.start(1) if match else 0
    return (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)) if match else UNKNOWN


def _quoted(text: str) -> str:
    """Return TOML with quotes around values that are unknown."""
    text = re.sub(rf"(?m)^([^\"'\n]*=\s*){HIDDEN}+", r'\1"' + HIDDEN + '"', text)
    return re.sub(r"(?m)^\s*\[.*|^[^=\n\"]*=", lambda match: match[0].replace(HIDDEN, "x"), text)


class _Reader(NamedTuple):
    """*place* returns where the value at a pointer is set."""

    path: str
    is_open: bool
    place: Callable[[Tuple[Any, ...]], Position]

    def containerd(self, tables: Dict[str, Any]) -> Iterator[Finding]:
        version = next((number for number in _SECTION if number == tables.get("version")), 0)
        disabled = tables.get("disabled_plugins")
        yield from () if self.is_open else self._names(tables, version or 0)
        for section in CONTAINERD_CRI:
            at: Tuple[str, ...] = ("plugins", section, "cni")
            cni = reading.section(tables, *at)
            if cni and not self.is_open and isinstance(disabled, list) and section in disabled:
                what = "CRI is one of disabled_plugins, so its settings have no effect"
                yield self.at(WARNING, "ignored_setting", what, "remove it there, or the settings", "disabled_plugins")
            if (section, version) == (_FIRST, 2):
                continue
            if cni and not self.is_open and section != _SECTION.get(version, section):
                shown = f"version {version}" if version else "no version, which containerd 1.x takes for version 1"
                what = f'the file has {shown}, so plugins."{section}".cni is ignored'
                right = [number for number, name in _SECTION.items() if number and name == section]
                remedy = f'write version = {right[0]}, or the settings in plugins."{_SECTION[version]}".cni'
                yield self.at(WARNING, "ignored_setting", what, remedy, *(("version",) if version else at))
                continue
            known = {key: kind for key, kind in _CNI.items() if key != "bin_dirs" or section == _NEWEST}
            yield from self._keys(cni, known, *at)
            if section == _NEWEST and cni.get("bin_dir") and cni.get("bin_dirs") and not self.is_open:
                what = "bin_dir and bin_dirs are set, and containerd refuses both together"
                yield self.at(ERROR, "bin_dir_twice", what, "remove bin_dir", *at, "bin_dir")
            at = ("plugins", section, "containerd", "runtimes")
            for handler, settings in reading.section(tables, *at).items():
                own = {key: value for key, value in reading.section(settings).items() if key in _HANDLER}
                yield from self._keys(own, _HANDLER, *at, handler)

    def _names(self, tables: Dict[str, Any], version: int) -> Iterator[Finding]:
        """Yield names of plugins that containerd refuses: from version 2 of the file on they are whole."""
        # containerd 2 reads a table by its old name, too.
        for key in ("disabled_plugins", "required_plugins", *(["plugins"] if version == 2 else [])):
            names = tables.get(key) if version > 1 else None
            for name in names if isinstance(names, (list, dict)) else ():
                if isinstance(name, str) and not name.startswith("io.containerd.") and HIDDEN not in name:
                    program = "containerd 1" if key == "plugins" else "containerd"
                    what = f"{key} has {name!r}, and {program} refuses the whole file"
                    remedy = f"write {_SECOND if name == 'cri' else 'its name from io.containerd. on'}"
                    yield self.at(ERROR, "bad_setting", what, remedy, key, *([name] if key == "plugins" else []))

    def crio(self, tables: Dict[str, Any]) -> Iterator[Finding]:
        yield from self._keys(reading.section(tables, "crio", "network"), _CRIO, "crio", "network")
        for pointer, _value in values(tables):
            if pointer and pointer[-1] in _CRIO and pointer[:-1] != ("crio", "network"):
                what = f"{'.'.join(map(str, pointer))} is ignored by CRI-O; it is one of [crio.network]"
                yield self.at(WARNING, "ignored_setting", what, "move it there", *pointer)

    def nomad(self, settings: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
        for block, table in settings.items():
            known = _NOMAD if block == "client" else ()
            for key, value in table.items():
                if key in known and isinstance(value, str):
                    yield from self._paths(value.split(":"), key)
                elif key.startswith("cni_") and key not in known:
                    near = meant(key, known)
                    remedy = f"did you mean {near}?" if near else "remove it, or check its name and place"
                    yield self.at(ERROR, "unknown_key", f"Nomad refuses {key} in the block {block}", remedy, key)

    def _keys(self, table: Mapping[str, Any], known: Mapping[str, type], *at: str) -> Iterator[Finding]:
        program = "CRI-O" if at[0] == "crio" else "containerd"
        for key, value in table.items():
            if key not in known:
                near, where = meant(key, known), ".".join(f'"{part}"' if "." in part else part for part in at)
                what = f"{where} has no key {key!r}, and {program} ignores it"
                remedy = f"did you mean {near!r}?" if near else "remove it, or check its name"
                level = WARNING if near or program == "containerd" else INFO
                yield self.at(level, "unknown_key", what, remedy, *at, key)
            elif isinstance(value, str) and HIDDEN in value:
                continue
            elif not isinstance(value, known[key]) or (known[key] is int and isinstance(value, bool)):
                what = f"{key} is {value!r:.60}; it must be {_KINDS[known[key]]}"
                yield self.at(ERROR, "bad_setting", what, "", *at, key)
            elif key in _PATHS:
                yield from self._paths(value if isinstance(value, list) else [value], *at, key)

    def _paths(self, paths: Sequence[Any], *at: str) -> Iterator[Finding]:
        for path in paths:
            if isinstance(path, str) and path[:1] not in ("", "/") and not is_half(path) and not is_placeholder(path):
                what = f"{at[-1]} has {path!r}, which is relative to the directory in which the program happens to run"
                yield self.at(WARNING, "relative_path", what, "write the path from /", *at)

    def at(self, level: str, code: str, what: str, remedy: str, *pointer: Any) -> Finding:
        """Return the finding on the value at *pointer*."""
        return Finding(level, code, what, remedy, self.path, "", *self.place(pointer))
