# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The option of cni_info. Private to the collection."""

from __future__ import annotations

from ..module_utils._module import GATHER_ARGUMENTS
from ._specs import fragment

_GATHER = """\
gather:
  - What to gather. Everything else is V(null) in the result.
  - The default is everything.
  - V(audit) asks the runtimes, too, and runs the plugins of attachments that runtimes made with C(ADD) in private
    copies of the host. It remembers what that showed in C(/run/podwire-cni/rehearsals).
  - V(garbage) asks the runtimes that are found on the host which containers are alive.
  - V(runtime) asks containerd for its configuration, and other runtimes for their versions.
  - V(readiness) asks plugins for their C(STATUS), and containerd and CRI-O for what they have loaded. That takes up
    to five seconds for each that does not answer. It adds two containers of each network that a runtime would use
    in a private copy of the host, which takes a second or two a network, and at most 20 seconds in all; it
    remembers what that showed in C(/run/podwire-cni/experiments).
"""


class ModuleDocFragment:
    DOCUMENTATION: str = fragment(GATHER_ARGUMENTS, _GATHER)
