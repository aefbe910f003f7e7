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
  after:
    description:
      - The name of what a task of the playbook has registered on each host. Return only the hosts that the playbook
        needs to show the outcome of all, which is the first one that has not failed.
      - Each host of a play has a line for each task, even if the task is skipped, and costs the controller a process.
    type: str
  failing:
    description: The name as for O(after). Return only the hosts whose result has a C(fail).
    type: str
  expand:
    description: Return the names of the hosts, instead of a pattern.
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

from collections.abc import Mapping
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
        again = any(kwargs.get(name) for name in ("after", "failing", "expand"))
        # Extra variables are all that is known here. The other variables of a host are checked with the host.
        warn_of_unknown(variables, Display().warning if not again else lambda _sentence: None)
        self._limit = limit = str(variables.get("ansible_limit") or "")
        pattern = named or ("all" if limit else kwargs.get("default"))
        if any(context.CLIARGS.get(key) for key in LISTINGS):
            return [pattern or "all"]
        if not pattern:
            raise AnsibleLookupError(f"{kwargs.get('why', WHY)}; name them: -e cni_hosts=PATTERN or --limit PATTERN")
        said = [f"cni_hosts={named}"] if named else []
        said += [f"--limit {limit}"] if limit else []
        self._groups: dict[str, list[str]] = variables["groups"]
        hosts = self._matching(pattern, limit, " with ".join(said))
        chosen = self._with_canaries(hosts, settings, said, again) if kwargs.get("canaries") else hosts
        if kwargs.get("expand"):
            return chosen
        for key in ("after", "failing"):
            if kwargs.get(key):
                chosen = _needed(chosen, variables.get("hostvars") or {}, kwargs[key], key == "failing")
        return [pattern] if chosen is hosts else [pattern_of(host) for host in chosen] or ["all:!all"]

    def _with_canaries(self, hosts: list[str], settings: Settings, said: list[str], again: bool) -> list[str]:
        """Return *hosts* if no canaries are named, otherwise the canaries or all others, which may be none."""
        canary, passed = ",".join(settings.value("cni_canary")), settings.value("cni_canary_passed")
        if not canary:
            # A single host is no rollout.
            if not again and (passed or (self._limit and len(hosts) > 1)):
                Display().warning(
                    "cni_canary is not set, so the first batch is the canary of this run. If other slices of the "
                    "inventory run at the same time, each has its own; see the page AWX."
                )
            return hosts
        canaries: set[str] = set()
        try:
            canaries.update(self._matching(canary, "", f"cni_canary={canary}"))
        except AnsibleLookupError as error:
            if not passed:
                raise AnsibleLookupError(f"{error.message}. Do not slice the job of the canaries") from error
            if not again:
                Display().warning(f"{error.message}. No host is left out; a slice may be without canaries")
        chosen = [host for host in hosts if (host in canaries) is not passed]
        what = f"{' with '.join(said)} with cni_canary={canary}"
        if not chosen and not passed:
            raise AnsibleLookupError(
                f"no host matched {what}; run the job of the canaries on all hosts, without slices and --limit"
            )
        if not chosen and not again:
            Display().warning(f"every host of {what} is a canary, and the canaries have passed; there is nothing to do")
        return chosen

    def _matching(self, pattern: str, limit: str, what: str) -> list[str]:
        """Return the hosts of *pattern*. Raises AnsibleLookupError, which names *what* was set, if there are none."""
        manager = InventoryManager(DataLoader(), parse=False)
        for group, hosts in self._groups.items():
            manager.add_group(group)
            for host in hosts:
                manager.add_host(host, group=group)
        manager.subset(limit or None)
        remedy = "check the pattern against the inventory (ansible-inventory --graph)"
        try:
            names = [host.name for host in manager.get_hosts(pattern=pattern)]
        except AnsibleError as error:
            # For example with host_pattern_mismatch = error in the configuration.
            raise AnsibleLookupError(f"{what}: {error.message}; {remedy}") from error
        if not names:
            text = f"no host matched {what}; {remedy}"
            raise AnsibleLookupError(text if what else "the inventory has no hosts; name another one: -i INVENTORY")
        return names


def _needed(hosts: list[str], hostvars: Mapping[str, Any], name: str, failing: bool) -> list[str]:
    """Return the first of *hosts* that has not failed, or all that have not, and whose result *name* has a ``fail``."""
    alive, fail = [], []
    for host in hosts:
        result = (hostvars[host].get(name) if host in hostvars else None) or {"failed": True}
        # A task that takes the words of its line from its result has a loop.
        result = result["results"][0] if "results" in result else result
        if not (result.get("failed") or result.get("unreachable")):
            alive.append(host)
            fail += [host] if result.get("fail") else []
    return fail if failing else (alive or hosts)[:1]
