# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup cni_options: return the options of a module that the variables of this collection set."""

from __future__ import annotations

DOCUMENTATION = """
name: cni_options
short_description: Return the options of modules that the variables of this collection set
version_added: 0.2.0
author:
  - podwire.cni authors (@podwire)
description:
  - Internal. For the playbooks and roles of this collection; it may change in any release.
  - Returns the options of the named groups, each with the value of its variable. An option whose variable is not set is
    left out, so the module's own default holds. See P(podwire.cni.cni_value#lookup) for the forms of a value.
  - Use it in C(module_defaults).
options:
  _terms:
    description:
      - The names of groups. V(plugins), V(networks), V(runtime), V(netns) and V(attachments) are the sections of
        M(podwire.cni.cni_host), V(common), V(lock), V(classes) and V(host) are what it has besides them, V(gc) and
        V(smoke) are the options of those modules, V(plugins_dir) is the directory of the plugins, and V(loaded) is the
        network that the runtimes must have loaded.
      - V(whole_host) stands for all arguments of M(podwire.cni.cni_host). It includes the sections whose variables
        are set and that the tags select.
    type: list
    elements: str
    required: true
seealso:
  - plugin: podwire.cni.cni_value
    plugin_type: lookup
"""

EXAMPLES = """
- name: Test the networks of the host, with the variables of the playbook smoke
  podwire.cni.cni_smoke:
  module_defaults:
    podwire.cni.cni_smoke: "{{ lookup('podwire.cni.cni_options', 'smoke', 'common', 'lock') }}"
"""

RETURN = """
_raw:
  description: The options.
  type: list
  elements: dict
"""

from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.settings import GROUPS, Settings
from ..plugin_utils.values import BadValue

WHOLE_HOST = "whole_host"


class LookupModule(LookupBase):
    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        settings = Settings(variables or {}, self._templar.template)  # type: ignore[union-attr]
        unknown = [name for name in terms if name not in (*GROUPS, WHOLE_HOST)]
        if unknown:
            raise AnsibleLookupError(f"no group {unknown[0]!r}; the groups are {', '.join((*GROUPS, WHOLE_HOST))}")
        try:
            if WHOLE_HOST in terms:
                return [settings.options_of_host()]
            return [settings.options(*terms)]
        except BadValue as error:
            raise AnsibleLookupError(str(error)) from error
