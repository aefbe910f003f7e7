# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup cni_value: return the value of a variable of this collection, which may be given as text."""

from __future__ import annotations

DOCUMENTATION = """
name: cni_value
short_description: Return the value of a variable of this collection
version_added: 0.2.0
author:
  - podwire.cni authors (@podwire)
description:
  - Internal. For the playbooks and roles of this collection; it may change in any release.
  - Returns the value of a variable of the roles and playbooks of this collection, in its own type. Surveys of AWX and
    C(-e NAME=VALUE) can only give text.
  - An empty text means that the variable is not set. A list may be lines, words with commas, JSON or YAML. A list of
    mappings, or a mapping, may be JSON or YAML.
  - Fails if the text cannot be a value of the variable.
options:
  _terms:
    description: The name of the variable.
    type: list
    elements: str
    required: true
  default:
    description: What to return if the variable is not set. If this is not set either, the variable's own default.
    type: raw
seealso:
  - plugin: podwire.cni.cni_options
    plugin_type: lookup
"""

EXAMPLES = """
- name: Show the networks, whatever their form
  ansible.builtin.debug:
    msg: "{{ lookup('podwire.cni.cni_value', 'cni_networks') | map(attribute='name') }}"
"""

RETURN = """
_raw:
  description: The value. V(null) if the variable is not set and has no default.
  type: list
  elements: raw
"""

from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.settings import VARIABLES, Settings
from ..plugin_utils.values import BadValue


class LookupModule(LookupBase):
    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        settings = Settings(variables or {}, self._templar.template)  # type: ignore[union-attr]
        try:
            return [self._value(settings, name, kwargs) for name in terms]
        except BadValue as error:
            raise AnsibleLookupError(str(error)) from error

    @staticmethod
    def _value(settings: Settings, name: str, options: dict[str, Any]) -> Any:
        if name not in VARIABLES:
            raise AnsibleLookupError(f"podwire.cni has no variable {name!r}")
        return settings.value(name, **options)
