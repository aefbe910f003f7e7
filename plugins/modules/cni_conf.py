#!/usr/bin/python
# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_conf
short_description: Validate and render CNI network configurations
version_added: 0.1.0
author:
  - podwire.cni authors (@podwire)
description:
  - Puts network configurations (conflists) into the directory that a container runtime reads, and takes them out again.
  - A configuration is validated on the controller before the host is touched. What is wrong is reported with file, JSON
    pointer, line and column, the rule, and what to write.
  - A file goes live by one rename within its directory, which every runtime's watcher notices, and is never seen half
    written. A crash at any point leaves the old file or the new one.
  - A configuration that is there already in another layout (order of keys, blanks, V(1500.0) for V(1500)) is left
    alone.
  - Files of others are never changed, and never deleted; at most they are adopted or set aside when that is asked for.
extends_documentation_fragment:
  - podwire.cni._common
  - podwire.cni._common.lock
  - podwire.cni._common.classes
  - podwire.cni._attributes
  - podwire.cni._attributes.group
options:
  networks:
    description:
      - The networks to have, or not to have. Networks that are not listed are left alone.
      - The list may be empty with O(configure) or O(ensure_effective).
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description:
          - Name of the network. It begins with a letter or digit and goes on with letters, digits, C(_), C(.) and C(-).
          - If omitted it is taken from the configuration. If the configuration has no name it gets this one.
          - Required for O(networks[].state=absent), and for O(networks[].state=restored) unless O(networks[].file) is
            given.
        type: str
      conflist:
        description:
          - The configuration as a mapping, a list of plugins or a single plugin's configuration, which becomes a list
            of one.
          - Put quotes around versions. C(cniVersion) must be a string, and YAML reads C(1.0) as a number.
          - Exactly one of O(networks[].conflist), O(networks[].content) and O(networks[].src) is needed for
            O(networks[].state=present); they are ignored for the other states.
        type: dict
      content:
        description:
          - The configuration as JSON text, for example from the lookup P(ansible.builtin.template#lookup). Numbers are
            kept as they are typed.
        type: str
      src:
        description:
          - A file on the controller with the configuration as JSON text, absolute or looked for as
            M(ansible.builtin.copy) does, in C(files/) of the role and beside the playbook. It is not templated.
        type: str
      priority:
        description:
          - The number that the file name begins with, V(0) to V(99). Runtimes that go by order take the file whose name
            sorts first.
          - If neither this nor O(networks[].file) is given, a network that is there keeps its file, and a new one gets
            V(10).
        type: int
      file:
        description:
          - Name of the file in O(conf_dir), with the extension C(.conflist). The default is C(PRIORITY-NAME.conflist).
          - Another file or priority for a network of ours renames its file.
          - Naming a file that is not ours adopts it; its original is kept in the collection's state directory.
          - For O(networks[].state=restored) the name that the file had, with any extension.
        type: str
      state:
        description:
          - Whether the network is to be there.
          - V(absent) removes the file that this module wrote. If it had been adopted, the original comes back beside
            it, with the extension C(.podwire-aside), which no runtime reads.
          - V(restored) brings back what was before. A file that was set aside gets its name back, and the original of
            an adopted file its place. A file of ours for that network is removed then. A network that replaced nothing,
            or is not known, is left alone.
        type: str
        choices: [present, absent, restored]
        default: present
  validate:
    description:
      - What to validate.
      - 'V(syntax): what libcni itself refuses, on the controller.'
      - 'V(schema): the keys, types and values of each known plugin, on the controller. Known are all reference plugins
        and many others; a type that is not known passes with an info. Needs the Python library jsonschema there.'
      - 'V(plugins): every plugin, IPAM plugin and delegate is in O(bin_dirs), may be executed, and supports the
        C(cniVersion) of its list, on the host.'
      - 'V(directory): the files of O(conf_dir) taken together (names, order, broken files and leftovers, chains,
        bridges, subnets, known security problems), and with the addresses and routes of the host, on the host.'
    type: list
    elements: str
    choices: [syntax, schema, plugins, directory]
    default: [syntax, schema, plugins, directory]
  strict:
    description:
      - Fail with every warning of O(validate) as with an error, before anything is written, in check mode as in a run.
      - What only check mode tolerates (a plugin or runtime that an earlier task of the run may install) stays a warning
        there; the run fails without it in any case.
    type: bool
    default: false
  exclusive:
    description:
      - Set aside every other regular file or link directly in O(conf_dir) that runtimes read, whoever wrote it. It is
        renamed within the directory to C(NAME.podwire-aside), and O(networks[].state=restored) brings it back.
      - Folders and kubeconfigs stay. A file that a running daemon writes, such as that of Calico, Cilium or Multus, is
        an error, which names the setting of the daemon to change.
    type: bool
    default: false
  runtime:
    description:
      - The runtimes that RV(effective) and O(ensure_effective) speak of. The default are those that are found on the
        host, by their processes, programs and configurations.
      - Each has the directories that its configuration says. One that is not on the host is taken as if it read
        O(conf_dir), unless its directory cannot be configured.
      - V(containerd) is the version that is there, and the newest known if none is. See the page runtimes of the
        documentation for what each of them does.
    type: list
    elements: str
    choices:
      - containerd
      - containerd-1.6
      - containerd-1.7
      - containerd-2.0
      - containerd-2.1
      - ctr
      - crio
      - openshift
      - dockershim
      - cri-dockerd
      - podman
      - nerdctl
      - nomad
      - nomad-bridge
      - buildkit
      - firecracker
      - multus
      - cnitool
      - k3s
      - rke2
      - microk8s
      - k0s
  ensure_effective:
    description:
      - Name of the network that the runtimes are to use. If one of them would use another one, or none, the task fails
        before anything is written.
      - A runtime that is told by name which network to use has to find this one.
      - If O(runtime) is not given, those runtimes of the host count that read O(conf_dir), of which there must be one.
    type: str
  configure:
    description:
      - Make the runtimes that O(runtime) names, of V(containerd), V(crio), V(nomad) and V(podman), read O(conf_dir) and
        look for plugins in O(bin_dirs). RV(effective) and O(ensure_effective) take them as they will be then.
      - CRI-O, Nomad, podman and containerd since 2.0 get a drop-in C(99-podwire-cni), and containerd an import of it.
        In containerd 1.6 and 1.7 an import would take the place of all other settings of CRI; there the lines of the
        file itself are changed, each with a comment that keeps what it was.
      - A runtime whose configuration says the same already is left alone. One that would not do what is wanted then, or
        would lose another setting, gets its configuration back, and the task fails.
      - No runtime is restarted, see RV(configured[].restart). The role P(podwire.cni.runtime#role) does that.
    type: dict
    suboptions:
      max_conf_num:
        description:
          - How many networks containerd uses at once, V(0) for all. What its configuration says, if not set.
        type: int
      setup_serially:
        description:
          - Whether containerd (since 1.7) calls its networks one after another. What its configuration says, if not
            set.
        type: bool
      state:
        description:
          - V(absent) takes out again what this option put in, and what was there before counts again.
        type: str
        choices: [present, absent]
        default: present
      wait:
        description:
          - For how many seconds to ask containerd and CRI-O until they have loaded the network of O(ensure_effective).
            The task fails if they have not by then.
          - A runtime whose configuration is changed by this task, or that has to be restarted, is not asked.
        type: float
        default: 0
  mode:
    description:
      - Mode of the files, as an octal number in quotes. It is corrected where it differs.
      - V(0600) is the remedy for the warning C(readable_secret), and what the CIS Kubernetes Benchmark asks for
        (1.1.9). Runtimes read the files as root.
    type: raw
    default: '0644'
  owner:
    description:
      - Owner of the files, a name or number.
    type: str
    default: root
  group:
    description:
      - Group of the files, a name or number.
    type: str
    default: root
  force:
    description:
      - Remove a network or set it aside, or change its name, bridge, subnet or ranges, although attachments of it are
        in O(cache_dir).
      - With O(networks[].state=absent) set aside a file that is not ours. With O(networks[].file) take over a file that
        is not ours and holds another network.
      - Remove plugins that Istio or Linkerd have put into a list of ours, and write a file that Cilium has renamed.
        They will do it again as long as they run.
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
- name: One bridge network
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

- name: One from a file on the controller, which sorts first, and one that is no longer wanted
  podwire.cni.cni_conf:
    networks:
      - src: net.json
        priority: 5
      - name: legacy
        state: absent

- name: One from a template
  podwire.cni.cni_conf:
    networks:
      - name: edge
        content: "{{ lookup('ansible.builtin.template', 'edge.conflist.j2') }}"

- name: Have one network only, and set aside what packages and former tools have left
  podwire.cni.cni_conf:
    exclusive: true
    networks:
      - name: apps
        src: apps.conflist

- name: Bring back a network and a file that were set aside
  podwire.cni.cni_conf:
    networks:
      - name: podman
        state: restored
      - file: 50-loopback.conf
        state: restored

- name: Let containerd and CRI-O read a directory of their own
  podwire.cni.cni_conf:
    conf_dir: /etc/cni/pods.d
    networks: []
    runtime: [containerd, crio]
    configure: {}

- name: Take over the file that a package has put there
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
      sample: apps
    path:
      description: Its file. V(null) for a network that is not there, and was not.
      type: str
      sample: /etc/cni/net.d/10-apps.conflist
    action:
      description:
        - The main thing that was done, one of V(none), V(created), V(updated), V(renamed), V(removed), V(adopted),
          V(restored), V(attributes), V(foreign), V(left) and V(failed). V(foreign) says that somebody else, such as
          Cilium, has taken the file away and would do so again, V(left) that O(classes) does not allow it, V(failed),
          which only check mode returns, that an error forbids it. All steps are in RV(actions).
      type: str
      sample: created
effective:
  description:
    - What each runtime of O(runtime) does with its directory as it is after this task, or would be in check mode, by
      name of the runtime. What O(classes) leaves counts as done.
  returned: success
  type: list
  elements: dict
  contains:
    runtime:
      description: Its name, one of those of O(runtime).
      type: str
      sample: containerd-1.7
    version:
      description: Its version, empty if it is not known.
      type: str
      sample: 1.7.24
    found:
      description: What says that it is on the host, empty if nothing does.
      type: str
      sample: a running containerd
    conf_dir:
      description: The directory that it reads (buildkit, the file). Empty if it reads none.
      type: str
      sample: /etc/cni/net.d
    bin_dirs:
      description: The directories where it looks for plugins.
      type: list
      elements: str
      sample: [/opt/cni/bin]
    network:
      description: The network that its containers get if nobody names one; V(null) if there is none.
      type: str
      sample: apps
    file:
      description: The file that it comes from; V(null) if it is in none.
      type: str
      sample: /etc/cni/net.d/10-apps.conflist
    reason:
      description: Why that one, or the error that leaves it without a network, and what could not be found out.
      type: str
      sample: 10-apps.conflist is the first file
    networks:
      description: All networks that it uses at once or finds by name, with their C(network) and C(file).
      type: list
      elements: dict
      sample:
        - network: apps
          file: /etc/cni/net.d/10-apps.conflist
    not_chosen:
      description:
        - Every other file of its directory, with its C(file), C(network) (V(null) if nobody can tell) and C(reason).
      type: list
      elements: dict
      sample:
        - file: /etc/cni/net.d/87-podman.conflist
          network: podman
          reason: 10-apps.conflist sorts before it
    verified:
      description: Whether its rules were compared with the runtime itself (V(run)) or are from its source (V(source)).
      type: str
      sample: run
configured:
  description: What becomes of the runtimes' own configurations.
  returned: success, with O(configure)
  type: list
  elements: dict
  contains:
    runtime:
      description: Its name.
      type: str
      sample: containerd-1.7
    action:
      description: One of V(none), V(configured), V(removed) and V(left).
      type: str
      sample: configured
    files:
      description: The files that are changed.
      type: list
      elements: str
      sample: [/etc/containerd/config.toml]
    service:
      description: What its service is usually called. Empty for podman, which has none.
      type: str
      sample: containerd
    restart:
      description:
        - Whether it runs with a configuration of before a change by this task or an earlier one, and has to be
          restarted.
      type: bool
      sample: true
    ready:
      description:
        - Whether the runtime itself says that its network is ready; V(null) if it was not asked. Asked are containerd
          and CRI-O, unless they have to be restarted.
      type: bool
    message:
      description: Why it is not ready.
      type: str
      sample: ''
    networks:
      description: The networks that it has loaded, in order, where it tells (containerd).
      type: list
      elements: str
      sample: [apps]
confirmed:
  description:
    - Whether the runtimes that run on this host and read O(conf_dir) have loaded what RV(effective) says. They are
      asked until they have, for at most two seconds in all; V(false) is a warning, too.
    - V(null) in check mode, and where there is none that can be asked. Those that can are containerd and CRI-O. A
      runtime that has to be restarted first (RV(configured)) is not asked.
  returned: success
  type: bool
  sample: true
problems:
  description: What the validation has found. Errors are there only if the task failed.
  returned: always
  type: list
  elements: dict
  contains:
    level:
      description: One of V(error), V(warning) and V(info).
      type: str
      sample: warning
    code:
      description: A stable word for the kind of problem; all of them are in the module's page of the documentation.
      type: str
      sample: unknown_key
    file:
      description:
        - Where it is, either a file on the controller or the host, or the place in the task such as
          V(networks[0].content).
      type: str
      sample: networks[0].conflist
    pointer:
      description: JSON pointer of the place in it. Empty for the whole.
      type: str
      sample: /plugins/0/isGatway
    line:
      description:
        - Line of the place, counted from 1. For O(networks[].conflist) it is the line in the playbook. V(null) if it is
          not known.
      type: int
      sample: 12
    column:
      description: Column of the place, counted from 1.
      type: int
      sample: 15
    message:
      description: What is wrong, which rule says so, and what to write.
      type: str
      sample: the plugin bridge has no key 'isGatway' and ignores it; did you mean 'isGateway'?
actions:
  description: The steps of the plan, the same in check mode and in a run.
  returned: always, except when the validation on the controller failed
  type: list
  elements: dict
  contains:
    kind:
      description:
        - One of V(configure), V(make_directory), V(create), V(write), V(rename), V(adopt), V(set_attributes),
          V(remove), V(set_aside), V(restore) and V(leave). V(leave) is no change; it shows what somebody else has made
          of our file.
      type: str
      sample: create
    target:
      description: Path that it acts on.
      type: str
      sample: /etc/cni/net.d/10-apps.conflist
    class:
      description:
        - V(safe) for content, mode and owner of our files; V(disruptive) for a removed network and for a changed name,
          bridge, subnet or range; V(foreign) for what a running daemon has done to our file, which is left so.
      type: str
      sample: safe
left:
  description: What was left as it is because O(classes) does not allow it, the same in check mode and in a run.
  returned: always, when there is a plan
  type: list
  elements: dict
  sample:
    - kind: remove
      target: /etc/cni/net.d/10-old.conflist
      class: disruptive
code:
  description: Stable word for what made the task fail; the code of the first error in RV(problems).
  returned: failure
  type: str
  sample: duplicate_name
"""

from ansible_collections.podwire.cni.plugins.module_utils._host.confrequest import (
    check_priority,
    read_attributes,
    read_file_name,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.networks import Request, Wanted, make_plan
from ansible_collections.podwire.cni.plugins.module_utils._host.paths import file_name
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.profiles import NAMES
from ansible_collections.podwire.cni.plugins.module_utils._module import (
    CLASSES_ARGUMENTS,
    COMMON_ARGUMENTS,
    LOCK_ARGUMENTS,
    create_module,
    execute,
    fail,
    finish,
    result_of,
)

NETWORK_ARGUMENTS = {
    "name": {"type": "str"},
    "conflist": {"type": "dict"},
    "content": {"type": "str"},
    "src": {"type": "str"},
    "priority": {"type": "int"},
    "file": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent", "restored"], "default": "present"},
}
CONFIGURE_ARGUMENTS = {
    "max_conf_num": {"type": "int"},
    "setup_serially": {"type": "bool"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "wait": {"type": "float", "default": 0},
}
LEVELS = ["syntax", "schema", "plugins", "directory"]


def read_network(index, given):
    """Return the Wanted of one entry of `networks`, as the action plugin hands it over: with name and rendered text."""
    present, restored = given["state"] == "present", given["state"] == "restored"
    named = given["name"] or (restored and given["file"])
    if not named or (present and given["content"] is None):
        raise HostError(
            "networks[%d]: its name and content are missing; the configuration is rendered by the action plugin of "
            "this module, so call it from a playbook or with 'ansible -m podwire.cni.cni_conf'" % index,
            code="not_rendered",
        )
    where = "networks[%d].file" % index
    if restored:
        file = given["file"] and file_name(given["file"], where)
        return Wanted(given["name"] or "", False, file=file, restored=True)
    return Wanted(
        given["name"],
        present,
        (given["content"] or "").encode("utf-8") if present else b"",
        read_file_name(given["file"], where),
        check_priority(given["priority"], "networks[%d].priority" % index),
    )


def read_settings(params):
    given = params["configure"]
    if given is None:
        return None
    # Only where runtimes are configured this is compiled.
    from ansible_collections.podwire.cni.plugins.module_utils._host.setup.change import Settings

    return Settings(
        params["conf_dir"],
        params["bin_dirs"],
        given["max_conf_num"],
        given["setup_serially"],
        present=given["state"] == "present",
        wait=given["wait"],
    )


def main():
    arguments = {
        "networks": {"type": "list", "elements": "dict", "required": True, "options": NETWORK_ARGUMENTS},
        "validate": {"type": "list", "elements": "str", "choices": LEVELS, "default": LEVELS},
        "strict": {"type": "bool", "default": False},
        "exclusive": {"type": "bool", "default": False},
        "runtime": {"type": "list", "elements": "str", "choices": list(NAMES)},
        "ensure_effective": {"type": "str"},
        "configure": {"type": "dict", "options": CONFIGURE_ARGUMENTS},
        "mode": {"type": "raw", "default": "0644"},
        "owner": {"type": "str", "default": "root"},
        "group": {"type": "str", "default": "root"},
        "force": {"type": "bool", "default": False},
    }
    arguments.update(COMMON_ARGUMENTS)
    arguments.update(LOCK_ARGUMENTS)
    arguments.update(CLASSES_ARGUMENTS)
    module = create_module(arguments, required_by={"configure": ["runtime"]})
    params = module.params
    try:
        request = Request(
            [read_network(index, given) for index, given in enumerate(params["networks"])],
            params["conf_dir"],
            params["bin_dirs"],
            params["cache_dir"],
            read_attributes(params["mode"], params["owner"], params["group"]),
            params["validate"],
            params["force"],
            tolerate_missing=module.check_mode,
            exclusive=params["exclusive"],
            runtimes=params["runtime"],
            ensure_effective=params["ensure_effective"],
            settings=read_settings(params),
            strict=params["strict"],
        )
    except HostError as error:
        fail(module, error)
    plan = execute(module, lambda: make_plan(request), "cni_conf")
    # Of what is only planned nothing can be loaded.
    confirmed, unconfirmed = (None, []) if module.check_mode else plan.confirm()
    for text in unconfirmed:
        plan.warn("not_confirmed", text)
    result = dict(result_of(module, plan), confirmed=confirmed)
    if params["configure"] is not None:
        result["configured"] = plan.configured
    finish(module, plan, networks=plan.networks, effective=plan.effective, problems=plan.problems, **result)


if __name__ == "__main__":
    main()
