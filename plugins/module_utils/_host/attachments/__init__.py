# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""ADD, CHECK and DEL for containers: the request, the records, remains, the state of the kernel, and repair.

Public face: cache, drift, executors, in_place, networks, outcome, planner, pod, pod_rows,
recording, records, remains, request, verbs.
"""
