#!/usr/bin/python
# Copyright (c) 2026 the podwire.cni authors; GNU General Public License v3.0+
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_attach
short_description: Attach containers to CNI networks, and detach them
version_added: 1.0.0
author:
  - podwire.cni authors (@podwire)
description:
  - Runs the ADD, CHECK and DEL commands of CNI plugins for any number of attachments, for several containers at a time.
  - An attachment that exists and has lost nothing is left alone. An attachment whose namespace was recreated or whose
    interface is gone is attached again. If the requested configuration, arguments or namespace differ from those of
    the ADD, the attachment is detached with those of the ADD, and then attached.
  - An attachment that exists although its cache entry is lost or damaged is adopted, which writes the entry again.
  - If ADD fails, DEL runs to clean up. DEL does not run if the interface existed before the ADD.
  - Attachments are cached below O(cache_dir), in the format of Go's libcni.
options:
  timeout:
    description:
      - How long one run of one plugin may take, in seconds. After that, the plugin and all processes that it started
        are killed.
      - The DEL after a failed ADD gets the full time again.
    type: float
    default: 60
  parallel:
    description:
      - How many containers to process at the same time.
      - The default is the number of CPUs of the host plus one, but at most 4.
    type: int
  on_drift:
    description:
      - What to do about an attachment that has drifted. It has drifted if an object of its footprint (what the ADD
        changed in the container and on the host) is gone or has changed, or if CHECK fails although it once passed (see
        O(check)).
      - V(report) issues a warning and leaves the attachment alone.
      - V(repair) puts lost objects back in place. If that is not possible, it detaches and attaches again, which
        interrupts its traffic. If the network has the capability C(ips), the ADD requests the same addresses.
      - V(fail) makes the module fail.
    type: str
    choices:
      - report
      - repair
      - fail
    default: report
  check:
    description:
      - When to run the CNI command CHECK, after an ADD and for an attachment whose footprint is as recorded.
      - V(auto) runs it where a footprint is incomplete. This concerns plugins that are not reference plugins, C(dhcp),
        C(firewall) while firewalld runs, and C(tuning) with sysctls of neighbours or of an interface that is not called
        C(IFNAME).
      - V(always) runs it for each attachment. V(never) does not run it.
      - A CHECK that can never pass is recognized by its failure right after the ADD. With V(always), it therefore
        counts as drift of an attachment that was made with another value, until that is attached again.
    type: str
    choices:
      - auto
      - always
      - never
    default: auto
  force:
    description:
      - With V(absent), run DEL even if the attachment is not in the cache, with the current configuration of the
        network. This always reports a change.
      - With V(absent), if DEL fails, remove the interface, the firewall rules, the leases and the cache entry anyway.
        A warning quotes the error of the DEL.
      - Replace a damaged cache entry, after a DEL with the current configuration of the network.
      - Attach even if the namespace already has an interface of that name.
      - Detach and attach again even if the network has changed only by the plugin of a running daemon, such as Istio
        or Linkerd, or if the new ADD fails in a rehearsal (V(add_would_fail)).
    type: bool
    default: false
  preview:
    description:
      - In check mode, find out what the ADD of each new attachment would change, by running it in a private copy of the
        host. The diff and RV(attachments[].preview) show it.
      - This needs the plugins on the host. Plugins that are not reference plugins, and IPAM plugins other than
        C(host-local) and C(static), cannot be previewed (V(no_preview)).
      - Has no effect outside check mode.
    type: bool
    default: false
notes:
  - An attachment whose CHECK fails right after a successful ADD is kept. Such a CHECK can never pass (known for
    C(portmap) 1.1.1 and for C(bridge) with C(sbr)). The module records the failure and issues a warning. The same
    failure later is not drift.
  - Check mode skips CHECK for networks that use C(dhcp), because CHECK would renew the lease.
extends_documentation_fragment:
  - podwire.cni._attachments.attach
  - podwire.cni._common
  - podwire.cni._common.lock
  - podwire.cni._common.classes
  - podwire.cni._attributes
  - podwire.cni._attributes.group
attributes:
  idempotent:
    support: partial
    details: With O(force), detaching an attachment that is not in the cache reports a change every time.
seealso:
  - module: podwire.cni.cni_conf
  - module: podwire.cni.cni_netns
  - module: podwire.cni.cni_info
"""

EXAMPLES = r"""
- name: Attach two containers to a network, and publish a port of one of them
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

- name: Report drift without changing anything
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

- name: Attach a pod to its network and to one that its annotation asks for
  podwire.cni.cni_attach:
    attachments:
      - network: demo
        container_id: pod
        netns: pod
        pod:
          name: pod
          annotations:
            k8s.v1.cni.cncf.io/networks: storage
    nads:
      src: [storage.yml]

- name: Detach a container
  podwire.cni.cni_attach:
    attachments:
      - network: demo
        container_id: db
        state: absent
"""

RETURN = r"""
attachments:
  description:
    - The attachments, in the order of the request. Also returned when the module fails.
    - An entry with a pod has a row for each of its networks, and then for each network that it no longer asks for.
  returned: always
  type: list
  elements: dict
  contains:
    network:
      description: Name of the network.
      type: str
    container_id:
      description: Container ID.
      type: str
    ifname:
      description: Name of the interface.
      type: str
    netns:
      description: Path of the namespace.
      type: str
    action:
      description:
        - What was done, or would be done in check mode.
        - V(adopted) means that the attachment existed, and that its lost cache entry was written again.
        - V(repaired) means that what was lost is back in place, or that the attachment was made again. V(drifted) means
          that drift was only reported. V(left) means that O(classes) does not allow the change, or that another network
          of the pod failed before.
        - V(rerouted) means that a default route was moved. V(rolled_back) means that the change was taken back, because
          another network of the pod failed.
      type: str
      choices: [none, added, adopted, deleted, repaired, rerouted, rolled_back, drifted, left, failed]
      sample: added
    reason:
      description:
        - Why the attachment changes. Empty if there is nothing to report.
        - V(config), V(args) and V(capability_args) differ from those of the ADD. V(netns) or V(interface) is gone.
          V(check) means that CHECK failed. V(kernel) means that the kernel lost part of the attachment. V(interrupted)
          means that an ADD did not finish. V(lost) and V(damaged) describe the cache entry. V(forced) is a DEL for an
          attachment that is not in the cache.
        - V(unrequested) means that the pod no longer asks for the network. V(default_route) means that another network
          of the pod must have the default route.
        - V(injected) means that the attachment is left although its network has changed, because the only change is
          the plugin of a running daemon.
      type: str
      sample: interface
    result:
      description:
        - The result of the ADD, in the CNI version of the network. The cached result if the attachment was left alone.
        - V(null) for a container that is not attached, and in check mode for one that would be attached.
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
        - What went wrong, or V(null). C(code) and C(message) are always set.
        - C(plugin), C(plugin_code) and C(stderr) are set if a plugin failed.
      type: dict
    drift:
      description: What has drifted, in words, if that is only reported; else empty.
      type: str
      sample: eth0 is gone
    warnings:
      description: Warnings about this attachment, with C(code) and C(message).
      type: list
      elements: dict
    pod:
      description: The pod that the attachment belongs to, as C(NAMESPACE/NAME).
      returned: for entries with a pod
      type: str
      sample: default/web
    preview:
      description:
        - What the ADD would change, as phrases. C(container) is the namespace of the container, C(host) is what the
          host gets for this attachment, C(shared) what it gets once for all attachments of the network or of the host.
        - V(veth*) and V(MAC*) stand for what a plugin chooses at random. The addresses are those that are free now.
        - C(unknown) instead tells why it is not known.
      returned: in check mode with O(preview), for attachments that would be added
      type: dict
      sample:
        container:
          - interface eth0 (veth, MTU 1500, up)
          - address 10.88.0.2/24 on eth0
        host:
          - lease of 10.88.0.2 in /var/lib/cni/networks/demo
        shared:
          - sysctl net.ipv4.ip_forward = 1
pods:
  description: The pods of the request. Empty if no entry has a pod.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Name of the pod.
      type: str
    namespace:
      description: Namespace of the pod.
      type: str
    container_id:
      description: Container ID.
      type: str
    netns:
      description: Path of the namespace.
      type: str
    networks:
      description:
        - The networks of the pod in the order of their ADDs, also in check mode, each with C(name) (in annotations),
          C(network) (in its configuration) and C(ifname).
      type: list
      elements: dict
      sample:
        - {name: pods, network: pods, ifname: eth0}
        - {name: default/storage, network: storage, ifname: net1}
    network_status:
      description:
        - The entries of the annotation C(k8s.v1.cni.cncf.io/network-status), as the client library of Kubernetes makes
          them. V(null) before all networks are attached.
      type: list
      elements: dict
      sample:
        - {name: pods, interface: eth0, ips: [10.88.0.2], mac: "6a:10:9c:37:2e:21", default: true, dns: {}}
        - {name: default/storage, interface: net1, ips: [192.0.2.7], mac: "c2:54:0c:3d:11:08", dns: {}}
    annotations:
      description: That annotation as its text. Empty without RV(pods[].network_status).
      type: dict
      sample:
        k8s.v1.cni.cncf.io/network-status: "[{...},{...}]"
findings:
  description:
    - The warnings, which are also printed. C(target) is that of a step in RV(actions), if the warning is about it.
    - In check mode, the level V(error) means that a run fails on it, unless an earlier task of the play makes what is
      missing.
  returned: always
  type: list
  elements: dict
  sample:
    - {level: warning, code: drifted, message: "demo/web/eth0 has drifted: eth0 is gone", target: demo/web/eth0}
actions:
  description: The steps of the plan, the same in check mode and in a run. When a run fails, each has a C(state).
  returned: always
  type: list
  elements: dict
  contains:
    kind:
      description:
        - One of V(add), V(del), V(repair), V(reroute), V(adopt) and V(leave).
        - V(reroute) moves a default route to or from a network of a pod.
        - V(repair) puts back in place what is lost, or is a DEL followed by an ADD. V(leave) is not a change. It shows
          what a running daemon did to the network.
      type: str
      sample: repair
    target:
      description:
        - Network, container ID and interface, as C(NETWORK/CONTAINER/INTERFACE).
        - The name of a network, or V(host), for what several attachments share and have lost.
      type: str
      sample: demo/web/eth0
    class:
      description:
        - V(safe) for V(add), V(adopt) and for a V(repair) in place, V(disruptive) for V(del), V(reroute) and
          for a V(repair) with DEL and ADD, V(foreign) for V(leave).
      type: str
    reason:
      description:
        - The difference in a few words, without secrets. The header of the diff shows it, too.
        - RV(attachments[].reason) has a stable word for the same.
      type: str
      sample: eth0 is gone
    parts:
      description:
        - What a step of the kind V(repair) does, in order, each with C(kind).
        - V(put_back) writes what is lost in place; V(del) and V(add) attach again.
      returned: for the kind V(repair)
      type: list
      elements: dict
      sample:
        - kind: del
        - kind: add
    lost:
      description: The kinds of the objects that are lost, such as V(addr) or V(route).
      returned: for a V(repair) in place
      type: list
      elements: str
left:
  description: Steps that were not taken because O(classes) does not allow them, the same in check mode and in a run.
  returned: always, when there is a plan
  type: list
  elements: dict
  sample:
    - kind: del
      target: demo/web/eth0
      class: disruptive
      reason: state is absent
code:
  description: Error code, if the request as a whole is refused. Otherwise each attachment has its own code.
  returned: failure
  type: str
  sample: duplicate_attachment
"""

from typing import List, Mapping, Sequence, Union

# Mitogen takes only a file for a module that has the words "from ansible_collections." in it.
from ..module_utils._host.attachments.drift import Present
from ..module_utils._host.attachments.outcome import AttachPlan, attach_settings
from ..module_utils._host.attachments.planner import AttachPlanner
from ..module_utils._host.attachments.request import ATTACHMENTS_ARGUMENTS, Key, parse_attachments
from ..module_utils._host.attachments.verbs import Verbs
from ..module_utils._host.errors import HostError, coded
from ..module_utils._module import (
    CLASSES_ARGUMENTS,
    COMMON_ARGUMENTS,
    LOCK_ARGUMENTS,
    create_module,
    execute,
    fail,
    result_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..module_utils._host.footprints.rehearsed import Rehearsed
    from ..module_utils._host.kernel.objects import ObjectKey
    from ..module_utils._host.leases import Lease


def main() -> None:
    module = create_module(dict(ATTACHMENTS_ARGUMENTS, **COMMON_ARGUMENTS, **LOCK_ARGUMENTS, **CLASSES_ARGUMENTS))
    params = module.params
    refused: List[HostError] = []
    try:
        request = parse_attachments(params["attachments"], refused if module.check_mode else None)
        settings = attach_settings(params, module.check_mode)
    except HostError as error:
        fail(module, error)
    verbs = Verbs(params["bin_dirs"], params["cache_dir"], params["timeout"], checks=params["check"])

    def rehearse(attachments: Sequence[Present]) -> Mapping[Key, Union[Rehearsed, HostError]]:
        # Imported late: nearly all attachments have footprints.
        from ..module_utils._host.trials import rehearsal

        return rehearsal.rehearse(attachments, settings.bin_dirs)

    def find_freed(taken: Mapping[ObjectKey, Key]) -> Mapping[ObjectKey, Lease]:
        # Imported late: hardly any lease is given to another container.
        from ..module_utils._host.garbage import freed

        return freed.find_freed(settings.conf_dir, settings.bin_dirs, settings.cache_dir, taken)

    settings.rehearse, settings.find_freed = rehearse, find_freed

    def make_plan() -> AttachPlan:
        plan = AttachPlanner(settings, verbs).make(request)
        if params["preview"] and module.check_mode:
            # Imported late: a rehearsal is much that is seldom needed.
            from ..module_utils._host.trials.preview import add_previews

            add_previews(plan, settings.bin_dirs)
        return plan

    plan = execute(module, make_plan, "cni_attach", settings.workers)
    result = result_of(module, plan)
    result["attachments"] = [outcome.row() for outcome in plan.outcomes]
    result["pods"] = []
    if any(outcome.wanted.pod for outcome in plan.outcomes):
        # Imported late: most requests have no pods.
        from ..module_utils._host.attachments.pod_unit import pod_rows

        result["pods"] = pod_rows(plan.outcomes)
    failed = [{"code": error.code, "message": error.msg} for error in [*refused, *plan.shared_errors]]
    failed += [outcome.error for outcome in plan.outcomes if outcome.error is not None]
    if failed:
        if not module.check_mode:
            result["changed"] = any(step.state == "done" for step in plan.steps)
            result["actions"] = plan.progress()
        more = f" (and {len(failed) - 1} more; see 'attachments')" if len(failed) > 1 else ""
        module.fail_json(msg=coded(failed[0]["message"], failed[0]["code"]) + more, code=failed[0]["code"], **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
