# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which network each container runtime uses, its settings, and whether it has loaded the network.

Public face: cri, discover, effective, loaded, nomad, profiles, rules, runtime, settings, setup, status, through.
"""
