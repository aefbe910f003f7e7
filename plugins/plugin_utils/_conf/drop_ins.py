# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The option ``drop_ins`` of a network: plugins that runtimes append to its chain, each in a file of its own."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from ...module_utils._host.errors import HostError
from ...module_utils._host.networks.request import NETWORK_ARGUMENTS, read_drop_in_name
from ...module_utils._host.problems import ERROR, problem
from ..remedies import no_options
from .render import parse, render
from .source import DataSource, TextSource, Unreadable
from .syntax import shown
from .validate import Checked

_KEYS = NETWORK_ARGUMENTS["drop_ins"]["options"]


class CheckedDropIns:
    """``rendered`` is the input of the module (``[{file, content}]``), ``problems`` are all findings.

    *conflist* is the rendered text of the network, whose chain the plugins continue.
    """

    def __init__(self, given: Any, conflist: str, where: str, levels: Sequence[str]) -> None:
        self.problems: list[dict[str, Any]] = []
        self.rendered: list[dict[str, str]] = []
        self._levels = levels
        self._names: set[str] = set()
        if not isinstance(given, list):
            self._error(
                where, f"it is {shown(given)}; write a list such as [{{'file': '10-x.conf', 'plugin': {{...}}}}]"
            )
            return
        self._document = parse(conflist)
        if given and self._inlined_only():
            self._error(
                where, "the conflist says loadOnlyInlinedPlugins, so no runtime reads drop-ins; remove one of both"
            )
        # Runtimes read them in the order of their names.
        entries = [(self._file(one, f"{where}[{index}]"), index, one) for index, one in enumerate(given)]
        chain = list(self._document.get("plugins") or [])
        for file, index, one in sorted((entry for entry in entries if entry[0]), key=lambda entry: str(entry[0])):
            plugin = self._plugin(one, f"{where}[{index}]")
            if plugin is not None:
                self._check(chain, plugin, f"{where}[{index}]")
                chain.append(plugin)
                self.rendered.append({"file": str(file), "content": render(plugin)})

    def _error(self, where: str, message: str, code: str = "bad_argument") -> None:
        self.problems.append(problem(ERROR, code, message, where))

    def _inlined_only(self) -> bool:
        return str(self._document.get("loadOnlyInlinedPlugins", False)).lower() == "true"

    def _file(self, given: Any, where: str) -> Optional[str]:
        if not isinstance(given, dict):
            self._error(
                where, "a drop-in is a mapping such as {'file': '10-tuning.conf', 'plugin': {'type': 'tuning'}}"
            )
            return None
        for text in no_options(given, _KEYS):
            self._error(where, text)
        try:
            name = read_drop_in_name(str(given.get("file") or ""), "file")
        except HostError as error:
            self._error(where, error.msg, error.code)
            return None
        if name in self._names:
            self._error(where, f"the file {name} is listed twice; keep one of the entries", "name_twice")
            return None
        self._names.add(name)
        return name

    def _plugin(self, given: dict[str, Any], where: str) -> Optional[dict[str, Any]]:
        sources = [key for key in ("plugin", "content") if given.get(key) is not None]
        if len(sources) != 1:
            self._error(where, "write exactly one of plugin (a mapping) and content (JSON text)")
            return None
        value = given[sources[0]]
        try:
            found = (DataSource(value) if sources[0] == "plugin" else TextSource(str(value))).document()
        except Unreadable as error:
            place = f"{where}.{sources[0]}"
            self.problems.append(problem(ERROR, error.code, error.message, place, line=error.line, column=error.column))
            return None
        if not isinstance(found, dict) or "plugins" in found:
            self._error(where, "a drop-in is the configuration of one plugin, an object with the key type")
            return None
        return found

    def _check(self, chain: list[Any], plugin: dict[str, Any], where: str) -> None:
        """Check a plugin at its place in the chain; only what is found in it counts."""
        pointer = f"/plugins/{len(chain)}"
        document = {**self._document, "plugins": [*chain, plugin]}
        for found in Checked(TextSource(render(document)), where, None, self._levels).problems:
            inside = str(found["pointer"])
            if inside == pointer or inside.startswith(f"{pointer}/"):
                self.problems.append(dict(found, pointer=inside[len(pointer) :], line=None, column=None))
