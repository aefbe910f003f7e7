#!/usr/bin/python

# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_attach
short_description: Attach containers to CNI networks, and detach them
version_added: 0.1.0
author:
  - podwire.cni authors (@podwire)
description:
  - Runs the commands ADD, CHECK and DEL of CNI plugins for any number of attachments, several containers at a time.
  - What is attached already, and passes CHECK, is left alone. What is there no more (its namespace was made anew, its
    interface is gone) is attached again. What was attached with another configuration, other arguments or to another
    namespace is detached with what it was attached with, and then attached.
  - An attachment that is there although its cache entry is lost or damaged is adopted. Its entry is written again.
  - If ADD fails, DEL runs to clean up. It does not run if the interface was there before the ADD.
  - Attachments are remembered in the format of Go's libcni below O(cache_dir).
options:
  attachments:
    description:
      - The attachments, keyed by network, container and interface.
      - The entries of one container are attached in the order of the list and detached in reverse; different
        containers are worked on in parallel.
      - All entries are tested before anything runs. The same key twice, or one interface name twice in a container, is
        refused. Check mode plans the other entries and fails at the end.
      - When one attachment fails, the others go on; the module fails at the end and reports all of them.
    type: list
    elements: dict
    required: true
    suboptions:
      network:
        description: Name of the network, which a file in O(conf_dir) configures.
        type: str
        required: true
      container_id:
        description:
          - Id of the container. Letters, digits, V(_), V(.) and V(-); the first one a letter or a digit.
          - The default is made of the namespace's path by the rule of C(cnitool).
        type: str
      netns:
        description:
          - Network namespace of the container. A name means C(/run/netns/NAME), anything with a slash is an absolute
            path, such as C(/proc/4711/ns/net).
          - Needed to attach. To detach, it is only needed where O(attachments[].container_id) is not given.
          - Namespaces are compared by identity, not by path.
          - The network namespace of the host itself is refused, under whatever path (V(host_netns)).
        type: str
      ifname:
        description: Name of the interface in the container.
        type: str
        default: eth0
      args:
        description:
          - Arguments for C(CNI_ARGS), which older conventions use (such as V(IP) and V(MAC)).
          - Values are text. Numbers without fraction become text, booleans become V(true) and V(false). Names and
            values that contain C(;) or C(=) cannot be passed this way and are refused.
        type: dict
      capability_args:
        description:
          - Data for plugins by capability, such as C(portMappings) or C(ips); plugins that declare the capability get
            it as C(runtimeConfig).
          - Arguments of known capabilities are tested before anything runs. Numbers must not be in quotes.
          - An argument that no plugin of the network declares reaches nobody, which is a warning. So is a host port
            that is mapped twice, here or by another attachment of the host.
        type: dict
      state:
        description:
          - V(present) attaches.
          - V(absent) detaches, with the configuration, namespace and arguments that are remembered. A namespace that is
            gone, or is not the same any more, is not passed on. When DEL fails the attachment stays remembered.
        type: str
        choices:
          - present
          - absent
        default: present
  timeout:
    description:
      - How long one run of one plugin may take, in seconds. Then it is killed with all processes that it started.
      - The DEL after a failed ADD gets the full time again.
    type: float
    default: 60
  parallel:
    description:
      - How many containers are worked on at the same time.
      - The default is one more than the host has CPUs, and at most 4.
    type: int
  on_drift:
    description:
      - What to do about an attachment that is there, and whose CHECK fails although it once passed, or that the kernel
        does not have any more as the result of its ADD says. Compared are interfaces, their MAC, MTU and addresses,
        routes, the bridge, and whether the firewall still has its rules.
      - V(report) warns, and leaves it alone.
      - V(repair) detaches it and attaches it anew, which interrupts its traffic. It asks for the same addresses where
        the network has the capability C(ips).
      - V(fail) fails.
    type: str
    choices:
      - report
      - repair
      - fail
    default: report
  force:
    description:
      - With V(absent), run DEL even for an attachment that is not remembered, with the network's present configuration.
        This always reports a change.
      - With V(absent), if DEL fails, remove the interface, the firewall rules, the leases and the cache entry all the
        same. A warning tells what DEL said.
      - Replace a damaged cache entry, after a DEL with the network's present configuration.
      - Attach even if the namespace has an interface of that name already.
      - Make an attachment anew although its network differs only by the plugin of a running daemon.
    type: bool
    default: false
notes:
  - An attachment whose CHECK fails right after its ADD succeeded stays. That CHECK can never pass (C(portmap) 1.1.1 and
    C(bridge) with C(sbr) are known for it). The failure is remembered, a warning says so, and the same failure is no
    drift later.
  - In check mode CHECK is left out for networks that use C(dhcp), because it would renew the lease.
extends_documentation_fragment:
  - podwire.cni._common
  - podwire.cni._common.lock
  - podwire.cni._common.classes
  - podwire.cni._attributes
  - podwire.cni._attributes.group
attributes:
  idempotent:
    support: partial
    details:
      - With O(force), detaching what is not remembered reports a change every time.
seealso:
  - module: podwire.cni.cni_conf
  - module: podwire.cni.cni_netns
  - module: podwire.cni.cni_info
"""

EXAMPLES = r"""
- name: Two containers on a network, one of them reachable from outside
  podwire.cni.cni_attach:
    attachments:
      - network: demo
        container_id: web
        netns: web
        capability_args:
          portMappings:
            - hostPort: 8080
              containerPort: 80
              protocol: tcp
      - network: demo
        container_id: db
        netns: db

- name: Find drift, change nothing
  podwire.cni.cni_attach:
    attachments:
      - network: demo
        container_id: web
        netns: web
        capability_args:
          portMappings:
            - hostPort: 8080
              containerPort: 80
              protocol: tcp
  check_mode: true

- name: Detach a container
  podwire.cni.cni_attach:
    attachments:
      - network: demo
        container_id: db
        state: absent
"""

RETURN = r"""
attachments:
  description: The attachments in the order of the request. Also returned when the module fails.
  returned: always
  type: list
  elements: dict
  contains:
    network:
      description: Name of the network.
      type: str
      sample: demo
    container_id:
      description: Id of the container.
      type: str
      sample: web
    ifname:
      description: Name of the interface.
      type: str
      sample: eth0
    netns:
      description: Path of the namespace.
      type: str
      sample: /run/netns/web
    action:
      description:
        - What was done, or would be done in check mode.
        - V(adopted) is an attachment that is there, and whose lost cache entry was written again.
        - V(repaired) is DEL followed by ADD; V(drifted) is drift that was only reported; V(left) is what O(classes)
          does not allow.
      type: str
      choices: [none, added, adopted, deleted, repaired, drifted, left, failed]
      sample: added
    reason:
      description:
        - Why an attachment is not left as it is, empty where there is nothing to say.
        - V(config), V(args), V(capability_args) differ from what it was attached with; V(netns), V(interface) are gone;
          V(check) failed; the V(kernel) has lost something; V(interrupted) an ADD did not come to its end; the
          cache entry is V(lost) or V(damaged); V(forced) is a DEL of what is not remembered.
        - V(injected) is for one that is left although its network has changed, because all that has changed is the
          plugin of a running daemon.
      type: str
      sample: interface
    result:
      description:
        - The result of the ADD, in the network's CNI version; the remembered one for what was left alone.
        - V(null) in check mode for what would be attached, and for what is not attached.
      type: dict
      sample:
        cniVersion: 1.0.0
        interfaces:
          - name: eth0
            mac: 6a:10:9c:37:2e:21
            sandbox: /run/netns/web
        ips:
          - interface: 0
            address: 10.88.0.2/24
            gateway: 10.88.0.1
    ips:
      description: The addresses in RV(attachments[].result); V(null) in check mode for what would be attached.
      type: list
      elements: str
      sample: [10.88.0.2/24]
    error:
      description:
        - What went wrong, V(null) if nothing did. C(code) and C(message) are always there.
        - C(plugin), C(plugin_code) and C(stderr) are there if a plugin failed.
      type: dict
      sample: null
    warnings:
      description: Warnings about this attachment, with C(code) and C(message).
      type: list
      elements: dict
      sample: []
actions:
  description: The steps of the plan, the same in check mode and in a run; with C(state) when a run fails.
  returned: always
  type: list
  elements: dict
  sample:
    - kind: add
      target: demo/web/eth0
      class: safe
left:
  description: What was left as it is because O(classes) does not allow it, the same in check mode and in a run.
  returned: always, when there is a plan
  type: list
  elements: dict
  sample:
    - kind: del
      target: demo/web/eth0
      class: disruptive
code:
  description: A word for the failure, when the request as a whole is refused; otherwise each attachment has its own.
  returned: failure
  type: str
  sample: duplicate_attachment
"""

import os
from typing import Any, Dict, List

from ..module_utils._host.attach import Planner
from ..module_utils._host.attach_outcome import AttachPlan, Settings
from ..module_utils._host.attach_request import parse
from ..module_utils._host.attach_verbs import Verbs
from ..module_utils._host.errors import HostError
from ..module_utils._module import (
    CLASSES_ARGUMENTS,
    COMMON_ARGUMENTS,
    LOCK_ARGUMENTS,
    create_module,
    execute,
    fail,
    result_of,
)

ENTRY: Dict[str, Any] = {
    "network": {"type": "str", "required": True},
    "container_id": {"type": "str"},
    "netns": {"type": "str"},
    "ifname": {"type": "str", "default": "eth0"},
    "args": {"type": "dict"},
    "capability_args": {"type": "dict"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def main() -> None:
    module = create_module(
        dict(
            COMMON_ARGUMENTS,
            **LOCK_ARGUMENTS,
            **CLASSES_ARGUMENTS,
            attachments={"type": "list", "elements": "dict", "required": True, "options": ENTRY},
            timeout={"type": "float", "default": 60},
            parallel={"type": "int"},
            on_drift={"type": "str", "choices": ["report", "repair", "fail"], "default": "report"},
            force={"type": "bool", "default": False},
        )
    )
    params = module.params
    refused: List[HostError] = []
    try:
        request = parse(params["attachments"], refused if module.check_mode else None)
        workers = _workers(params["parallel"])
        if params["timeout"] <= 0:
            raise HostError("timeout must be more than 0 seconds", code="bad_timeout")
    except HostError as error:
        fail(module, error)
    settings = Settings(
        params["conf_dir"],
        params["bin_dirs"],
        params["cache_dir"],
        params["on_drift"],
        params["force"],
        module.check_mode,
        workers,
    )
    verbs = Verbs(params["bin_dirs"], params["cache_dir"], params["timeout"])

    def make_plan() -> AttachPlan:
        return Planner(settings, verbs).make(request)

    plan = execute(module, make_plan, "cni_attach", workers)
    result = result_of(module, plan)
    result["attachments"] = [outcome.row() for outcome in plan.outcomes]
    failed = [{"code": error.code, "message": error.msg} for error in refused]
    failed += [outcome.error for outcome in plan.outcomes if outcome.error is not None]
    if failed:
        if not module.check_mode:
            result["changed"] = any(step.state == "done" for step in plan.steps)
            result["actions"] = plan.progress()
        more = f" (and {len(failed) - 1} more; see 'attachments')" if len(failed) > 1 else ""
        module.fail_json(msg=failed[0]["message"] + more, code=failed[0]["code"], **result)
    module.exit_json(**result)


def _workers(parallel: Any) -> int:
    if parallel is None:
        return min(4, len(os.sched_getaffinity(0)) + 1)
    if parallel < 1:
        raise HostError("parallel must be at least 1", code="bad_parallel")
    return int(parallel)


if __name__ == "__main__":
    main()
