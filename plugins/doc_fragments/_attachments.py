# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The options of attachments and pods, which several modules have. Private to the collection."""

from __future__ import annotations

import textwrap

from ._networks import NADS_OF_PODS

_POD = """
name:
  description: Name of the pod.
  type: str
  required: true
namespace:
  description: Namespace of the pod.
  type: str
  default: default
uid:
  description: UID of the pod. Empty if not set.
  type: str
infra_container_id:
  description: ID of the pod's sandbox. The default is the container ID.
  type: str
labels:
  description:
    - Labels of the pod. No runtime passes them to plugins. A plugin that declares the capability C(labels) gets them as
      a list of C(key) and C(value).
  type: dict
annotations:
  description:
    - Annotations of the pod, for plugins that declare the capability C(io.kubernetes.cri.pod-annotations). Values are
      text.
  type: dict
ports:
  description: Ports of the pod's containers. Those with a C(host_port) become the capability C(portMappings).
  type: list
  elements: dict
  suboptions:
    container_port:
      description: Port in the pod.
      type: int
      required: true
    host_port:
      description: Port of the host. Not mapped if not set.
      type: int
    protocol:
      description: Protocol.
      type: str
      choices: [tcp, udp, sctp]
      default: tcp
    host_ip:
      description: Address of the host. All addresses if not set.
      type: str
ingress_bandwidth:
  description:
    - Limit of the traffic to the pod in bits per second, as a quantity of Kubernetes such as V(10M). It becomes the
      annotation C(kubernetes.io/ingress-bandwidth) and the capability C(bandwidth).
  type: str
egress_bandwidth:
  description: The same for the traffic from the pod, with the annotation C(kubernetes.io/egress-bandwidth).
  type: str
dns:
  description: Settings of the resolver, for plugins that declare the capability C(dns).
  type: dict
  suboptions:
    servers:
      description: Addresses of the servers.
      type: list
      elements: str
    searches:
      description: Domains to search.
      type: list
      elements: str
    options:
      description: Options of the resolver, such as V(ndots:5).
      type: list
      elements: str
cgroup_path:
  description: Path of the pod's control group, for plugins that declare the capability C(cgroupPath).
  type: str
"""

_ENTRY = f"""
network:
  description: Name of the network, as configured by a file in O(conf_dir).
  type: str
  required: true
container_id:
  description:
    - Container ID. It consists of letters, digits, V(_), V(.) and V(-), and starts with a letter or digit.
    - The default is derived from the path of the namespace, as C(cnitool) does.
  type: str
netns:
  description:
    - Network namespace of the container. A name means C(/run/netns/NAME). A value with a slash is an absolute
      path, such as C(/proc/4711/ns/net).
    - Required to attach. Required to detach only if O(attachments[].container_id) is not set.
    - Namespaces are compared by identity, not by path.
    - The network namespace of the host itself is refused under any path (V(host_netns)).
  type: str
ifname:
  description: Name of the interface in the container.
  type: str
  default: eth0
args:
  description:
    - Arguments for C(CNI_ARGS), which older conventions use (such as V(IP) and V(MAC)).
    - Values are text. Numbers without a fraction become text. Booleans become V(true) and V(false). Names and
      values that contain C(;) or C(=) cannot be passed in C(CNI_ARGS) and are refused.
  type: dict
capability_args:
  description:
    - Capability args, such as C(portMappings) or C(ips). Plugins that declare a capability receive its data as
      C(runtimeConfig).
    - Arguments of known capabilities are validated before anything runs. Do not put numbers in quotes.
    - An argument whose capability no plugin of the network declares has no effect and causes a warning. A host
      port that is mapped twice, here or by another attachment on the host, also causes a warning.
  type: dict
pod:
  description:
    - The pod that the container belongs to. It becomes C(CNI_ARGS) and capability args exactly as containerd makes
      them (1.7 and later; 1.6 has no C(cgroupPath)), so that plugins which need a pod can be used without a cluster.
    - C(CNI_ARGS) is C(IgnoreUnknown), C(K8S_POD_NAMESPACE), C(K8S_POD_NAME), C(K8S_POD_INFRA_CONTAINER_ID) and
      C(K8S_POD_UID), followed by what the entry gives itself.
    - An argument or capability that the entry gives itself, although it comes from the pod, is refused.
    - With the annotation C(k8s.v1.cni.cncf.io/networks), the container is attached to O(attachments[].network), and
      then to each network that the annotation asks for. O(nads) defines them. They are attached and detached as one.
      If one fails, the others are taken back. A change of the annotation adds and removes only what differs.
    - If the network runs Multus or C(podwire-multinet), that plugin answers the annotation instead.
  type: dict
  suboptions:
{textwrap.indent(_POD.strip(), " " * 4)}
state:
  description:
    - V(present) attaches the container.
    - V(absent) detaches the container, with the cached configuration, namespace and arguments. A namespace that
      is gone or was replaced is not passed to the plugins. If DEL fails, the cache entry stays.
  type: str
  choices:
    - present
    - absent
  default: present
"""


class ModuleDocFragment:
    ATTACH: str = f"""
options:
  attachments:
    description:
      - The attachments, keyed by network, container and interface.
      - The entries of one container are attached in list order and detached in reverse order. Different containers are
        processed in parallel, after everything that is only detached.
      - All entries are validated before anything runs. A duplicate key, or an interface name that is used twice in one
        container, is refused. Check mode plans the other entries and fails at the end.
      - If one attachment fails, the others continue. The module fails at the end and reports all of them.
    type: list
    elements: dict
    required: true
    suboptions:
{textwrap.indent(_ENTRY, " " * 6)}
{NADS_OF_PODS}
"""

    POD: str = f"""
options:
  pod:
    description:
      - Test the networks as those of a pod. It becomes C(CNI_ARGS) and capability args, as in
        O(podwire.cni.cni_attach#module:attachments[].pod).
    type: dict
    suboptions:
{textwrap.indent(_POD, " " * 6)}
"""
