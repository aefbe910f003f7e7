# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Sources of NetworkAttachmentDefinitions. Private to the collection."""

from __future__ import annotations

from ..module_utils._host.networks.request import NETWORKS_ARGUMENTS
from ._specs import fragment

SOURCES = """\
nads.manifests:
  - NetworkAttachmentDefinitions, as a list of mappings, or as text in YAML or JSON.
  - Other objects are ignored. If two definitions have one name, the first one counts. Manifests come before files,
    and files before a cluster.
nads.src: Files of the controller with such manifests, absolute or relative as in M(ansible.builtin.copy).
nads.kubeconfig:
  - Path on the controller of a kubeconfig. The definitions of its cluster are read on the controller, by the lookup
    plugin of the collection C(kubernetes.core), which must be installed there. No host reads the cluster.
nads.context: Context in O(nads.kubeconfig). The default is its current context.
"""

_OF_NETWORKS = """\
nads:
  - Networks from NetworkAttachmentDefinitions, in addition to those that are listed. Each gets the name of its
    manifest, because programs look for it by that name. A definition without a configuration is left out.
nads.namespace: Use the definitions of this namespace only. The default is all namespaces.
"""


class ModuleDocFragment:
    CONF: str = fragment(NETWORKS_ARGUMENTS, _OF_NETWORKS, SOURCES)
