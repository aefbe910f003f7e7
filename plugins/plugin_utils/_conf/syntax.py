# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Level ``syntax``: what libcni itself refuses, said so that one knows what to write."""

from __future__ import annotations

import difflib
import json
import re
from typing import Any, Iterator, Optional

from ...module_utils._host.problems import ERROR, WARNING
from ...module_utils.libcni import conf, gojson, version
from ...module_utils.libcni.errors import ConfigError, ValidationError, VersionError
from ...module_utils.libcni.validate import validate_network_name
from .source import Finding

REFUSED = "refused_by_libcni"
"""Code of what libcni says itself, since nothing here has noticed it before."""

_FLAGS = ("disableCheck", "disableGC", "loadOnlyInlinedPlugins")
# What libcni looks up by its exact name; everything else matches in any case.
_EXACT = ("name", "cniVersion", "cniVersions", *_FLAGS, "plugins")
_NAME_RULE = "a network's name begins with a letter or digit and goes on with letters, digits, '_', '.' and '-'"
_TEMPLATE = re.compile(r"__[A-Z][A-Z0-9_]*__|\$\{[A-Za-z_]|@[A-Z][A-Z_]+@")
_TEMPLATE_MARKS = (("{{", "}}"), ("{%", "%}"), ("<%", "%>"))


def name_findings(name: Any) -> Iterator[Finding]:
    """Yield what is wrong with a network's name, which is part of paths and therefore always tested."""
    if not isinstance(name, str):
        yield Finding(
            ERROR, "bad_name", "the name is %s; it must be a string: put it in quotes" % shown(name), ("name",)
        )
        return
    try:
        validate_network_name(name)
    except ValidationError:
        yield Finding(ERROR, "bad_name", "%s is no network name: %s" % (json.dumps(name), _NAME_RULE), ("name",))


def list_findings(data: dict[str, Any]) -> list[Finding]:
    """Return the findings on a network list (without its name, see :func:`name_findings`)."""
    findings = [
        *_case_findings(data),
        *_version_findings(data),
        *_flag_findings(data),
        *_plugins_findings(data),
        *_template_findings(data, ()),
    ]
    if not any(finding.level == ERROR for finding in findings):
        try:
            # Its own name is tested elsewhere.
            conf.network_conf_from_bytes(gojson.dumps({**data, "name": "any"}))
        except ConfigError as error:
            findings.append(Finding(ERROR, REFUSED, "libcni cannot load this: %s" % error))
    return findings


def shown(value: Any) -> str:
    """Return a value for a message, in JSON and not too long."""
    text = gojson.dumps(value).decode("utf-8", "replace")
    kinds = {bool: "the boolean ", int: "the number ", float: "the number ", str: "the string "}
    if isinstance(value, float):
        # Go would write 1 for 1.0, and the reader has 1.0 before him.
        text = repr(value)
    return kinds.get(type(value), "") + (text if len(text) <= 60 else text[:57] + "...")


def _case_findings(data: dict[str, Any]) -> Iterator[Finding]:
    exact = {key.lower(): key for key in _EXACT}
    for key in data:
        right = exact.get(key.lower())
        if right is not None and key != right and right not in data:
            text = "libcni reads %r only if it is written so, and ignores %r; rename it" % (right, key)
            yield Finding(ERROR, "key_case", text, (key,), key=True)


def _version_findings(data: dict[str, Any]) -> Iterator[Finding]:
    if "cniVersion" not in data:
        text = 'without cniVersion libcni takes 0.1.0, which knows no CHECK; write "cniVersion": "1.0.0"'
        yield Finding(WARNING, "no_version", text)
    elif not isinstance(data["cniVersion"], str):
        text = "cniVersion is %s; it must be a string: put it in quotes and write all three numbers, such as %s"
        given = shown(data["cniVersion"])
        yield Finding(ERROR, "version_not_string", text % (given, _suggest(given.split()[-1])), ("cniVersion",))
    elif data["cniVersion"] not in version.ALL:
        text = "cniVersion %s is no version of the CNI specification (%s); write %s"
        given = data["cniVersion"]
        message = text % (json.dumps(given), ", ".join(version.ALL), _suggest(given))
        yield Finding(ERROR, "unsupported_version", message, ("cniVersion",))
    versions = data.get("cniVersions", [])
    if not isinstance(versions, list):
        yield Finding(ERROR, "version_not_string", "cniVersions must be a list of strings", ("cniVersions",))
        return
    for index, entry in enumerate(versions):
        place = ("cniVersions", index)
        if not isinstance(entry, str):
            text = "%s is no string: put it in quotes" % shown(entry)
            yield Finding(ERROR, "version_not_string", text, place)
        else:
            yield from _known_or_newer(entry, place)


def _known_or_newer(entry: str, place: tuple[Any, ...]) -> Iterator[Finding]:
    try:
        newer = version.greater_than(entry, version.CURRENT)
    except VersionError as error:
        yield Finding(ERROR, "unsupported_version", "%s; write %s" % (error, _suggest(entry)), place)
        return
    if not newer and entry not in version.ALL:
        text = "%s is no version of the CNI specification; write one of %s" % (
            json.dumps(entry),
            ", ".join(version.ALL),
        )
        yield Finding(ERROR, "unsupported_version", text, place)


def _suggest(given: str) -> str:
    if given in ("1.1", "1.10"):
        return '"1.1.0"'
    if not re.match(r"0\.[1-4]", given):
        return '"1.0.0"'
    return '"%s"' % difflib.get_close_matches(given, version.ALL, 1, 0.0)[0]


def _flag_findings(data: dict[str, Any]) -> Iterator[Finding]:
    for key in _FLAGS:
        value = data.get(key, False)
        if not isinstance(value, bool) and not (isinstance(value, str) and value.lower() in ("true", "false")):
            text = "%s is %s; write true or false" % (key, shown(value))
            yield Finding(ERROR, "not_boolean", text, (key,))


def _plugins_findings(data: dict[str, Any]) -> Iterator[Finding]:
    plugins = data.get("plugins")
    if not isinstance(plugins, list) or not plugins:
        given = "there is no list 'plugins'" if plugins is None else "'plugins' is %s" % shown(plugins)
        text = '%s; a network needs at least one plugin: write "plugins": [{"type": "bridge", ...}]' % given
        yield Finding(ERROR, "no_plugins", text, ("plugins",))
        return
    for index, plugin in enumerate(plugins):
        if not isinstance(plugin, dict):
            text = 'a plugin is an object such as {"type": "bridge"}, not %s' % shown(plugin)
            yield Finding(ERROR, "no_type", text, ("plugins", index))
        else:
            yield from _type_findings(plugin, ("plugins", index))


def _type_findings(plugin: dict[str, Any], place: tuple[Any, ...]) -> Iterator[Finding]:
    key, name = member(plugin, "type")
    if name is None or name == "":
        text = 'this plugin has no \'type\', which names the binary to run; write "type": "bridge" or another name'
        yield Finding(ERROR, "no_type", text, place)
        return
    yield from _binary_name(name, (*place, key))
    key, ipam = member(plugin, "ipam")
    if isinstance(ipam, dict):
        inner, name = member(ipam, "type")
        if name not in (None, ""):
            yield from _binary_name(name, (*place, key, inner))


def _binary_name(name: Any, place: tuple[Any, ...]) -> Iterator[Finding]:
    if not isinstance(name, str):
        yield Finding(ERROR, "bad_type", "the type is %s; it must be a string" % shown(name), place)
    elif "/" in name or "\0" in name or name in (".", ".."):
        base = name.rsplit("/", 1)[-1]
        text = "the type %s is refused: it is the name of a binary in bin_dirs and no path" % json.dumps(name)
        if base not in ("", ".", ".."):
            text += '; write "%s", and name its directory with bin_dirs' % base
        yield Finding(ERROR, "bad_type", text, place)


def _is_template(text: str) -> bool:
    for first, last in _TEMPLATE_MARKS:
        at = text.find(first)
        if at >= 0 and text.find(last, at) > 0:
            return True
    return bool(_TEMPLATE.search(text))


def _template_findings(value: Any, place: tuple[Any, ...]) -> Iterator[Finding]:
    if isinstance(value, dict):
        for key, element in value.items():
            yield from _template_findings(element, (*place, key))
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from _template_findings(element, (*place, index))
    elif isinstance(value, str) and _is_template(value):
        text = "this text looks like an unrendered template, and plugins do not render it; 'src' is read as it is"
        yield Finding(WARNING, "template", text, place)


def member(data: dict[str, Any], key: str) -> tuple[Optional[str], Any]:
    """Return the key as it is written and its value, as Go finds them: in any case, the last one; None without one."""
    found: tuple[Optional[str], Any] = (None, None)
    for name, value in data.items():
        if name.lower() == key.lower():
            found = (name, value)
    return found
