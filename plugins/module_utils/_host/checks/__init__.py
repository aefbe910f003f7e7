# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with networks: alone, in their directory, on their host, and for a runtime that would use them now.

Public face: advisories, directory, network, plugins, pools, ready, view.
"""
