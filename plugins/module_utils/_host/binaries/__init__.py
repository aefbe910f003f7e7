# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plugin binaries of a host: where they come from, which release they are, who uses them.

Public face: archive, checksum, download, outcome, packages, request, source, store, types, usable.
"""
