# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The options of attachments and pods, which several modules have. Private to the collection."""

from __future__ import annotations

from ..module_utils._host.attachments.request import ATTACHMENTS_ARGUMENTS, POD_ARGUMENTS
from ._networks import SOURCES
from ._specs import below, fragment

_OF_POD = """\
name: Name of the pod.
namespace: Namespace of the pod.
uid: UID of the pod. Empty if not set.
infra_container_id: ID of the pod's sandbox. The default is the container ID.
labels:
  - Labels of the pod. No runtime passes them to plugins. A plugin that declares the capability C(labels) gets them as
    a list of C(key) and C(value).
annotations:
  - Annotations of the pod, for plugins that declare the capability C(io.kubernetes.cri.pod-annotations). Values are
    text.
ports: Ports of the pod's containers. Those with a C(host_port) become the capability C(portMappings).
ports[].container_port: Port in the pod.
ports[].host_port: Port of the host. Not mapped if not set.
ports[].protocol: Protocol.
ports[].host_ip: Address of the host. All addresses if not set.
ingress_bandwidth:
  - Limit of the traffic to the pod in bits per second, as a quantity of Kubernetes such as V(10M). It becomes the
    annotation C(kubernetes.io/ingress-bandwidth) and the capability C(bandwidth).
egress_bandwidth: The same for the traffic from the pod, with the annotation C(kubernetes.io/egress-bandwidth).
dns: Settings of the resolver, for plugins that declare the capability C(dns).
dns.servers: Addresses of the servers.
dns.searches: Domains to search.
dns.options: Options of the resolver, such as V(ndots:5).
cgroup_path: Path of the pod's control group, for plugins that declare the capability C(cgroupPath).
"""

_OF_ATTACHMENT = """\
network: Name of the network, as configured by a file in O(conf_dir).
container_id:
  - Container ID. It consists of letters, digits, V(_), V(.) and V(-), and starts with a letter or digit.
  - The default is derived from the path of the namespace, as C(cnitool) does.
netns:
  - Network namespace of the container. A name means C(/run/netns/NAME). A value with a slash is an absolute
    path, such as C(/proc/4711/ns/net).
  - Required to attach. Required to detach only if O(attachments[].container_id) is not set.
  - Namespaces are compared by identity, not by path.
  - The network namespace of the host itself is refused under any path (V(host_netns)).
ifname: Name of the interface in the container.
args:
  - Arguments for C(CNI_ARGS), which older conventions use (such as V(IP) and V(MAC)).
  - Values are text. Numbers without a fraction become text. Booleans become V(true) and V(false). Names and
    values that contain C(;) or C(=) cannot be passed in C(CNI_ARGS) and are refused.
capability_args:
  - Capability args, such as C(portMappings) or C(ips). Plugins that declare a capability receive its data as
    C(runtimeConfig).
  - Arguments of known capabilities are validated before anything runs. Do not put numbers in quotes.
  - An argument whose capability no plugin of the network declares has no effect and causes a warning. A host
    port that is mapped twice, here or by another attachment on the host, also causes a warning.
pod:
  - The pod that the container belongs to. It becomes C(CNI_ARGS) and capability args exactly as containerd makes
    them (1.7 and later; 1.6 has no C(cgroupPath)), so that plugins which need a pod can be used without a cluster.
  - C(CNI_ARGS) is C(IgnoreUnknown), C(K8S_POD_NAMESPACE), C(K8S_POD_NAME), C(K8S_POD_INFRA_CONTAINER_ID) and
    C(K8S_POD_UID), followed by what the entry gives itself.
  - An argument or capability that the entry gives itself, although it comes from the pod, is refused.
  - With the annotation C(k8s.v1.cni.cncf.io/networks), the container is attached to O(attachments[].network), and
    then to each network that the annotation asks for. O(nads) defines them. They are attached and detached as one.
    If one fails, the others are taken back. A change of the annotation adds and removes only what differs.
  - If the network runs Multus or C(podwire-multinet), that plugin answers the annotation instead.
state:
  - V(present) attaches the container.
  - V(absent) detaches the container, with the cached configuration, namespace and arguments. A namespace that
    is gone or was replaced is not passed to the plugins. If DEL fails, the cache entry stays.
"""

_ATTACHMENTS = """\
attachments:
  - The attachments, keyed by network, container and interface.
  - The entries of one container are attached in list order and detached in reverse order. Different containers are
    processed in parallel, after everything that is only detached.
  - All entries are validated before anything runs. A duplicate key, or an interface name that is used twice in one
    container, is refused. Check mode plans the other entries and fails at the end.
  - If one attachment fails, the others continue. The module fails at the end and reports all of them.
nads:
  - Where the annotations of pods find the networks that they name.
  - Used on the controller. A host gets the networks that its pods ask for, and no others.
nads.conf_dir: Directory on the host with the networks of definitions that have no configuration of their own.
nads.namespace_isolation:
  Whether pods may only use definitions of their own namespace, and of O(nads.global_namespaces).
nads.global_namespaces: Namespaces whose definitions all pods may use, with O(nads.namespace_isolation).
"""

_POD = """\
pod:
  - Test the networks as those of a pod. It becomes C(CNI_ARGS) and capability args, as in
    O(podwire.cni.cni_attach#module:attachments[].pod).
"""


class ModuleDocFragment:
    ATTACH: str = fragment(
        ATTACHMENTS_ARGUMENTS,
        _ATTACHMENTS,
        SOURCES,
        below("attachments[].", _OF_ATTACHMENT),
        below("attachments[].pod.", _OF_POD),
    )

    POD: str = fragment({"pod": POD_ARGUMENTS}, _POD, below("pod.", _OF_POD))
