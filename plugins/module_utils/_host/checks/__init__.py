# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with networks: alone, in their directory, and on their host.

Public face: advisories, causes, directory, multus, other_programs, plugins, state, view.
"""
