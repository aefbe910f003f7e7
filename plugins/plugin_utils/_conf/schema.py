# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Level ``schema``: a network and everything in it, each part by the schema of its type, through jsonschema."""

from __future__ import annotations

import functools
import itertools
import sys
from typing import Any, Iterator, NamedTuple, Optional

from ...module_utils._host.kinds import object_of, text_of
from ...module_utils._host.problems import ERROR, INFO, WARNING
from .chain import chain_findings, plugin_findings
from .fold import LIMIT, Folded
from .formats import FORMATS
from .ipam import before, exchanged, ipam_findings
from .positions import Fault
from .schema_files import Schema, resolved, shape, types
from .spelling import meant
from .templates import HIDDEN, is_placeholder
from .wording import message_of

# Imported with the action plugin, in Ansible's main process: workers are forked from it and do not import it again.
MISSING: Optional[ImportError] = None
try:
    import jsonschema
except ImportError as _error:
    MISSING = _error


def jsonschema_needed(what: str, reason: object) -> str:
    """Return that *what* needs jsonschema, which cannot be imported because of *reason*.

    Distributions do not allow pip outside of a virtual environment.
    """
    is_virtual = sys.prefix != sys.base_prefix
    how = f"run {sys.executable} -m pip install jsonschema" if is_virtual else "install the package python3-jsonschema"
    return f"{what} needs the Python library jsonschema on the controller ({reason}); {how}"


# What others call their plugins, and nobody's typing errors.
_NAMES = ("vxlan",)
_LIST = "common.json#/$defs/list"
_ANY_PLUGIN = "common.json#/$defs/plugin"
_ANY_IPAM = "common.json#/$defs/ipam"

# A part of a network as its plugin sees it, and the findings.
_Outcome = tuple[Any, list[Fault]]


class _Task(NamedTuple):
    """The context of everything inside a network: the ``version`` of the conflist, None if it is negotiated;
    ``partial`` if the outer plugin adds what is missing; ``user``: who asks for it, see ipam_findings."""

    version: Optional[str]
    partial: bool = False
    user: str = ""


def schema_findings(data: dict[str, Any], user: str) -> list[Fault]:
    """Return the findings on a conflist; *user*: who asks for it."""
    return _check_list(data, (), _Task(_version(data), user=user))[1]


def _version(network: dict[str, Any]) -> Optional[str]:
    version = network.get("cniVersion", "0.1.0") if "cniVersions" not in network else None
    return version if isinstance(version, str) else None


def _check_list(data: dict[str, Any], at: tuple[Any, ...], task: _Task) -> _Outcome:
    # The level syntax checks what must be in a conflist.
    value, own, inner = _check(_LIST, data, "the network", at, task, partial=True)
    if not _broken(own + inner):
        inner.extend(_moved(chain_findings(value.get("plugins", [])), at))
    return value, own + inner


def _check_plugin(data: dict[str, Any], at: tuple[Any, ...], task: _Task) -> _Outcome:
    kind, known = text_of(data, "type"), types("plugin")
    value, own, inner = _check_type("plugin", kind, known, _ANY_PLUGIN, data, at, task)
    if kind in known:
        own = _without_keys_of_ipam(own, value, len(at))
    if not _broken(own):
        own.extend(_moved(plugin_findings(value, task.partial), at))
    return value, own + inner


def _check_ipam(data: dict[str, Any], at: tuple[Any, ...], task: _Task, plugin: Any, without: str) -> _Outcome:
    known = types("ipam")
    kind = text_of(data, "type")
    if data and not kind and without:
        kind = _stem(without)
        known = {**known, kind: without}
        data = {**data, "type": kind}
    if not kind and all(key.lower() == "type" for key in data):
        return data, []
    if not kind:
        text = "ipam has no type, so no IPAM plugin runs, and its keys have no effect; write the type, or remove them"
        return data, [Fault(WARNING, "no_ipam_type", text, at)]
    value, own, inner = _check_type("IPAM plugin", kind, known, _ANY_IPAM, data, at, task)
    swapped = list(_moved(exchanged(value, kind), at))
    places = [(*entry.pointer[:-1], key) for entry in swapped for key in (entry.pointer[-1], "gateway")]
    own = [*swapped, *(entry for entry in own if entry.pointer not in places)]
    if not task.partial and not _broken(own):
        own.extend(_moved(ipam_findings(value, plugin, task.version, task.user), at))
    return value, own + inner


def _check_type(
    what: str, kind: str, known: dict[str, str], anything: str, data: dict[str, Any], at: tuple[Any, ...], task: _Task
) -> tuple[Any, list[Fault], list[Fault]]:
    """Check a plugin by the schema of its *kind*, if that is among the *known* ones, else by that of *anything*."""
    value, own, inner = _check(known.get(kind, anything), data, kind or "the plugin", at, task, task.partial)
    if kind in known:
        return value, own, inner
    # Its own keys are unknown; what runtimes read of every plugin is not.
    own = [
        entry
        for entry in own
        if entry.code != "unknown_key"
        or len(entry.pointer) > len(at) + 1
        or meant(str(entry.pointer[-1]), ("capabilities",))
    ]
    is_name = kind and "/" not in kind and HIDDEN not in kind
    return value, [_unknown(kind, what, known, at), *own] if is_name else own, inner


def _without_keys_of_ipam(findings: list[Fault], plugin: dict[str, Any], depth: int) -> list[Fault]:
    """Return the findings except for keys that the IPAM plugin may read: it gets the configuration of the *plugin*."""
    kind = text_of(object_of(plugin, "ipam"), "type")
    known = types("ipam").get(kind)
    outer = resolved(known).get("x-outer") if known else None
    if not kind or (known and not outer):
        return findings
    keys = shape(outer).properties if outer else None
    return [
        entry
        for entry in findings
        if entry.code != "unknown_key" or len(entry.pointer) > depth + 1 or (keys and entry.pointer[-1] not in keys)
    ]


def _check(
    reference: str, data: dict[str, Any], owner: str, at: tuple[Any, ...], task: _Task, partial: bool
) -> tuple[Any, list[Fault], list[Fault]]:
    """Return the folded *data*, the findings on it, and those on the objects inside that have their own schemas."""
    folded = Folded(data, shape(reference), owner, at)
    findings, inner = list(folded.findings), []
    for entry in folded.chosen:
        value, faults = _choose(entry.value, folded.pointer(entry.path), task, folded.value, entry.extra)
        folded.put(entry.path, value)
        inner.extend(faults)
    for error in _errors(reference, folded.value, partial):
        level = error.schema.get("x-level", ERROR)
        code = "template" if error.validator in ("format", "type") and is_placeholder(error.instance) else "schema"
        findings.append(Fault(level, code, message_of(error, owner), folded.pointer(error.absolute_path)))
    findings.extend(_version_findings(resolved(reference), owner, at, task))
    return folded.value, findings, inner


def _choose(data: dict[str, Any], at: tuple[Any, ...], task: _Task, outer: dict[str, Any], extra: Schema) -> _Outcome:
    if extra.get("x-words"):
        data = _without_words(data, extra["x-words"])
    if extra.get("x-partial"):
        task = task._replace(partial=True)
    kind, without = extra["x-choose"], extra.get("x-without-type", "")
    if kind == "ipam":
        return _check_ipam(data, at, task, outer, without)
    if kind == "network":
        task = task._replace(version=_version(data), user="multus")
        if "plugins" in data:
            return _check_list(data, at, task)
    if without and not text_of(data, "type"):
        data = {**data, "type": _stem(without)}
    return _check_plugin(data, at, task)


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".json")


def _without_words(value: Any, words: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _without_words(inner, words) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_words(inner, words) for inner in value]
    return words.get(value, value) if isinstance(value, str) else value


def _version_findings(schema: Schema, owner: str, at: tuple[Any, ...], task: _Task) -> Iterator[Fault]:
    first = schema.get("x-min-version")
    if first is not None and before(task.version, first):
        # The level plugins checks the version of the installed plugin.
        text = (
            f"{owner} supports version {first} of the specification and later, but the conflist has {task.version}; "
            "write a later cniVersion"
        )
        yield Fault(WARNING, "version_too_old", text, at)


def _unknown(kind: str, what: str, known: dict[str, str], at: tuple[Any, ...]) -> Fault:
    text = f"there is no schema for the {what} {kind[:100]}, so its own keys are not validated"
    near = meant(kind, known) if kind not in _NAMES else ""
    advice = f"; did you mean {near}?" if near else ""
    return Fault(WARNING if near else INFO, "unknown_plugin", text + advice, at)


def _broken(findings: list[Fault]) -> bool:
    return any(finding.level == ERROR for finding in findings)


def _moved(findings: Iterator[Fault], at: tuple[Any, ...]) -> Iterator[Fault]:
    for finding in itertools.islice(findings, LIMIT):
        yield finding._replace(pointer=at + finding.pointer)


# ---- jsonschema


def _errors(reference: str, value: Any, partial: bool) -> list[Any]:
    errors = list(itertools.islice(_validator(reference).iter_errors(value), LIMIT))
    # For a value of the wrong type, nothing else is reported.
    wrong = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
    return [
        error
        for error in errors
        if error.validator == "type"
        or not (tuple(error.absolute_path) in wrong or (partial and error.validator == "required"))
    ]


@functools.lru_cache(maxsize=None)
def _validator(reference: str) -> Any:
    checker = jsonschema.FormatChecker(formats=())
    for word, function in FORMATS.items():
        checker.checks(word, raises=ValueError)(_format_check(function))
    # fold reports unknown keys, because it can suggest the right ones.
    rules = {**dict.fromkeys(("unevaluatedProperties", "patternProperties"), lambda *_rule: ()), "pattern": _pattern}
    validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, rules)
    return validator(resolved(reference), format_checker=checker)


def _pattern(validator: Any, rule: Any, value: Any, schema: Any) -> Iterator[Any]:
    # Next to a format, this keyword is for other validators, which do not know the formats of this collection.
    if "format" not in schema:
        yield from jsonschema.Draft202012Validator.VALIDATORS["pattern"](validator, rule, value, schema)


def _format_check(function: Any) -> Any:
    def check(value: Any) -> bool:
        # The keyword `type` reports a value of another type.
        if isinstance(value, str):
            function(value)
        return True

    return check
