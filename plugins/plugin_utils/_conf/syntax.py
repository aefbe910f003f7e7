# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Level ``syntax``: what libcni itself refuses, in messages that tell what to write."""

from __future__ import annotations

import json
import re
from typing import Any, Iterator, Optional

from ...module_utils._host.binaries.types import delegates_of, inner_plugins, why_no_type
from ...module_utils._host.problems import ERROR, WARNING
from ...module_utils.libcni import conf, gojson, version
from ...module_utils.libcni.errors import ConfigError, ValidationError, VersionError
from ...module_utils.libcni.validate import validate_network_name
from .positions import Fault
from .yaml_text import values

REFUSED = "refused_by_libcni"
"""The code of libcni's own errors, which no rule here has found first."""

_FLAGS = ("disableCheck", "disableGC", "loadOnlyInlinedPlugins")
# Keys that libcni looks up by their exact name; all others match in any case.
_EXACT = ("name", "cniVersion", "cniVersions", *_FLAGS, "plugins")
_NAME_RULE = "a network name starts with a letter or digit, followed by letters, digits, '_', '.' and '-'"
_TEMPLATE = re.compile(r"__[A-Z][A-Z0-9_]*__|\$\{[A-Za-z_]|@[A-Z][A-Z_]+@")
_TEMPLATE_MARKS = (("{{", "}}"), ("{%", "%}"), ("<%", "%>"))


def name_findings(name: Any) -> Iterator[Fault]:
    """Yield what is wrong with a network's name, which is part of paths and therefore always checked."""
    if not isinstance(name, str):
        yield Fault(ERROR, "bad_name", f"the name is {shown(name)}; it must be a string: put it in quotes", ("name",))
        return
    try:
        validate_network_name(name)
    except ValidationError:
        yield Fault(ERROR, "bad_name", f"{json.dumps(name)} is not a valid network name: {_NAME_RULE}", ("name",))


def list_findings(data: dict[str, Any]) -> list[Fault]:
    """Return the findings on a conflist (without its name, see :func:`name_findings`)."""
    findings = [
        *_case_findings(data),
        *_version_findings(data),
        *_flag_findings(data),
        *_plugins_findings(data),
        *_template_findings(data),
    ]
    if not any(finding.level == ERROR for finding in findings):
        try:
            # The name is checked elsewhere.
            conf.network_conf_from_bytes(gojson.dumps({**data, "name": "any"}))
        except ConfigError as error:
            findings.append(Fault(ERROR, REFUSED, f"libcni cannot load this: {error}"))
    return findings


def shown(value: Any) -> str:
    """Return a value for a message, in JSON and not too long."""
    text = gojson.dumps(value).decode("utf-8", "replace")
    kinds = {bool: "the boolean ", int: "the number ", float: "the number ", str: "the string "}
    if isinstance(value, float):
        # Go would write 1 for 1.0, but the reader sees 1.0.
        text = repr(value)
    return kinds.get(type(value), "") + (text if len(text) <= 60 else text[:57] + "...")


def _case_findings(data: dict[str, Any]) -> Iterator[Fault]:
    exact = {key.lower(): key for key in _EXACT}
    for key in data:
        right = exact.get(key.lower())
        if right is not None and key != right and right not in data:
            text = f"libcni reads {right!r} only in this spelling and ignores {key!r}; rename it"
            yield Fault(ERROR, "key_case", text, (key,), key=True)


def _version_findings(data: dict[str, Any]) -> Iterator[Fault]:
    if "cniVersion" not in data:
        # A release of Multus may be no newer than its networks.
        inner = [network for _place, plugin in inner_plugins(data) for _place, network in delegates_of(plugin)]
        known = [entry for entry in version.ALL if entry in [network.get("cniVersion") for network in inner]]
        right = known[-1] if known else "1.0.0"
        what = "without cniVersion, libcni assumes 0.1.0, whose results have one address of each family"
        if version.greater_than(right, "0.2.0"):
            yield Fault(WARNING, "no_version", f'{what}; write "cniVersion": "{right}"')
    elif not isinstance(data["cniVersion"], str):
        given = shown(data["cniVersion"])
        text = f"cniVersion is {given}; it must be a string with all three numbers, in quotes"
        yield Fault(ERROR, "version_not_string", f"{text}; write {_suggest(given.split()[-1])}", ("cniVersion",))
    elif data["cniVersion"] not in version.ALL:
        given = data["cniVersion"]
        message = (
            f"cniVersion {json.dumps(given)} is not a version of the CNI specification ({', '.join(version.ALL)}); "
            f"write {_suggest(given)}"
        )
        yield Fault(ERROR, "unsupported_version", message, ("cniVersion",))
    versions = data.get("cniVersions", [])
    if not isinstance(versions, list):
        yield Fault(ERROR, "version_not_string", "cniVersions must be a list of strings", ("cniVersions",))
        return
    for index, entry in enumerate(versions):
        place = ("cniVersions", index)
        if not isinstance(entry, str):
            text = f"{shown(entry)} is not a string: put it in quotes"
            yield Fault(ERROR, "version_not_string", text, place)
        else:
            yield from _known_or_newer(entry, place)


def _known_or_newer(entry: str, place: tuple[Any, ...]) -> Iterator[Fault]:
    try:
        newer = version.greater_than(entry, version.CURRENT)
    except VersionError as error:
        yield Fault(ERROR, "unsupported_version", f"{error}; write {_suggest(entry)}", place)
        return
    if not newer and entry not in version.ALL:
        known = ", ".join(version.ALL)
        text = f"{json.dumps(entry)} is not a version of the CNI specification; write one of {known}"
        yield Fault(ERROR, "unsupported_version", text, place)


def _suggest(given: str) -> str:
    alike = (f'"{known}"' for known in reversed(version.ALL) if known[:3] == given[:3])
    return next(alike, '"1.0.0"')


def _flag_findings(data: dict[str, Any]) -> Iterator[Fault]:
    for key in _FLAGS:
        value = data.get(key, False)
        is_word = isinstance(value, str) and value.lower() in ("true", "false")
        # libcni before 1.2 ignores the other flags.
        if not isinstance(value, bool) and (not is_word or key == "disableCheck"):
            why = ", and containerd before 2.0 and CRI-O before 1.31 refuse the network" if is_word else ""
            text = f"{key} is {shown(value)}{why}; write {value.lower() if is_word else 'true or false'}"
            yield Fault(WARNING if is_word else ERROR, "not_boolean", text, (key,))


def _plugins_findings(data: dict[str, Any]) -> Iterator[Fault]:
    plugins = data.get("plugins")
    if not isinstance(plugins, list) or not plugins:
        given = "the list 'plugins' is missing" if plugins is None else f"'plugins' is {shown(plugins)}"
        text = f'{given}; a network needs at least one plugin: write "plugins": [{{"type": "bridge", ...}}]'
        yield Fault(ERROR, "no_plugins", text, ("plugins",))
        return
    for index, plugin in enumerate(plugins):
        place = ("plugins", index)
        if not isinstance(plugin, dict):
            text = f'a plugin is an object such as {{"type": "bridge"}}, not {shown(plugin)}'
            yield Fault(ERROR, "no_type", text, place)
        elif member(plugin, "type")[1] in (None, ""):
            text = 'this plugin has no \'type\', which names the binary to run; write "type": "bridge" or another name'
            yield Fault(ERROR, "no_type", text, place)
        else:
            yield from _binary_names(plugin, place)


def _binary_names(plugin: dict[str, Any], place: tuple[Any, ...]) -> Iterator[Fault]:
    """Yield what is wrong with the types of a plugin, and of those that it executes."""
    key, name = member(plugin, "type")
    if name not in (None, "") and not isinstance(name, str):
        yield Fault(ERROR, "bad_type", f"the type is {shown(name)}; it must be a string", (*place, key))
    elif name and why_no_type(name)[0]:
        yield Fault(ERROR, "bad_type", "; ".join(why_no_type(name)), (*place, key))
    for part in ("ipam", "delegate"):
        key, inner = member(plugin, part)
        if isinstance(inner, dict):
            yield from _binary_names(inner, (*place, key))


def _template_findings(data: dict[str, Any]) -> Iterator[Fault]:
    text = "this text looks like an unrendered template, and plugins do not render it; 'src' is not rendered either"
    for place, value in values(data):
        texts = [
            value.partition(first)[2].partition(last)[1] for first, last in _TEMPLATE_MARKS if isinstance(value, str)
        ]
        if any(texts) or (texts and _TEMPLATE.search(value)):
            yield Fault(WARNING, "template", text, place)


def member(data: dict[str, Any], key: str) -> tuple[Optional[str], Any]:
    """Return the key as it is written and its value, as Go finds them: the last spelling in order; None without one."""
    spelling = max((name for name in data if gojson.fold(name) == key), default=None)
    return spelling, None if spelling is None else data[spelling]
