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
