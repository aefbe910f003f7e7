# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup cni_preflight: return what is wrong before anything changes on a host."""

from __future__ import annotations

DOCUMENTATION = """
name: cni_preflight
short_description: Return what prevents the roles of this collection from working on a host
version_added: 0.1.0
author:
  - podwire.cni authors (@podwire)
description:
  - Returns a sentence if none of the variables is set that make the roles of this collection do something. The usual
    cause is that the variables of the host were not loaded.
  - Returns a sentence if networks must be validated and C(jsonschema) is missing on the controller.
  - Warns about variables whose names start with C(cni_) and are probably misspelled.
"""

EXAMPLES = """
- name: Stop before anything changes on the host
  ansible.builtin.assert:
    that: sentence | length == 0
    fail_msg: "{{ sentence }}"
  vars:
    sentence: "{{ lookup('podwire.cni.cni_preflight') }}"
"""

RETURN = """
_raw:
  description: The sentence. Empty if nothing is wrong.
  type: list
  elements: str
"""

import importlib.util
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display

from ..plugin_utils.controller import jsonschema_needed
from ..plugin_utils.variables import DECLARING, unknown_variables


class LookupModule(LookupBase):
    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[str]:
        variables = variables or {}
        unknown = unknown_variables(variables)
        declared = any(self._is_set(variables.get(name)) for name in DECLARING)
        meant = [f"{name} is set; did you mean {known}?" for name, known in unknown.items() if known]
        if declared:
            for sentence in meant:
                Display().warning(f"{sentence} No role or playbook of podwire.cni reads the former.")
            return [self._lacking(variables)]
        host = variables.get("inventory_hostname", "this host")
        others = [
            f"{name} is set, but podwire.cni has no such variable." for name, known in unknown.items() if not known
        ]
        what = f"nothing declared for {host}: none of {', '.join(DECLARING)} is set."
        remedy = (
            "Load the host's variables (group_vars and host_vars are read from the directory of the inventory; "
            f"ansible-inventory --host {host} shows them), or leave the host out with cni_hosts or --limit."
        )
        return [" ".join([what, *meant, *others, remedy])]

    def _lacking(self, variables: dict[str, Any]) -> str:
        """Return what the role networks would report after the plugins were installed, "" if nothing is missing."""
        if importlib.util.find_spec("jsonschema") is not None:
            return ""
        networks = self._value(variables.get("cni_networks")) or []
        levels = self._value(variables.get("cni_networks_validate")) or ["schema"]
        present = [
            entry for entry in networks if not isinstance(entry, dict) or entry.get("state") in (None, "present")
        ]
        if not present or "schema" not in levels:
            return ""
        text = jsonschema_needed("the level 'schema' of cni_networks_validate", "it is not installed")
        return f"{text}, or leave 'schema' out of cni_networks_validate"

    def _is_set(self, value: Any) -> bool:
        return self._value(value) not in (None, "", [], {})

    def _value(self, value: Any) -> Any:
        """Return the templated value. One that cannot be templated counts as set; its role fails with the reason."""
        try:
            return self._templar.template(value)  # type: ignore[union-attr]
        except AnsibleError:
            return "?"
