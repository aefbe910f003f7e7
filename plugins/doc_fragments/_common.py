# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that the modules of the collection share. Private to the collection."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  conf_dir:
    description:
      - Directory of the network configurations that the runtime on the host reads.
      - Must be absolute. Set it once for all modules with C(module_defaults) and the action group
        C(group/podwire.cni.all).
    type: path
    default: /etc/cni/net.d
  bin_dirs:
    description:
      - Directories in which plugins are looked for, in this order.
      - Must be absolute. Root executes only regular ELF files that root owns, in directories that root owns and
        nobody else can write to.
    type: list
    elements: path
    default:
      - /opt/cni/bin
  cache_dir:
    description:
      - Directory in which libcni remembers attachments, below C(results/).
      - The default is private to this collection on purpose. A runtime's garbage collection deletes the attachments
        that it finds in V(/var/lib/cni) and does not know. Set it to V(/var/lib/cni) to share attachments with other
        libcni tools such as C(cnitool).
    type: path
    default: /var/lib/podwire/cni
requirements:
  - Python 3.8 or later on the managed host; nothing but its standard library
"""

    LOCK = r"""
options:
  lock_timeout:
    description:
      - How long to wait, in seconds, for another module of this collection that is changing the same host.
      - Only what changes something waits. Who had to wait plans again.
    type: float
    default: 60
"""

    CLASSES = r"""
options:
  classes:
    description:
      - Of which classes a step may be that is carried out. What needs a step of another class is left as it is, and its
        steps are in C(left) of the result instead of C(actions).
      - V(safe) are content, mode and owner of files of ours, binaries of ours, and what is missing. V(disruptive) takes
        containers off their networks for a moment, removes or renames a network, or changes what a runtime reads.
      - What hangs together is carried out whole or left whole. That is all of one call that is about binaries or about
        networks, and all that concerns one container.
    type: list
    elements: str
    choices: [safe, disruptive]
    default: [safe, disruptive]
"""
