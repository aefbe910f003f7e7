# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup cni_hosts: return the hosts of a playbook, or fail with the reason why there are none."""

from __future__ import annotations

DOCUMENTATION = """
name: cni_hosts
short_description: Return the hosts that a playbook of this collection works on
version_added: 0.1.0
author:
  - podwire.cni authors (@podwire)
description:
  - Returns the variable C(cni_hosts), or V(all) if C(cni_hosts) is not set but C(--limit) is. Empty text counts as not
    set.
  - Fails if no host is named, or if no host of the inventory matches. Ansible itself would skip the play and succeed.
  - Use it in the keyword C(hosts) of a play.
options:
  default:
    description: Pattern to use if no host is named. If this is not set, hosts must be named.
    type: str
  why:
    description: What the playbook does to hosts, for the error message.
    type: str
    default: this playbook changes hosts
"""

EXAMPLES = """
- name: Test the networks of the hosts in cni_hosts or --limit
  hosts: "{{ lookup('podwire.cni.cni_hosts', why='this playbook attaches to networks') }}"
  become: true
  gather_facts: false
  tasks:
    - name: Test the networks
      podwire.cni.cni_smoke:
"""

RETURN = """
_raw:
  description: The pattern.
  type: list
  elements: str
"""

from typing import Any

from ansible import context
from ansible.errors import AnsibleError, AnsibleLookupError
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.lookup import LookupBase

WHY = "this playbook changes hosts"
LISTINGS = ("syntax", "listhosts", "listtasks", "listtags")
"""Runs that only list the contents of a playbook. Most of them have no inventory."""


class LookupModule(LookupBase):
    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[str]:
        variables = variables or {}
        named = self._templar.template(variables.get("cni_hosts"))  # type: ignore[union-attr]
        named = ",".join(map(str, named)) if isinstance(named, list | tuple) else str(named or "")
        limit = str(variables.get("ansible_limit") or "")
        pattern = named or ("all" if limit else kwargs.get("default"))
        if any(context.CLIARGS.get(key) for key in LISTINGS):
            return [pattern or "all"]
        if not pattern:
            raise AnsibleLookupError(f"{kwargs.get('why', WHY)}; name them: -e cni_hosts=PATTERN or --limit PATTERN")
        said = [f"cni_hosts={named}"] if named else []
        said += [f"--limit {limit}"] if limit else []
        remedy = "check the pattern against the inventory (ansible-inventory --graph)"
        try:
            found = self._matches(pattern, limit, variables["groups"])
        except AnsibleError as error:
            # For example with host_pattern_mismatch = error in the configuration.
            raise AnsibleLookupError(f"{' with '.join(said)}: {error.message}; {remedy}") from error
        if not found:
            raise AnsibleLookupError(
                f"no host matched {' with '.join(said)}; {remedy}"
                if said
                else "the inventory has no hosts; name one that has: -i INVENTORY"
            )
        return [pattern]

    def _matches(self, pattern: str, limit: str, groups: dict[str, list[str]]) -> bool:
        manager = InventoryManager(DataLoader(), parse=False)
        for group, hosts in groups.items():
            manager.add_group(group)
            for host in hosts:
                manager.add_host(host, group=group)
        manager.subset(limit or None)
        return bool(manager.get_hosts(pattern=pattern))
