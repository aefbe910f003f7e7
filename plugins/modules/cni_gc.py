#!/usr/bin/python
# Copyright (c) 2026 the podwire.cni authors; GNU General Public License v3.0+
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_gc
short_description: Collect leaks of dead containers
version_added: 1.0.0
author:
  - podwire.cni authors (@podwire)
description:
  - Finds and removes what dead containers left behind (attachments, address reservations, firewall rules, cache files
    and, on request, interfaces). Returns everything that it finds, with the evidence.
  - Collects an object only if no source of live containers knows its container, no network namespace of the host has
    its address, and it is older than O(min_age). If one of these conditions is not met, the object is reported and
    left.
  - Collects an attachment with a DEL that uses the data of its ADD, and never while the namespace of the ADD exists.
options:
  keep_from:
    description:
      - Sources that must report which containers are alive. All other sources on the host count as well.
      - V(cache) reports the attachments in O(cache_dir) whose namespace is still that of the ADD. Attachments in other
        known caches, such as C(/var/lib/cni), are also alive if their namespace exists.
      - V(netns) is every network namespace that has a name, is mounted, belongs to a process or thread, or is held open
        by a process or thread, by a file or only by a socket. Addresses in use in a namespace are never collected,
        whether or not V(netns) is listed.
      - V(containerd), V(podman) and V(nomad) are the runtimes. V(containerd) covers every containerd on the host.
      - The default is every source that is found on the host. The module fails if a required source cannot be asked.
      - If fewer sources are listed than are found, the module collects only what this collection made, according to
        O(cache_dir).
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
      - Containers that are alive, in addition to those of the sources.
      - With an empty O(keep_from), this option alone restricts the collection in the same way as fewer sources do.
    type: list
    elements: dict
    suboptions:
      container_id:
        description: Container ID.
        type: str
        required: true
      ifname:
        description:
          - Name of the interface that is alive. The default is all interfaces of the container.
          - Nothing of a container in this list is collected. The name matters only for plugins that learn from GC which
            attachments are valid.
        type: str
  networks:
    description:
      - Collect in these networks only. The default is all networks.
      - With this option, an object whose network is unknown is left out.
    type: list
    elements: str
  scope:
    description:
      - Kinds of leaks to collect.
      - V(attachments) are attachments in O(cache_dir). V(leases) are reservations of the plugin C(host-local).
        V(rules) are the rules that plugins keep in iptables and nftables for single containers. V(cache) are damaged
        files in O(cache_dir).
      - V(links) are veths of attachments whose other end is also on the host and is idle, and bridges without ports
        that no configuration names, if an ADD of this collection made them and nobody has added anything to them.
        Other veths on bridges of CNI networks, and other bridges that such networks used, are reported and left.
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
      - Minimum age of a leak, as a number of seconds or as a number with the unit V(s), V(m), V(h) or V(d).
      - Firewall rules and interfaces have no date. Their age is that of the reservation or cache entry of their
        container. Without one, their age is the time for which runs of this module (not in check mode) have seen them
        without an owner.
    type: str
    default: 10m
  allow_empty:
    description: Collect even if no source reports any container. Set this only if no container is alive on the host.
    type: bool
    default: false
  timeout:
    description:
      - How long one run of one plugin may take, and how long to wait for the lock of C(host-local), in seconds.
    type: float
    default: 60
  parallel:
    description:
      - How many containers to detach at the same time.
      - The default is the number of CPUs of the host plus one, but at most 4.
    type: int
notes:
  - Networks with C(disableGC) are left alone.
  - For networks of CNI 1.1.0 or later, GC tells the plugins which attachments are valid. The module runs GC only if all
    containers are known and no other runtime is on the host. It does so in every run, and does not report it as a
    change.
  - If there are traces of a runtime that cannot be asked at all (CRI-O, cri-dockerd, a stopped containerd), the module
    collects only what this collection made, according to O(cache_dir).
  - In a container, the module needs the PID namespace of the host. It fails with the code V(processes_hidden) if it
    cannot see the processes of the host, because a container that only those processes lead to may be alive.
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
- name: Report leaks without collecting them
  podwire.cni.cni_gc:
  check_mode: true
  register: garbage

- name: Collect leaks
  podwire.cni.cni_gc:

- name: Release the addresses of one network on a host where no container runs
  podwire.cni.cni_gc:
    networks:
      - demo
    scope:
      - leases
    allow_empty: true

- name: Collect leaks of this collection only, regardless of the runtimes, and keep one container
  podwire.cni.cni_gc:
    keep_from: []
    keep:
      - container_id: web
        ifname: eth0
"""

RETURN = r"""
collected:
  description:
    - Everything that was found and does not clearly belong to a live container, sorted by kind, network and name. Also
      returned when the module fails.
  returned: always
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of object.
      type: str
      choices: [attachment, lease, rule, cache, link]
    network:
      description: Name of the network. Empty if it is unknown.
      type: str
    id:
      description:
        - Identifier of the object, which is the address of a lease, C(CONTAINER/INTERFACE) of an attachment, the path
          of a cache file, or the name of an interface. For rules, the backend, the family, the plugin and the chain or
          address.
      type: str
    container_id:
      description: Container ID. Empty if it is unknown.
      type: str
    ifname:
      description: Name of the interface in the container. Empty if it is unknown.
      type: str
    addresses:
      description: The addresses that must not be in use in any namespace.
      type: list
      elements: str
      sample: [10.88.0.2]
    evidence:
      description: The evidence, in human-readable sentences.
      type: list
      elements: str
      sample:
        - /var/lib/cni/networks/demo/10.88.0.2 reserves it for container web, interface eth0
        - "no source names container web; asked: cache (3), podman (2)"
        - 10.88.0.2 is in none of the 7 network namespaces
        - made 2026-11-21 08:15:02 UTC
    action:
      description: What was done, or would be done in check mode.
      type: str
      choices: [deleted, left, failed]
      sample: deleted
    reason:
      description:
        - Why the object is collected or left.
        - Collected because of V(owner_dead) (no source knows its container), V(interrupted) (its ADD did not finish),
          or V(empty), V(damaged), V(leftover), V(stray) or V(before_boot) (a file that is of no use).
        - Left because of V(live) (the container is alive), V(address_live) (the address is in use), V(young) (see
          O(min_age)), V(not_ours) (a source may be missing), V(disable_gc) (the network disables GC),
          V(missing_plugin) (a DEL could not work), V(unclear), V(no_owner), V(other) or V(unreadable) (the owner cannot
          be determined), V(in_use) (the interface is in use), or V(empty_live_set) (see O(allow_empty)).
      type: str
      sample: owner_dead
    error:
      description: What went wrong, with C(code), C(message) and details. V(null) if nothing did.
      type: dict
kept:
  description: Number of attachments, leases, rule sets and interfaces that clearly belong to a live container, by kind.
  returned: success
  type: dict
  sample: {attachment: 3, cache: 0, lease: 5, link: 0, rule: 4}
live:
  description: The basis of the decisions.
  returned: success
  type: dict
  contains:
    complete:
      description: Whether every source that was found had to answer.
      type: bool
    why:
      description: Why the set of sources is not complete. Empty if it is complete.
      type: str
    namespaces:
      description: Number of network namespaces that were inspected.
      type: int
    sources:
      description:
        - The sources, with C(source), C(found) (the evidence that it is on the host), C(asked) (what was asked), and
          C(containers) (the number of containers, V(null) if the source did not answer).
      type: list
      elements: dict
gc:
  description: Networks of CNI 1.1.0 or later, and whether GC told their plugins which attachments are valid.
  returned: success
  type: list
  elements: dict
  contains:
    network:
      description: Name of the network.
      type: str
    action:
      description: What was done, or would be done in check mode.
      type: str
      choices: [sent, left, failed]
    reason:
      description: Why GC was not sent. Empty if it was sent.
      type: str
    error:
      description: What went wrong, with C(code) and C(message). V(null) if nothing did.
      type: dict
findings:
  description:
    - The warnings, which are also printed. C(target) is that of a step in RV(actions), if the warning is about it.
  returned: always
  type: list
  elements: dict
  sample:
    - {level: warning, code: missing_source, message: "no runtime answers", target: ""}
actions:
  description:
    - The steps of the plan, the same in check mode and in a run. C(reason) is the evidence in a few words. When a run
      fails, each has a C(state).
  returned: always
  type: list
  elements: dict
  sample:
    - kind: release
      target: /var/lib/cni/networks/demo/10.88.0.2
      class: safe
      reason: no source names container web
code:
  description: Error code.
  returned: failure
  type: str
  sample: empty_live_set
"""

import re
from typing import Any, Dict, FrozenSet, List, Optional, Set

# Mitogen takes only a file for a module that has the words "from ansible_collections." in it.
from ..module_utils._host.errors import HostError, coded
from ..module_utils._host.garbage.candidate import GcSettings
from ..module_utils._host.garbage.planner import GcPlan, plan_gc
from ..module_utils._host.plan import workers_of
from ..module_utils._module import COMMON_ARGUMENTS, LOCK_ARGUMENTS, create_module, execute, fail, result_of

_AGE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


ARGUMENTS: Dict[str, Any] = dict(
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


def main() -> None:
    module = create_module(ARGUMENTS)
    params = module.params
    try:
        settings = _settings(params, module.check_mode)
        workers = workers_of(params["parallel"])
    except HostError as error:
        fail(module, error)
    plan = execute(module, lambda: plan_gc(settings), "cni_gc", workers)
    result = result_of(module, plan)
    result.update(_report(plan))
    failed = [candidate.error for candidate in plan.candidates if candidate.error]
    failed += [verb.error for verb in plan.verbs if verb.error]
    if not module.check_mode:
        try:
            plan.note_undated()
        except HostError as error:
            failed.append({"code": error.code, "message": error.msg})
    if failed:
        result["changed"] = any(step.state == "done" for step in plan.steps)
        result["actions"] = plan.progress()
        more = f" (and {len(failed) - 1} more; see 'collected')" if len(failed) > 1 else ""
        module.fail_json(msg=coded(failed[0]["message"], failed[0]["code"]) + more, code=failed[0]["code"], **result)
    module.exit_json(**result)


def _report(plan: GcPlan) -> Dict[str, Any]:
    return {
        "collected": [candidate.row() for candidate in plan.candidates],
        "kept": plan.kept,
        "live": {
            "complete": plan.live.complete,
            "why": plan.live.why,
            "namespaces": len(plan.live.namespaces.all),
            "sources": plan.live.rows(),
        },
        "gc": [verb.row() for verb in plan.verbs],
    }


def _settings(params: Dict[str, Any], check_mode: bool) -> GcSettings:
    given = {name: params[name] for name in GcSettings._fields if name in params}
    given.update(keep=_keep(params["keep"] or []), min_age=_seconds(params["min_age"]), check_mode=check_mode)
    return GcSettings(**given)


def _keep(entries: List[Dict[str, Any]]) -> Dict[str, Optional[FrozenSet[str]]]:
    """Return interfaces by container ID, None for all."""
    names: Dict[str, Set[str]] = {}
    whole = set()
    for index, entry in enumerate(entries):
        if not entry["container_id"]:
            raise HostError(f"keep[{index}].container_id is empty", code="bad_id")
        names.setdefault(entry["container_id"], set()).add(entry["ifname"])
        if not entry["ifname"]:
            whole.add(entry["container_id"])
    return {name: None if name in whole else frozenset(ifnames) for name, ifnames in names.items()}


def _seconds(text: str) -> float:
    match = _AGE.fullmatch(text.strip())
    if not match:
        raise HostError(
            f"min_age: {text!r} is not a duration; write a number of seconds, or one with a unit: 30s, 10m, 2h, 1d",
            code="bad_min_age",
        )
    return float(match.group(1)) * _UNITS[match.group(2)]


if __name__ == "__main__":
    main()
