#!/usr/bin/python

# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_gc
short_description: Collect what no live container owns
version_added: 0.1.0
author:
  - podwire.cni authors (@podwire)
description:
  - Finds what dead containers left behind (attachments, address reservations, firewall rules, cache files and, on
    request, interfaces) and takes it away. Everything that is found is returned with the evidence for it.
  - A thing is collected only if its container is in no source of live containers, no network namespace of the host has
    its address, and it is older than O(min_age). If one of these reasons is missing it is listed and left.
  - An attachment is collected by a DEL with what it was attached with, never while the namespace of its ADD is there.
options:
  keep_from:
    description:
      - The sources that must answer which containers live. What any other source on the host knows counts as well.
      - V(cache) is what O(cache_dir) knows, as far as its namespace is still the one of the ADD. Attachments in other
        known caches, such as C(/var/lib/cni), whose namespace exists are alive, too.
      - V(netns) is every network namespace that has a name, is mounted, belongs to a process or thread or is held open
        by one, by a file or only by a socket. Addresses in use in one of them are never collected, whether this is
        listed or not.
      - V(containerd), V(podman) and V(nomad) are the runtimes. V(containerd) stands for every containerd of the host.
      - The default is every source that is found on the host. One that must answer and cannot be asked fails the
        module.
      - Naming fewer sources than are found narrows the work to what O(cache_dir) says that this collection made.
    type: list
    elements: str
    choices:
      - cache
      - netns
      - containerd
      - podman
      - nomad
  keep:
    description:
      - Containers that live, beside those of the sources.
      - On its own, with an empty O(keep_from), it narrows the work like fewer sources do.
    type: list
    elements: dict
    suboptions:
      container_id:
        description: Id of the container.
        type: str
        required: true
      ifname:
        description:
          - Name of the interface that lives. The default is all of the container.
          - Nothing of a container in this list is collected. The name matters to plugins that are told by GC which
            attachments are valid.
        type: str
  networks:
    description:
      - Work on these networks only. The default is all.
      - What cannot be told to belong to a network is left out then.
    type: list
    elements: str
  scope:
    description:
      - What to collect.
      - V(attachments) are those in O(cache_dir), V(leases) the reservations of the plugin C(host-local), V(rules) what
        plugins keep in iptables and nftables for single containers, V(cache) damaged files in O(cache_dir).
      - V(links) are veths on bridges of CNI networks whose other end is idle on the host, too, and bridges of CNI
        networks without ports that no configuration names. A veth that leads to a namespace that exists is left.
    type: list
    elements: str
    choices:
      - attachments
      - leases
      - rules
      - cache
      - links
    default:
      - attachments
      - leases
      - rules
      - cache
  min_age:
    description:
      - How old garbage must be. A number of seconds, or one with the unit V(s), V(m), V(h) or V(d).
      - Firewall rules and interfaces have no date. They are as old as the reservation or cache entry of their
        container; where there is none, as long as runs of this module (not in check mode) have seen them without an
        owner.
    type: str
    default: 10m
  allow_empty:
    description:
      - Collect even if no source names any container. Say so only where it is true that nothing lives on the host.
    type: bool
    default: false
  timeout:
    description:
      - How long one run of one plugin, and waiting for the lock of C(host-local), may take, in seconds.
    type: float
    default: 60
  parallel:
    description:
      - How many containers are detached at the same time.
      - The default is one more than the host has CPUs, and at most 4.
    type: int
notes:
  - Networks with C(disableGC) are left alone altogether.
  - Plugins of networks from CNI 1.1.0 on are told by GC which attachments are valid. This is done only if every
    container is known and no other runtime is on the host, it is the same in every run, and it counts as no change.
  - Where there are traces of a runtime that cannot be asked at all (CRI-O, cri-dockerd, a containerd that is stopped),
    the work is narrowed to what O(cache_dir) says that this collection made.
  - In a container, the module needs the PID namespace of the host. It fails with the code V(processes_hidden) if
    processes of the host cannot be seen, because a container that only they lead to may be alive.
extends_documentation_fragment:
  - podwire.cni._common
  - podwire.cni._common.lock
  - podwire.cni._attributes
  - podwire.cni._attributes.group
seealso:
  - module: podwire.cni.cni_attach
  - module: podwire.cni.cni_info
"""

EXAMPLES = r"""
- name: See what would be collected
  podwire.cni.cni_gc:
  check_mode: true
  register: garbage

- name: Collect it
  podwire.cni.cni_gc:

- name: Free the addresses of one network on a host where nothing runs
  podwire.cni.cni_gc:
    networks:
      - demo
    scope:
      - leases
    allow_empty: true

- name: Collect what this collection attached, whatever runtimes there are, and keep one container
  podwire.cni.cni_gc:
    keep_from: []
    keep:
      - container_id: web
        ifname: eth0
"""

RETURN = r"""
collected:
  description:
    - What was found without being plainly a live container's, by kind, network and name. Also returned when the module
      fails.
  returned: always
  type: list
  elements: dict
  contains:
    kind:
      description: What it is.
      type: str
      choices: [attachment, lease, rule, cache, link]
      sample: lease
    network:
      description: Name of the network, empty if that is not known.
      type: str
      sample: demo
    id:
      description:
        - What it is called. The address of a lease, C(CONTAINER/INTERFACE) of an attachment, the path of a cache file,
          the name of an interface; of rules, the backend, the family, the plugin and the chain or address.
      type: str
      sample: 10.88.0.2
    container_id:
      description: Id of its container, empty if that is not known.
      type: str
      sample: web
    ifname:
      description: Name of the interface in the container, empty if that is not known.
      type: str
      sample: eth0
    addresses:
      description: The addresses that must not be in use anywhere.
      type: list
      elements: str
      sample: [10.88.0.2]
    evidence:
      description: What was seen, in sentences.
      type: list
      elements: str
      sample:
        - /var/lib/cni/networks/demo/10.88.0.2 reserves it for container web, interface eth0
        - "container web is not among: cache (3), podman (2)"
        - 10.88.0.2 is in none of the 7 network namespaces
        - made 2026-11-21 08:15:02 UTC
    action:
      description: What was done, or would be done in check mode.
      type: str
      choices: [deleted, left, failed]
      sample: deleted
    reason:
      description:
        - Why.
        - V(owner_dead) its container is in no source; V(interrupted) its ADD did not come to its end; V(empty),
          V(damaged), V(leftover), V(stray), V(before_boot) a file that is of no use.
        - Left because of V(live) the container lives; V(address_live) the address is in use; V(young) see O(min_age);
          V(not_ours) a source may be missing; V(disable_gc) the network says so; V(missing_plugin) a DEL could not
          work; V(unclear), V(no_owner), V(other), V(unreadable) it cannot be told whose it is; V(in_use) an interface
          is; V(other_runtime) another runtime may need the bridge; V(empty_live_set) see O(allow_empty).
      type: str
      sample: owner_dead
    error:
      description: What went wrong, with C(code), C(message) and details, else V(null).
      type: dict
kept:
  description: How many attachments, leases, rule sets and interfaces are plainly a live container's, by kind.
  returned: success
  type: dict
  sample: {attachment: 3, cache: 0, lease: 5, link: 0, rule: 4}
live:
  description: What the decisions rest on.
  returned: success
  type: dict
  contains:
    complete:
      description: Whether every source that was found had to answer.
      type: bool
    why:
      description: Why the set is not complete, empty if it is.
      type: str
    namespaces:
      description: How many network namespaces were looked into.
      type: int
    sources:
      description:
        - The sources with C(source), C(found) (what says that it is on the host), C(asked) (what was asked), and
          C(containers), the number of containers, V(null) if it did not answer.
      type: list
      elements: dict
gc:
  description: Networks from CNI 1.1.0 on, and whether their plugins are told which attachments are valid.
  returned: success
  type: list
  elements: dict
  contains:
    network:
      description: Name of the network.
      type: str
      sample: demo
    action:
      description: What was done, or would be done in check mode.
      type: str
      choices: [sent, left, failed]
    reason:
      description: Why it is not sent, empty if it is.
      type: str
    error:
      description: What went wrong, with C(code) and C(message), else V(null).
      type: dict
actions:
  description: The steps of the plan, the same in check mode and in a run; with C(state) when a run fails.
  returned: always
  type: list
  elements: dict
  sample:
    - kind: release
      target: /var/lib/cni/networks/demo/10.88.0.2
      class: safe
code:
  description: A word for the failure.
  returned: failure
  type: str
  sample: empty_live_set
"""

import os
import re
from typing import Any, Dict, FrozenSet, List, Optional, Set

from ..module_utils._host.errors import HostError
from ..module_utils._host.gc import Planner
from ..module_utils._host.gc_outcome import GcPlan, Settings
from ..module_utils._module import COMMON_ARGUMENTS, LOCK_ARGUMENTS, create_module, execute, fail, result_of

_AGE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def main() -> None:
    module = create_module(
        dict(
            COMMON_ARGUMENTS,
            **LOCK_ARGUMENTS,
            keep_from={
                "type": "list",
                "elements": "str",
                "choices": ["cache", "netns", "containerd", "podman", "nomad"],
            },
            keep={
                "type": "list",
                "elements": "dict",
                "options": {"container_id": {"type": "str", "required": True}, "ifname": {"type": "str"}},
            },
            networks={"type": "list", "elements": "str"},
            scope={
                "type": "list",
                "elements": "str",
                "choices": ["attachments", "leases", "rules", "cache", "links"],
                "default": ["attachments", "leases", "rules", "cache"],
            },
            min_age={"type": "str", "default": "10m"},
            allow_empty={"type": "bool", "default": False},
            timeout={"type": "float", "default": 60},
            parallel={"type": "int"},
        )
    )
    params = module.params
    try:
        settings = _settings(params, module.check_mode)
        workers = _workers(params["parallel"])
    except HostError as error:
        fail(module, error)
    planner = Planner(settings)
    plan = execute(module, planner.make, "cni_gc", workers)
    result = result_of(module, plan)
    result.update(_report(plan))
    failed = [candidate.error for candidate in plan.candidates if candidate.error]
    failed += [verb.error for verb in plan.verbs if verb.error]
    if not module.check_mode:
        try:
            planner.remember()
        except HostError as error:
            failed.append({"code": error.code, "message": error.msg})
    if failed:
        result["changed"] = any(step.state == "done" for step in plan.steps)
        result["actions"] = plan.progress()
        more = f" (and {len(failed) - 1} more; see 'collected')" if len(failed) > 1 else ""
        module.fail_json(msg=failed[0]["message"] + more, code=failed[0]["code"], **result)
    module.exit_json(**result)


def _report(plan: GcPlan) -> Dict[str, Any]:
    return {
        "collected": [candidate.row() for candidate in plan.candidates],
        "kept": plan.kept,
        "live": {
            "complete": plan.complete,
            "why": plan.why,
            "namespaces": plan.namespaces,
            "sources": plan.live,
        },
        "gc": [verb.row() for verb in plan.verbs],
    }


def _settings(params: Dict[str, Any], check_mode: bool) -> Settings:
    if params["timeout"] <= 0:
        raise HostError("timeout must be more than 0 seconds", code="bad_timeout")
    return Settings(
        params["conf_dir"],
        params["bin_dirs"],
        params["cache_dir"],
        params["keep_from"],
        _keep(params["keep"] or []),
        params["networks"],
        params["scope"],
        _seconds(params["min_age"]),
        params["allow_empty"],
        check_mode,
        params["timeout"],
    )


def _keep(entries: List[Dict[str, Any]]) -> Dict[str, Optional[FrozenSet[str]]]:
    """Return container id -> interfaces, None for all."""
    names: Dict[str, Set[str]] = {}
    whole = set()
    for index, entry in enumerate(entries):
        if not entry["container_id"]:
            raise HostError(f"keep[{index}].container_id is empty", code="bad_id")
        names.setdefault(entry["container_id"], set()).add(entry["ifname"])
        if not entry["ifname"]:
            whole.add(entry["container_id"])
    return {name: None if name in whole else frozenset(found) for name, found in names.items()}


def _seconds(text: str) -> float:
    found = _AGE.fullmatch(text.strip())
    if not found:
        raise HostError(
            f"min_age: {text!r} is no duration; write a number of seconds, or one with a unit: 30s, 10m, 2h, 1d",
            code="bad_min_age",
        )
    return float(found.group(1)) * _UNITS[found.group(2)]


def _workers(parallel: Optional[int]) -> int:
    if parallel is None:
        return min(4, len(os.sched_getaffinity(0)) + 1)
    if parallel < 1:
        raise HostError("parallel must be at least 1", code="bad_parallel")
    return parallel


if __name__ == "__main__":
    main()
