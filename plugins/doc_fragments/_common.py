# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Options that the modules of the collection share. Private to the collection."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  conf_dir:
    description:
      - Directory of the conflists that the runtime on the host reads.
      - Must be absolute. Set it once for all modules with C(module_defaults) and the action group
        C(group/podwire.cni.all).
    type: path
    default: /etc/cni/net.d
  bin_dirs:
    description:
      - Directories to search for plugins, in this order.
      - Must be absolute. Root executes only regular ELF files that root owns, in directories that root owns and
        that nobody else can write to.
    type: list
    elements: path
    default:
      - /opt/cni/bin
  cache_dir:
    description:
      - Directory in which libcni caches attachments, below C(results/).
      - The default is deliberately private to this collection, because a runtime's garbage collection deletes
        attachments in V(/var/lib/cni) that the runtime does not know. Set it to V(/var/lib/cni) to share attachments
        with other libcni tools such as C(cnitool).
    type: path
    default: /var/lib/podwire/cni
requirements:
  - Python 3.8 or later on the managed host, with the standard library only
"""

    LOCK = r"""
options:
  lock_timeout:
    description:
      - How long to wait, in seconds, for another module of this collection that is changing the same host.
      - Only a run that changes something waits. After waiting, it plans again.
    type: float
    default: 60
"""

    CLASSES = r"""
options:
  classes:
    description:
      - Classes of change this task may make. A change that needs a step of another class is not made, and its steps
        are returned in C(left) instead of C(actions).
      - V(safe) covers content, mode and owner of managed files, managed binaries, and creating what is missing.
        V(disruptive) covers steps that interrupt the network of a container for a moment, may send its packets
        another way, remove or rename a network, or change what a runtime reads.
      - Changes that depend on each other are applied together or not at all. These are all changes to binaries in one
        call, all changes to networks in one call, and all changes to one container.
    type: list
    elements: str
    choices: [safe, disruptive]
    default: [safe, disruptive]
"""
