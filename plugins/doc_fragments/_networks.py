# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sections of cni_host about networks, and sources of NetworkAttachmentDefinitions. Private to the collection."""

from __future__ import annotations

import textwrap

_SOURCES = """
manifests:
  description:
    - NetworkAttachmentDefinitions, as a list of mappings, or as text in YAML or JSON.
    - Other objects are ignored. Of two definitions with one name, the first one counts. Manifests come before files,
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
  description: Context in O(@PATH@nads.kubeconfig). The default is its current context.
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
  description:
    - Directory on the host with the networks of definitions that have no configuration of their own.
  type: path
  default: /etc/cni/multus/net.d
namespace_isolation:
  description:
    - Whether pods may only use definitions of their own namespace, and of O(@PATH@nads.global_namespaces).
  type: bool
  default: false
global_namespaces:
  description: Namespaces whose definitions all pods may use, with O(@PATH@nads.namespace_isolation).
  type: list
  elements: str
  default: [default]
"""
)


def _nads(options: str, path: str, text: str, depth: int) -> str:
    """Return the option ``nads`` as YAML, *depth* blanks deep. *path* names the option that it belongs to."""
    inner = textwrap.indent(options.replace("@PATH@", path).strip("\n"), "    ")
    return textwrap.indent(f"nads:\n  description:\n{text}  type: dict\n  suboptions:\n{inner}\n", " " * depth)


_NETWORKS_TEXT = """\
    - Networks from NetworkAttachmentDefinitions, in addition to those that are listed. Each gets the name of its
      manifest, because programs look for it by that name. A definition without a configuration is left out.
"""
_PODS_TEXT = """\
    - Where the annotations of pods find the networks that they name.
    - Used on the controller. A host gets the networks that its pods ask for, and no others.
"""


def nads_of_pods(path: str, depth: int) -> str:
    """Return the option ``nads`` of attachments as YAML, *depth* blanks deep. *path* precedes its suboptions."""
    return _nads(_OF_PODS, path, _PODS_TEXT, depth)


_SECTION = """
validate:
  description: See O(podwire.cni.cni_conf#module:validate).
  type: list
  elements: str
  choices: [syntax, schema, plugins, directory]
  default: [syntax, schema, plugins, directory]
strict:
  description: See O(podwire.cni.cni_conf#module:strict).
  type: bool
  default: false
exclusive:
  description: See O(podwire.cni.cni_conf#module:exclusive).
  type: bool
  default: false
mode:
  description: See O(podwire.cni.cni_conf#module:mode).
  type: raw
  default: "0644"
owner:
  description: See O(podwire.cni.cni_conf#module:owner).
  type: str
  default: root
group:
  description: See O(podwire.cni.cni_conf#module:group).
  type: str
  default: root
force:
  description: See O(podwire.cni.cni_conf#module:force).
  type: bool
  default: false
"""

_ENTRY = """
name:
  description: See O(podwire.cni.cni_conf#module:networks[].name).
  type: str
conflist:
  description: See O(podwire.cni.cni_conf#module:networks[].conflist).
  type: dict
content:
  description: See O(podwire.cni.cni_conf#module:networks[].content).
  type: str
src:
  description: See O(podwire.cni.cni_conf#module:networks[].src).
  type: str
priority:
  description: See O(podwire.cni.cni_conf#module:networks[].priority).
  type: int
file:
  description: See O(podwire.cni.cni_conf#module:networks[].file).
  type: str
drop_ins:
  description: See O(podwire.cni.cni_conf#module:networks[].drop_ins).
  type: list
  elements: dict
  suboptions:
    file:
      description: See O(podwire.cni.cni_conf#module:networks[].drop_ins[].file).
      type: str
      required: true
    plugin:
      description: See O(podwire.cni.cni_conf#module:networks[].drop_ins[].plugin).
      type: dict
    content:
      description: See O(podwire.cni.cni_conf#module:networks[].drop_ins[].content).
      type: str
replace:
  description: See O(podwire.cni.cni_conf#module:networks[].replace).
  type: bool
  default: false
state:
  description: See O(podwire.cni.cni_conf#module:networks[].state).
  type: str
  choices: [present, absent, restored]
  default: present
"""


def _section(name: str, text: str, required: str, more: str) -> str:
    return f"""
  {name}:
    description:
{text}
    type: dict
    suboptions:
      networks:
        description: See O(podwire.cni.cni_conf#module:networks).
        type: list
        elements: dict
{required}
        suboptions:
{textwrap.indent(_ENTRY.strip(), " " * 10)}
{_nads(_OF_NETWORKS, name + ".", _NETWORKS_TEXT, 6)}
{textwrap.indent(_SECTION.strip(), " " * 6)}
{more}
"""


_POD_NETWORKS = """\
      - Networks that pods request or that Multus runs, in files of a directory that no runtime reads.
      - A runtime that goes by order would use them as its own network otherwise. Its options are those of
        M(podwire.cni.cni_conf) that are about networks, and the directory."""
_CONF_DIR = """\
      conf_dir:
        description: Directory of these networks, the C(confDir) of Multus. It must not be that of O(networks).
        type: path
        default: /etc/cni/multus/net.d"""
_NETWORKS = """\
      - Networks. Its options are those of M(podwire.cni.cni_conf) that are about networks."""


class ModuleDocFragment:
    CONF = f"""
options:
{_nads(_OF_NETWORKS, "", _NETWORKS_TEXT, 2)}
"""

    HOST = f"""
options:
{_section("pod_networks", _POD_NETWORKS, "        default: []", _CONF_DIR)}
{_section("networks", _NETWORKS, "        required: true", "")}
"""
