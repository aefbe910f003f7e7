# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""One plan for a whole host: binaries, networks, runtimes, network namespaces and attachments.

Public face: plan, planner, request.
"""
