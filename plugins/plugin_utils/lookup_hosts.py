# Copyright (c) 2026 the podwire.cni authors; GNU General Public License v3.0+
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup cni_hosts: return the hosts of a playbook, or fail with the reason why there are none."""

from __future__ import annotations

DOCUMENTATION = """
name: cni_hosts
short_description: Return the hosts that a playbook of this collection works on
version_added: 1.0.0
author:
  - podwire.cni authors (@podwire)
description:
  - Internal. For the playbooks and roles of this collection; it may change in any release.
  - Returns the variable C(cni_hosts), or V(all) if C(cni_hosts) is not set but C(--limit) is. Empty text counts as not
    set.
  - Warns about extra variables that are probably misspelled, or variables of other roles.
  - Fails if no host is named, or if no host of the inventory matches. Ansible itself would skip the play and succeed.
  - Use it in the keyword C(hosts) of a play.
options:
  default:
    description: Pattern to use if no host is named. If this is not set, hosts must be named.
    type: str
  after_drift:
    description:
      - Return only the hosts that the playbook C(podwire.cni.drift) needs after it has inspected all hosts. These are
        the first host, which makes the report, and the hosts for which C(cni_drift_fail) is set.
      - Each host of a play costs the controller a process for each task, even if the task is skipped.
    type: bool
    default: false
  canaries:
    description:
      - Whether the playbook uses the extra variables C(cni_canary), a pattern of hosts that go first, and
        C(cni_canary_passed). With the former alone, only the canaries are returned. With both, all hosts but the
        canaries are.
      - A batch of a play is the canary of its own run only. If slices of an inventory run side by side, each has one.
    type: bool
    default: false
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
from ansible.utils.display import Display

from ..plugin_utils._report.commands import pattern as pattern_of
from ..plugin_utils.preflight import warn_of_unknown
from ..plugin_utils.settings import Settings

WHY = "this playbook changes hosts"
LISTINGS = ("syntax", "listhosts", "listtasks", "listtags")
"""Runs that only list the contents of a playbook. Most of them have no inventory."""


class LookupModule(LookupBase):
    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[str]:
        variables = variables or {}
        settings = Settings(variables, self._templar.template)  # type: ignore[union-attr]
        named = ",".join(map(str, settings.value("cni_hosts", default=[])))
        # Extra variables are all that is known here. The other variables of a host are checked with the host.
        warn_of_unknown(variables, Display().warning)
        self._limit = limit = str(variables.get("ansible_limit") or "")
        pattern = named or ("all" if limit else kwargs.get("default"))
        if any(context.CLIARGS.get(key) for key in LISTINGS):
            return [pattern or "all"]
        if not pattern:
            raise AnsibleLookupError(f"{kwargs.get('why', WHY)}; name them: -e cni_hosts=PATTERN or --limit PATTERN")
        said = [f"cni_hosts={named}"] if named else []
        said += [f"--limit {limit}"] if limit else []
        self._groups: dict[str, list[str]] = variables["groups"]
        remedy = "check the pattern against the inventory (ansible-inventory --graph)"
        try:
            found = self._matches(pattern)
        except AnsibleError as error:
            # For example with host_pattern_mismatch = error in the configuration.
            raise AnsibleLookupError(f"{' with '.join(said)}: {error.message}; {remedy}") from error
        if not found:
            raise AnsibleLookupError(
                f"no host matched {' with '.join(said)}; {remedy}"
                if said
                else "the inventory has no hosts; name one that has: -i INVENTORY"
            )
        if kwargs.get("canaries"):
            return self._with_canaries(pattern, found, settings, said)
        if kwargs.get("after_drift") and not settings.value("cni_drift_fail"):
            return self._after_drift(found, variables.get("hostvars"))
        return [pattern]

    def _with_canaries(self, pattern: str, found: list[str], settings: Settings, said: list[str]) -> list[str]:
        canary, passed = ",".join(settings.value("cni_canary")), settings.value("cni_canary_passed")
        if not canary:
            # A single host is no rollout.
            if passed or (self._limit and len(found) > 1):
                Display().warning(
                    "cni_canary is not set, so the first batch is the canary of this run. If other slices of the "
                    "inventory run at the same time, each has its own; see the page AWX."
                )
            return [pattern]
        canaries = set(self._matches(canary))
        chosen = [host for host in found if (host in canaries) is not passed]
        if chosen:
            return [pattern_of(host) for host in chosen]
        what = f"{' with '.join(said)} with cni_canary={canary}"
        if not passed:
            raise AnsibleLookupError(
                f"no host matched {what}; let the job of the canaries have all hosts, without slices or limit"
            )
        Display().warning(f"every host of {what} is a canary, and the canaries have passed; there is nothing to do")
        return ["all:!all"]

    def _after_drift(self, hosts: list[str], hostvars: Any) -> list[str]:
        needed = hosts[:1]
        for host in hosts if hostvars is not None else []:
            own = hostvars[host].get("cni_drift_fail")
            if Settings({"cni_drift_fail": own}, lambda value: value).value("cni_drift_fail"):
                needed.append(host)
        return [pattern_of(host) for host in dict.fromkeys(needed)]

    def _matches(self, pattern: str) -> list[str]:
        manager = InventoryManager(DataLoader(), parse=False)
        for group, hosts in self._groups.items():
            manager.add_group(group)
            for host in hosts:
                manager.add_host(host, group=group)
        manager.subset(self._limit or None)
        return [host.name for host in manager.get_hosts(pattern=pattern)]
