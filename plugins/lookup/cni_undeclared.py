# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup cni_undeclared: whether the variables of a host declare anything."""

from __future__ import annotations

from typing import Any

DOCUMENTATION = """
name: cni_undeclared
short_description: Say that no variable declares anything for a host
version_added: 0.1.0
author:
  - podwire.cni authors (@podwire)
description:
  - Returns a sentence if none of the variables is set that make the roles of this collection do something. The usual
    cause is that the variables of the host were not loaded.
  - Warns of variables whose names begin with C(cni_) and are probably misspelt.
"""

EXAMPLES = """
- name: Stop if nothing is declared for the host
  ansible.builtin.assert:
    that: sentence | length == 0
    fail_msg: "{{ sentence }}"
  vars:
    sentence: "{{ lookup('podwire.cni.cni_undeclared') }}"
"""

RETURN = """
_raw:
  description: The sentence; empty if something is declared.
  type: list
  elements: str
"""

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display

from ansible_collections.podwire.cni.plugins.plugin_utils.variables import DECLARING, unknown_variables


class LookupModule(LookupBase):
    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[str]:
        variables = variables or {}
        unknown = unknown_variables(variables)
        declared = any(self._is_set(variables.get(name)) for name in DECLARING)
        meant = [f"{name} is set; did you mean {known}?" for name, known in unknown.items() if known]
        if declared:
            for sentence in meant:
                Display().warning(f"{sentence} No role or playbook of podwire.cni reads the former.")
            return [""]
        host = variables.get("inventory_hostname", "this host")
        others = [f"{name} is set, which podwire.cni does not know." for name, known in unknown.items() if not known]
        what = f"nothing declared for {host}: none of {', '.join(DECLARING)} is set."
        remedy = (
            "Load the host's variables (group_vars and host_vars are read from the directory of the inventory; "
            f"ansible-inventory --host {host} shows them), or leave the host out with cni_hosts or --limit."
        )
        return [" ".join([what, *meant, *others, remedy])]

    def _is_set(self, value: Any) -> bool:
        """A value that cannot be templated is set; the role that uses it fails with the reason."""
        try:
            return self._templar.template(value) not in (None, "", [], {})  # type: ignore[union-attr]
        except AnsibleError:
            return True
