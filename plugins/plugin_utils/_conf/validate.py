# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""One configuration: its source, a text or a mapping, what is wrong with it, and its rendered text.

Rendered JSON has this collection's layout: two spaces, keys in the user's order, numbers as the user wrote them.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Iterator, Optional, Sequence, Union

from ...module_utils._host.binaries.types import delegates_of
from ...module_utils._host.checks.view import ConfView, network_problems
from ...module_utils._host.confdir import ConfFile
from ...module_utils._host.json_text import parse_json
from ...module_utils._host.model import uses_of_network
from ...module_utils._host.problems import ERROR, INFO, WARNING, Finding, errors_of
from ...module_utils._host.secrets import mask
from ...module_utils.libcni import gojson
from ...module_utils.libcni.errors import JSONError
from .causes import cause, whole_text_cause
from .positions import UNKNOWN, DataPositions, Fault, Position, TextPositions, text_of
from .schema import schema_findings
from .syntax import REFUSED, list_findings, member, name_findings
from .templates import HIDDEN, is_certain, is_half, masked_json, with_right_commas
from .yaml_text import values

SECRET = "the file has a secret, which everybody who can read the repository sees; leave it out, and fill it in later"
TEMPLATE = "this is a template; what depends on its expressions was not checked"
# A word in capitals for a number, which another program fills in.
_BARE = re.compile(r'("\s*:\s*)(?!(?:TRUE|FALSE|NONE|NULL|YES|OFF)\b)([A-Z][A-Z0-9_]+[A-Z0-9])(?=\s*[,}])')
_UNKNOWN_KEY = re.compile(rf'{HIDDEN}[^"\n]*"\s*:')
ALONE = "alone"
"""The level for what a host would say of the network in its level ``directory``, whatever else is in the directory."""


class Unreadable(Exception):
    """The source is not JSON, or has values that JSON does not have. ``finding`` says it, without the file."""

    def __init__(self, code: str, message: str, position: Position = UNKNOWN, pointer: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        # INFO: a template of which nothing can be read before it is rendered.
        level = INFO if code == "template" else ERROR
        self.finding = Finding(level, code, message, "", "", text_of(pointer), *position)


class _Source:
    """``marked``: it is a template. ``in_file``: it stands in a file as it is, and not in a task."""

    marked = in_file = False

    def is_certain(self, document: Any, fault: Fault) -> bool:
        """Tell whether a fault of the *document* is one whatever a template makes of the text."""
        return True


class TextSource(_Source):
    """JSON text. ``document`` keeps numbers as they are written."""

    def __init__(self, text: str) -> None:
        self.text = str(text)
        self.positions = TextPositions(self.text)

    def document(self) -> Any:
        """Return the parsed text. Raises :class:`Unreadable` with the cause."""
        if not self.text.strip():
            raise Unreadable("json_empty", "the configuration is empty; write a network configuration in JSON")
        try:
            gojson.loads(self.text)
        except JSONError as error:
            raise _unreadable(self.text, error) from error
        return parse(self.text)


class TemplateSource(TextSource):
    """JSON text that may be a template: what :func:`templates.masked` has left of it.

    *is_open*: statements in it make parts of it come and go.
    """

    in_file = True

    def __init__(self, text: str, is_open: bool) -> None:
        text, more = masked_json(bare := _BARE.sub(lambda match: match[1] + HIDDEN * len(match[2]), text))
        super().__init__(text)
        # Text in quotes cannot make the rest right.
        self._is_quoted = text == bare
        self._open = is_open or more or _UNKNOWN_KEY.search(text) is not None
        self.marked = self._open or HIDDEN in text

    def document(self) -> Any:
        for text in (self.text, with_right_commas(self.text)):
            self.text, self.positions = text, TextPositions(text)
            try:
                return super().document()
            except Unreadable as error:
                if error.finding.code == "json_yaml":
                    what = "this is YAML; write JSON, the only form that runtimes read"
                    error.finding = error.finding._replace(what=what)
                if self._is_quoted and not self._open and not is_half(text.replace(HIDDEN, "")):
                    raise
        text = "this is a template; it was not checked, because it is not JSON before it is rendered"
        raise Unreadable("template", text, (1, 1))

    def is_certain(self, document: Any, fault: Fault) -> bool:
        if fault.code == "duplicate_key" or not fault.pointer:
            return not self._open
        if fault.code in ("unknown_key", "key_case", "deprecated_key") and not self._open:
            # The value does not matter.
            return HIDDEN not in "".join(map(str, fault.pointer))
        return is_certain(document, fault.pointer, self._open)


def _unreadable(text: str, error: JSONError) -> Unreadable:
    """Return the error for a text that is not JSON: place, cause, and what to write."""
    defect = whole_text_cause(text)
    if defect is None:
        lines = text.split("\n")
        if not error.line or not error.column or error.line > len(lines):
            return Unreadable("json_invalid", f"this is not JSON that libcni accepts: {error.msg}")
        defect = cause(text, sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1, error.msg)
    code, message, at = defect
    return Unreadable(code, message, (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)))


class DataSource(_Source):
    """A mapping from a playbook."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self.positions = DataPositions(data)

    def document(self) -> Any:
        """Return a copy with only JSON's types. Raises :class:`Unreadable`."""
        return self._plain(self._data, ())

    def _plain(self, value: Any, pointer: tuple[Any, ...]) -> Any:
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    text = f"YAML does not read the key {key!r} as a string; put it in quotes"
                    raise self._refused("key_not_string", text, (*pointer, key))
            return {str(key): self._plain(member, (*pointer, key)) for key, member in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._plain(element, (*pointer, index)) for index, element in enumerate(value)]
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            try:
                float(value)
            except OverflowError:
                text = "this number is too large for Go; if it is not a number, put it in quotes"
                raise self._refused("json_number", text, pointer) from None
            return value
        if isinstance(value, float) and math.isfinite(value):
            return value
        if isinstance(value, str):
            return str(value)
        kind = type(value).__name__.lstrip("_")
        text = f"YAML reads {str(value)!r} as the type {kind}, which JSON does not have; put it in quotes"
        raise self._refused("not_json_type", text, pointer)

    def _refused(self, code: str, message: str, pointer: tuple[Any, ...]) -> Unreadable:
        return Unreadable(code, message, self.positions.find(pointer), pointer)


class Number(str):
    """A number as it was typed, such as ``1500.0``."""

    __slots__ = ()


def parse(text: str) -> Any:
    """Return *text*, which must be valid JSON, with every number as a :class:`Number`."""
    return parse_json(text, parse_int=Number, parse_float=Number)


def render(value: Any) -> str:
    """Return *value* as JSON text with a newline at the end.

    *value* consists of the types of JSON and of :class:`Number`; keys must be strings.
    """
    return _render(value, "\n") + "\n"


def _render(value: Any, newline: str) -> str:
    inner = newline + "  "
    if isinstance(value, dict) and value:
        members = [f"{_scalar(key)}: {_render(member, inner)}" for key, member in value.items()]
        return "{" + inner + ("," + inner).join(members) + newline + "}"
    if isinstance(value, list) and value:
        elements = [_render(element, inner) for element in value]
        return "[" + inner + ("," + inner).join(elements) + newline + "]"
    return str(value) if isinstance(value, Number) else _scalar(value)


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


# ---- what is wrong with it

Source = Union[TextSource, DataSource]


class Checked:
    """The result for a configuration: ``name`` ("" if there is none), ``text`` (rendered conflist), ``problems``.

    ``name`` and ``text`` are usable only if no problem is an error. *user*: who asks for the network, see
    :func:`ipam_findings`.
    """

    def __init__(self, source: Source, label: str, name: Optional[str], levels: Sequence[str], user: str = "") -> None:
        self.name = name or ""
        self.text = ""
        self.problems: list[Finding] = []
        self._source = source
        self._data: Any = None
        self._label = label
        self._user = user
        # A single plugin's configuration becomes a conflist with one plugin; its pointers omit what the conflist adds.
        self._single = False
        try:
            self._check(name, levels)
        except Unreadable as error:
            self.problems.append(error.finding._replace(file=label))
        except (RecursionError, JSONError):
            # Numbers and words that JSON does not have are already reported.
            text = "the configuration is nested too deeply; no plugin needs more than a few levels"
            self.problems.append(Finding(ERROR, "json_invalid", text, file=label))

    def _check(self, name: Optional[str], levels: Sequence[str]) -> None:
        document = self._source.document()
        if not isinstance(document, dict):
            text = 'this is not an object; a configuration starts with {"cniVersion": ...'
            if isinstance(document, str) and document.lstrip().startswith("{"):
                text = "this is a string that contains JSON, as after applying to_json twice; remove one of them"
            raise Unreadable("not_object", text)
        document = self._as_list(document)
        document = self._with_name(document, name)
        self.text = render(document)
        data = self._data = gojson.loads(self.text)
        if self._source.marked:
            self._add([Fault(INFO, "template", TEMPLATE)])
        self._add(list(self._name_findings(data, name)))
        if "syntax" in levels:
            # Of a file, templates are known already, and what libcni says of one is about no rendered text.
            passed = ("template",) * self._source.in_file + (REFUSED,) * self._source.marked
            self._add([fault for fault in list_findings(data) if fault.code not in passed])
            self._add(list(self._duplicate_keys()))
        refused = [finding for finding in self.problems if finding.code == REFUSED]
        if "schema" in levels and errors_of(self.problems) == refused:
            faults = schema_findings(data, self._user)
            if refused and any(fault.level == ERROR for fault in faults):
                # The schema level reports the place and what to write.
                self.problems.remove(refused[0])
            self._add(faults)
        if ALONE in levels and not errors_of(self.problems):
            self._add(list(_as_hosts_say(self.text)))
        for index, plugin in enumerate(data["plugins"] if isinstance(data.get("plugins"), list) else []):
            for place, network in delegates_of(plugin, f"/plugins/{index}") if isinstance(plugin, dict) else ():
                self._add(list(_delegate(network, place, levels)))
        if self._source.in_file:
            self._add([Fault(WARNING, "secret_in_file", SECRET, pointer) for pointer in secrets_in(data)])
        self.problems = once(self.problems)

    def _as_list(self, document: dict[str, Any]) -> dict[str, Any]:
        kind = member(document, "type")[0]
        self._single = kind is not None and member(document, "plugins")[0] is None
        if not self._single:
            return document
        outer = {key: value for key, value in document.items() if key in ("cniVersion", "name")}
        return {**outer, "plugins": [{key: value for key, value in document.items() if key not in outer}]}

    @staticmethod
    def _with_name(document: dict[str, Any], name: Optional[str]) -> dict[str, Any]:
        if name is None or "name" in document:
            return document
        # After the version if that comes first, as is usual; no other key moves.
        head = {key: document[key] for key in list(document)[:1] if key == "cniVersion"}
        return {**head, "name": name, **document}

    def _name_findings(self, data: dict[str, Any], name: Optional[str]) -> Iterator[Fault]:
        given = data.get("name")
        if given is None and name is None:
            yield self._no_name(data)
            return
        yield from name_findings(given)
        if isinstance(given, str):
            self.name = given
        if name is not None and given != name:
            text = (
                f"the configuration's name is {given!r} and the task's is {name!r}; make them equal, or remove one "
                "of them"
            )
            yield Fault(ERROR, "name_differs", text, ("name",))

    def _no_name(self, data: dict[str, Any]) -> Fault:
        if not self._source.in_file:
            return Fault(ERROR, "no_name", "the network has no name; write one, in it or in the entry of networks")
        if not self._single:
            return Fault(ERROR, "no_name", 'the network has no name, and libcni refuses it; write "name": "apps"')
        what = 'the network has no name, and libcni attaches no container to it; write "name": "apps"'
        # Runtimes bring up lo by themselves, whatever this file says.
        types = [str(plugin.get("type")) for plugin in data["plugins"]]
        is_idle = types == ["loopback"] or HIDDEN in "".join(types)
        return Fault(INFO if is_idle else WARNING, "no_name", what)

    def _duplicate_keys(self) -> Iterator[Fault]:
        for pointer in self._source.positions.duplicate_keys() if isinstance(self._source, TextSource) else ():
            text = f"the key {pointer[-1]!r} occurs twice in one object, and only the last one counts; remove one"
            yield Fault(WARNING, "duplicate_key", text, pointer, key=True)

    def _add(self, faults: list[Fault]) -> None:
        for fault in faults:
            if fault.code != "template" and not self._source.is_certain(self._data, fault):
                continue
            level = INFO if fault.code == "template" and self._source.in_file else fault.level
            pointer = fault.pointer
            if self._single and pointer[:1] == ("plugins",):
                pointer = pointer[2:]
            place = (self._label, text_of(pointer), *self._source.positions.find(pointer, fault.key))
            self.problems.append(Finding(level, fault.code, fault.message, "", *place))


def _delegate(network: dict[str, Any], place: str, levels: Sequence[str]) -> Iterator[Fault]:
    """Yield what is wrong with a network that Multus runs, at the pointer *place*; the schema level has seen it."""
    source = TextSource(render(network))
    source.in_file = True
    for entry in Checked(source, "", None, [level for level in levels if level != "schema"]).problems:
        # Multus' own version counts for one without.
        if entry.code not in ("no_version", "secret_in_file", *((REFUSED,) if HIDDEN in source.text else ())):
            yield Fault(entry.level, entry.code, entry.message, parts_of(place + entry.pointer))


def secrets_in(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the pointer of every secret inside *value*."""
    masked = dict(values(mask(value)))
    for pointer, entry in values(value):
        other = masked.get(pointer, entry)
        is_around = isinstance(entry, (dict, list)) and type(entry) is type(other)
        if not is_around and other != entry and HIDDEN not in str(entry):
            yield pointer


def once(problems: list[Finding]) -> list[Finding]:
    """Return the problems with one for each value, the first of the worst; a template is the cause of all others."""
    values: dict[str, Finding] = {}
    for entry in problems:
        if entry.level != INFO and entry.pointer:
            other = values.setdefault(entry.pointer, entry)
            worst = min(entry, other, key=lambda finding: finding.rank)
            cause = next((finding for finding in (other, entry) if finding.code == "template"), None)
            values[entry.pointer] = cause._replace(level=worst.level) if cause else worst
    kept = [values.pop(entry.pointer, None) if entry.level != INFO and entry.pointer else entry for entry in problems]
    return [entry for entry in kept if entry is not None]


def parts_of(pointer: str) -> tuple[Any, ...]:
    """Return what :func:`text_of` was called with, as far as a text can say."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    return tuple(int(part) if part.isdigit() else part for part in parts)


def _as_hosts_say(text: str) -> Iterator[Fault]:
    """Yield what is wrong with a network alone, by the same rules as on a host."""
    file = ConfFile("network.conflist", "network.conflist", text.encode("utf-8"))
    if file.error:
        # libcni's reasons are those of the level syntax.
        return
    file.folder = []
    for entry in network_problems(ConfView("", [], [file], set(), {file.name}), file, uses_of_network(file)):
        yield Fault(entry.level, entry.code, entry.message, parts_of(entry.pointer))
