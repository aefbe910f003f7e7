#!/usr/bin/python

# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_smoke
short_description: Try whether the networks of a host work
version_added: 0.1.0
author:
  - podwire.cni authors (@podwire)
description:
  - Attaches a container that does not exist to each network, in a namespace that lives for that only. ADD, CHECK, a
    ping of the gateway, and DEL; then it looks for what DEL has left behind, by the id that no other container has.
  - Nothing of it stays. What DEL has left is reported and taken away, a failed ADD is taken back, and so is everything
    when the module is told to end. What a killed run has left is taken back by the next one.
  - Attachments of containers are not touched.
options:
  networks:
    description:
      - Names of the networks to try, whatever speaks against it.
      - The default is every network in O(conf_dir) that can be tried without harm. Left out are those that take a
        device, that give a fixed address, whose DHCP daemon does not run, and those with plugins that are none of the
        reference plugins, because many of them work for a runtime only.
    type: list
    elements: str
  ping:
    description:
      - Ping the gateways in the result that are addresses of the host.
      - Switch it off where the host's firewall does not let containers ping it.
    type: bool
    default: true
  timeout:
    description:
      - How long one run of one plugin may take, in seconds. Then it is killed with all processes that it started.
    type: float
    default: 60
notes:
  - The module fails if one network does not work. All networks are tried before.
  - O(cache_dir) has a folder C(smoke) while the module runs, so that nobody takes its attachments for somebody's.
  - The bridge of a network that nobody has been attached to yet is removed again. What plugins never take away stays,
    such as the firewall's chains that all containers share, C(net.ipv4.ip_forward), and host-local's note of the
    address that it gave last.
extends_documentation_fragment:
  - podwire.cni._common
  - podwire.cni._common.lock
  - podwire.cni._attributes
  - podwire.cni._attributes.group
seealso:
  - module: podwire.cni.cni_attach
  - module: podwire.cni.cni_plugins
"""

EXAMPLES = r"""
- name: Try all networks that can be tried without harm
  podwire.cni.cni_smoke:

- name: Try one network that the host's firewall does not let ping
  podwire.cni.cni_smoke:
    networks: [apps]
    ping: false

- name: See which networks would be tried
  podwire.cni.cni_smoke:
  check_mode: true
"""

RETURN = r"""
networks:
  description: The networks in the order of their files. Also returned when the module fails.
  returned: always
  type: list
  elements: dict
  contains:
    network:
      description: Name of the network, empty for a file that cannot be loaded.
      type: str
      sample: apps
    file:
      description: Path of its file.
      type: str
      sample: /etc/cni/net.d/10-apps.conflist
    status:
      description:
        - V(passed) and V(failed) were tried, or could not be, as RV(networks[].error) says.
        - V(planned) would be tried; V(skipped) was not, see RV(networks[].reason).
      type: str
      choices: [passed, failed, skipped, planned]
      sample: passed
    reason:
      description:
        - Why the network was skipped, else empty.
        - V(takes_device), V(fixed_address), V(no_dhcp_daemon) or V(third_party).
      type: str
      sample: ""
    add:
      description: V(passed) or V(failed), V(null) if it did not take place.
      type: str
      sample: passed
    check:
      description:
        - V(passed), or V(unusable) if it fails although ADD has just succeeded, which is no fault of the network.
        - V(null) if the network has no CHECK.
      type: str
      sample: passed
    ping:
      description: V(passed) or V(failed), V(null) if there is nothing to ping; RV(networks[].notes) say why.
      type: str
      sample: passed
    del:
      description: V(passed) or V(failed), V(null) if it did not take place.
      type: str
      sample: passed
    ips:
      description: The addresses that it gave.
      type: list
      elements: str
      sample: [10.88.0.2/24]
    leaks:
      description: What was still there after DEL.
      type: list
      elements: dict
      contains:
        kind:
          description: V(lease), V(link) or V(rule).
          type: str
          sample: lease
        id:
          description: The address, the interface, or what tells the rules from others.
          type: str
          sample: 10.88.0.2
        message:
          description: What was seen.
          type: str
          sample: /var/lib/cni/networks/apps/10.88.0.2 still reserves the address
        removed:
          description: Whether the module could take it away.
          type: bool
          sample: true
    notes:
      description: Why something was left out or does not count, with C(code) and C(message).
      type: list
      elements: dict
      sample: []
    error:
      description:
        - What went wrong first, V(null) if nothing did. C(code) and C(message) are always there.
        - C(plugin), C(plugin_code) and C(stderr) are there if a plugin failed.
      type: dict
      sample: null
actions:
  description:
    - The steps of the plan, the same in check mode and in a run. C(try) a network, which is no change, and
      C(take_back) what a killed run has left, which is one.
  returned: always
  type: list
  elements: dict
  sample:
    - kind: try
      target: apps
      class: safe
code:
  description: A word for the failure, V(smoke_failed) if networks do not work.
  returned: failure
  type: str
  sample: smoke_failed
"""

from typing import List

from ..module_utils._host.errors import HostError
from ..module_utils._host.interrupt import Interrupted, interruptible
from ..module_utils._host.smoke import Planner
from ..module_utils._host.smoke_outcome import FAILED, PASSED, Settings, SmokePlan, Trial
from ..module_utils._module import COMMON_ARGUMENTS, LOCK_ARGUMENTS, create_module, execute, fail, result_of


def main() -> None:
    module = create_module(
        dict(
            COMMON_ARGUMENTS,
            **LOCK_ARGUMENTS,
            networks={"type": "list", "elements": "str"},
            ping={"type": "bool", "default": True},
            timeout={"type": "float", "default": 60},
        )
    )
    params = module.params
    if params["timeout"] <= 0:
        fail(module, HostError("timeout must be more than 0 seconds", code="bad_timeout"))
    settings = Settings(
        params["conf_dir"],
        params["bin_dirs"],
        params["cache_dir"],
        params["networks"],
        params["ping"],
        params["timeout"],
        module.check_mode,
    )

    def make_plan() -> SmokePlan:
        return Planner(settings).make()

    try:
        with interruptible():
            plan = execute(module, make_plan, "cni_smoke")
    except Interrupted as signal:
        fail(module, HostError(f"ended by {signal}; what was being tried was taken back", code="interrupted"))
        raise
    result = result_of(module, plan)
    result["networks"] = [trial.row() for trial in plan.trials]
    failed = [trial for trial in plan.trials if trial.status == FAILED]
    if failed:
        module.fail_json(msg=_summary(plan.trials, failed), code="smoke_failed", **result)
    module.exit_json(**result)


def _summary(trials: List[Trial], failed: List[Trial]) -> str:
    tried = [trial for trial in trials if trial.status in (FAILED, PASSED)]
    messages = [str(trial.error["message"]) for trial in failed if trial.error]
    return f"{len(failed)} of {len(tried)} networks do not work: {'; '.join(messages)}"


if __name__ == "__main__":
    main()
