# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Conflists of a host: the request, the current state, the steps between them.

Public face: difference, effects, entries, owners, planner, request.
"""
