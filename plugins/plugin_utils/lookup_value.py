# Copyright (c) 2026 the podwire.cni authors; GNU General Public License v3.0+
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup cni_value: return the values of variables of this collection, which may be given as text."""

from __future__ import annotations

DOCUMENTATION = """
name: cni_value
short_description: Return the values of variables of this collection
version_added: 1.0.0
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
  default:
    description: What to return if the variable is not set. If this is not set either, the variable's own default.
    type: raw
  options:
    description:
      - Return the options of modules that variables set, for C(module_defaults). An option whose variable is not set is
        left out, so the module's own default holds.
      - The names of groups of options. V(plugins), V(networks), V(runtime), V(netns) and V(attachments) are the
        sections of M(podwire.cni.cni_host), V(common), V(lock), V(classes) and V(host) are what it has besides them,
        V(gc) and V(smoke) are the options of those modules, V(plugins_dir) is the directory of the plugins, and
        V(loaded) is the network that the runtimes must have loaded.
      - V(whole_host) alone stands for all arguments of M(podwire.cni.cni_host). It includes the sections whose
        variables are set and that the tags select.
    type: list
    elements: str
  problems:
    description:
      - Return a sentence about what is wrong with the variables of the host, empty if nothing is.
      - V(values) are values that a variable cannot have, such as a text that is no number.
      - V(host) is also what prevents the roles from working, which is that no variable declares something, or that
        networks must be validated and C(jsonschema) is missing on the controller.
      - Both also warn about variables that no role or playbook of this collection reads, because their names are
        probably misspelled or are those of another role. So does O(options).
    type: str
    choices: [values, host]
"""

EXAMPLES = """
- name: Show the networks, whatever their form
  ansible.builtin.debug:
    msg: "{{ lookup('podwire.cni.cni_value', 'cni_networks') | map(attribute='name') }}"

- name: Test the networks of the host, with the variables of the playbook smoke
  podwire.cni.cni_smoke:
  module_defaults:
    podwire.cni.cni_smoke: "{{ lookup('podwire.cni.cni_value', options=['smoke', 'common', 'lock']) }}"
"""

RETURN = """
_raw:
  description: The value, the options, or the sentence. V(null) if the variable is not set and has no default.
  type: list
  elements: raw
"""

from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display

from ..plugin_utils.preflight import bad_values, preflight, warn_of_unknown
from ..plugin_utils.settings import VARIABLES, Settings
from ..plugin_utils.values import BadValue


class LookupModule(LookupBase):
    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        variables = variables or {}
        settings = Settings(variables, self._templar.template)  # type: ignore[union-attr]
        groups, problems = kwargs.pop("options", None), kwargs.pop("problems", "")
        try:
            if groups or problems == "values":
                # This is where every role and playbook that changes hosts begins.
                warn_of_unknown(variables, Display().warning)
            if groups:
                return [settings.options_of_host() if groups == ["whole_host"] else settings.options(*groups)]
            if problems:
                whole = problems == "host"
                return [preflight(variables, settings, Display().warning) if whole else bad_values(variables, settings)]
            return [self._value(settings, name, kwargs) for name in terms]
        except BadValue as error:
            raise AnsibleLookupError(str(error)) from error

    @staticmethod
    def _value(settings: Settings, name: str, options: dict[str, Any]) -> Any:
        if name not in VARIABLES:
            raise AnsibleLookupError(f"podwire.cni has no variable {name!r}")
        return settings.value(name, **options)
