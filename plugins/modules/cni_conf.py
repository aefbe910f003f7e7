#!/usr/bin/python
# Copyright (c) 2026 the podwire.cni authors; GNU General Public License v3.0+
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_conf
short_description: Validate and write CNI network configurations
version_added: 1.0.0
author:
  - podwire.cni authors (@podwire)
description:
  - Writes network configurations (conflists) to the directory that a container runtime reads, and removes them.
  - Validates each conflist on the controller before the host is touched. A problem is reported with the file, JSON
    pointer, line and column, the rule, and the correction.
  - Puts a file in place with one rename within its directory. Every runtime's watcher notices the rename, and no
    runtime sees a half-written file. A crash at any point leaves the old file or the new one.
  - Leaves a conflist alone if it differs only in layout (order of keys, white space, V(1500.0) instead of V(1500)).
  - Never changes or deletes unmanaged files. It adopts them or sets them aside, and only on request.
extends_documentation_fragment:
  - podwire.cni._common
  - podwire.cni._common.lock
  - podwire.cni._common.classes
  - podwire.cni._conf.validation
  - podwire.cni._conf.runtimes
  - podwire.cni._conf.files
  - podwire.cni._networks.conf
  - podwire.cni._attributes
  - podwire.cni._attributes.group
options:
  networks:
    description:
      - The networks to create, update, remove or restore. Networks that are not listed are left alone.
      - The list may be empty if O(configure), O(ensure_effective) or O(nads) is set.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description:
          - Name of the network. It starts with a letter or digit, followed by letters, digits, C(_), C(.) and C(-).
          - The default is the name in the conflist. A conflist without a name gets this name.
          - Required for O(networks[].state=absent), and for O(networks[].state=restored) unless O(networks[].file) is
            set.
        type: str
      conflist:
        description:
          - The conflist as a mapping, or the configuration of a single plugin, which becomes a conflist with one
            plugin.
          - Put quotes around versions. C(cniVersion) must be a string, but YAML reads C(1.0) as a number.
          - Exactly one of O(networks[].conflist), O(networks[].content) and O(networks[].src) is required for
            O(networks[].state=present). All three are ignored for the other states.
        type: dict
      content:
        description:
          - The conflist as JSON text, for example from the lookup P(ansible.builtin.template#lookup). Numbers are kept
            as they are written.
        type: str
      src:
        description:
          - A file on the controller that holds the conflist as JSON text. The path is absolute, or relative and
            searched for as by M(ansible.builtin.copy), in C(files/) of the role and beside the playbook. The file is
            not templated.
        type: str
      priority:
        description:
          - Number at the start of the file name, V(0) to V(99). Runtimes that take the first file use the one whose
            name sorts first.
          - If neither this nor O(networks[].file) is set, an existing network keeps its file, and a new one gets
            V(10).
        type: int
      file:
        description:
          - Name of the file in O(conf_dir), with the extension C(.conflist). The default is C(PRIORITY-NAME.conflist).
          - For a managed network, another file or priority renames its file.
          - The name of an unmanaged file adopts that file. Its original is kept in the state directory of the
            collection.
          - For O(networks[].state=restored), the former name of the file, with any extension.
        type: str
      drop_ins:
        description:
          - Plugins that are appended to the chain, each in a file of the folder C(NAME) in O(conf_dir). A conflist with
            C(loadOnlyInlinedPlugins) cannot have any.
          - Only runtimes with libcni 1.3 or later read them, see RV(effective[].drop_ins). Others cause the warning
            V(drop_in_ignored). Runtimes notice a drop-in only when the conflist is written, so a change writes it, too.
          - Managed drop-ins that are not listed are removed. Without this option, all stay as they are.
        type: list
        elements: dict
        suboptions:
          file:
            description: Name of the file, with the extension C(.conf). Runtimes read drop-ins in the order of names.
            type: str
            required: true
          plugin:
            description: Configuration of the plugin. Exactly one of this and C(content) is required.
            type: dict
          content:
            description: The same as JSON text.
            type: str
      replace:
        description:
          - Set aside the unmanaged files in O(conf_dir) that hold a network of this name, whatever their names. Each is
            renamed within the directory to C(NAME.podwire-aside) after the network's own file was written.
            O(networks[].state=restored) brings them back.
          - O(networks[].file) adopts a single C(.conflist) file instead, which keeps its name.
        type: bool
        default: false
      state:
        description:
          - Desired state of the network.
          - V(absent) removes the managed file. If the file was adopted, its original is put beside it, with the
            extension C(.podwire-aside), which no runtime reads.
          - V(restored) brings back the previous state. A file that was set aside gets its name back, the original of
            an adopted file gets its place back, and the managed file of that network is removed. A network that
            replaced nothing, or that is unknown, is left alone.
        type: str
        choices: [present, absent, restored]
        default: present
  exclusive:
    description:
      - Set aside every other regular file or link directly in O(conf_dir) that runtimes read, whoever wrote it. The
        file is renamed within the directory to C(NAME.podwire-aside). O(networks[].state=restored) restores it.
      - Directories and kubeconfigs stay. A file that a running daemon writes, such as Calico, Cilium or Multus, is an
        error. The message names the setting of the daemon to change.
    type: bool
    default: false
  force:
    description:
      - Remove a network, set it aside, or change what moves addresses, interfaces or rules, such as its name, bridge or
        ranges, even if O(cache_dir) has attachments to it.
      - With O(networks[].state=absent), set aside an unmanaged file. With O(networks[].file), take over an unmanaged
        file that holds another network.
      - Remove plugins that Istio or Linkerd inserted into a managed conflist, and write a file that Cilium renamed.
        These daemons repeat their change as long as they run.
    type: bool
    default: false
requirements:
  - jsonschema (on the controller, for the level V(schema) of O(validate))
seealso:
  - module: podwire.cni.cni_plugins
  - module: podwire.cni.cni_attach
  - module: podwire.cni.cni_info
"""

EXAMPLES = r"""
- name: Write one bridge network
  podwire.cni.cni_conf:
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
                ranges:
                  - - subnet: 10.55.0.0/24
                routes:
                  - dst: 0.0.0.0/0
            - type: portmap
              capabilities:
                portMappings: true

- name: Write a network from a file that sorts first, and remove another network
  podwire.cni.cni_conf:
    networks:
      - src: net.json
        priority: 5
      - name: legacy
        state: absent

- name: Write a network from a template
  podwire.cni.cni_conf:
    networks:
      - name: edge
        content: "{{ lookup('ansible.builtin.template', 'edge.conflist.j2') }}"

- name: Keep one network only, and set aside the files of packages and other tools
  podwire.cni.cni_conf:
    exclusive: true
    networks:
      - name: apps
        src: apps.conflist

- name: Restore a network and a file that were set aside
  podwire.cni.cni_conf:
    networks:
      - name: podman
        state: restored
      - file: 50-loopback.conf
        state: restored

- name: Make containerd and CRI-O read a directory of their own
  podwire.cni.cni_conf:
    conf_dir: /etc/cni/pods.d
    networks: []
    runtime: [containerd, crio]
    configure: {}

- name: Adopt a file that a package installed
  podwire.cni.cni_conf:
    networks:
      - name: podman
        file: 87-podman-bridge.conflist
        src: podman.conflist
"""

RETURN = r"""
networks:
  description: What happened, or would happen in check mode, to each network, in the order of O(networks).
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the network.
      type: str
    path:
      description: Path of its file. V(null) for a network that does not and did not exist.
      type: str
      sample: /etc/cni/net.d/10-apps.conflist
    action:
      description:
        - The main action, one of V(none), V(created), V(updated), V(renamed), V(removed), V(adopted), V(restored),
          V(attributes), V(foreign), V(left) and V(failed). RV(actions) lists all steps.
        - V(foreign) means that another program, such as Cilium, has taken the file away and would do so again.
          V(left) means that O(classes) does not allow the change. V(failed), which only check mode returns, means that
          an error prevents the change.
      type: str
      sample: created
effective:
  description:
    - What each runtime does with its directory as it is after this task, or would be in check mode. In the order of
      O(runtime), or sorted by name if that is not set. Steps that O(classes) does not allow count as done.
  returned: success
  type: list
  elements: dict
  contains:
    runtime:
      description: Name of the runtime, as in O(runtime).
      type: str
      sample: containerd-1.7
    version:
      description: Version of the runtime. Empty if it is unknown.
      type: str
      sample: 1.7.24
    found:
      description: Evidence that the runtime is on the host. Empty if there is none.
      type: str
      sample: a running containerd
    conf_dir:
      description: The directory that it reads (for buildkit, the file). Empty if it reads none.
      type: str
      sample: /etc/cni/net.d
    bin_dirs:
      description: The directories that it searches for plugins.
      type: list
      elements: str
      sample: [/opt/cni/bin]
    network:
      description: The network of containers that name no network. V(null) if there is none.
      type: str
    file:
      description: The file of that network. V(null) if it is in no file.
      type: str
      sample: /etc/cni/net.d/10-apps.conflist
    reason:
      description: Why it uses that network, or the error that leaves it without one, and what could not be determined.
      type: str
      sample: 10-apps.conflist is the first file
    networks:
      description: All networks that it uses at once or finds by name, each with C(network) and C(file).
      type: list
      elements: dict
      sample:
        - network: apps
          file: /etc/cni/net.d/10-apps.conflist
    through:
      description:
        - If RV(effective[].network) is Multus, the networks that it gives every pod, in order. Empty otherwise.
        - Each has C(network) (V(null) if its definition is in the cluster), C(interface) (V(null) for the first, whose
          interface the runtime names), C(file), and C(source) (V(delegates), or what the configuration names).
      type: list
      elements: dict
    not_chosen:
      description:
        - Every other file of its directory, with C(file), C(network) (V(null) if it cannot be determined) and
          C(reason).
      type: list
      elements: dict
      sample:
        - file: /etc/cni/net.d/87-podman.conflist
          network: podman
          reason: 10-apps.conflist sorts before it
    drop_ins:
      description: The drop-ins whose plugins the runtime appends to the networks that it loads.
      type: list
      elements: str
    verified:
      description:
        - Whether its rules were compared with the real runtime (V(run)) or are taken from its source code (V(source)).
      type: str
      sample: run
    requires:
      description:
        - The plugins that it executes although no file names them, with C(plugin), C(code) and C(problem).
        - Code and problem are empty if the runtime can execute the plugin.
      type: list
      elements: dict
      sample:
        - plugin: loopback
          code: ""
          problem: ""
configured:
  description: Changes to the configurations of the runtimes.
  returned: success, with O(configure)
  type: list
  elements: dict
  contains:
    runtime:
      description: Name of the runtime.
      type: str
      sample: containerd-1.7
    action:
      description: One of V(none), V(configured), V(removed) and V(left).
      type: str
      sample: configured
    files:
      description: The files that change.
      type: list
      elements: str
      sample: [/etc/containerd/config.toml]
    service:
      description: Usual name of its service. Empty for podman, which has none.
      type: str
      sample: containerd
    restart:
      description:
        - Whether the runtime has to be restarted, because it still runs with a configuration from before a change by
          this task or an earlier one.
      type: bool
    ready:
      description:
        - Whether the runtime itself reports that its network is ready. V(null) if it was not asked. The module asks
          containerd and CRI-O, unless they have to be restarted.
      type: bool
    message:
      description: Why it is not ready.
      type: str
    networks:
      description: The networks that it has loaded, in order, if it reports them (containerd only).
      type: list
      elements: str
      sample: [apps]
confirmed:
  description:
    - Whether a container started now would get its network. The runtimes that run on this host and read O(conf_dir)
      have loaded what RV(effective) says and report that it is ready, containers were added and their packets arrived
      in a private copy of the host, and nothing that RV(podwire.cni.cni_info#module:readiness) calls an error stands in
      between. The module asks them
      until they have loaded it, but for at most two seconds in all (Nomad ten). V(false) also causes a warning.
    - V(null) in check mode, and if no runtime can be asked, or one does not answer, which causes a warning, or has no
      network. containerd, CRI-O, Nomad's agent, and a podman that has run before can be asked. A runtime that has to be
      restarted first (RV(configured)) is not asked.
  returned: success
  type: bool
  sample: true
problems:
  description: Problems that the validation found. Errors are returned only if the task failed.
  returned: always
  type: list
  elements: dict
  contains:
    level:
      description: One of V(error), V(warning) and V(info).
      type: str
    code:
      description: Stable code for the kind of problem. The page validation of the documentation lists all codes.
      type: str
      sample: unknown_key
    file:
      description:
        - Location of the problem, which is a file on the controller or the host, or an option of the task such as
          V(networks[0].content).
      type: str
      sample: networks[0].conflist
    pointer:
      description: JSON pointer to the value. Empty for the whole file.
      type: str
      sample: /plugins/0/isGatway
    line:
      description: Line, counted from 1. For O(networks[].conflist), the line in the playbook. V(null) if it is unknown.
      type: int
      sample: 12
    column:
      description: Column, counted from 1. V(null) if it is unknown.
      type: int
      sample: 15
    message:
      description: What is wrong, which rule it breaks, and what to write.
      type: str
      sample: the plugin bridge has no key 'isGatway' and ignores it; did you mean 'isGateway'?
    vulnerability:
      description: Name of the vulnerability.
      returned: if the code is V(known_vulnerability)
      type: str
      sample: CVE-2019-9946
findings:
  description:
    - The warnings, which are also printed. C(target) is that of a step in RV(actions), if the warning is about it.
    - In check mode, the level V(error) means that a run fails on it, unless an earlier task of the play makes what is
      missing.
  returned: always
  type: list
  elements: dict
  sample:
    - {level: warning, code: temp_file, message: "/etc/cni/net.d/.ansible_tmp-x: left by another program", target: ""}
actions:
  description: The steps of the plan, the same in check mode and in a run.
  returned: always, except when the validation on the controller failed
  type: list
  elements: dict
  contains:
    kind:
      description:
        - One of V(configure), V(make_directory), V(create), V(write), V(rename), V(adopt), V(set_attributes),
          V(remove), V(set_aside), V(restore) and V(leave). V(leave) is not a change. It shows what another program did
          to a managed file.
      type: str
      sample: create
    target:
      description: Path of the file or directory.
      type: str
      sample: /etc/cni/net.d/10-apps.conflist
    class:
      description:
        - V(disruptive) if containers get something else after the step than before. A network goes, or its addresses,
          interfaces or rules move, or a runtime of the host chooses another network, even for a moment. V(safe) if not.
          V(foreign) for what a running daemon did to a managed file, which is left.
      type: str
    reason:
      description: The difference in a few words, without secrets. The header of the diff shows it, too.
      type: str
      sample: "bridge: mtu 1450, want 1500"
left:
  description: Steps that were not taken because O(classes) does not allow them, the same in check mode and in a run.
  returned: always, when there is a plan
  type: list
  elements: dict
  sample:
    - kind: remove
      target: /etc/cni/net.d/10-old.conflist
      class: disruptive
      reason: state is absent
code:
  description: Error code. The code of the first error in RV(problems).
  returned: failure
  type: str
  sample: duplicate_name
"""

# Mitogen takes only a file for a module that has the words "from ansible_collections." in it.
from ..module_utils._host.errors import HostError
from ..module_utils._host.networks.planner import plan_networks
from ..module_utils._host.networks.request import EFFECT_ARGUMENTS, NETWORKS_ARGUMENTS, RUNTIME_ARGUMENTS, conf_request
from ..module_utils._host.problems import rows
from ..module_utils._module import (
    CLASSES_ARGUMENTS,
    COMMON_ARGUMENTS,
    LOCK_ARGUMENTS,
    create_module,
    execute,
    fail,
    finish,
    result_of,
)

ARGUMENTS = {
    **NETWORKS_ARGUMENTS,
    **EFFECT_ARGUMENTS,
    **RUNTIME_ARGUMENTS,
    **COMMON_ARGUMENTS,
    **LOCK_ARGUMENTS,
    **CLASSES_ARGUMENTS,
}


def main():
    module = create_module(ARGUMENTS, required_by={"configure": ["runtime"]})
    try:
        request = conf_request(module.params, module.check_mode)
    except HostError as error:
        fail(module, error)
    plan = execute(module, lambda: plan_networks(request), "cni_conf")
    confirmed = None
    if plan.asks_runtimes(module.check_mode):
        # Imported late: a run that changes nothing asks nobody.
        from ..module_utils._host.trials.readiness import confirm_plan

        confirmed = confirm_plan(plan, request.bin_dirs)
    result = dict(result_of(module, plan), confirmed=confirmed)
    if module.params["configure"] is not None:
        result["configured"] = plan.configured
    finish(module, plan, networks=plan.networks, effective=plan.effective, problems=rows(plan.problems), **result)


if __name__ == "__main__":
    main()
