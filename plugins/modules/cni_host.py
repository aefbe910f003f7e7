#!/usr/bin/python
# Copyright (c) 2026 the podwire.cni authors; GNU General Public License v3.0+
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_host
short_description: Bring the CNI of a whole host to its desired state
version_added: 1.0.0
author:
  - podwire.cni authors (@podwire)
description:
  - Manages plugin binaries, networks, the settings of runtimes, network namespaces and attachments with one plan. Each
    section has the options of the module that manages the same things alone.
  - Each section is planned for the state that the sections before it will leave. In check mode, the networks are
    validated with the plugins that the same task would install, and the attachments with the networks that it would
    write.
  - The order is plugins, networks that pods request, networks, settings of runtimes, namespaces, attachments. Removals
    come after the attachments, in reverse order.
  - An error in one section does not stop the others, except those that depend on it. If a network cannot be written,
    no container is attached to it and no runtime is reconfigured. The task fails at the end and reports all errors.
  - A section that is not set is not touched.
extends_documentation_fragment:
  - podwire.cni._host
  - podwire.cni._common
  - podwire.cni._common.lock
  - podwire.cni._common.classes
  - podwire.cni._attributes
  - podwire.cni._attributes.group
options:
  audit:
    description:
      - Audit the attachments that container runtimes have made. Each is compared with a rehearsal of
        its plugins, and lost objects are put back in place, with steps of the class V(safe).
      - An attachment of a runtime is never detached. Objects that cannot be put back are reported with a step of the
        class V(foreign).
      - The audit is part of the plan like a section. It comes after the section O(attachments).
    type: bool
    default: false
  rehearse:
    description:
      - Before new plugins go live, run the ADD of every network with them in a private copy of the host. If it fails
        for a network with which the old plugins succeed, nothing is installed (V(rehearsal_failed)).
      - Networks that cannot be rehearsed cause a warning (V(not_rehearsed)). With O(plugins.force), nothing is
        rehearsed.
      - Has no effect in check mode.
    type: bool
    default: false
  gather:
    description:
      - What to read after the changes, or in check mode without them, as M(podwire.cni.cni_info) does. The result is in
        RV(info).
      - By default, nothing is read.
    type: list
    elements: str
    choices: [conf, plugins, attachments, leases, kernel, audit, garbage, runtime, readiness]
seealso:
  - module: podwire.cni.cni_plugins
  - module: podwire.cni.cni_conf
  - module: podwire.cni.cni_netns
  - module: podwire.cni.cni_attach
  - module: podwire.cni.cni_info
"""

EXAMPLES = r"""
- name: Bring a host to its desired state
  podwire.cni.cni_host:
    plugins:
      version: 1.9.1
      plugins: [bridge, host-local, portmap, loopback]
    networks:
      networks:
        - name: apps
          conflist:
            cniVersion: "1.0.0"
            plugins:
              - type: bridge
                bridge: apps0
                isGateway: true
                ipMasq: true
                ipam:
                  type: host-local
                  ranges: [[{subnet: 10.55.0.0/24}]]
                  routes: [{dst: 0.0.0.0/0}]
    netns:
      names: [web]
    attachments:
      attachments:
        - network: apps
          netns: web

- name: Repair what no running container notices
  podwire.cni.cni_host:
    networks:
      networks: "{{ cni_networks }}"
    attachments:
      attachments: "{{ cni_attachments }}"
      on_drift: repair
    classes: [safe]
"""

RETURN = r"""
plan:
  description:
    - All steps in the order in which they are taken, the same in check mode and in a run.
    - C(section) is the section. C(state) is V(planned) in check mode, and V(done), V(failed) or V(left_out) in a run.
  returned: always
  type: list
  elements: dict
  sample:
    - section: networks
      kind: write
      target: /etc/cni/net.d/10-apps.conflist
      class: safe
      state: planned
left:
  description:
    - Steps that were not taken, because O(classes) does not allow them or because they depend on such a step. Each has
      its C(section).
  returned: always
  type: list
  elements: dict
plugins:
  description:
    - The result of the section. C(plugins) is as in RV(podwire.cni.cni_plugins#module:plugins).
    - C(changed) tells whether the section changes anything, C(error) (with C(code) and C(message)) why it failed.
  returned: with O(plugins)
  type: dict
networks:
  description:
    - The result of the section. C(networks), C(effective), C(confirmed) and C(problems) are as in
      RV(podwire.cni.cni_conf#module:networks). C(changed) and C(error) are as in RV(plugins).
  returned: with O(networks)
  type: dict
runtime:
  description:
    - The result of the section. C(configured), C(effective), C(confirmed) and C(problems) are as in
      RV(podwire.cni.cni_conf#module:configured). C(changed) and C(error) are as in RV(plugins).
  returned: with O(runtime)
  type: dict
netns:
  description:
    - The result of the section. C(netns) is as in RV(podwire.cni.cni_netns#module:netns). C(changed) and C(error) are
      as in RV(plugins).
  returned: with O(netns)
  type: dict
attachments:
  description:
    - The result of the section. C(attachments) is as in RV(podwire.cni.cni_attach#module:attachments). C(changed) and
      C(error) are as in RV(plugins).
  returned: with O(attachments)
  type: dict
audit:
  description:
    - The result of O(audit). C(attachments) and C(shared) are as in RV(podwire.cni.cni_info#module:audit). C(changed)
      and C(error) are as in RV(plugins).
  returned: with O(audit)
  type: dict
info:
  description: What O(gather) asks for, as M(podwire.cni.cni_info) returns it. V(null) without O(gather).
  returned: always
  type: dict
findings:
  description:
    - The warnings, which are also printed. C(target) is that of a step in RV(plan), if the warning is about it.
    - In check mode, the level V(error) means that a run fails on it, unless an earlier task of the play makes what is
      missing.
  returned: always
  type: list
  elements: dict
  sample:
    - {level: warning, code: drifted, message: "demo/web/eth0 has drifted: eth0 is gone", target: demo/web/eth0}
problems:
  description: The problems of all sections, as in RV(podwire.cni.cni_conf#module:problems).
  returned: always
  type: list
  elements: dict
code:
  description: Error code of the first section that failed. V(contradiction) if two sections contradict each other.
  returned: failure
  type: str
  sample: contradiction
"""

from typing import Any, Dict, Iterable, List, Optional, Tuple

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._host.attachments.request import PRESENT
from ..module_utils._host.binaries.request import SourceNeeded
from ..module_utils._host.errors import HostError, coded
from ..module_utils._host.host.plan import HostPlan, errors_of_sections, results_of
from ..module_utils._host.host.planner import HostPlanner
from ..module_utils._host.host.request import SECTIONS_ARGUMENTS, HostRequest, bin_dir_of
from ..module_utils._host.lock import read_state
from ..module_utils._host.plan import workers_of
from ..module_utils._module import (
    CLASSES_ARGUMENTS,
    COMMON_ARGUMENTS,
    GATHER_ARGUMENTS,
    LOCK_ARGUMENTS,
    create_module,
    execute,
    fail,
    result_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..module_utils._host.binaries.outcome import Desired

ARGUMENTS: Dict[str, Any] = {
    # From the action plugin: about the source of the plugins, and why the networks are refused.
    "_source": {"type": "dict"},
    "_refused": {"type": "dict"},
    **SECTIONS_ARGUMENTS,
    "audit": {"type": "bool", "default": False},
    "rehearse": {"type": "bool", "default": False},
    **GATHER_ARGUMENTS,
    **COMMON_ARGUMENTS,
    **LOCK_ARGUMENTS,
    **CLASSES_ARGUMENTS,
}


def main() -> None:
    module = create_module(ARGUMENTS)
    params = module.params
    try:
        internal = (("plugins", "_source"), ("networks", "_refused"), ("pod_networks", "_refused"))
        for section, option in internal:
            if params[section] is not None:
                told = params[option]
                if option == "_refused":
                    told = (told or {}).get(section)
                params[section] = dict(params[section], **{option: told})
        common = {name: params[name] for name in COMMON_ARGUMENTS}
        sections = {name: params[name] for name in SECTIONS_ARGUMENTS}
        request = HostRequest(sections, common, params["audit"], module.check_mode)
        seen = read_state()
        plan = make(module, request)
    except SourceNeeded as needed:
        module.exit_json(changed=False, plugins_needed=needed.need)
    except HostError as error:
        fail(module, error)
    if not plan.changed and not module.check_mode:
        plan.remember(seen)
    result = results_of(plan, module.check_mode)
    result.update(result_of(module, plan), plan=plan.progress())
    del result["actions"]
    result["info"] = None
    if params["gather"]:
        # Imported here because most runs do not need it.
        from ..module_utils._host.info.gather import gather

        result["info"] = gather(params, params["gather"])
    errors = errors_of_sections(plan)
    if not errors:
        module.exit_json(**result)
    if not module.check_mode:
        result["changed"] = any(step.state == "done" for step in plan.steps)
    module.fail_json(msg=message_of(errors), code=errors[0][1].code, **result)


def message_of(errors: Iterable[Tuple[str, HostError]]) -> str:
    """Return all *errors* with their sections. What prevents several sections is told once."""
    sections: Dict[str, List[str]] = {}
    for section, error in errors:
        sections.setdefault(coded(error.msg, error.code), []).append(section)
    return "; ".join(f"{', '.join(dict.fromkeys(names))}: {text}" for text, names in sections.items())


def make(module: AnsibleModule, request: HostRequest) -> HostPlan:
    """Plan and, outside check mode, apply. Raises SourceNeeded if the controller must send plugins first."""
    workers = workers_of(request.sections.get("attachments", {}).get("parallel"))

    def run(wanted: Optional[Desired]) -> HostPlan:
        options = module.params["classes"], module.check_mode, module.params["rehearse"]
        return execute(module, lambda: HostPlanner(request, wanted, *options).make(), "cni_host", workers)

    options = request.sections.get("plugins")
    if options is None or request.state_of("plugins") != PRESENT:
        return run(None)
    # Imported late: a task without plugins does not need it.
    from ..module_utils._host.binaries.source import with_plugins

    return with_plugins(options, lambda: module.tmpdir, bin_dir_of(options), run)


if __name__ == "__main__":
    main()
