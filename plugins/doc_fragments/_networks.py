# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Sources of NetworkAttachmentDefinitions. Private to the collection."""

from __future__ import annotations

import textwrap

_SOURCES = """
manifests:
  description:
    - NetworkAttachmentDefinitions, as a list of mappings, or as text in YAML or JSON.
    - Other objects are ignored. If two definitions have one name, the first one counts. Manifests come before files,
      and files before a cluster.
  type: raw
src:
  description: Files of the controller with such manifests, absolute or relative as in M(ansible.builtin.copy).
  type: list
  elements: str
kubeconfig:
  description:
    - Path on the controller of a kubeconfig. The definitions of its cluster are read on the controller, by the lookup
      plugin of the collection C(kubernetes.core), which must be installed there. No host reads the cluster.
  type: path
context:
  description: Context in O(nads.kubeconfig). The default is its current context.
  type: str
"""

_OF_NETWORKS = (
    _SOURCES
    + """
namespace:
  description: Use the definitions of this namespace only. The default is all namespaces.
  type: str
"""
)

_OF_PODS = (
    _SOURCES
    + """
conf_dir:
  description: Directory on the host with the networks of definitions that have no configuration of their own.
  type: path
  default: /etc/cni/multus/net.d
namespace_isolation:
  description: Whether pods may only use definitions of their own namespace, and of O(nads.global_namespaces).
  type: bool
  default: false
global_namespaces:
  description: Namespaces whose definitions all pods may use, with O(nads.namespace_isolation).
  type: list
  elements: str
  default: [default]
"""
)


def _nads(options: str, text: str) -> str:
    """Return the option ``nads`` as YAML."""
    inner = textwrap.indent(options.strip("\n"), "    ")
    return textwrap.indent(f"nads:\n  description:\n{text}  type: dict\n  suboptions:\n{inner}\n", "  ")


_NETWORKS_TEXT = """\
    - Networks from NetworkAttachmentDefinitions, in addition to those that are listed. Each gets the name of its
      manifest, because programs look for it by that name. A definition without a configuration is left out.
"""
_PODS_TEXT = """\
    - Where the annotations of pods find the networks that they name.
    - Used on the controller. A host gets the networks that its pods ask for, and no others.
"""


NADS_OF_PODS = _nads(_OF_PODS, _PODS_TEXT)


class ModuleDocFragment:
    CONF: str = f"""
options:
{_nads(_OF_NETWORKS, _NETWORKS_TEXT)}
"""
