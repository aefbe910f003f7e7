# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What dead containers left behind, with the evidence, and its removal.

Public face: candidate, freed, planner.
"""
