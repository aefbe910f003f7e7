# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What chained plugins share: the result of the plugins before them, and the keys of their own configuration."""

from __future__ import annotations

import sys

from ..libcni import gojson
from ..libcni.errors import ERR_INVALID_NETWORK_CONFIG, PluginError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from ..libcni.skel import CmdArgs


def previous(args: CmdArgs) -> dict[str, t.Any]:
    """Return the prevResult as it is, with a version. Raises `PluginError`, `ResultError`."""
    if args.prev_result is None:
        raise bad_config(
            "the plugin must be called as a chained plugin: there is no prevResult; put it after an interface plugin"
        )
    raw: dict[str, t.Any] = {}
    for _name, value in gojson.struct_items(args.config, ("prevResult",)):
        raw = value
    # Keys match regardless of case.
    if any(key.lower() == "cniversion" and value for key, value in raw.items()):
        return raw
    return {**raw, "cniVersion": args.cni_version}


def hand_on(result: t.Mapping[str, t.Any]) -> None:
    """Print a result."""
    sys.stdout.write(gojson.dumps(dict(result), 4).decode("utf-8"))


def bad_config(text: str) -> PluginError:
    """Return the error for a configuration that the plugin does not take."""
    return PluginError(ERR_INVALID_NETWORK_CONFIG, text)


def setting(config: t.Mapping[str, t.Any], key: str, default: t.Any) -> t.Any:
    """Return the value of a key, which must have the type of its default. Raises `PluginError`."""
    value = config.get(key)
    if value is None:
        return default
    if type(value) is not type(default) and not (isinstance(value, dict) and isinstance(default, dict)):
        names = {bool: "true or false", int: "a whole number", str: "a text", list: "a list", dict: "an object"}
        raise bad_config(f"{key}: expected {names[type(default)]}, found {value!r}")
    return value
