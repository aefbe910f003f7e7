#!/usr/bin/python
# Copyright (c) 2026 the podwire.cni authors; GNU General Public License v3.0+
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cni_info
short_description: Gather the CNI state of a host
version_added: 1.0.0
author:
  - podwire.cni authors (@podwire)
description:
  - Returns the conflists, plugin binaries, attachments, address reservations and kernel state of a host, and leaks that
    no live container seems to own, in one call.
  - The result is sorted and does not depend on the time of the call, so that two results can be compared.
  - Values of keys that look like secrets are masked. Kubeconfigs are never read.
  - Changes nothing on the host. Runs plugins with C(VERSION), for V(readiness) among O(gather) with C(STATUS), and for
    V(audit) in private copies of the host.
extends_documentation_fragment:
  - podwire.cni._common
  - podwire.cni._attributes.info
  - podwire.cni._info
  - podwire.cni._attributes.group
seealso:
  - module: podwire.cni.cni_attach
  - module: podwire.cni.cni_conf
  - module: podwire.cni.cni_gc
  - module: podwire.cni.cni_plugins
"""

EXAMPLES = r"""
- name: Gather everything
  podwire.cni.cni_info:
  register: cni

- name: Gather the networks and their attachments
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
      description: Extension of the file.
      type: str
      choices: [conf, conflist, json]
    network:
      description: Name of the network. Empty if it has none.
      type: str
    cni_version:
      description: CNI version of the network, after negotiation.
      type: str
    plugins:
      description: All plugins that the file makes a runtime execute, including IPAM plugins and delegates.
      type: list
      elements: str
    drop_ins:
      description: Files of the network's drop-in directory, whose plugins come after those of the file.
      type: list
      elements: str
    managed_drop_ins:
      description: Those that M(podwire.cni.cni_conf) wrote.
      type: list
      elements: str
    config:
      description: Content of the file, with secrets masked. V(null) if it is not JSON or was not read.
      type: dict
    sha256:
      description: Digest of the file.
      type: str
    managed:
      description: Whether the file is managed, which means that M(podwire.cni.cni_conf) wrote it.
      type: bool
    managed_as:
      description: The network that M(podwire.cni.cni_conf) wrote to the file. Empty if the file is unmanaged.
      type: str
    original:
      description: Whether an unmanaged file that this file replaced is kept, so that it can be restored.
      type: bool
    used_by:
      description:
        - The runtimes of the host that take the network of this file, each with C(runtime) and C(plugins), the paths of
          the binaries that it runs for the file. V(null) if V(runtime) is not gathered.
      type: list
      elements: dict
      sample:
        - runtime: containerd-1.7
          plugins: [/opt/cni/bin/bridge, /opt/cni/bin/host-local]
    owner:
      description:
        - The daemon that writes files like this one, recognized by the plugins or the file name, whether it runs or
          not. Empty if the file is managed, or if no daemon is known to write such files.
      type: str
    edited:
      description: Whether another program has changed the managed file.
      type: bool
    link:
      description: Whether the file is a symbolic link.
      type: bool
    mode:
      description: Mode of the file, in octal.
      type: str
    uid:
      description: Owner of the file.
      type: int
    gid:
      description: Group of the file.
      type: int
    error:
      description: Why no runtime can load the file. Empty if it can be loaded.
      type: str
aside:
  description: The files in O(conf_dir) that M(podwire.cni.cni_conf) set aside, so that no runtime reads them.
  returned: success, with C(conf) among O(gather)
  type: list
  elements: dict
  contains:
    path:
      description: Current path of the file.
      type: str
      sample: /etc/cni/net.d/87-podman.conflist.podwire-aside
    original_path:
      description: Former path of the file.
      type: str
    network:
      description: Name of the network in the file. Empty if it is unknown.
      type: str
    managed:
      description: Whether M(podwire.cni.cni_conf) wrote it.
      type: bool
plugins:
  description: The files in O(bin_dirs), sorted by directory and name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the file, which is the type of the plugin.
      type: str
    path:
      description: Path of the file.
      type: str
    link:
      description: Target of a symbolic link. Empty if the file is not a link.
      type: str
    sha256:
      description: Digest of the file.
      type: str
    kind:
      description: What the file is, V(elf), V(script), or empty for anything else.
      type: str
      choices: [elf, script, '']
    machine:
      description: Machine of an ELF file, as in C(uname -m). Empty if the file is not an ELF file.
      type: str
    cni_versions:
      description: CNI versions that the plugin supports. Empty if root does not run it, see RV(problems). Scripts that
        M(podwire.cni.cni_plugins) did not install are not run.
      type: list
      elements: str
      sample: [0.3.1, 0.4.0, 1.0.0]
    managed:
      description: Whether the file is managed, which means that M(podwire.cni.cni_plugins) installed it.
      type: bool
    edited:
      description: Whether another program has replaced the managed file.
      type: bool
    original:
      description:
        - Whether an unmanaged file that existed before M(podwire.cni.cni_plugins) first installed its own is kept, so
          that it can be restored.
      type: bool
    mode:
      description: Mode of the file, in octal.
      type: str
    uid:
      description: Owner of the file.
      type: int
    gid:
      description: Group of the file.
      type: int
attachments:
  description:
    - The attachments that libcni caches in O(cache_dir), sorted by network, container and interface.
    - Also includes attachments that only the record beside the cache contains, see RV(attachments[].state).
  returned: success
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
      description: Path of the namespace at the time of the ADD.
      type: str
    netns_state:
      description:
        - V(same) means that the path still leads to the namespace of the ADD. V(other) means that another namespace has
          the same path. V(gone) means that no namespace has it.
        - V(hidden) means that the path leads nowhere, but that the attachment is alive.
        - V(unknown) is for attachments that another tool made.
      type: str
      choices: [same, other, gone, hidden, unknown]
    interface:
      description: Whether the interface exists.
      type: bool
    state:
      description:
        - V(interrupted) is an ADD that did not finish, or that could not be undone.
        - V(lost) is an attachment whose cache entry is lost.
      type: str
      choices: [attached, interrupted, lost]
    cni_version:
      description: CNI version of the network at the time of the ADD.
      type: str
    plugins:
      description: The plugins that were executed.
      type: list
      elements: str
    args:
      description: The arguments that were passed in C(CNI_ARGS).
      type: dict
    capability_args:
      description: The capability args.
      type: dict
    ips:
      description: The addresses that the ADD returned.
      type: list
      elements: str
    result:
      description: The result of the ADD.
      type: dict
    check_unusable:
      description:
        - Failure of a CHECK that has never passed, with C(plugin), C(code) and C(message). V(null) if there is none.
      type: dict
leases:
  description: The reservations of host-local, sorted by directory, network and address.
  returned: success
  type: list
  elements: dict
  contains:
    network:
      description: Name of the network.
      type: str
    ip:
      description: The address.
      type: str
    container_id:
      description: Container ID. Empty for an empty file.
      type: str
    ifname:
      description: Name of the interface. Empty in files of old releases.
      type: str
    data_dir:
      description: Data directory of host-local.
      type: str
pools:
  description:
    - Usage of the address pools of each configured network that uses host-local. Returned with V(leases).
    - A network with addresses of both families has one entry for each family, because a container needs an address of
      each.
  returned: success
  type: list
  elements: dict
  contains:
    network:
      description: Name of the network.
      type: str
    data_dir:
      description: Data directory of host-local.
      type: str
    family:
      description: Address family of the entry, V(ipv4) or V(ipv6).
      type: str
    ranges:
      description: First and last address of each range.
      type: list
      elements: str
      sample: [10.88.0.1-10.88.0.254]
    size:
      description: Number of addresses for containers in the ranges, without gateways.
      type: int
    used:
      description: Number of these addresses that are reserved.
      type: int
    free:
      description: Number of these addresses that are not reserved.
      type: int
    outside:
      description: Number of reserved addresses outside all ranges.
      type: int
    owners:
      description: The reserved addresses (C(ips)) by C(container_id), which is empty for empty files.
      type: list
      elements: dict
      sample:
        - container_id: web
          ips: [10.88.0.2]
audit:
  description:
    - The live attachments that container runtimes have made, compared with what their plugins do in a rehearsal.
  returned: success
  type: dict
  contains:
    attachments:
      description:
        - The attachments, sorted by network, container and interface.
        - C(network), C(container_id) and C(ifname) name one. C(netns) is a path to its namespace, C(cache_dir) the
          cache of libcni that has it, C(source) the runtime that has the container (empty if none has, or if it cannot
          be asked), C(ips) the addresses that the ADD returned.
        - C(compared) is V(fully) if everything that the ADD made was compared. If a plugin cannot be rehearsed, it is
          V(partly), C(why) says why, and the result of the ADD is compared.
        - C(differences) are phrases that say what has changed, such as C(the rules of its port mappings are gone).
      type: list
      elements: dict
    shared:
      description:
        - Objects that attachments share, and their changes. Each entry has C(network) (empty for what all networks
          share) and C(differences).
      type: list
      elements: dict
garbage:
  description:
    - The leaks that M(podwire.cni.cni_gc) would find with all kinds of O(podwire.cni.cni_gc#module:scope),
      of any age.
      The entries are those of RV(podwire.cni.cni_gc#module:collected), without C(addresses), C(action) and C(error),
      and with C(collectable) (whether the module would collect it once it is old enough).
    - V(null) if a source of live containers cannot be asked, see RV(problems).
  returned: success
  type: list
  elements: dict
  sample:
    - kind: lease
      network: demo
      id: 10.88.0.2
      container_id: web
      ifname: eth0
      evidence: ["no source names container web; asked: cache (3), podman (2)"]
      collectable: true
      reason: owner_dead
runtime:
  description:
    - The runtimes of the host that use CNI, sorted by name and directory, and what each does with the directory that it
      reads. The entries are those of RV(podwire.cni.cni_conf#module:effective).
  returned: success
  type: list
  elements: dict
readiness:
  description: Whether a container started now would get a working network, and what stands in between.
  returned: success
  type: dict
  contains:
    ready:
      description:
        - Whether it would with every runtime of the host that uses CNI.
        - V(null) if there is none, or if it is not known for one of them.
      type: bool
    runtimes:
      description:
        - A row for each runtime, and for each runtime handler that has its own directory.
        - C(runtime), C(handler), C(conf_dir) and C(network) name it. C(ready) is V(true), V(false), or V(null) if it is
          not known, and C(unknown) says why.
        - C(reported) is what the runtime itself reports through CRI, with C(ready), C(message) and C(networks). V(null)
          if it was not asked or does not answer.
        - C(status) has an entry for each network, with C(network), C(file), C(state) (V(ready), V(not_ready) or
          V(unknown)), C(code), C(plugin) and C(message). A plugin without STATUS is V(unknown).
      type: list
      elements: dict
    obstacles:
      description:
        - Obstacles to a container with a network, the worst first, then in the order in which a
          container meets it.
        - C(level) is V(error) if no container of the runtime gets its network, V(warning) if it concerns only some
          containers or cannot be decided, V(info) if it is no obstacle.
        - C(code) is stable; the page node-not-ready of the documentation lists all. C(message) says what is wrong,
          C(evidence) what was seen, C(remedy) what to do.
        - C(runtime) is empty if it concerns the host, C(network) if it concerns all networks, C(file) if there is none.
      type: list
      elements: dict
kernel:
  description: The state of the kernel.
  returned: success
  type: dict
  contains:
    links:
      description: Interfaces of the host, with C(name), C(kind), C(mac), C(mtu), C(up), C(master) and C(addresses).
      type: list
      elements: dict
    routes:
      description:
        - Unicast routes of the host, with C(family), C(dst), C(gateway), C(device), C(source), C(metric) and C(table).
        - The table local and routes to link-local neighbours are not included.
      type: list
      elements: dict
    attachments:
      description:
        - Interfaces of the attachments whose namespaces exist, with C(network), C(container_id), C(ifname), C(netns),
          C(kind), C(mac), C(mtu), C(up), C(addresses), C(routes), and C(host_interface), the host end of a veth. An
          interface that is gone has no kind, MAC and MTU.
        - C(differences) is a list of sentences. Each describes how an object of the attachment's footprint, or else of
          the result of its ADD, differs from what the ADD left.
      type: list
      elements: dict
    shared:
      description:
        - Lost objects that attachments share, with C(network) (empty for what all networks share) and C(differences).
      type: list
      elements: dict
problems:
  description:
    - Problems on the host, with C(level) (V(error), V(warning) or V(info)), C(code), C(file) and C(message).
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
      message: the lease is empty, so no DEL will ever free it
"""

# Mitogen takes only a file for a module that has the words "from ansible_collections." in it.
from ..module_utils._host.errors import HostError
from ..module_utils._host.info.gather import gather
from ..module_utils._module import COMMON_ARGUMENTS, GATHER_ARGUMENTS, SETS, create_module, fail


def main() -> None:
    module = create_module(dict(COMMON_ARGUMENTS, **GATHER_ARGUMENTS))
    sets = SETS if module.params["gather"] is None else module.params["gather"]
    try:
        module.exit_json(changed=False, **gather(module.params, sets))
    except HostError as error:
        fail(module, error)


if __name__ == "__main__":
    main()
