# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The option ``networks`` as a whole: every entry checked, every configuration validated and rendered."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Optional, Sequence

from ...module_utils._host.errors import HostError
from ...module_utils._host.networks.request import (
    LEVELS,
    NETWORK_ARGUMENTS,
    check_priority,
    read_drop_in_name,
    read_file_name,
)
from ...module_utils._host.paths import file_name
from ...module_utils._host.problems import ERROR, Finding, errors_of
from .positions import UNKNOWN, DataPositions
from .spelling import unsupported
from .syntax import name_findings, shown
from .validate import Checked, DataSource, Source, TextSource, Unreadable, parse, render

SOURCES = ("conflist", "content", "src")
_STATES = NETWORK_ARGUMENTS["state"]["choices"]


def no_files(_src: str) -> tuple[str, bytes]:
    """Raise ValueError: what has no task reads no files."""
    raise ValueError("a filter reads no files; write content: \"{{ lookup('ansible.builtin.file', ...) }}\" instead")


class CheckedNetworks:
    """``rendered`` is the input of the module (``[{name, content, priority, file, state}]``), ``problems`` are all
    findings, ``present`` is the number of networks with state present.

    *read* returns path and content of a file on the controller, or raises ValueError. *may_be_empty*: the task has
    other work than networks. *place* is that of the only network in problems.
    """

    def __init__(
        self,
        networks: Any,
        levels: Any,
        read: Callable[[str], tuple[str, bytes]],
        may_be_empty: bool = False,
        place: str = "",
    ) -> None:
        self.problems: list[Finding] = []
        self.rendered: list[dict[str, Any]] = []
        self.present = 0
        self._read = read
        self._levels: Sequence[str] = ()
        # The entry that is being checked: the place of problems without a better one.
        self._entry: Any = networks
        if not isinstance(levels, list) or any(level not in LEVELS for level in levels):
            self._error("validate", f"the value must be a list of levels; the levels are {', '.join(LEVELS)}")
        else:
            self._levels = levels
        if not isinstance(networks, list) or not (networks or may_be_empty):
            what = "the option is missing" if networks is None else f"it is {shown(networks)}"
            self._error(
                "networks", f"{what}; write a list of networks, such as [{{'name': 'apps', 'src': 'apps.conflist'}}]"
            )
            return
        for index, given in enumerate(networks):
            self._network(place or f"networks[{index}]", given)
        self._entry = networks
        self._unique()

    def _error(self, where: str, message: str, code: str = "bad_argument", given: Any = None) -> None:
        position = DataPositions(given).find(())
        line, column = position if position != UNKNOWN else DataPositions(self._entry).find(())
        self.problems.append(Finding(ERROR, code, message, "", where, "", line, column))

    def _network(self, where: str, given: Any) -> None:
        self._entry = given
        if not isinstance(given, dict):
            self._error(where, "a network is a mapping such as {'name': 'apps', 'src': 'apps.conflist'}")
            return
        count_before = len(self.problems)
        given = {key: value for key, value in given.items() if value is not None}
        state = given.get("state", "present")
        if state not in _STATES:
            self._error(where, f"state is {state!r}; write {', '.join(_STATES[:-1])} or {_STATES[-1]}")
        out = {"state": state}
        self._options(where, given, out)
        if state == "present":
            self.present += 1
            self._configuration(where, given, out)
        elif "name" not in given and (state != "restored" or "file" not in given):
            needed = "the network's 'name', or its original 'file'" if state == "restored" else "the network's 'name'"
            self._error(where, f"'state: {state}' needs {needed}")
        if not errors_of(self.problems[count_before:]):
            self.rendered.append(out)

    def _options(self, where: str, given: dict[str, Any], out: dict[str, Any]) -> None:
        for key in given:
            for text in unsupported([key], NETWORK_ARGUMENTS):
                self._error(where, text, given=key)
        if "name" in given:
            out["name"] = given["name"]
            for finding in name_findings(given["name"]):
                self._error(where, finding.message, finding.code, given["name"])
        try:
            if "priority" in given:
                out["priority"] = check_priority(_integer(given["priority"]), "priority")
            if "file" in given:
                # The original file can have any name.
                read = file_name if given.get("state") == "restored" else read_file_name
                out["file"] = read(str(given["file"]), "file")
        except HostError as error:
            self._error(where, error.msg, error.code, given.get("file"))

    def _configuration(self, where: str, given: dict[str, Any], out: dict[str, Any]) -> None:
        sources = [key for key in SOURCES if key in given]
        if len(sources) != 1:
            what = f"{' and '.join(sources)} are mutually exclusive" if sources else "the configuration is missing"
            rule = "write exactly one of conflist (a mapping), content (JSON text) and src (a file on the controller)"
            self._error(where, f"{what}; {rule}")
            return
        opened = self._open(where, sources[0], given[sources[0]])
        if opened is None:
            return
        source, label = opened
        name = given.get("name")
        checked = Checked(source, label, name if isinstance(name, str) else None, self._levels)
        self.problems.extend(checked.problems)
        out["name"], out["replace"] = checked.name, given.get("replace", False)
        out["content"] = checked.text
        if "drop_ins" in given and not errors_of(checked.problems):
            out["drop_ins"] = self._drop_ins(f"{where}.drop_ins", given["drop_ins"], parse(checked.text))

    def _open(self, where: str, key: str, value: Any) -> Optional[tuple[Source, str]]:
        """Return the source and its name for messages; None after adding a problem."""
        label = f"{where}.{key}"
        if key == "conflist":
            if isinstance(value, dict):
                return DataSource(value), label
            self._error(label, f"it must be a mapping, not {_kind(value)}; use 'content' for JSON text", given=value)
            return None
        if not isinstance(value, str):
            self._error(label, f"it must be a string, not {_kind(value)}; use 'conflist' for a mapping", given=value)
            return None
        if key == "content":
            return TextSource(value), label
        try:
            label, data = self._read(value)
            return TextSource(data.decode("utf-8")), label
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            text = f"line {line} is not UTF-8, which JSON requires; save the file as UTF-8 without BOM"
            if data.startswith((b"\xff\xfe", b"\xfe\xff")):
                text = "the file is UTF-16, which PowerShell's > writes; save it as UTF-8 without BOM"
            elif data.startswith(b"\x1f\x8b"):
                text = "the file is compressed by gzip; unpack it"
            self.problems.append(Finding(ERROR, "not_utf8", text, "", label, "", line, 1))
        except ValueError as error:
            self._error(label, str(error), "src_unreadable", value)
        return None

    def _drop_ins(self, where: str, given: Any, conflist: dict[str, Any]) -> list[dict[str, str]]:
        """Return the drop-ins as the module takes them (``[{file, content}]``). Their plugins continue the chain."""
        if not isinstance(given, list):
            self._error(
                where, f"it is {shown(given)}; write a list such as [{{'file': '10-x.conf', 'plugin': {{...}}}}]"
            )
            return []
        if given and str(conflist.get("loadOnlyInlinedPlugins", False)).lower() == "true":
            self._error(
                where, "the conflist says loadOnlyInlinedPlugins, so no runtime reads drop-ins; remove one of the two"
            )
        # Runtimes read them in the order of their names.
        files: dict[str, tuple[str, Any]] = {}
        for index, entry in enumerate(given):
            place = f"{where}[{index}]"
            name = self._drop_in_name(place, entry)
            if name in files:
                self._error(place, f"the file {name} is listed twice; keep one of the entries", "name_twice", entry)
            elif name:
                files[name] = (place, entry)
        chain = list(conflist.get("plugins") or [])
        rendered = []
        for name, (place, entry) in sorted(files.items()):
            plugin = self._plugin(place, entry)
            if plugin is not None:
                self._check_in_chain(place, {**conflist, "plugins": [*chain, plugin]})
                chain.append(plugin)
                rendered.append({"file": name, "content": render(plugin)})
        return rendered

    def _drop_in_name(self, where: str, given: Any) -> str:
        if not isinstance(given, dict):
            what = "a drop-in is a mapping, such as {'file': '10-sbr.conf', 'plugin': {'type': 'sbr'}}"
            self._error(where, what, given=given)
            return ""
        for text in unsupported(given, NETWORK_ARGUMENTS["drop_ins"]["options"]):
            self._error(where, text, given=given)
        try:
            return read_drop_in_name(str(given.get("file") or ""), "file")
        except HostError as error:
            self._error(where, error.msg, error.code, given)
            return ""

    def _plugin(self, where: str, given: dict[str, Any]) -> Optional[dict[str, Any]]:
        sources = [key for key in ("plugin", "content") if given.get(key) is not None]
        if len(sources) != 1:
            self._error(where, "write exactly one of plugin (a mapping) and content (JSON text)", given=given)
            return None
        value = given[sources[0]]
        try:
            plugin = (DataSource(value) if sources[0] == "plugin" else TextSource(str(value))).document()
        except Unreadable as error:
            self.problems.append(error.finding._replace(file=f"{where}.{sources[0]}"))
            return None
        if not isinstance(plugin, dict) or "plugins" in plugin:
            what = "a drop-in is the configuration of one plugin, an object with the key type"
            self._error(where, what, given=value)
            return None
        return plugin

    def _check_in_chain(self, where: str, conflist: dict[str, Any]) -> None:
        """Check the last plugin of a chain; only what is found in it counts."""
        pointer = f"/plugins/{len(conflist['plugins']) - 1}"
        for problem in Checked(TextSource(render(conflist)), where, None, self._levels).problems:
            if problem.pointer == pointer or problem.pointer.startswith(f"{pointer}/"):
                self.problems.append(problem._replace(pointer=problem.pointer[len(pointer) :], line=None, column=None))

    def _unique(self) -> None:
        for name, count in Counter(network.get("name") for network in self.rendered).items():
            if name is not None and count > 1:
                self._error("networks", f"the network {name!r} is listed twice; keep one of the entries", "name_twice")


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not str(value).isdigit():
        raise HostError(f"priority is {shown(value)}; write a number from 0 to 99", code="bad_priority")
    return int(value)


def _kind(value: Any) -> str:
    kinds = ((dict, "a mapping"), (list, "a list"), (str, "a text"))
    return next((text for kind, text in kinds if isinstance(value, kind)), shown(value))
