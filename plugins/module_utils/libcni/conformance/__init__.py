# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""Whether a plugin keeps the CNI specification: `python3 -m libcni conformance --plugin PATH`.

A tool for plugin authors and for operators who have a new binary; no module ships it to a host. It needs root, the
standard library, and iproute2 (`ip`, `tc`), which reads what the plugin did. It deliberately does not read with the
netlink code of this collection: plugins that are written with that code must not be judged by it.

`command` is the command line, `clauses` what is judged, `sandbox` the private copy of the host, `state` what is
compared, `calls` one call of a plugin, `subjects` what a plugin is given, `judge` the context of the checks, `checks_`
the checks, `report` the output.
"""
