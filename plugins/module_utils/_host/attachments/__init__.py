# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""ADD, CHECK and DEL for containers: the request, the store, remains, the state of the kernel, and repair.

Public face: caches, drift, outcome, planner, pod, pod_unit, recording, remains, request, store, verbs.
"""
