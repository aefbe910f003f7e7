# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Testing networks in a namespace that exists only for the test, and rehearsing ADDs in a private copy of the host.

Public face: audit, new_plugins, planner, preview, rebuilding, trial.
"""
