# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Testing networks in a namespace that exists only for the test, and rehearsing ADDs in a private copy of the host.

Public face: audit, new_plugins, planner, preview, rehearsal, trial.
"""
