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
  - Internal. For the playbooks and roles of this collection; it may change in any release.
  - Returns a sentence if none of the variables is set that make the roles of this collection do something. The usual
    cause is that the variables of the host were not loaded.
  - Returns a sentence if networks must be validated and C(jsonschema) is missing on the controller.
  - Returns a sentence about each variable whose value it cannot have, such as a text that is no number.
  - Warns about variables whose names start with C(cni_) and are probably misspelled.
options:
  only_values:
    description: Return only what is wrong with the values of variables, for roles that may have nothing to do.
    type: bool
    default: false
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

from typing import Any

from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display

from ..plugin_utils.preflight import bad_values, preflight
from ..plugin_utils.settings import Settings


class LookupModule(LookupBase):
    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[str]:
        variables = variables or {}
        settings = Settings(variables, self._templar.template)  # type: ignore[union-attr]
        if kwargs.get("only_values"):
            return [bad_values(variables, settings)]
        return [preflight(variables, settings, Display().warning)]
