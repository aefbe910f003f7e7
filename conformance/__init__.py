# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Whether a plugin keeps the CNI specification: `python3 -m conformance PLUGIN`, see README.md.

A tool for authors of plugins; nothing of it reaches a host. It deliberately does not read with the netlink code of this
collection: plugins that are written with that code must not be judged by it.

`command` is the command line, `clauses` what is judged, `sandbox` the private copy of the host, `state` what is
compared, `calls` one call of a plugin, `subjects` what a plugin is given, `judge` the context of the checks, `checks_`
the checks, `report` the output.
"""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARIES = os.path.join(ROOT, "plugins", "module_utils")
if _LIBRARIES not in sys.path:
    # libcni is a part of the collection, and is not installed.
    sys.path.append(_LIBRARIES)
