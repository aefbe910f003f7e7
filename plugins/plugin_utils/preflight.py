# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What prevents the roles from working on a host, found before anything changes there."""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError

from ..module_utils._host.json_text import parse_json
from ._conf.schema import MISSING, jsonschema_needed
from .settings import GROUPS, SECTIONS_DECLARING, VARIABLES, Settings
from .values import BadValue

DECLARING = (
    "cni_networks",
    *(name for names in SECTIONS_DECLARING.values() for name in names if name != "cni_networks"),
    *("cni_attachments_watch", "cni_plugins_builtin", "cni_plugins_dhcp_daemon"),
)
"""The roles do not change a host for which none of these is set."""

SET = re.compile(r"cni_(\w+_result|drift|runtime_loaded|upgrade_before|upgrade_after)")
"""The names of variables that playbooks and roles set for others. Those that they set for themselves begin with __."""

FOREIGN: Mapping[str, list[str]] = parse_json(Path(__file__).with_name("foreign_variables.json").read_bytes())
"""The variables of other roles: whose each is, what to do instead, and "stays" if that role does more than CNI."""

_NO_SUCH = "{} is set, but podwire.cni has no such variable."
# A name with one of these prefixes was meant for a role or playbook of this collection.
_PREFIXES = tuple(f"cni_{name}_" for name in (*GROUPS, "pull", "report"))


def unknown_variables(names: Iterable[str]) -> dict[str, str]:
    """Return those of *names* that look like variables of this collection but are not, each with what is said of it.

    That is "" for a name that nothing resembles: playbooks may have variables of their own with this prefix.
    """
    strangers = (
        name for name in names if name.startswith("cni_") and name not in VARIABLES and not SET.fullmatch(name)
    )
    return {name: _unknown(name) for name in sorted({*strangers, *FOREIGN.keys() & set(names)})}


def _unknown(name: str) -> str:
    if name in FOREIGN:
        owner, remedy = FOREIGN[name][:2]
        return f"{name} is a variable of {owner}; {remedy}."
    near = difflib.get_close_matches(name, sorted(VARIABLES), n=1, cutoff=0.8)
    if near:
        return f"{name} is set; did you mean {near[0]}?"
    return _NO_SUCH.format(name) if name.startswith(_PREFIXES) else ""


def warn_of_unknown(names: Iterable[str], warn: Callable[[str], None]) -> None:
    """Call *warn* with a sentence for each variable that was probably meant for this collection."""
    for name, sentence in unknown_variables(names).items():
        if sentence and "stays" not in FOREIGN.get(name, ()):
            warn(f"{sentence} No role or playbook of podwire.cni reads {name}.")


def preflight(variables: Mapping[str, Any], settings: Settings, warn: Callable[[str], None]) -> str:
    """Return why the roles cannot work on a host, "" if they can; call *warn* with what is only suspicious."""
    if any(settings.is_set(name) for name in DECLARING):
        warn_of_unknown(variables, warn)
        return bad_values(variables, settings) or _lacking(settings)
    host = variables.get("inventory_hostname", "this host")
    strangers = [said or _NO_SUCH.format(name) for name, said in unknown_variables(variables).items()]
    what = f"nothing declared for {host}: none of {', '.join(DECLARING)} is set."
    remedy = (
        "Load the host's variables (group_vars and host_vars are read from the directory of the inventory; "
        f"ansible-inventory --host {host} shows them), or leave the host out with cni_hosts or --limit."
    )
    return " ".join([what, *strangers, remedy])


def bad_values(variables: Mapping[str, Any], settings: Settings) -> str:
    """Return what is wrong with the values of variables, used or not, "" if nothing is."""
    sentences = []
    for name in sorted(VARIABLES.intersection(variables)):
        # A template that fails is reported by the task that needs the variable, with its place in the file.
        with contextlib.suppress(AnsibleError):
            try:
                settings.value(name)
            except BadValue as error:
                sentences.append(str(error))
    return "; ".join(sentences)


def _lacking(settings: Settings) -> str:
    """Return what the role networks would report after the plugins were installed, "" if nothing is missing."""
    if MISSING is None:
        return ""
    try:
        networks = settings.value("cni_networks") or []
        levels = settings.value("cni_networks_validate")
    except AnsibleError:
        return ""
    present = [entry for entry in networks if not isinstance(entry, dict) or entry.get("state") in (None, "present")]
    if not present or "schema" not in levels:
        return ""
    text = jsonschema_needed("the level 'schema' of cni_networks_validate", "it is not installed")
    return f"{text}, or leave 'schema' out of cni_networks_validate"
