# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Several networks in a pod: the rules of Multus and its Working Group, without a cluster.

Nothing is imported here. The files, in the order in which they work on a pod:

- `configuration`: the configuration of the plugin `multus`
- `selection`: the annotation `k8s.v1.cni.cncf.io/networks`
- `definitions`: NetworkAttachmentDefinitions, and configurations in files
- `delegates`: the networks of a pod in their order
- `pod`: all of these for one pod, and the names of their interfaces
- `runtime`: what each network gets of `runtimeConfig` and CNI_ARGS
- `sources`: annotations and definitions on a host without a cluster
- `records`: what has been added to a pod
- `runner`: ADD in order with roll-back, CHECK, DEL in reverse
- `routes`: which network has the default route
- `status`: the annotation `k8s.v1.cni.cncf.io/network-status`

The rules are those of multus-cni at 95a0932 (v4.3.0-42) and of network-attachment-definition-client v1.7.6; the texts
of errors are not. Where Multus panics, there is an error here. What docs/multi-network.md lists differs on purpose.
"""
