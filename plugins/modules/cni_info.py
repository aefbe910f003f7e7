#!/usr/bin/python

# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_info
short_description: Gather all that a host has of CNI
version_added: 0.1.0
author:
  - podwire.cni authors (@podwire)
description:
  - Returns configurations, plugin binaries, attachments, address reservations, the kernel's state and what of all this
    no live container seems to own, in one call.
  - Everything is sorted and nothing depends on the time of the call, so that two results can be compared.
  - Values of keys that look like secrets are masked. Kubeconfigs are never read.
  - Nothing is changed, and no plugin is run but with C(VERSION).
options:
  gather:
    description:
      - What to gather. What is left out is V(null) in the result.
      - The default is everything.
      - V(garbage) asks the runtimes that are found on the host which containers live.
      - V(runtime) asks containerd for its configuration, and others for their versions.
    type: list
    elements: str
    choices:
      - conf
      - plugins
      - attachments
      - leases
      - kernel
      - garbage
      - runtime
extends_documentation_fragment:
  - podwire.cni._common
  - podwire.cni._attributes.info
  - podwire.cni._attributes.group
seealso:
  - module: podwire.cni.cni_attach
  - module: podwire.cni.cni_conf
  - module: podwire.cni.cni_gc
  - module: podwire.cni.cni_plugins
"""

EXAMPLES = r"""
- name: Everything
  podwire.cni.cni_info:
  register: cni

- name: Which networks are there, and who is attached
  podwire.cni.cni_info:
    gather:
      - conf
      - attachments
"""

RETURN = r"""
conf:
  description: The files in O(conf_dir) that a runtime would read, in the order in which runtimes read them.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: Path of the file.
      type: str
      sample: /etc/cni/net.d/10-demo.conflist
    kind:
      description: Its extension.
      type: str
      choices: [conf, conflist, json]
    network:
      description: Name of the network, empty if it has none.
      type: str
      sample: demo
    cni_version:
      description: Version of the network, after negotiation.
      type: str
      sample: 1.0.0
    plugins:
      description: All plugins that the file makes a runtime execute, IPAM plugins and delegates included.
      type: list
      elements: str
      sample: [bridge, host-local]
    drop_ins:
      description: Files of the network's drop-in folder, whose plugins come after those of the file.
      type: list
      elements: str
      sample: []
    config:
      description: What the file says, with secrets masked; V(null) if it is no JSON or was not read.
      type: dict
    sha256:
      description: Digest of the file.
      type: str
    managed:
      description: Whether M(podwire.cni.cni_conf) wrote it.
      type: bool
    managed_as:
      description: The network that M(podwire.cni.cni_conf) wrote into it, empty if it did not.
      type: str
      sample: demo
    original:
      description: Whether the file of others that stood there before is kept, so that it can be restored.
      type: bool
    owner:
      description:
        - The daemon that writes such a file, by its plugins or its name, whether it is running or not; empty if it is
          ours or anybody's.
      type: str
      sample: Calico
    edited:
      description: Whether somebody else has changed it since.
      type: bool
    link:
      description: Whether it is a symbolic link.
      type: bool
    mode:
      description: Its mode, in octal.
      type: str
      sample: "0644"
    uid:
      description: Its owner.
      type: int
    gid:
      description: Its group.
      type: int
    error:
      description: Why no runtime can load it, empty if it can be loaded.
      type: str
aside:
  description: The files in O(conf_dir) that M(podwire.cni.cni_conf) has set aside, so that no runtime reads them.
  returned: success, with C(conf) among O(gather)
  type: list
  elements: dict
  contains:
    path:
      description: Where the file is now.
      type: str
      sample: /etc/cni/net.d/87-podman.conflist.podwire-aside
    original_path:
      description: Where it was.
      type: str
      sample: /etc/cni/net.d/87-podman.conflist
    network:
      description: Network that it holds, empty if nobody can tell.
      type: str
      sample: podman
    managed:
      description: Whether M(podwire.cni.cni_conf) wrote it.
      type: bool
plugins:
  description: The files in O(bin_dirs), by directory and name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the file, which is the plugin's type.
      type: str
      sample: bridge
    path:
      description: Path of the file.
      type: str
      sample: /opt/cni/bin/bridge
    link:
      description: Where a symbolic link points to, empty if it is none.
      type: str
    sha256:
      description: Digest of the file.
      type: str
    machine:
      description: Machine that an ELF file is for, in the words of C(uname -m); empty if it is no ELF file.
      type: str
      sample: x86_64
    cni_versions:
      description: Versions that the plugin supports. Empty if root does not run it, see RV(problems).
      type: list
      elements: str
      sample: [0.3.1, 0.4.0, 1.0.0]
    managed:
      description: Whether M(podwire.cni.cni_plugins) installed it.
      type: bool
    edited:
      description: Whether somebody else has replaced it since.
      type: bool
    original:
      description:
        - Whether a file of others that was here before M(podwire.cni.cni_plugins) first installed its own is kept, so
          that it can be restored.
      type: bool
    mode:
      description: Its mode, in octal.
      type: str
      sample: "0755"
    uid:
      description: Its owner.
      type: int
    gid:
      description: Its group.
      type: int
attachments:
  description:
    - The attachments that libcni remembers in O(cache_dir), by network, container and interface.
    - With them those that only the record beside the cache knows, see RV(attachments[].state).
  returned: success
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
      description: Path of the namespace at the time of the ADD.
      type: str
      sample: /run/netns/web
    netns_state:
      description:
        - V(same) is still the namespace of the ADD, V(other) is another one at the same path, V(gone) is none.
        - V(unknown) is for attachments that another tool made.
      type: str
      choices: [same, other, gone, unknown]
    interface:
      description: Whether the interface is there.
      type: bool
    state:
      description:
        - V(interrupted) is an ADD that did not come to its end, or could not be taken back.
        - V(lost) is an attachment whose cache entry is lost.
      type: str
      choices: [attached, interrupted, lost]
    cni_version:
      description: Version of the network at the time of the ADD.
      type: str
      sample: 1.0.0
    plugins:
      description: The plugins that were executed.
      type: list
      elements: str
      sample: [bridge, host-local]
    args:
      description: The arguments that were passed by C(CNI_ARGS).
      type: dict
    capability_args:
      description: The capability arguments.
      type: dict
    ips:
      description: The addresses that the ADD returned.
      type: list
      elements: str
      sample: [10.88.0.2/24]
    result:
      description: What the ADD returned.
      type: dict
    check_unusable:
      description: The failure of a CHECK that has never worked, with C(plugin), C(code) and C(message), else V(null).
      type: dict
leases:
  description: The reservations of host-local, by directory, network and address.
  returned: success
  type: list
  elements: dict
  contains:
    network:
      description: Name of the network.
      type: str
      sample: demo
    ip:
      description: The address.
      type: str
      sample: 10.88.0.2
    container_id:
      description: Id of the container, empty for an empty file.
      type: str
      sample: web
    ifname:
      description: Name of the interface, empty in files of old releases.
      type: str
      sample: eth0
    data_dir:
      description: host-local's directory.
      type: str
      sample: /var/lib/cni/networks
pools:
  description:
    - How full host-local's pools are, for each configured network that uses it. Returned with V(leases).
    - A network with addresses of both families has an entry for each, since a container needs one of both.
  returned: success
  type: list
  elements: dict
  contains:
    network:
      description: Name of the network.
      type: str
      sample: demo
    data_dir:
      description: host-local's directory.
      type: str
      sample: /var/lib/cni/networks
    family:
      description: Address family of the entry, V(ipv4) or V(ipv6).
      type: str
      sample: ipv4
    ranges:
      description: First and last address of each range.
      type: list
      elements: str
      sample: [10.88.0.1-10.88.0.254]
    size:
      description: How many addresses the ranges have for containers, gateways not counted.
      type: int
      sample: 253
    used:
      description: How many of them are reserved.
      type: int
      sample: 2
    free:
      description: How many of them are not reserved.
      type: int
      sample: 251
    outside:
      description: How many addresses are reserved that are in none of the ranges.
      type: int
      sample: 0
    owners:
      description: The reserved addresses (C(ips)) by C(container_id), which is empty for empty files.
      type: list
      elements: dict
      sample:
        - container_id: web
          ips: [10.88.0.2]
garbage:
  description:
    - What M(podwire.cni.cni_gc) would find with O(podwire.cni.cni_gc#module:scope) of all kinds and without regard to
      age; V(null) if a source of live containers cannot be asked, see RV(problems).
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: What it is, as in RV(podwire.cni.cni_gc#module:collected[].kind).
      type: str
      sample: lease
    network:
      description: Name of the network, empty if that is not known.
      type: str
      sample: demo
    id:
      description: What it is called.
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
    evidence:
      description: What was seen, in sentences.
      type: list
      elements: str
    collectable:
      description: Whether M(podwire.cni.cni_gc) would collect it once it is old enough.
      type: bool
    reason:
      description: Why, or why not, as in RV(podwire.cni.cni_gc#module:collected[].reason).
      type: str
      sample: owner_dead
runtime:
  description:
    - The runtimes of the host that use CNI, by name and directory, and what each does with the directory that it reads,
      as RV(podwire.cni.cni_conf#module:effective) has it.
  returned: success
  type: list
  elements: dict
  contains:
    runtime:
      description: Its name, one of those of O(podwire.cni.cni_conf#module:runtime).
      type: str
      sample: containerd-1.7
    version:
      description: Its version, empty if it is not known.
      type: str
      sample: 1.7.24
    found:
      description: What says that it is on the host.
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
      sample: demo
    file:
      description: The file that it comes from; V(null) if it is in none.
      type: str
      sample: /etc/cni/net.d/10-demo.conflist
    reason:
      description: Why that one, or the error that leaves it without a network, and what could not be found out.
      type: str
      sample: 10-demo.conflist is the first file
    networks:
      description: All networks that it uses at once or finds by name, with their C(network) and C(file).
      type: list
      elements: dict
    not_chosen:
      description:
        - Every other file of its directory, with its C(file), C(network) (V(null) if nobody can tell) and C(reason).
      type: list
      elements: dict
    verified:
      description: Whether its rules were compared with the runtime itself (V(run)) or are from its source (V(source)).
      type: str
      sample: run
kernel:
  description: The kernel's state.
  returned: success
  type: dict
  contains:
    links:
      description: The host's interfaces with C(name), C(kind), C(mac), C(mtu), C(up), C(master) and C(addresses).
      type: list
      elements: dict
    routes:
      description:
        - The host's unicast routes with C(family), C(dst), C(gateway), C(device), C(source), C(metric) and C(table).
        - The table local and routes to link-local neighbours are left out.
      type: list
      elements: dict
    attachments:
      description:
        - The interfaces of the attachments whose namespaces are there, with C(network), C(container_id), C(ifname),
          C(netns), C(kind), C(mac), C(mtu), C(up), C(addresses), C(routes), and C(host_interface), the other end of a
          veth. An interface that is gone has no kind, MAC and MTU.
        - C(differences) tells, as a list of sentences, in what interfaces, addresses, routes, bridge and firewall rules
          are not as the ADD left them.
      type: list
      elements: dict
problems:
  description:
    - What was found to be wrong, with C(level) (V(error), V(warning) or V(info)), C(code), C(file) and C(message).
    - See the module's page in the collection's docs for the codes.
  returned: success
  type: list
  elements: dict
  sample:
    - level: warning
      code: lease_empty
      file: /var/lib/cni/networks/demo/10.88.0.9
      pointer: ""
      line: null
      column: null
      message: "the reservation is empty: no DEL will ever free it"
"""

import os
from typing import Any, Callable, Dict, List

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._host import info_conf
from ..module_utils._host.errors import HostError
from ..module_utils._host.manifest import Manifest
from ..module_utils._host.problems import ERROR, problem
from ..module_utils._module import COMMON_ARGUMENTS, create_module, fail

SETS = ["conf", "plugins", "attachments", "leases", "kernel", "garbage", "runtime"]


def main() -> None:
    module = create_module(dict(COMMON_ARGUMENTS, gather={"type": "list", "elements": "str", "choices": SETS}))
    try:
        module.exit_json(changed=False, **gather(module))
    except HostError as error:
        fail(module, error)


def gather(module: AnsibleModule) -> Dict[str, Any]:
    params = module.params
    wanted = set(SETS if params["gather"] is None else params["gather"])
    result: Dict[str, Any] = dict.fromkeys([*SETS, "aside", "pools"])
    problems: List[Dict[str, Any]] = []
    workers = min(4, len(os.sched_getaffinity(0)) + 1)

    def attempt(read: Callable[[], Any], otherwise: Any) -> Any:
        """Return what *read* returns; what it cannot read is a problem and does not hide the rest."""
        try:
            return read()
        except HostError as error:
            problems.append(problem(ERROR, error.code, error.msg))
            return otherwise

    manifest = Manifest(tolerant=True)
    if manifest.error is not None:
        problems.append(problem(ERROR, manifest.error.code, manifest.error.msg))
    files, found = info_conf.scan_conf(params["conf_dir"]) if wanted & {"conf", "leases", "runtime"} else ([], [])
    problems.extend(found)
    nothing: Any = (None, [])
    if "conf" in wanted:
        result["conf"], found = attempt(lambda: info_conf.conf(files, params["conf_dir"], manifest), nothing)
        problems.extend(found)
        result["aside"] = info_conf.aside(params["conf_dir"], manifest)
    if "plugins" in wanted:
        result["plugins"], found = attempt(lambda: info_conf.plugins(params["bin_dirs"], manifest, workers), nothing)
        problems.extend(found)
    if wanted & {"attachments", "leases", "kernel"}:
        # What follows is much to compile, and not always asked for.
        from ..module_utils._host import info_attachments

        networks = attempt(lambda: info_conf.networks_of(files, params["conf_dir"]), [])
        cache = info_attachments.Cache(params["cache_dir"])
        if "attachments" in wanted:
            problems.extend(cache.problems)
            result["attachments"] = attempt(lambda: info_attachments.attachments(cache), None)
        if "leases" in wanted:
            leases = attempt(lambda: info_attachments.leases(networks, cache.entries), (None, None, []))
            result["leases"], result["pools"], found = leases
            problems.extend(found)
        if "kernel" in wanted:
            from ..module_utils._host.info_kernel import kernel

            result["kernel"], found = attempt(lambda: kernel(cache.entries, cache.records), nothing)
            problems.extend(found)
    if "garbage" in wanted:
        from ..module_utils._host.info_garbage import garbage

        result["garbage"], found = garbage(params["conf_dir"], params["bin_dirs"], params["cache_dir"])
        problems.extend(found)
    if "runtime" in wanted:
        from ..module_utils._host.runtimes.effective import Effective

        directories = params["conf_dir"], params["bin_dirs"]
        result["runtime"] = attempt(lambda: Effective(None, *directories, files, manifest).rows(), None)
    result["problems"] = problems
    return result


if __name__ == "__main__":
    main()
