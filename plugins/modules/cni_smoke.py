#!/usr/bin/python
# Copyright (c) 2026 the podwire.cni authors; GNU General Public License v3.0+
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_smoke
short_description: Test whether the networks of a host work
version_added: 1.0.0
author:
  - podwire.cni authors (@podwire)
description:
  - Attaches two test containers to each network, in namespaces that exist only for the test. Runs ADD and CHECK, pings
    the gateway, sends packets between the containers and to a published port, and runs DEL. Then searches for what DEL
    left behind, by container IDs that no other container has.
  - Cleans up after itself. The module reports and removes what DEL left behind, undoes a failed ADD, and undoes
    everything if it is interrupted. The next run removes what a killed run left behind.
  - Runs the plugins that the runtime of a network finds. O(bin_dirs) is for networks that no runtime of the host reads.
  - Does not touch the attachments of containers.
options:
  networks:
    description:
      - Names of the networks to test, even if they would be skipped by default.
      - The default is every network in O(conf_dir) that can be tested without harm. This skips networks that take a
        device, networks that assign a fixed address, networks whose DHCP daemon does not run, and networks with plugins
        other than the reference plugins, because many of those work for a runtime only.
    type: list
    elements: str
  ping:
    description:
      - Ping the gateways in the result that are addresses of the host.
      - Set to V(false) if the firewall of the host does not let containers ping it.
    type: bool
    default: true
  packets:
    description:
      - Attach a second container and make a TCP connection to it from the first. If a plugin of the network has the
        capability C(portMappings), publish a free port of the host, and connect to it from the host.
      - Networks that keep their containers apart, or that only one container can have, are tested with one container.
      - Set to V(false) if these packets must not arrive.
    type: bool
    default: true
  timeout:
    description:
      - How long one run of one plugin may take, in seconds. After that, the plugin and all processes that it started
        are killed.
    type: float
    default: 60
notes:
  - The module fails if one network does not work. It tests all networks first.
  - It also fails if a runtime that runs on the host and uses one of the networks lacks a plugin that it executes for
    every container, such as loopback for containerd.
  - While the module runs, O(cache_dir) has a directory C(smoke), so that nothing mistakes the attachments of the test
    for those of a container.
  - The bridge of a network without attachments so far is removed again. Objects that plugins never remove stay, such as
    the firewall chains that all containers share, C(net.ipv4.ip_forward), C(route_localnet) of a bridge that a
    published port needed, and host-local's record of the last address that it assigned.
extends_documentation_fragment:
  - podwire.cni._attachments.pod
  - podwire.cni._common
  - podwire.cni._common.lock
  - podwire.cni._attributes
  - podwire.cni._attributes.group
seealso:
  - module: podwire.cni.cni_attach
  - module: podwire.cni.cni_plugins
"""

EXAMPLES = r"""
- name: Test all networks that can be tested without harm
  podwire.cni.cni_smoke:

- name: Test one network whose gateway the firewall does not let containers ping
  podwire.cni.cni_smoke:
    networks: [apps]
    ping: false

- name: List the networks that would be tested
  podwire.cni.cni_smoke:
  check_mode: true
"""

RETURN = r"""
networks:
  description: The networks, in the order of their files. Also returned when the module fails.
  returned: always
  type: list
  elements: dict
  contains:
    network:
      description: Name of the network. Empty for a file that cannot be loaded.
      type: str
    file:
      description: Path of its file.
      type: str
      sample: /etc/cni/net.d/10-apps.conflist
    bin_dirs:
      description: The directories where its plugins are searched, those of the runtime that reads it, or O(bin_dirs).
      type: list
      elements: str
      sample: [/opt/cni/bin]
    status:
      description:
        - V(passed) and V(failed) networks were tested, or could not be, as RV(networks[].error) says.
        - A V(planned) network would be tested. A V(skipped) network was not tested, see RV(networks[].reason).
      type: str
      choices: [passed, failed, skipped, planned]
    reason:
      description:
        - Why the network was skipped. Empty if it was not.
        - V(takes_device), V(fixed_address), V(no_dhcp_daemon), V(third_party) or V(host_route_lost).
      type: str
    ready:
      description:
        - Result of STATUS, V(passed) or V(failed).
        - V(null) if it is unknown, because the version of the network or one of its plugins does not have STATUS, or a
          plugin does not answer.
      type: str
    add:
      description: V(passed) or V(failed), that of the first container. V(null) if it did not run.
      type: str
    check:
      description:
        - V(passed), or V(unusable) if CHECK fails right after a successful ADD, which is not a fault of the network.
        - V(null) if the network has no CHECK.
      type: str
    ping:
      description: V(passed) or V(failed). V(null) if there is nothing to ping; RV(networks[].notes) say why.
      type: str
    container:
      description:
        - Whether packets of the first container reach the second one, at each of its addresses, V(passed) or V(failed).
          Also V(failed) if the ADD of the second container fails.
        - V(null) if there was no second container; RV(networks[].notes) say why.
      type: str
    published:
      description:
        - Whether packets of the host reach a published port of a container, IPv4 and IPv6 if it has both, V(passed) or
          V(failed).
        - V(null) if no plugin of the network has the capability C(portMappings), or the ports are not for everyone
          (C(conditionsV4), C(conditionsV6)).
      type: str
    del:
      description: V(passed) or V(failed), that of all containers. V(null) if it did not run.
      type: str
    ips:
      description: The addresses that the network assigned to the first container.
      type: list
      elements: str
      sample: [10.88.0.2/24]
    leaks:
      description: What still existed after DEL.
      type: list
      elements: dict
      contains:
        kind:
          description: V(lease), V(link) or V(rule).
          type: str
        id:
          description: The address, the interface, or what identifies the rules.
          type: str
        message:
          description: Description of the leak.
          type: str
          sample: /var/lib/cni/networks/apps/10.88.0.2 still reserves the address
        removed:
          description: Whether the module could remove it.
          type: bool
    notes:
      description: Why a test was skipped or does not count, with C(code) and C(message).
      type: list
      elements: dict
    error:
      description:
        - The first error, V(null) if there was none. C(code) and C(message) are always set.
        - C(plugin), C(plugin_code) and C(stderr) are set if a plugin failed.
      type: dict
runtimes:
  description:
    - The runtimes of the host that use one of the networks by default, with C(runtime), C(network), whether it is
      C(running), and C(requires), as in RV(podwire.cni.cni_conf#module:effective[].requires).
  returned: always
  type: list
  elements: dict
  sample: []
findings:
  description:
    - The warnings, which are also printed. C(target) is that of a step in RV(actions), if the warning is about it.
    - In check mode, the level V(error) means that a run fails on it, unless an earlier task of the play makes what is
      missing.
  returned: always
  type: list
  elements: dict
  sample: []
actions:
  description:
    - The steps of the plan, the same in check mode and in a run. The step C(try) tests a network and is not a change.
      The step C(take_back) removes what a killed run left behind and is a change. C(reason) says why in a few words.
  returned: always
  type: list
  elements: dict
  sample:
    - kind: try
      target: apps
      class: safe
      reason: its test does no harm
code:
  description: Error code, V(smoke_failed) if networks do not work.
  returned: failure
  type: str
  sample: smoke_failed
"""

from typing import Any, Dict, List

# Mitogen takes only a file for a module that has the words "from ansible_collections." in it.
from ..module_utils._host.attachments.request import POD_ARGUMENTS
from ..module_utils._host.errors import HostError, coded
from ..module_utils._host.interrupt import Interrupted, interruptible
from ..module_utils._host.trials.planner import SmokePlanner
from ..module_utils._host.trials.trial import FAILED, PASSED, SmokeSettings, Trial
from ..module_utils._module import COMMON_ARGUMENTS, LOCK_ARGUMENTS, create_module, execute, fail, result_of

ARGUMENTS: Dict[str, Any] = dict(
    COMMON_ARGUMENTS,
    **LOCK_ARGUMENTS,
    networks={"type": "list", "elements": "str"},
    ping={"type": "bool", "default": True},
    packets={"type": "bool", "default": True},
    timeout={"type": "float", "default": 60},
    pod=POD_ARGUMENTS,
)


def main() -> None:
    module = create_module(ARGUMENTS)
    params = module.params
    given = {name: params[name] for name in SmokeSettings._fields if name in params}
    settings = SmokeSettings(**given, check_mode=module.check_mode)
    try:
        with interruptible():
            plan = execute(module, lambda: SmokePlanner(settings).make(), "cni_smoke")
    except Interrupted as signal:
        fail(module, HostError(f"interrupted by {signal}; the test in progress was undone", code="interrupted"))
        raise
    result = result_of(module, plan)
    result["networks"] = [trial.row() for trial in plan.trials]
    result["runtimes"] = plan.runtimes
    failed = [trial for trial in plan.trials if trial.status == FAILED]
    lacking = [] if module.check_mode else _lacking(plan.runtimes)
    if failed or lacking:
        module.fail_json(msg="; ".join([*_summary(plan.trials, failed), *lacking]), code="smoke_failed", **result)
    module.exit_json(**result)


def _summary(trials: List[Trial], failed: List[Trial]) -> List[str]:
    tried = [trial for trial in trials if trial.status in (FAILED, PASSED)]
    messages = [coded(str(trial.error["message"]), trial.error["code"]) for trial in failed if trial.error]
    return [f"{len(failed)} of {len(tried)} networks do not work: {'; '.join(messages)}"] if failed else []


def _lacking(runtimes: List[Dict[str, Any]]) -> List[str]:
    """Return what running runtimes cannot execute, although every container needs it."""
    return [
        f"{row['runtime']} cannot start containers on {row['network']}: {need['problem']}"
        for row in runtimes
        for need in row["requires"]
        if row["running"] and need["problem"]
    ]


if __name__ == "__main__":
    main()
