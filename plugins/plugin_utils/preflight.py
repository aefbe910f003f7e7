# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What prevents the roles from working on a host, found before anything changes there."""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleError

from .remedies import jsonschema_needed
from .settings import SECTIONS_DECLARING, VARIABLES, Settings
from .values import BadValue

DECLARING = (
    "cni_networks",
    *(name for names in SECTIONS_DECLARING.values() for name in names if name != "cni_networks"),
    *("cni_attachments_watch", "cni_plugins_builtin", "cni_plugins_dhcp_daemon"),
)
"""The roles do not change a host for which none of these is set."""

SET = re.compile(r"cni_(\w+_result|drift|runtime_loaded|upgrade_before|upgrade_after)")
"""The names of variables that playbooks and roles set for others. Those that they set for themselves begin with __."""


def unknown_variables(names: Iterable[str]) -> dict[str, str]:
    """Return those of *names* that look like variables of this collection but are not, each with the closest one.

    The latter is empty for a name without a close one: playbooks may have variables of their own with this prefix.
    """
    settable = sorted(VARIABLES)
    unknown = sorted(
        name for name in names if name.startswith("cni_") and name not in VARIABLES and not SET.fullmatch(name)
    )
    return {name: "".join(difflib.get_close_matches(name, settable, n=1, cutoff=0.8)) for name in unknown}


def warn_of_misspelled(names: Mapping[str, Any], warn: Callable[[str], None]) -> None:
    """Call *warn* with a sentence for each variable that was probably meant to be another one."""
    for sentence in _misspelled(names):
        warn(f"{sentence} No role or playbook of podwire.cni reads the former.")


def _misspelled(names: Mapping[str, Any]) -> list[str]:
    return [f"{name} is set; did you mean {known}?" for name, known in unknown_variables(names).items() if known]


def preflight(variables: Mapping[str, Any], settings: Settings, warn: Callable[[str], None]) -> str:
    """Return why the roles cannot work on a host, "" if they can; call *warn* with what is only suspicious."""
    if any(settings.is_set(name) for name in DECLARING):
        warn_of_misspelled(variables, warn)
        return bad_values(variables, settings) or _lacking(settings)
    host = variables.get("inventory_hostname", "this host")
    others = [
        f"{name} is set, but podwire.cni has no such variable."
        for name, known in unknown_variables(variables).items()
        if not known
    ]
    what = f"nothing declared for {host}: none of {', '.join(DECLARING)} is set."
    remedy = (
        "Load the host's variables (group_vars and host_vars are read from the directory of the inventory; "
        f"ansible-inventory --host {host} shows them), or leave the host out with cni_hosts or --limit."
    )
    return " ".join([what, *_misspelled(variables), *others, remedy])


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
    if importlib.util.find_spec("jsonschema") is not None:
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
