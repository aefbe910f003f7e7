# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ADD, CHECK and DEL for containers: the request, the records, remains, the state of the kernel, and repair.

Public face: cache, drift, executors, in_place, kernel_drift, networks, outcome, planner, pod, pod_rows,
recording, records, remains, request, verbs.
"""
