# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is tried: networks in a private copy of the host, on the host itself, and ADDs again in a private host.

Public face: audit, new_plugins, planner, preview, readiness, rehearsal, trial.
"""
